"""What has the words of other errors in its own: a log has no more of them than of those errors themselves."""

from __future__ import annotations

import pytest

from dataspace.in_logs import in_log
from dataspace.log.memory import MemoryLog
from keeve import Session
from keeve.errors import DeviceFailed, UpgradeFailed
from keeve.testing import memory_host
from snapshots.pages import BadPage
from tests.keeve.quoting import CANARY, caused, quoting, raising
from vat.devices.outcomes import fit_for_record, trace_of
from vat.failures import exception_of, failure_of


@pytest.mark.parametrize(("error", "told"), [(quoting(), "Quoting."), (ValueError("what is this?"), "what is this?")])
def test_of_an_upgrade_that_failed_a_log_has_what_it_has_of_any_error(error: Exception, told: str) -> None:
    failed = UpgradeFailed("s1", "notes.note", 1, error)
    assert str(error) in str(failed), "who asks is told"
    assert told in in_log(failed)
    assert "mend notes.note's upgrade()" in in_log(failed)
    assert "CANARY" not in in_log(failed)
    assert in_log(exception_of(failure_of(failed))) == "UpgradeFailed", "nobody knows what it quotes"


def test_of_what_a_device_raised_a_log_has_what_it_has_of_each_error_in_it() -> None:
    group = BaseExceptionGroup("two", [quoting(), ExceptionGroup("more", [ValueError("first"), quoting()])])
    failed = fit_for_record(group, "d.again", str)
    assert isinstance(failed, DeviceFailed)
    assert str(failed).count("CANARY") == 2, "who asks is told"
    assert "CANARY" not in in_log(failed)
    assert "d.again raised ExceptionGroup: two (2 sub-exceptions): Quoting; " in in_log(failed)
    assert "more (2 sub-exceptions): first; Quoting" in in_log(failed)
    assert in_log(exception_of(failure_of(failed))) == "DeviceFailed"
    assert in_log(fit_for_record(SystemExit("enough"), "d.again", str)).endswith("d.again raised SystemExit: enough")


def test_a_trace_that_is_kept_of_a_device_has_no_words_of_what_led_to_it() -> None:
    assert "CANARY" not in trace_of(caused(), str)
    assert "ValueError: a mistake" in trace_of(caused(), str)


async def test_what_is_wrong_with_a_snapshot_is_logged_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    log = MemoryLog()
    async with memory_host(log) as host:
        await (await host.spawn(Session, "s1")).snapshot()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vat.heap.restore.snapshot_heap", raising(BadPage(CANARY)))
        async with memory_host(log) as host:
            await (await host.get("s1")).status()
    assert "restored without snapshot" in caplog.text
    assert "BadPage" in caplog.text
    assert "CANARY" not in caplog.text

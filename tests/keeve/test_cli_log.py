"""`keeve log`: the past, what comes, and where to go on."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
import trio

from actors.session import Session
from keeve import open_host
from keeve.cli.log import tell_log, time_of
from keeve.cli.output import Output
from keeve.cli.reading import reading
from keeve.cli.stores import Files
from tests.cli_runner import keeve, keeve_process
from tests.cli_worlds import presence


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    chat(path, "s1", "hello", "again")
    chat(path, "s2", "elsewhere")
    return path


def chat(store: Path, id: str, *lines: str) -> None:
    assert keeve("chat", id, "--store", store, input="".join(f"{line}\n" for line in lines)).code == 0


def test_events_are_told_in_their_order_with_their_facts(store: Path) -> None:
    said = keeve("log", "(turn . _)", "--store", store)
    facts = [line[line.index("(") :] for line in said.out.splitlines()]
    assert [fact.partition(" #:request")[0] for fact in facts] == [
        '(turn 1 "s1" #:input "hello"',
        '(turn 2 "s1" #:input "again"',
        '(turn 1 "s2" #:input "elsewhere"',
    ]


def test_with_json_each_event_is_a_line_that_has_all_of_it(store: Path) -> None:
    [event, *_] = keeve("log", '(turn ?n "s1" #:input ?what . _)', "--store", store, "--json").lines
    assert (event["session"], event["seq"], event["kind"], event["label"]) == ("s1", 2, "assert", "turn")
    assert event["captures"] == {"n": 1, "what": "hello"}
    assert event["fields"] == [1, "s1"]
    assert event["keywords"]["input"] == "hello"
    assert event["cursor"].split(":")[1:] == [str(event["position"]), event["hash"]]


def test_one_session_alone_can_be_asked_for(store: Path) -> None:
    said = keeve("log", "(turn . _)", "--session", "s2", "--store", store, "--json")
    assert [event["session"] for event in said.lines] == ["s2"]


def test_with_lineage_a_fork_tells_what_came_before_it(store: Path) -> None:
    keeve("fork", "s1", "--into", "s3", "--store", store)
    chat(store, "s3", "further")
    own = keeve("log", "(turn . _)", "--session", "s3", "--store", store, "--json").lines
    assert [event["keywords"]["input"] for event in own] == ["further"]
    every = keeve("log", "(turn . _)", "--session", "s3", "--lineage", "--store", store, "--json").lines
    assert [event["keywords"]["input"] for event in every] == ["hello", "again", "further"]


def test_reading_goes_on_after_the_cursor_of_any_event(store: Path) -> None:
    """Invariant 31: on the command line too, what was read and what is read on are together the log."""
    whole = keeve("log", "(_ . _)", "--store", store, "--json").lines
    for number, event in enumerate(whole, 1):
        rest = keeve("log", "(_ . _)", "--after", event["cursor"], "--store", store, "--json").lines
        assert whole[:number] + rest == whole


def test_reading_can_begin_at_a_position_and_at_the_head(store: Path) -> None:
    [first, *_] = keeve("log", "(turn . _)", "--store", store, "--json").lines
    said = keeve("log", "(turn . _)", "--after", str(first["position"]), "--store", store, "--json")
    assert [event["keywords"]["input"] for event in said.lines] == ["again", "elsewhere"]
    assert keeve("log", "(turn . _)", "--after", "head", "--store", store).out == ""


def test_it_ends_after_as_many_as_were_asked_for(store: Path) -> None:
    assert len(keeve("log", "(_ . _)", "--limit", "2", "--store", store).out.splitlines()) == 2


async def test_the_log_of_a_store_that_is_owned_is_read_to_its_durable_end(store: Path) -> None:
    async with open_host(store) as host:
        await (await host.get("s1")).turn("while it is owned")
        said = keeve("log", "(turn . _)", "--session", "s1", "--store", store, "--json")
        assert said.lines[-1]["keywords"]["input"] == "while it is owned"


async def test_following_tells_what_was_and_then_what_comes_once_and_in_order(store: Path) -> None:
    """Invariant 31: followed from another process's side, while a host writes."""
    texts: list[str] = []

    class Listening(Output):
        def document(self, value: dict[str, dict[str, str]]) -> None:
            texts.append(value["keywords"]["input"])

    async with open_host(store) as host:
        session = await host.get("s1")
        with reading(store) as read:

            async def wait(seconds: float) -> None:
                raise EndOfWaiting

            class EndOfWaiting(Exception):
                pass

            async def follow(after: str) -> None:
                with pytest.raises(EndOfWaiting):
                    await tell_log(
                        Files(read, wait),
                        Listening(as_json=True),
                        "(turn . _)",
                        after=after,
                        session=None,
                        lineage=False,
                        limit=None,
                        follow=True,
                    )

            await follow("start")
            assert texts == ["hello", "again", "elsewhere"]
            for text in ("one", "two"):
                await session.turn(text)
                after = str(read.space.cursor)
                read.store.refresh()
                read.space.catch_up()
                await follow(after)
    assert texts == ["hello", "again", "elsewhere", "one", "two"]


async def test_a_follower_in_a_process_of_its_own_hears_what_is_said_here(store: Path) -> None:
    with keeve_process("log", "(turn . _)", "--after", "head", "--follow", "--limit", "2", "--store", store) as process:
        assert process.stdout is not None
        async with open_host(store) as host:
            session = await host.spawn(Session, "s9")
            # It begins at the head of whenever it is ready, so it is told again until it has heard enough.
            count = 0
            with trio.fail_after(60):
                while process.poll() is None:
                    await session.turn(f"turn {count}")
                    await trio.sleep(0.002)
                    count += 1
        assert process.returncode == 0
        heard = [line.split('#:input "turn ')[1].split('"')[0] for line in process.stdout.read().decode().splitlines()]
        assert int(heard[1]) == int(heard[0]) + 1


def test_ctrl_c_ends_following_quietly(store: Path) -> None:
    with keeve_process("log", "(turn . _)", "--follow", "--store", store) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert b"hello" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert process.stderr.read() == b""


def test_a_reader_that_goes_away_ends_it_quietly(store: Path) -> None:
    with keeve_process("log", "(_ . _)", "--follow", "--store", store) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        chat(store, "s1", "into the void", "and once more")
        assert process.wait() == 141
        assert process.stderr.read() == b""


def test_what_would_control_a_terminal_is_written_out(store: Path) -> None:
    chat(store, "s4", "a\x1b[2J\x9bb\u202ec")
    said = keeve("log", '(turn _ "s4" . _)', "--store", store)
    assert r'"a\u001b[2J\u009bb\u202ec"' in said.out


def test_a_retraction_is_told_as_one(tmp_path: Path) -> None:
    presence(tmp_path / "data")
    said = keeve("log", "(test.here . _)", "--store", tmp_path / "data", "--json")
    assert [event["kind"] for event in said.lines] == ["assert", "retract"]
    text = keeve("log", "(test.here . _)", "--store", tmp_path / "data").out
    assert [line.split(" (")[0][-1] for line in text.splitlines()] == ["+", "-"]


def test_a_record_that_cannot_be_read_is_named_and_the_others_are_told(store: Path) -> None:
    """Invariant 23: one damaged session does not hide what the others said."""
    [segment] = (store / "log").iterdir()
    data = bytearray(segment.read_bytes())
    data[data.index(b"again")] ^= 1
    segment.write_bytes(data)
    said = keeve("log", "(turn . _)", "--store", store, "--json")
    assert said.code == 1
    assert [(event["session"], event["kind"]) for event in said.lines] == [
        ("s1", "assert"),
        ("s1", "unreadable"),
        ("s2", "assert"),
    ]
    assert "session s1 cannot be read at seq 4" in keeve("log", "(turn . _)", "--store", store).err


def test_a_pattern_that_nothing_matches_is_said_to_match_nothing(store: Path) -> None:
    said = keeve("log", "(turn._)", "--store", store)
    assert (said.code, said.out, said.err) == (0, "", "no event matches (turn._)\n")
    assert keeve("log", "(turn._)", "--json", "--store", store).out == ""


# By time.


def timed(store: Path, *words: str) -> list[str]:
    said = keeve("log", "(turn ?n _ #:input ?what . _)", *words, "--store", store, "--json")
    assert said.code == 0
    return [event["captures"]["what"] for event in said.lines]


def test_what_was_recorded_between_two_times_is_told(store: Path) -> None:
    times = [event["time"] for event in keeve("log", "(turn . _)", "--store", store, "--json").lines]
    assert timed(store, "--after", times[0]) == ["again", "elsewhere"]
    assert timed(store, "--until", times[1]) == ["hello", "again"]
    assert timed(store, "--after", times[0], "--until", times[1]) == ["again"]
    assert timed(store, "--after", "2000-01-01") == ["hello", "again", "elsewhere"]
    assert timed(store, "--after", "2000-01-01T00:00+05:30", "--until", "2000-01-02T00:00:00Z") == []


def test_a_time_without_an_offset_is_of_the_zone_in_which_times_are_shown(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Etc/GMT-3")
    time.tzset()
    try:
        assert time_of("2026-11-30T03:00") == time_of("2026-11-30T00:00Z") is not None
    finally:
        monkeypatch.undo()
        time.tzset()


def test_it_ends_at_a_position(store: Path) -> None:
    [_, second, _] = keeve("log", "(turn . _)", "--store", store, "--json").lines
    assert timed(store, "--until", str(second["position"])) == ["hello", "again"]


def test_what_is_no_time_is_refused_and_so_is_an_end_of_what_goes_on(store: Path) -> None:
    said = keeve("log", "(_ . _)", "--after", "2026-13-40", "--store", store)
    assert (said.code, "'2026-13-40' is no time" in said.err) == (2, True)
    said = keeve("log", "(_ . _)", "--follow", "--until", "2026-11-30", "--store", store)
    assert (said.code, "give one of them" in said.err) == (2, True)


def test_of_a_fork_that_has_said_nothing_it_is_said_how_to_see_what_came_before(store: Path) -> None:
    keeve("fork", "s1", "--into", "s3", "--store", store)
    assert "--lineage" in keeve("log", "(turn . _)", "--session", "s3", "--store", store).err
    assert "--lineage" not in keeve("log", "(nothing . _)", "--session", "s1", "--store", store).err

"""Feeds decoders with what a coverage-guided fuzzer finds, until it finds one that raises another error than its own.

    python -m tests.fuzz_decoders SECONDS [DECODER ...]

Each decoder has so many seconds, in a process of its own, with 1 GB of memory and 10 s for one input. What was found is
kept in `.fuzz/` and is where the next run begins; an input that broke something is printed and written there as well.

The one rule: the fuzzer is imported where it runs. It is an extra, and everything else here does without.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

FOUND = Path(".fuzz")


def fuzz(name: str, seconds: int) -> None:
    """Feed one decoder. Does not return: the fuzzer ends the process."""
    import atheris

    with atheris.instrument_imports(include=["actors", "dataspace", "snapshots"]):
        from tests.decoders import DECODERS
    decoder = DECODERS[name]
    corpus = FOUND / name.replace(" ", "-")
    corpus.mkdir(parents=True, exist_ok=True)
    for number, sound in enumerate(decoder.sound):
        (corpus / f"sound-{number}").write_bytes(sound)

    def feed(data: bytes) -> None:
        with suppress(*decoder.errors):
            decoder.read(data)

    limits = [f"-max_total_time={seconds}", "-rss_limit_mb=1024", "-timeout=10", "-max_len=65536", "-verbosity=0"]
    atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={corpus}/broke-", str(corpus)], feed)
    atheris.Fuzz()


def main(seconds: int, names: list[str]) -> int:
    """Feed several, one after another; gives how many were broken."""
    broken = 0
    for name in names:
        print(f"{name}: {seconds} s", flush=True)
        command = [sys.executable, "-m", "tests.fuzz_decoders", "--one", str(seconds), name]
        broken += subprocess.run(command, check=False).returncode != 0
    print(f"{len(names)} decoders, {broken} broken")
    return broken


def every() -> list[str]:
    """The names of all decoders."""
    from tests.decoders import DECODERS

    return list(DECODERS)


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        fuzz(sys.argv[3], int(sys.argv[2]))
    else:
        sys.exit(min(1, main(int(sys.argv[1]), sys.argv[2:] or every())))

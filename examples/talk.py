"""A conversation that survives: say something, end the program, say something again.

    python examples/talk.py              # in ./data-examples/talk, or in a folder that you name

Run it twice: the second run goes on where the first one ended.
"""

from __future__ import annotations

import sys

from keeve import Session, blocking


def main(folder: str) -> None:
    with blocking.open_host(folder) as host:
        known = [session.id for session in host.sessions("talk")]
        s = host.get("talk") if known else host.spawn(Session, "talk")
        print(f"so far: {list(s.history)}")
        print(s.turn(f"hello, for the {len(s.history) + 1}. time"))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "./data-examples/talk")

"""The tools of the sessions that a browser looks at: one at once, one that fails, one that waits for a word."""

from __future__ import annotations

from keeve import Tools, tool


@tool
async def lines(count: int) -> str:
    """So many lines."""
    return "\n".join(f"{n:4} a line of what a tool has said, which is neither long nor short" for n in range(count))


@tool
async def fails(why: str) -> str:
    """Fails."""
    raise ValueError(why)


@tool(approval=True)
async def drop(table: str) -> str:
    """Drop a table."""
    return f"dropped {table}"


ALL = Tools(lines, fails, drop)

"""A server of the official package, for tests: started as a process of its own."""

from __future__ import annotations

import os
import sys

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.types import AudioContent, TextContent

server = MCPServer("tests", log_level="CRITICAL")


@server.tool(name="add.up")
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def pid() -> int:
    return os.getpid()


@server.tool()
def die() -> str:
    os._exit(3)


@server.tool()
def fail() -> str:
    raise ValueError("no such thing")


@server.tool()
def picture() -> Image:
    return Image(data=b"\x89PNG", format="png")


@server.tool()
def mixed() -> list[TextContent | AudioContent]:
    return [
        TextContent(type="text", text="hear"),
        AudioContent(type="audio", data="AAAA", mime_type="audio/wav"),
    ]


@server.tool()
def long(size: int) -> str:
    return "a" * size


@server.tool()
def chatter() -> str:
    print("this is no message of the protocol", flush=True)
    return "said"


@server.tool()
def secret() -> str:
    return f"the key is {os.environ.get('TOKEN')}"


@server.tool()
async def steps(context: Context) -> str:
    await context.report_progress(1, 2, "half")
    return "done"


@server.tool()
def marked(context: Context) -> str:
    meta = context.request_context.meta
    return str(meta and meta.get("keeve/effect"))


@server.tool()
async def hang(seconds: float = 60.0) -> str:
    import anyio

    await anyio.sleep(seconds)
    return "woke"


if __name__ == "__main__":
    if "--http" in sys.argv:
        server.run("streamable-http", port=int(sys.argv[-1]))
    else:
        server.run()

"""A model for sessions that a browser looks at: a chat completions service in a thread of this process.

What it says follows from what it is asked: `says(words)` gives a text, or the calls that it wants. It streams a text in
two pieces, and waits between them for as long as `go_on` is not set.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Says = Callable[[str], str | list[tuple[str, dict[str, Any]]]]
"""From the last words of the conversation to a text, or to names of tools with their arguments."""


class Model:
    """The service: `url` is what the server is told."""

    def __init__(self, says: Says) -> None:
        self.says = says
        self.go_on = threading.Event()
        self.go_on.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def environment(self) -> dict[str, str]:
        """The variables that name it to a server."""
        return {"KEEVE_MODEL": "small", "KEEVE_MODEL_URL": self.url}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:
                pass

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                last = asked["messages"][-1]
                said = "done" if last["role"] == "tool" else model.says(str(last["content"]))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                if isinstance(said, str):
                    half = len(said) // 2
                    self._send({"role": "assistant", "content": said[:half]})
                    model.go_on.wait()
                    self._send({"content": said[half:]}, "stop")
                else:
                    functions = [{"name": name, "arguments": json.dumps(given)} for name, given in said]
                    calls = [
                        {"index": n, "id": f"c{n}", "type": "function", "function": each}
                        for n, each in enumerate(functions)
                    ]
                    self._send({"role": "assistant", "tool_calls": calls}, "tool_calls")
                with suppress(BrokenPipeError):  # who asked is gone
                    self.wfile.write(b"data: [DONE]\n\n")

            def _send(self, delta: dict[str, Any], end: str | None = None) -> None:
                chunk = {"model": "small", "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
                self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                self.wfile.flush()

        return Handler


@contextmanager
def model(says: Says = lambda words: f"You said: {words}") -> Iterator[Model]:
    """A model, for as long as the block runs."""
    made = Model(says)
    thread = threading.Thread(target=made._server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield made
    finally:
        made.go_on.set()
        made._server.shutdown()
        made._server.server_close()
        thread.join()

"""The page in a browser, in a few seconds: what nothing less than a browser shows. `make page` looks at all of it."""

from __future__ import annotations

import re
from typing import Any

from tests.page.browsing import visiting
from tests.page.model import Model
from tests.server_process import Server


def test_a_conversation_as_it_comes_checked_by_the_browser(chrome: Any, served: Server, small: Model) -> None:
    with visiting(chrome, served) as visitor:
        page = visitor.page
        page.get_by_role("textbox", name="Id").fill("odd/id?#é")
        page.get_by_role("button", name="Make it").click()
        page.get_by_role("heading", name="odd/id?#é").wait_for()
        small.go_on.clear()
        visitor.say("hello <b>there</b>")
        visitor.sees("is answering")
        visitor.sees("hello <b>there</b>")
        small.go_on.set()
        visitor.sees("You said: hello <b>there</b>")
        page.get_by_role("button", name="Fork here, after turn 1").wait_for()
        assert "what is shown was said in them" in visitor.badge("chain", "good")
        assert "has signed" in visitor.badge("checkpoint", "good")
        assert visitor.barriers() == []
        # What the server says of a record is not taken for true.
        page.route("**/chain?*", lambda route: route.fulfill(response=(came := route.fetch()), body=other(came.text())))
        page.evaluate("localStorage.clear()")
        page.reload()
        visitor.badge("chain", "bad")


def other(text: str) -> str:
    """The same with another letter in what each record states."""
    return re.sub(r'("facts": ?".{60})(.)', lambda found: found[1] + ("A" if found[2] != "A" else "B"), text)

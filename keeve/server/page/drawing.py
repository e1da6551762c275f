"""Drawing: documents of HTML from templates, and what every one of them tells the browser.

Whatever a model, a tool or a person has said is text here. Templates escape all that they are given, none of them says
`safe`, and the policy lets the browser run nothing that is not a file of ours, should that ever fail.

The one rule: no text becomes HTML but a template's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from keeve.server.api import in_path
from keeve.server.page.said import as_text, beginning, in_line, is_long

POLICY: Final = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Nothing inline, nothing from elsewhere, and no text that becomes a script or a document."""

HEADERS: Final = {
    "content-security-policy": POLICY,
    # With no-referrer, which other answers say, browsers would send forms with the Origin null.
    "referrer-policy": "same-origin",
}


def moment(time: str) -> str:
    """A time as people read it, to the second, in UTC.

    >>> moment("2026-11-30T08:00:00.000001Z")
    '2026-11-30 08:00:00 UTC'
    """
    return f"{time[:10]} {time[11:19]} UTC"


TEMPLATES: Final = Environment(
    loader=PackageLoader("keeve.server.page"),
    autoescape=True,
    undefined=StrictUndefined,
    auto_reload=False,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters["in_path"] = in_path
TEMPLATES.filters["moment"] = moment
TEMPLATES.filters["words"] = as_text
TEMPLATES.filters["line"] = in_line
TEMPLATES.filters["beginning"] = beginning
TEMPLATES.tests["long"] = is_long


def drawn(template: str, context: Mapping[str, Any], status: int = 200) -> Response:
    """A document."""
    return HTMLResponse(TEMPLATES.get_template(template).render(context), status, HEADERS)

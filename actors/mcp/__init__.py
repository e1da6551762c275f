"""Tools from servers of the Model Context Protocol, through its official package (the extra `mcp`): `McpTools`.

`contents`, `connection` and `device` are private to the package; what is public is named here.
"""

from actors.mcp.connection import NotInstalled, ServerGone, ServerUnavailable
from actors.mcp.device import McpTools, NotFetched

__all__ = ["McpTools", "NotFetched", "NotInstalled", "ServerGone", "ServerUnavailable"]

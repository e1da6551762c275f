"""The server of tools is run in processes of its own, and imported in none of ours."""

collect_ignore = ["mcp_server.py"]

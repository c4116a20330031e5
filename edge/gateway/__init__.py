"""MCP tools, over the client."""

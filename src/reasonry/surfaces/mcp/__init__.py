"""The MCP server; `serve` runs it. Nothing is imported here, so that the command line can load single parts."""

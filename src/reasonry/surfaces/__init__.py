"""The surfaces: command line, MCP server, Python API."""

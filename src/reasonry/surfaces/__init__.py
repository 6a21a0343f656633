"""The surfaces: command line, MCP, HTTP, page, Python, and the set-up of agents."""

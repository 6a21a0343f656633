"""The surfaces: command line, HTTP, page, MCP, Python API, setup of agents."""

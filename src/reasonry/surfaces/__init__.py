"""The surfaces through which people and programs use the engine: command line, HTTP, page, MCP, Python, agent setup."""

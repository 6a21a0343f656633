"""The MCP server. This file imports nothing, so that each module can be loaded alone."""

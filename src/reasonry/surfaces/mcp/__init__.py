"""The MCP server, which `serve` runs. This file imports nothing, so that the command line can load single parts."""

"""The HTTP server. It serves the API, the OpenAI-compatible endpoint, MCP and the page. This file imports nothing."""

"""The HTTP server: the API, the OpenAI-compatible endpoint, MCP and the page. Nothing is imported here."""

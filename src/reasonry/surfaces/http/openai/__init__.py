"""The OpenAI-compatible endpoint: runs as chat completions and as responses."""

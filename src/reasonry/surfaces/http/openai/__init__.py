"""The OpenAI-compatible endpoint, which offers runs as chat completions and as responses."""

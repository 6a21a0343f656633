"""The OpenAI-compatible endpoint, which offers runs through the Chat Completions and Responses APIs."""

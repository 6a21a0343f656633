"""A strategy, tools, a verifier and a model for Reasonry; nothing is imported before it is named."""

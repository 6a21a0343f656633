"""A tool to play with, in a file that imports nothing: each process that is killed loads it anew."""


def search(query: str) -> str:
    """Finds things."""
    return f"What is known of {query[:40]}."

"""A tool of your own: looks a title up in a small almanac. No network.

Used by the pages of ReAct and ReWOO: `--tools examples/almanac.py:look_up`.
"""

ENTRIES = {
    "Emma": "Novel by Jane Austen, published on 23 December 1815.",
    "Frankenstein": "Novel by Mary Shelley, published on 1 January 1818.",
    "Jane Austen": "English novelist, born on 16 December 1775 in Steventon, died on 18 July 1817 in Winchester.",
    "Mary Shelley": "English novelist, born on 30 August 1797 in London, died there on 1 February 1851.",
    "Winchester": "City in Hampshire, England, on the river Itchen.",
}


def look_up(title: str) -> str:
    """Return the almanac's entry under a title; nothing is found by other words."""
    found = {name.casefold(): text for name, text in ENTRIES.items()}
    return found.get(title.strip().casefold(), f"no entry {title!r}; there are: {', '.join(ENTRIES)}")

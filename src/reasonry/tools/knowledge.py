"""Retrieval over the documents of a user: SQLite's full-text search ranks passages by BM25."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from msgspec.structs import replace

from ..errors import ToolError, UsageError
from .documents import Passage, read_documents

MAX_PASSAGES = 50
SMALL_CHARS = 3_000
"""Of all documents together: these are shown instead of searched."""
BEGINNING_CHARS = 200
MAX_LISTED = 20
"""Documents in an overview."""
_MAX_TERMS = 64
_WORD = re.compile(r"\w+")
_COMMON = frozenset(
    _WORD.findall(
        "a an and are as at be but by can could did do does for from had has have how i if in into is it its of on or "
        "our should so some such than that the their them then there these they this those to was we were what when "
        "where which who why will with would you your"
    )
)


class Library:
    """Documents that can be searched. Everything is held in memory; close it.

    Args:
        passages: Those of all documents.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        import apsw

        self.all_passages = list(passages)
        self.sources = list(dict.fromkeys(passage.source for passage in passages))
        self._lock = threading.Lock()
        self._database = apsw.Connection(":memory:")
        self._database.execute(
            "CREATE VIRTUAL TABLE passage USING fts5(text, tokenize='porter unicode61 remove_diacritics 2')"
        )
        self._database.executemany(
            "INSERT INTO passage (rowid, text) VALUES (?, ?)",
            ((number, passage.text) for number, passage in enumerate(self.all_passages)),
        )

    @classmethod
    def open(cls, paths: Sequence[str | Path]) -> Self:
        """Read files: text, Markdown, PDF.

        Raises:
            UsageError: One is missing, is neither text nor PDF, or is damaged.
            TooLargeError: One is too large, or all together are.
        """
        return cls(read_documents(paths))

    def passages(self, query: str, k: int = 5) -> list[Passage]:
        """Return the passages that fit best, best first; none if no word of the query occurs.

        Raises:
            UsageError: `k` is not from 1 to `MAX_PASSAGES`.
        """
        if not 1 <= k <= MAX_PASSAGES:
            raise UsageError(f"k must be from 1 to {MAX_PASSAGES}, got {k}", option="k")
        wanted = _match(query)
        if not wanted:
            return []
        with self._lock:
            rows = self._database.execute(
                "SELECT rowid, bm25(passage) FROM passage WHERE passage MATCH ? ORDER BY bm25(passage), rowid LIMIT ?",
                (wanted, k),
            )
            return [replace(self.all_passages[number], score=round(-score, 6)) for number, score in rows]

    def overview(self) -> dict[str, Any]:
        """Return what documents there are and how each begins; all of their passages, where they are small."""
        lengths = Counter[str]()
        begins: dict[str, str] = {}
        for passage in self.all_passages:
            lengths[passage.source] += len(passage.text)
            begins.setdefault(passage.source, passage.text[:BEGINNING_CHARS])
        listed = [
            {"source": source, "characters": lengths[source], "begins": begins[source]}
            for source in self.sources[:MAX_LISTED]
        ]
        if sum(lengths.values()) > SMALL_CHARS:
            return {"documents": listed}
        return {"documents": listed, "passages": [passage.document() for passage in self.all_passages]}

    def close(self) -> None:
        """Forget everything."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _match(query: str) -> str:
    """Write a query as one of FTS5: any of its words, each quoted, so that none is read as an operator."""
    words = list(dict.fromkeys(_WORD.findall(query.casefold())))
    telling = [word for word in words if word not in _COMMON] or words
    return " OR ".join(f'"{word}"' for word in telling[:_MAX_TERMS])


class DocumentSearch:
    """The tool `search_documents`.

    Args:
        library: What is searched.
    """

    name = "search_documents"

    def __init__(self, library: Library) -> None:
        self.library = library
        names = ", ".join(library.sources[:20])
        self.description = f"Find passages in the documents of the user, with where they stand: {names}."
        self.parameters: Mapping[str, Any] = {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for, in a few words."},
                "k": {"type": "integer", "description": "How many passages; 5 if not given."},
            },
            "required": ["query"],
        }

    def close(self) -> None:
        """Close the library."""
        self.library.close()

    async def call(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Search; with `overview`, say instead what documents there are.

        Raises:
            ToolError: The arguments are not those of the form.
        """
        if arguments.get("overview") is True:
            return self.library.overview()
        query, k = arguments.get("query"), arguments.get("k", 5)
        if not isinstance(query, str) or not query.strip():
            raise ToolError(f"{self.name} takes what to look for as the text `query`")
        if not isinstance(k, int):
            raise ToolError(f"{self.name}: k is a whole number")
        try:
            found = self.library.passages(query, k)
        except UsageError as error:
            raise ToolError(f"{self.name}: {error.message}") from None
        return {"passages": [passage.document() for passage in found]}

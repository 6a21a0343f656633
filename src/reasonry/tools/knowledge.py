"""Retrieval over the documents of a user: SQLite's full-text search ranks passages by BM25."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec
from msgspec import Struct

from ..errors import ToolError, UsageError
from .documents import Piece, read_documents

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


class Passage(Struct, frozen=True, omit_defaults=True):
    """A passage that fits a query.

    Attributes:
        source: The file as the user wrote it.
        score: Higher fits better; comparable within one query only.
        line: Where it begins in a text, from 1.
        page: Where it stands in a PDF, from 1.
    """

    source: str
    text: str
    score: float
    line: int | None = None
    page: int | None = None

    @property
    def citation(self) -> str:
        """Where it stands, in few characters."""
        return f"{self.source}, page {self.page}" if self.page else f"{self.source}, line {self.line}"

    def document(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return msgspec.to_builtins(self)


class Library:
    """Documents that can be searched. Everything is held in memory; close it.

    Args:
        pieces: The passages of all documents.
    """

    def __init__(self, pieces: Sequence[Piece]) -> None:
        import apsw

        self.pieces = list(pieces)
        self.sources = list(dict.fromkeys(piece.source for piece in pieces))
        self._lock = threading.Lock()
        self._database = apsw.Connection(":memory:")
        self._database.execute(
            "CREATE VIRTUAL TABLE passage USING fts5(text, tokenize='porter unicode61 remove_diacritics 2')"
        )
        self._database.executemany(
            "INSERT INTO passage (rowid, text) VALUES (?, ?)",
            ((number, piece.text) for number, piece in enumerate(self.pieces)),
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
            return [self._passage(number, -score) for number, score in rows]

    def overview(self) -> dict[str, Any]:
        """Return what documents there are and how each begins; all of their passages, where they are small."""
        lengths = Counter[str]()
        begins: dict[str, str] = {}
        for piece in self.pieces:
            lengths[piece.source] += len(piece.text)
            begins.setdefault(piece.source, piece.text[:BEGINNING_CHARS])
        listed = [
            {"source": source, "characters": lengths[source], "begins": begins[source]}
            for source in self.sources[:MAX_LISTED]
        ]
        if sum(lengths.values()) > SMALL_CHARS:
            return {"documents": listed}
        found = (Passage(piece.source, piece.text, 0.0, piece.line, piece.page) for piece in self.pieces)
        shown = [{k: v for k, v in passage.document().items() if k != "score"} for passage in found]
        return {"documents": listed, "passages": shown}

    def close(self) -> None:
        """Forget everything."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _passage(self, number: int, score: float) -> Passage:
        piece = self.pieces[number]
        return Passage(piece.source, piece.text, round(score, 6), piece.line, piece.page)


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

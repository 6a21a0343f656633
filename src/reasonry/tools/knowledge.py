"""The user's documents (text, Markdown, PDF), split into passages for search and citation.

SQLite's full-text search ranks the passages by BM25.
"""

import io
import logging
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from ..errors import TooLargeError, ToolError, UsageError
from ..system.plugins import check_extra
from ..system.processes import read_regular_file
from ..text import shorten
from .python import parameters_of

MAX_FILE_BYTES = 32 * 2**20
MAX_TEXT_CHARS = 128 * 2**20
"""The limit for the text of all documents together. A small PDF can contain much text."""
PASSAGE_CHARS = 1_200
MAX_PASSAGES = 50
SMALL_CHARS = 3_000
"""Documents are shown whole, instead of only listed, if they have at most this many characters together."""
BEGINNING_CHARS = 200
MAX_LISTED = 20
"""The most documents in an overview."""
_MAX_TERMS = 64
_WORD = re.compile(r"\w+")


class Passage(Struct, frozen=True, omit_defaults=True):
    """A passage of a document.

    Attributes:
        source: The file's path as the user wrote it, but only the last part of an absolute path.
        score: The relevance in a search. Higher is better. Scores of different queries are not comparable.
        line: The first line of the passage in a text file, from 1.
        page: The page of the passage in a PDF, from 1.
    """

    source: str
    text: str
    score: float = 0.0
    line: int | None = None
    page: int | None = None

    def document(self) -> dict[str, Any]:
        """Return the passage as JSON data."""
        return msgspec.to_builtins(self)


def read_document(path: str | Path) -> Iterator[Passage]:
    """Yield the passages of a file: text, Markdown or PDF.

    Raises:
        UsageError: The file is missing, a folder, not text, or an unreadable PDF.
        TooLargeError: The file exceeds `MAX_FILE_BYTES`.
    """
    source = str(path)
    raw = read_regular_file(Path(path).expanduser(), MAX_FILE_BYTES, label="document", option="context")
    if not raw.startswith(b"%PDF-"):
        return (Passage(source, text, line=line) for line, text in passages_of(_text_of(source, raw)))
    pages = enumerate(_pdf_pages(source, raw), 1)
    return (Passage(source, part, page=page) for page, text in pages for _, part in passages_of(text))


def passages_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, passage). Short paragraphs are joined. Long paragraphs are split between lines or words."""
    start, held = 1, ""
    for number, line in _short_lines(text):
        blank = not line.strip()
        if held and (len(held) + len(line) > PASSAGE_CHARS or (blank and len(held) > PASSAGE_CHARS // 2)):
            yield start, held.rstrip()
            held = ""
        if held or not blank:
            start = start if held else number
            held += line + "\n"
    if held:
        yield start, held.rstrip()


def _short_lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        begin = 0
        while len(line) - begin > PASSAGE_CHARS:
            cut = line.rfind(" ", begin + PASSAGE_CHARS // 2, begin + PASSAGE_CHARS)
            cut = cut if cut > 0 else begin + PASSAGE_CHARS
            yield number, line[begin:cut]
            begin = cut
        yield number, line[begin:]


def _text_of(source: str, raw: bytes) -> str:
    encoding = "utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        message = f"{source} is neither UTF-8 text nor a PDF"
        raise UsageError(message, option="context", file=source, choices=["text", "Markdown", "PDF"])
    return text


def _pdf_pages(source: str, raw: bytes) -> Iterator[str]:
    check_extra("documents", f"reading {source}")
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = pypdf.PdfReader(io.BytesIO(raw))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UsageError(f"{source} is locked with a password", option="context", file=source)
        yield from (page.extract_text() for page in reader.pages)
    except UsageError:
        raise
    except Exception as error:
        # A damaged PDF may raise any exception.
        message = f"the PDF {source} cannot be read: {type(error).__name__}: {error}"[:500]
        raise UsageError(message, option="context", file=source) from None


# -- searching


class _Search(Struct, frozen=True):
    query: Annotated[str, Meta(pattern=r"\S", description="The passages to look for, in a few words.")]
    k: Annotated[int, Meta(ge=1, le=MAX_PASSAGES, description="How many passages; 5 if not given.")] = 5


class Library:
    """Searchable documents, kept in memory until `close`. A library is also the tool `search_documents`."""

    name = "search_documents"
    parameters = parameters_of(_Search)

    def __init__(self, passages: Sequence[Passage]) -> None:
        import apsw

        self.all_passages = list(passages)
        names = list(dict.fromkeys(passage.source for passage in passages))[:20]
        self.description = (
            f"Find passages in the documents of the user, with where they stand: {', '.join(names)}."
        )
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
        """Open a library of text, Markdown and PDF files.

        A file with an absolute path is shown by its name, or by folder and name if two names are equal. So no
        absolute path reaches a model.

        Raises:
            UsageError: A file is missing, neither text nor PDF, or damaged.
            TooLargeError: A file, or all files together, exceed the limit.
        """
        found, total = list[Passage](), 0
        wholes = [path for path in map(str, paths) if Path(path).is_absolute()]
        counts = Counter(Path(path).name for path in dict.fromkeys(wholes))
        for path in dict.fromkeys(map(str, paths)):
            parts = Path(path).relative_to(Path(path).anchor).parts
            shown = Path(*parts[-1 - (counts[Path(path).name] > 1) :]) if path in wholes else path
            for passage in read_document(path):
                total += len(passage.text)
                if total > MAX_TEXT_CHARS:
                    message = f"the text of the documents is over {MAX_TEXT_CHARS // 2**20} MiB"
                    raise TooLargeError(message, option="context", limit=MAX_TEXT_CHARS, file=path)
                found.append(replace(passage, source=str(shown)))
        return cls(found)

    def passages(self, query: str, k: int = 5) -> list[Passage]:
        """Return up to `k` passages that contain a word of the query, best first."""
        words = list(dict.fromkeys(_WORD.findall(query.casefold())))
        if not words:
            return []
        # Match any of the words. Each word is quoted, so that no word is read as an operator.
        wanted = " OR ".join(f'"{word}"' for word in words[:_MAX_TERMS])
        with self._lock:
            rows = self._database.execute(
                "SELECT rowid, bm25(passage) FROM passage WHERE passage MATCH ? ORDER BY bm25(passage), rowid LIMIT ?",
                (wanted, k),
            )
            return [replace(self.all_passages[number], score=round(-score, 6)) for number, score in rows]

    def overview(self) -> dict[str, Any]:
        """List the documents, each with its beginning. If all documents together are small, add their whole text."""
        documents: dict[str, dict[str, Any]] = {}
        for passage in self.all_passages:
            begins = shorten(passage.text, BEGINNING_CHARS, one_line=True)
            row = {"source": passage.source, "characters": 0, "begins": begins}
            documents.setdefault(passage.source, row)["characters"] += len(passage.text)
        listed = {"documents": list(documents.values())[:MAX_LISTED]}
        if sum(row["characters"] for row in documents.values()) > SMALL_CHARS:
            return listed
        return listed | {"passages": [passage.document() for passage in self.all_passages]}

    def close(self) -> None:
        """Close the search index. After that, the library cannot be searched."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def call(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Search the documents, or list them if `overview` is set."""
        if arguments.get("overview") is True:
            return self.overview()
        try:
            asked = msgspec.convert(arguments, _Search)
        except msgspec.ValidationError as error:
            raise ToolError(f"{self.name}: {error}") from None
        return {"passages": [passage.document() for passage in self.passages(asked.query, asked.k)]}

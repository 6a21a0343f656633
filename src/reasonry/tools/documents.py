"""Documents that a user gives: text, Markdown and PDF, read into passages that can be cited."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ..errors import TooLargeError, UsageError
from ..extras import check_extra
from ..regular_files import read_regular_file

MAX_FILE_BYTES = 32 * 2**20
MAX_TOTAL_BYTES = 128 * 2**20
MAX_TEXT_CHARS = 32 * 2**20
"""Of one file, once it is text: a small PDF may hold much."""
MAX_PAGES = 5_000
PASSAGE_CHARS = 1_200

_PDF_MAGIC = b"%PDF-"


class Passage(Struct, frozen=True, omit_defaults=True):
    """A passage of a document.

    Attributes:
        source: The file as the user wrote it.
        score: Of a search: higher fits better; comparable within one query only.
        line: Line it begins at, from 1; of a text.
        page: Page it stands on, from 1; of a PDF.
    """

    source: str
    text: str
    score: float = 0.0
    line: int | None = None
    page: int | None = None

    @property
    def citation(self) -> str:
        """Where it stands, in few characters."""
        return f"{self.source}, page {self.page}" if self.page else f"{self.source}, line {self.line}"

    def document(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return msgspec.to_builtins(self)


def read_document(path: str | Path) -> list[Passage]:
    """Read a file.

    Raises:
        UsageError: It is missing, no file, not text, or a PDF that cannot be read.
        TooLargeError: It is over `MAX_FILE_BYTES`, or holds too much.
    """
    source = str(path)
    raw = read_regular_file(Path(path).expanduser(), MAX_FILE_BYTES, label="document", option="context")
    if raw.startswith(_PDF_MAGIC):
        return list(_pdf_passages(source, raw))
    return [Passage(source, text, line=line) for line, text in passages_of(_text_of(source, raw))]


def read_documents(paths: Sequence[str | Path]) -> list[Passage]:
    """Read files, together at most `MAX_TOTAL_BYTES` of text.

    Raises:
        UsageError: One cannot be read.
        TooLargeError: One is too large, or all of them are.
    """
    passages: list[Passage] = []
    total = 0
    for path in dict.fromkeys(map(str, paths)):
        found = read_document(path)
        total += sum(len(passage.text) for passage in found)
        if total > MAX_TOTAL_BYTES:
            raise _too_large("the text of the documents together", MAX_TOTAL_BYTES)
        passages += found
    return passages


def passages_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, passage): paragraphs that fit together, longer ones cut between lines or words."""
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


def _pdf_passages(source: str, raw: bytes) -> Iterator[Passage]:
    size = 0
    for page, text in enumerate(_pdf_pages(source, raw), 1):
        size += len(text)
        if size > MAX_TEXT_CHARS or page > MAX_PAGES:
            raise _too_large(f"the text of {source}", MAX_TEXT_CHARS, file=source)
        for _, passage in passages_of(text):
            yield Passage(source, passage, page=page)


def _pdf_pages(source: str, raw: bytes) -> Iterator[str]:
    check_extra("documents", f"reading {source}")
    import io

    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = pypdf.PdfReader(io.BytesIO(raw))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UsageError(f"{source} is locked with a password", option="context", file=source)
        pages: Any = reader.pages
        for page in pages:
            yield page.extract_text()
    except UsageError:
        raise
    except Exception as error:
        # A damaged PDF fails in as many ways as there are readers' assumptions.
        reason = f"{type(error).__name__}: {error}"[:200]
        raise UsageError(
            f"the PDF {source} cannot be read: {reason}", option="context", file=source
        ) from None


def _too_large(subject: str, limit: int, **details: Any) -> TooLargeError:
    return TooLargeError(f"{subject} is over {limit // 2**20} MiB", option="context", limit=limit, **details)

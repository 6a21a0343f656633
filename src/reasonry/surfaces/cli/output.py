"""What commands print: one JSON document, or text for people."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ...core.text import escaped_json, inert
from ...errors import ReasonryError, UsageError


def print_document(document: Any) -> None:
    """Print one JSON document on standard output, and nothing else."""
    _write(sys.stdout, _json_text(document))


def print_line(text: str = "") -> None:
    """Print one line on standard output, inert."""
    _write(sys.stdout, inert(text))


def write_text(path: Path, content: Any) -> None:
    """Write a document as JSON, without characters that act unseen, or text as it is, to a file.

    Raises:
        UsageError: The file cannot be written.
    """
    text = content if isinstance(content, str) else _json_text(content) + "\n"
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise _unwritable(path, error) from None


def _json_text(document: Any) -> str:
    return escaped_json(json.dumps(document, ensure_ascii=False, indent=2))


def check_writable(path: Path) -> None:
    """Let a path pass that `write_text` can write to; nothing is left there, and what is there stays as it is.

    Raises:
        UsageError: The file cannot be written.
    """
    try:
        there = path.exists()
        if there and not (path.is_file() or path.is_dir()):
            return  # a pipe would notice
        with path.open("ab"):
            pass
        if not there and not path.is_symlink():
            path.unlink()
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{path} cannot be written: {error.strerror}", path=str(path))


def print_note(text: str) -> None:
    """Print a line for people on standard error, inert."""
    _write(sys.stderr, inert(text))


def print_warnings(document: dict[str, Any]) -> None:
    """Print what a result warns of, as notes."""
    for warning in document["warnings"]:
        print_note(f"warning: {warning}")


def print_error(error: ReasonryError) -> None:
    """Print one clear message on standard error."""
    print_note(f"reasonry: {error.message}")


def _write(stream: Any, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    stream.flush()

"""Programs that ask: one ends where it needs an answer about a piece of a long text, and is run again with those known.

So nothing but data lives between two runs of it.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, Final

from .text import cut

_SIGNAL: Final = "<<signal>>"
"""What begins the line in which a program asks, or ends with the answer."""
_PROLOGUE: Final = """context = {context!r}
_known, _asked = {known!r}, [0]

def _locate(piece):
    text = str(piece)
    start = context.find(text)
    return [start, len(text)] if text and start >= 0 else text[:{max_chars}]

def ask_all(question, pieces):
    pieces = list(pieces)
    first = _asked[0]
    _asked[0] = first + len(pieces)
    if _asked[0] <= len(_known):
        return _known[first:_asked[0]]
    missing = [_locate(piece) for piece in pieces[max(0, len(_known) - first):]]
    _signal("ask", str(question), missing)
    raise RuntimeError("it waits for answers")

def ask(question, piece=""):
    return ask_all(question, [piece])[0]

def final(answer):
    _signal("final", str(answer))

def _signal(*data):
    print("\\n{signal}" + repr(data))

"""


def asking_program(program: str, context: str, known: Sequence[str], max_chars: int) -> str:
    """Return a program that has a text as `context`, and may call `ask`, `ask_all` and `final`.

    Args:
        known: The answers to its questions so far, in the order asked.
        max_chars: Characters of a piece.
    """
    return _PROLOGUE.format(context=context, known=list(known), max_chars=max_chars, signal=_SIGNAL) + program


def last_signal(printed: str) -> tuple[str, Any]:
    """Return what a program printed before its last signal, and that signal; None: it gave none."""
    before, _, last = printed.rpartition(f"\n{_SIGNAL}")
    try:
        return before, ast.literal_eval(last.partition("\n")[0])
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return printed, None


def piece_of(context: str, place: Any, max_chars: int) -> str:
    """Return a piece that a program asks about: a place of the context, or a text of its own."""
    match place:
        case [int(start), int(length)]:
            return cut(context[start : start + length], max_chars)
        case _:
            return cut(str(place), max_chars)

"""Formal claims as SMT-LIB2: read, and held to commands that only declare, define and state.

Solvers read more than logic: options name files to write, and further commands run for ever. So a claim is taken apart
here, by the solver's own rules of strings, symbols and comments, and put together again from what may stand in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec
from msgspec import Struct

MAX_CLAIM_CHARS = 100_000

_DECLARES = frozenset(
    {"declare-const", "declare-fun", "declare-sort", "declare-datatype", "declare-datatypes", "define-const"}
    | {"define-fun", "define-fun-rec", "define-funs-rec", "define-sort"}
)
_IGNORED = frozenset({"set-logic", "set-info", "check-sat", "get-model", "exit"})
_TOKEN = re.compile(r'\s+|;[^\n]*(?:\n|$)|(?P<token>\(|\)|"(?:[^"]|"")*"|\|[^|\\]*\||[^\s();"|]+)')
_HEAD = re.compile(r"\(\s*([^\s();\"|]+)")


class UnreadableClaimError(ValueError):
    """The text is no claim in a form that is taken; says why."""


class FormalClaim(Struct, frozen=True, forbid_unknown_fields=True):
    """A claim, and what it rests on.

    Attributes:
        claim: A boolean term: `(> (+ x y) 0)`.
        declarations: Commands that declare or define: `(declare-const x Int)`.
        assumptions: Boolean terms that are taken to hold.
    """

    claim: str
    declarations: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()


def read_claim(claim: Any) -> FormalClaim:
    """Read a claim: a JSON object (or its text) of that form, or SMT-LIB2 text that ends in `(prove TERM)`.

    Raises:
        UnreadableClaimError: It is neither, or holds a command that may not stand in a claim.
    """
    if isinstance(claim, str):
        if len(claim) > MAX_CLAIM_CHARS:
            raise UnreadableClaimError(f"the claim is over {MAX_CLAIM_CHARS} characters long")
        if not claim.lstrip().startswith("{"):
            return _normalize(_from_text(claim))
        try:
            claim = json.loads(claim)
        except (ValueError, RecursionError) as error:
            raise UnreadableClaimError(f"the claim is not JSON: {error}") from None
    try:
        return _normalize(msgspec.convert(claim, FormalClaim))
    except msgspec.ValidationError as error:
        raise UnreadableClaimError(f"the claim does not have the form asked for: {error}") from None


def _normalize(claim: FormalClaim) -> FormalClaim:
    if sum(map(len, (claim.claim, *claim.declarations, *claim.assumptions))) > MAX_CLAIM_CHARS:
        raise UnreadableClaimError(f"the claim is over {MAX_CLAIM_CHARS} characters long")
    return FormalClaim(
        _single_term(claim.claim, "the claim"),
        tuple(declared for text in claim.declarations for declared in _declarations(text)),
        tuple(_single_term(text, "an assumption") for text in claim.assumptions),
    )


def _single_term(text: str, label: str) -> str:
    found = list(expressions(text))
    if len(found) != 1:
        raise UnreadableClaimError(f"{label} must be one term, not {len(found)}: {text[:80]!r}")
    head = _head(found[0])
    if head in _DECLARES | _IGNORED | {"assert", "prove"}:
        raise UnreadableClaimError(f"{label} must be a bare term, without ({head} …): {text[:80]!r}")
    return found[0]


def _declarations(text: str) -> Iterator[str]:
    for command in expressions(text):
        if _head(command) not in _DECLARES:
            raise UnreadableClaimError(
                f"a declaration declares or defines something; {command[:80]!r} does not"
            )
        yield command


def _from_text(text: str) -> FormalClaim:
    declarations: list[str] = []
    assumptions: list[str] = []
    claims: list[str] = []
    for command in expressions(text):
        head = _head(command)
        if head in _DECLARES:
            declarations.append(command)
        elif head in ("assert", "prove"):
            (assumptions if head == "assert" else claims).append(_argument(command, head))
        elif head not in _IGNORED:
            shown = f"({head} …)" if head else repr(command[:40])
            raise UnreadableClaimError(f"{shown} may not stand in a claim: declare, (assert …), (prove …)")
    if len(claims) != 1:
        raise UnreadableClaimError(
            "SMT-LIB2 text states what it claims with one (prove TERM), after its (assert …): "
            f"{len(claims)} were found"
        )
    return FormalClaim(claims[0], tuple(declarations), tuple(assumptions))


def _argument(command: str, head: str) -> str:
    return command[command.index(head) + len(head) : -1].strip()


def _head(command: str) -> str:
    match = _HEAD.match(command)
    return match[1] if match else ""


def expressions(text: str) -> Iterator[str]:
    """Yield the expressions of a text: comments gone, one blank between tokens, so that no two run together.

    Raises:
        UnreadableClaimError: Parentheses, strings or quoted symbols do not close.
    """
    depth, tokens = 0, cast(list[str], [])
    for token in _tokens(text):
        tokens.append(token)
        depth += (token == "(") - (token == ")")
        if depth < 0:
            raise UnreadableClaimError(f"a parenthesis too many closes in {text[:80]!r}")
        if depth == 0:
            yield " ".join(tokens)
            tokens = []
    if tokens:
        raise UnreadableClaimError(f"a parenthesis does not close in {text[:80]!r}")


def _tokens(text: str) -> Iterator[str]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise UnreadableClaimError(
                f"a string or quoted symbol does not close: {text[position : position + 40]!r}"
            )
        position = match.end()
        if match["token"] is not None:
            yield match["token"]

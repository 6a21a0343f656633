"""The formal half of logical deduction: check claims with Z3.

A claim is proved if its negation contradicts its assumptions. A claim has this form::

    {"declarations": ["(declare-const x Int)"], "assumptions": ["(> x 2)"], "claim": "(> (* x x) 4)"}

or the same as SMT-LIB2 text: declarations, one `(assert …)` for each assumption, and `(prove …)`.

Solvers accept more than logic, such as options that write files and commands that run forever. So this module
parses claims, by the solver's own rules for strings, symbols and comments. Only declarations, definitions and
assertions reach the solver.
"""

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict

from ..system.plugins import has_extra, install_hint
from ..system.processes import Output, run_child
from .python import parameters_of

MAX_CLAIM_CHARS = 100_000

_DECLARES = frozenset(
    {"declare-const", "declare-fun", "declare-sort", "declare-datatype", "declare-datatypes", "define-const"}
    | {"define-fun", "define-fun-rec", "define-funs-rec", "define-sort"}
)
_IGNORED = frozenset({"set-logic", "set-info", "check-sat", "get-model", "exit"})
_TOKEN = re.compile(
    r"""\s+|;[^\n]*(?:\n|$)|(?P<token>\(|\)|"(?:[^"]|"")*"|\|[^|\\]*\||[^\s();"|]+)|(?P<open>.+)""", re.DOTALL
)
_CHILD = Path(__file__).with_name("logic_child.py")
_GRACE_S = 2.0
_MAX_REPLY_BYTES = 1024 * 1024


class SolverVerdict(Struct, frozen=True, omit_defaults=True):
    """The verdict on a claim.

    Attributes:
        verdict: `unknown` also covers unreadable claims and claims whose assumptions contradict each other.
        counter_example: For `refuted`: values under which the assumptions hold and the claim fails.
        reason: The reason for `unknown`.
    """

    verdict: Literal["proved", "refuted", "unknown"]
    counter_example: dict[str, str] | None = None
    reason: str | None = None


async def check_claim(claim: Any, *, max_seconds: float = 5.0, max_memory_mb: int = 1024) -> SolverVerdict:
    """Check a claim. A bad claim raises no error: its verdict is `unknown`, with the reason.

    Args:
        claim: An object with the members of `_Claim`, its JSON text, or SMT-LIB2 text.
        max_memory_mb: Z3's address space in MiB.
    """
    if not has_extra("logic"):
        return SolverVerdict("unknown", reason=f"Z3 is not installed: {install_hint('logic')}")
    try:
        grounds, term = read_claim(claim)
    except UnreadableClaimError as error:
        return SolverVerdict("unknown", reason=str(error))
    task = msgspec.json.encode(
        {
            "assumed": "\n".join(grounds),
            "denied": "\n".join([*grounds, f"(assert (not {term}))"]),
            "timeout_ms": max(1, math.ceil(max_seconds * 1000)),
            "max_memory_mb": max_memory_mb,
            "max_cpu_s": math.ceil(max_seconds + _GRACE_S),
        }
    )
    reply, command = Output(_MAX_REPLY_BYTES), [sys.executable, "-I", "-c", _CHILD.read_text("utf-8")]
    environ = None if sys.platform == "win32" else dict[str, str]()
    ended = await run_child(command, task, max_seconds + _GRACE_S, reply, Output(0), env=environ)
    try:
        ruling = msgspec.json.decode(reply.kept, type=SolverVerdict)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        ruling = SolverVerdict("unknown", reason="Z3 died of the claim: too much memory, time or depth")
    if ended.overran or (ruling.reason and ruling.reason.endswith(("timeout", "canceled"))):
        return SolverVerdict("unknown", reason=f"Z3 did not come to an end within {max_seconds:g} s")
    return ruling


# -- reading a claim


class UnreadableClaimError(ValueError):
    """Raised if a text is not a claim in an accepted form. The message gives the reason."""


class _Claim(Struct, frozen=True, forbid_unknown_fields=True):
    """A claim as an object: a term, the declarations of its symbols, and the assumed terms."""

    claim: Annotated[str, Meta(description="A boolean term, such as (> (+ x y) 0).")]
    declarations: Annotated[
        tuple[str, ...], Meta(description="One command each, such as (declare-const x Int).")
    ] = ()
    assumptions: Annotated[tuple[str, ...], Meta(description="Boolean terms that hold.")] = ()


def read_claim(claim: Any) -> tuple[list[str], str]:
    """Read a claim: an object like `_Claim`, the JSON text of such an object, or SMT-LIB2 text with `(prove TERM)`.

    Returns:
        The commands that declare symbols and assert assumptions, and the term to prove.

    Raises:
        UnreadableClaimError: The claim has none of these forms, is too long, or contains a forbidden command.
    """
    grounds: list[str] = []
    claims: list[str] = []
    for command in expressions(_text_of(claim)):
        head, _, rest = command.removeprefix("( ").partition(" ")
        if head == "prove":
            claims.append(rest.removesuffix(")"))
        elif head in _DECLARES or head == "assert":
            grounds.append(command)
        elif head not in _IGNORED:
            raise UnreadableClaimError(
                f"{command[:40]!r} may not stand in a claim: declare, (assert …), (prove …)"
            )
    if len(claims) != 1:
        raise UnreadableClaimError(
            "a claim is stated with one (prove TERM), after its declarations and its (assert …): "
            f"{len(claims)} were found"
        )
    return grounds, claims[0]


def _text_of(claim: Any) -> str:
    """Return a claim as SMT-LIB2 text."""
    text = claim if isinstance(claim, str) else ""
    if not isinstance(claim, str) or claim.lstrip().startswith("{"):
        try:
            read = msgspec.convert(json.loads(claim) if isinstance(claim, str) else claim, _Claim)
        except (ValueError, RecursionError) as error:
            raise UnreadableClaimError(f"the claim does not have the form asked for: {error}") from None
        # A line end follows each term, because the term may end with a comment.
        assumed = (f"(assert {term}\n)" for term in read.assumptions)
        text = "\n".join([*read.declarations, *assumed, f"(prove {read.claim}\n)"])
    if len(text) > MAX_CLAIM_CHARS:
        raise UnreadableClaimError(f"the claim is over {MAX_CLAIM_CHARS} characters long")
    return text


def expressions(text: str) -> Iterator[str]:
    """Yield each expression of a text. Comments are removed, and one space separates the tokens.

    Raises:
        UnreadableClaimError: Parentheses, strings or quoted symbols do not close.
    """
    depth, tokens = 0, cast(list[str], [])
    for match in _TOKEN.finditer(text):
        if match["open"] is not None:
            raise UnreadableClaimError(f"a string or quoted symbol does not close: {match['open'][:40]!r}")
        tokens += [match["token"]] if match["token"] is not None else []
        depth += (match["token"] == "(") - (match["token"] == ")")
        if depth < 0:
            raise UnreadableClaimError(f"a parenthesis too many closes in {text[:80]!r}")
        if depth == 0 and tokens:
            yield " ".join(tokens)
            tokens = []
    if tokens:
        raise UnreadableClaimError(f"a parenthesis does not close in {text[:80]!r}")


# -- the tool


class ClaimChecker:
    """The tool `check_claim`."""

    name = "check_claim"
    description = (
        "Prove or refute a claim with Z3. Declarations, assumptions and claim are written as SMT-LIB2."
    )
    parameters = parameters_of(_Claim)

    async def call(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Check a claim and return `{verdict, counter_example, reason}`."""
        values = dict(arguments)
        # A whole SMT-LIB2 text, or the JSON of the object, may be given in place of the term.
        claim = values.get("claim")
        is_whole = isinstance(claim, str) and (claim.lstrip().startswith("{") or "prove" in claim)
        claim = claim if is_whole and len(values) == 1 else values
        return asdict(await check_claim(claim))

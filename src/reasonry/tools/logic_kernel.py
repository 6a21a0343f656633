"""The formal half of logical deduction: claims checked with Z3.

A claim is proved when its denial cannot hold together with its assumptions. The form of a claim::

    {"declarations": ["(declare-const x Int)"], "assumptions": ["(> x 2)"], "claim": "(> (* x x) 4)"}

or the same as SMT-LIB2 text: declarations, one `(assert …)` for each assumption, and `(prove …)`.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ..errors import ToolError
from ..extras import has_extra, install_hint
from .smtlib import FormalClaim, UnreadableClaimError, read_claim

_CHILD = Path(__file__).with_name("logic_child.py")
_GRACE_S = 2.0
_MAX_REPLY_BYTES = 1024 * 1024


class SolverVerdict(Struct, frozen=True, omit_defaults=True):
    """What became of a claim.

    Attributes:
        verdict: `unknown` also where the claim cannot be read, or its assumptions contradict each other.
        counter_example: Where `refuted`: the values under which the assumptions hold and the claim does not.
        reason: Why it is unknown.
    """

    verdict: Literal["proved", "refuted", "unknown"]
    counter_example: dict[str, str] | None = None
    reason: str | None = None


def can_check() -> bool:
    """Whether Z3 is installed."""
    return has_extra("logic")


async def check_claim(claim: Any, *, max_seconds: float = 5.0, max_memory_mb: int = 1024) -> SolverVerdict:
    """Check a claim. Nothing raises for what the claim is or does: that is the verdict `unknown`, with the reason.

    Args:
        claim: An object of that form, its JSON text, or SMT-LIB2 text.
        max_seconds: Until Z3 is stopped.
        max_memory_mb: MiB of address space.
    """
    if not can_check():
        return SolverVerdict("unknown", reason=f"Z3 is not installed: {install_hint('logic')}")
    try:
        formal = read_claim(claim)
    except UnreadableClaimError as error:
        return SolverVerdict("unknown", reason=str(error))
    overran = SolverVerdict("unknown", reason=f"Z3 did not come to an end within {max_seconds:g} s")
    try:
        async with asyncio.timeout(max_seconds + _GRACE_S):
            reply = await _ask_child(_task(formal, max_seconds, max_memory_mb))
    except TimeoutError:
        return overran
    try:
        ruling = msgspec.json.decode(reply, type=SolverVerdict)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return SolverVerdict("unknown", reason="Z3 died of the claim: too much memory, time or depth")
    return overran if ruling.reason and ruling.reason.endswith(("timeout", "canceled")) else ruling


def _task(claim: FormalClaim, max_seconds: float, max_memory_mb: int) -> bytes:
    assumed = [*claim.declarations, *(f"(assert {term})" for term in claim.assumptions)]
    return msgspec.json.encode(
        {
            "assumed": "\n".join(assumed),
            "denied": "\n".join([*assumed, f"(assert (not {claim.claim}))"]),
            "timeout_ms": max(1, math.ceil(max_seconds * 1000)),
            "max_memory_mb": max_memory_mb,
            "max_cpu_s": math.ceil(max_seconds + _GRACE_S),
        }
    )


async def _ask_child(task: bytes) -> bytes:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-c", _CHILD.read_text("utf-8")),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=None if sys.platform == "win32" else {},
    )
    try:
        reply, _ = await child.communicate(task)
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()
    return reply[:_MAX_REPLY_BYTES]


class ClaimChecker:
    """The tool `check_claim`.

    Args:
        max_seconds: For each claim.
    """

    name = "check_claim"
    description = (
        "Prove or refute a claim with Z3. Declarations, assumptions and claim are written as SMT-LIB2."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "claim": {"type": "string", "description": "A boolean term, such as (> (+ x y) 0)."},
            "declarations": {
                "type": "array",
                "items": {"type": "string"},
                "description": "One command each, such as (declare-const x Int).",
            },
            "assumptions": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Boolean terms that hold.",
            },
        },
        "required": ["claim"],
    }

    def __init__(self, max_seconds: float = 5.0) -> None:
        self.max_seconds = max_seconds

    async def call(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Check a claim and return `{verdict, counter_example, reason}`.

        Raises:
            ToolError: Z3 is not installed.
        """
        if not can_check():
            raise ToolError(f"check_claim needs Z3: {install_hint('logic')}")
        values = dict(arguments)
        # A whole SMT-LIB2 text, or the JSON of the object, may stand in the place of the term.
        claim = values["claim"] if values.keys() == {"claim"} and _is_whole(values["claim"]) else values
        ruling = await check_claim(claim, max_seconds=self.max_seconds)
        return {
            "verdict": ruling.verdict,
            "counter_example": ruling.counter_example,
            "reason": ruling.reason,
        }


def _is_whole(claim: Any) -> bool:
    return isinstance(claim, str) and (claim.lstrip().startswith("{") or "prove" in claim)

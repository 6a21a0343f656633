"""How things are shown: errors as exit codes and documents, results, text from models made inert.

The one place where an error's code meets what a surface makes of it.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import msgspec

from ..core.plan import PlanStep, format_plan, number_steps
from ..core.text import clip
from ..errors import ReasonryError
from ..masking import SECRETS

EXIT_CODES: dict[str, int] = {
    "invalid_request": 2,
    "payload_too_large": 2,
    "answer_refused": 2,
    "blocked_address": 2,
    "price_unknown": 2,
    "extra_missing": 2,
    "plugin_failed": 2,
    "not_found": 3,
    "unauthorized": 4,
    "conflict": 5,
    "lease_lost": 5,
    "strategy_changed": 5,
    "strategy_unknown": 5,
    "store_unavailable": 6,
    "store_busy": 6,
    "store_full": 6,
    "store_corrupt": 6,
    "store_newer": 6,
    "budget_exceeded": 7,
    "overloaded": 7,
    "rate_limited": 7,
    "deadline_exceeded": 7,
    "provider_error": 8,
    "provider_timeout": 8,
    "provider_auth": 8,
    "context_overflow": 8,
    "model_refused": 8,
    "output_invalid": 8,
    "script_exhausted": 8,
    "tool_error": 9,
    "tool_timeout": 9,
    "sandbox_unavailable": 9,
    "sandbox_timeout": 9,
    "sandbox_memory": 9,
    "sandbox_denied": 9,
    "cancelled": 130,
}
"""The exit code of each error code; one not listed exits with 1."""

_HTTP_STATUSES: dict[str, int] = {
    "unauthorized": 401,
    "forbidden_origin": 403,
    "not_found": 404,
    "model_not_found": 404,
    "method_not_allowed": 405,
    "request_timeout": 408,
    "conflict": 409,
    "idempotency_conflict": 409,
    "lease_lost": 409,
    "strategy_changed": 409,
    "strategy_unknown": 409,
    "payload_too_large": 413,
    "unsupported_media_type": 415,
    "misdirected_host": 421,
    "headers_too_large": 431,
    "budget_exceeded": 429,
    "rate_limited": 429,
    "cancelled": 499,
    "internal_error": 500,
    "store_corrupt": 500,
    "store_newer": 500,
    "extra_missing": 501,
    "provider_error": 502,
    "provider_auth": 502,
    "context_overflow": 502,
    "model_refused": 502,
    "output_invalid": 502,
    "script_exhausted": 502,
    "tool_error": 502,
    "overloaded": 503,
    "store_unavailable": 503,
    "store_busy": 503,
    "store_full": 503,
    "deadline_exceeded": 504,
    "provider_timeout": 504,
    "tool_timeout": 504,
}

OUTCOME_EXIT_CODES = {"solved": 0, "answered": 0, "waiting": 0, "stopped": 10, "unsolved": 11}
"""The exit code of each outcome but `error`, where the code of the error decides."""


def exit_code(code: str) -> int:
    """Return the exit code of an error code."""
    return EXIT_CODES.get(code, 1)


def http_status(code: str) -> int:
    """Return the HTTP status of an error code; one not listed is the request's fault."""
    return _HTTP_STATUSES.get(code, 400)


def exit_code_of(result: Mapping[str, Any]) -> int:
    """Return the exit code of a run, from its result document."""
    outcome = result["outcome"]
    return (
        0
        if outcome is None
        else OUTCOME_EXIT_CODES.get(outcome, exit_code(result["termination"].get("code", "")))
    )


def error_document(error: ReasonryError) -> dict[str, Any]:
    """Return an error as the one document a surface answers with."""
    return {"error": SECRETS.mask_data(error.document()), **error.beside()}


class _MaskedStream:
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(SECRETS.mask(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def masked_output(environ: Mapping[str, str]) -> Generator[None]:
    """Keep keys out of all that is printed meanwhile, whoever prints it: commands, warnings, logs, tracebacks."""
    SECRETS.keep_environment(environ)
    output: Any = _MaskedStream(sys.stdout)
    errors: Any = _MaskedStream(sys.stderr)
    with redirect_stdout(output), redirect_stderr(errors):
        yield


def thought_lines(text: str, data: Mapping[str, Any], width: int) -> list[str]:
    """Return a thought on one line, and under it, indented, its plan or its actions, if it has any, a line each.

    All lines are inert and at most `width` characters long.
    """
    try:
        plan = msgspec.convert(data.get("planning") or (), tuple[PlanStep, ...])
    except (msgspec.ValidationError, RecursionError):
        plan = ()
    lines = [clip(text.removesuffix(f"\n\nPlan:\n{format_plan(plan)}"), width)]
    for number, step in number_steps(plan):
        indent = "  " * min(number.count(".") + 1, width // 4)
        line = format_plan([msgspec.structs.replace(step, sub_steps=None)])
        lines.append(indent + clip(line, width - len(indent)))
    return [*lines, *("  "[:width] + clip(line, max(width - 2, 0)) for line in action_lines(data))]


def action_lines(data: Mapping[str, Any]) -> list[str]:
    """Return the actions that a thought takes, a line each, and what each of several brought."""
    taken, brought = data.get("actions"), data.get("observations")
    lines = [f"→ {action}" for action in taken if isinstance(action, str)] if isinstance(taken, list) else []
    for pair in brought if isinstance(brought, list) else ():
        if isinstance(pair, dict):
            lines.append(f"← {pair.get('action')}: {pair.get('observation')}")
    return lines


def end_text(run: Mapping[str, Any]) -> str:
    """Return how a run ended, in one line: its outcome, the reason and what there is to say about it.

    Args:
        run: A document with `outcome`, `status` and `termination`.
    """
    word, end = run["outcome"] or run["status"], run["termination"]
    parts = [part for part in (end["reason"], end["detail"]) if part and part not in (word, "success")]
    return ": ".join([word, *([", ".join(parts)] if parts else [])])


def count_of(number: int, noun: str) -> str:
    """Return a number of things: `1 call`, `2 calls`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def spend(document: dict[str, Any]) -> str:
    """Return what a run took, in one line: calls, rounds, tokens, dollars, time."""
    usage = document["usage"]
    parts = [count_of(usage["calls"], "call"), count_of(document["rounds"], "round")]
    if usage["input_tokens"] or usage["output_tokens"]:
        parts.append(f"{usage['input_tokens']:,} + {usage['output_tokens']:,} tokens")
    if usage["usd"]:
        parts.append(f"${usage['usd']:.4f}")
    parts.append(f"{document['duration_ms'] / 1000:.2f} s")
    return " · ".join(parts)

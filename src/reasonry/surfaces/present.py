"""Converts errors and results to the output that users and programs see.

The tables map each error code to an exit code and an HTTP status, for every surface of the engine.
"""

import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import msgspec

from ..blocks.plan import PlanStep, format_plan, number_steps
from ..errors import ReasonryError
from ..system.masking import SECRETS
from ..text import display_line

_EXITS: Mapping[int, str] = {
    2: "invalid_request payload_too_large answer_refused price_unknown extra_missing plugin_failed",
    3: "not_found recording_changed",
    4: "unauthorized",
    5: "conflict lease_lost strategy_changed strategy_unknown",
    6: "store_unavailable store_busy store_full store_corrupt store_newer",
    7: "budget_exceeded overloaded rate_limited deadline_exceeded",
    8: "provider_error provider_timeout provider_auth context_overflow reply_too_long model_refused output_invalid "
    "script_exhausted script_left_over",
    9: "tool_error tool_timeout sandbox_unavailable",
    130: "cancelled",
}

EXIT_CODES = {code: number for number, codes in _EXITS.items() for code in codes.split()}
"""The exit code for each error code. An error code that is not in this table has the exit code 1."""

_STATUSES: Mapping[int, str] = {
    401: "unauthorized",
    403: "forbidden_origin",
    404: "not_found model_not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    409: "conflict idempotency_conflict lease_lost strategy_changed strategy_unknown",
    413: "payload_too_large",
    415: "unsupported_media_type",
    421: "misdirected_host",
    431: "headers_too_large",
    429: "budget_exceeded rate_limited",
    499: "cancelled",
    500: "internal_error store_corrupt store_newer",
    501: "extra_missing",
    502: "provider_error provider_auth context_overflow reply_too_long model_refused output_invalid script_exhausted "
    "script_left_over tool_error",
    503: "overloaded store_unavailable store_busy store_full",
    504: "deadline_exceeded provider_timeout tool_timeout",
}

_HTTP_STATUSES = {code: status for status, codes in _STATUSES.items() for code in codes.split()}

OUTCOME_EXIT_CODES = {"solved": 0, "answered": 0, "waiting": 0, "stopped": 10, "unsolved": 11}
"""The exit code for each outcome of a run. A run with the outcome `error` exits with the exit code for its error."""


def exit_code(code: str) -> int:
    """Return the exit code for an error code."""
    return EXIT_CODES.get(code, 1)


def http_status(code: str) -> int:
    """Return the HTTP status for an error code, or 400 if the code has no status of its own."""
    return _HTTP_STATUSES.get(code, 400)


def exit_code_of(result: Mapping[str, Any]) -> int:
    """Return the exit code for a run's result document. A run that has no outcome yet has the exit code 0."""
    if (outcome := result["outcome"]) is None:
        return 0
    return OUTCOME_EXIT_CODES.get(outcome, exit_code(result["termination"].get("code", "")))


def error_document(error: ReasonryError) -> dict[str, Any]:
    """Return the JSON document of an error. Secrets in the member `error` are masked."""
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
    """Mask API keys and passwords in everything that is printed inside the `with` block."""
    SECRETS.keep_environment(environ)
    output: Any = _MaskedStream(sys.stdout)
    errors: Any = _MaskedStream(sys.stderr)
    with redirect_stdout(output), redirect_stderr(errors):
        yield


def thought_lines(text: str, data: Mapping[str, Any], width: int) -> list[str]:
    """Return a thought as one line, followed by an indented line for each plan step, action and observation.

    Control characters are escaped, and lines are at most `width` characters long.
    """
    try:
        plan = msgspec.convert(data.get("planning") or (), tuple[PlanStep, ...])
    except (msgspec.ValidationError, RecursionError):
        plan = ()
    lines = [display_line(text.removesuffix(f"\n\nPlan:\n{format_plan(plan)}"), width)]
    for number, step in number_steps(plan):
        indent = "  " * min(number.count(".") + 1, width // 4)
        line = format_plan([msgspec.structs.replace(step, sub_steps=None)])
        lines.append(indent + display_line(line, width - len(indent)))
    return [*lines, *("  "[:width] + display_line(line, max(width - 2, 0)) for line in action_lines(data))]


def action_lines(data: Mapping[str, Any]) -> list[str]:
    """Return a line for each action in a thought's data, followed by a line for each observation."""
    taken, brought = data.get("actions"), data.get("observations")
    lines = [f"→ {action}" for action in taken if isinstance(action, str)] if isinstance(taken, list) else []
    for pair in brought if isinstance(brought, list) else ():
        if isinstance(pair, dict):
            lines.append(f"← {pair.get('action')}: {pair.get('observation')}")
    return lines


def end_text(run: Mapping[str, Any]) -> str:
    """Describe in one line how a run ended, such as `stopped: max calls`.

    Args:
        run: A document with `outcome`, `status` and `termination`.
    """
    word, end = run["outcome"] or run["status"], run["termination"]
    why = end["detail"] or (end["reason"] or "").replace("_", " ")
    return word if why in ("", word, "success") else f"{word}: {why}"


def count_of(number: int, noun: str, plural: str = "s") -> str:
    """Format a count: `1 call`, `2 calls`."""
    return f"{number:,} {noun}{'' if number == 1 else plural}"


def spend(document: dict[str, Any]) -> str:
    """Return a line with the calls, rounds, tokens, dollars and time that a run has used."""
    usage = document["usage"]
    drawn = f" for {usage['samples']:,} samples" if usage["samples"] > usage["calls"] else ""
    parts = [count_of(usage["calls"], "call") + drawn, count_of(document["rounds"], "round")]
    if usage["input_tokens"] or usage["output_tokens"]:
        parts.append(f"{usage['input_tokens']:,} + {usage['output_tokens']:,} tokens")
    if usage["usd"]:
        parts.append(f"${usage['usd']:.4f}")
    parts.append(f"{document['duration_ms'] / 1000:.2f} s")
    return " · ".join(parts)

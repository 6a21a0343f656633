"""Arguments that several commands share: ids, strategies, whole numbers, times, filters."""

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from cyclopts import ArgumentCollection, Parameter, Token, UnknownOptionError
from cyclopts.validators import Number

from ...errors import TooLargeError, UsageError
from ...records import Outcome, now_ms
from ...system.processes import read_regular_file
from ...text import display_line

MAX_INPUT_BYTES = 50_000_000
_WHOLE: Final = re.compile(r"[+-]?\d{1,19}(\.0+)?", re.ASCII)
_AMOUNT: Final = re.compile(r"[$€]?(\d{1,12}(?:\.\d{1,6}|e\d)?) ?([a-z$€]*)", re.ASCII)
_FACTORS: Final = {"k": 1_000, "m": 1_000_000}
_UNITS: Final = {
    "seconds": "seconds",
    "timeout": "seconds",
    "usd": "US dollars",
    "calls": "calls",
    "tokens": "tokens",
}
_UNITS_MS = {"ms": 1, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def _read_whole(_: Any, tokens: Sequence[Token]) -> int:
    text = tokens[0].value.strip()
    if not _WHOLE.fullmatch(text):
        size = " of at most 19 digits" * text.isdigit()
        raise _no_number(tokens[0], f"a whole number{size}", digits=0)
    return int(text.partition(".")[0])


def _read_amount(_: Any, tokens: Sequence[Token]) -> float:
    try:
        return float(tokens[0].value)
    except ValueError:
        raise _no_number(tokens[0], "a number", digits=2) from None


def _no_number(token: Token, kind: str, digits: int) -> ValueError:
    """Return the error for a text that is not a valid number, such as `1h`. The message may suggest a number."""
    text, keyword = token.value.strip(), token.keyword or ""
    unit = next((name for end, name in _UNITS.items() if keyword.endswith(end)), "")
    written = re.sub(r"[,_](?=\d{3}\b)", "", text.lower()).replace(",", ".")
    hint = ""
    if keyword and (found := _AMOUNT.fullmatch(written)):
        letter = found[2] if found[2] in _UNITS_MS else found[2][:1]
        factor = _UNITS_MS.get(letter, 1_000) / 1_000 if unit == "seconds" else _FACTORS.get(letter, 1)
        near = round(float(found[1]) * factor, digits)
        hint = f" Did you mean {keyword} {int(near) if near == int(near) else near}?" * (near > 0)
    of_unit = f" of {unit}" if unit else ""
    return ValueError(f"expected {kind}{of_unit}, got {display_line(text, 40)!r}.{hint}")


class WordAfterDashes(str):
    """An argument after `--`, which is never read as an option."""


def _read_text(_: Any, tokens: Sequence[Token]) -> str:
    (token,) = tokens
    is_option = token.value.startswith("-") and token.value != "-"
    if token.keyword is None and is_option and not isinstance(token.value, WordAfterDashes):
        raise UnknownOptionError(token=token, argument_collection=ArgumentCollection())
    return str(token.value)


def _check_above_0(_: Any, value: float | None) -> None:
    if value is not None and not 0 < value < math.inf:
        raise ValueError(
            "It must be at least 1." if isinstance(value, int) else "It must be above 0, and finite."
        )


WholeNumber = Annotated[int, Parameter(converter=_read_whole)]
"""A whole number such as `30` or `30.0`. Other numbers are refused, not rounded."""
Count = Annotated[WholeNumber, Parameter(validator=_check_above_0)]
Amount = Annotated[float, Parameter(converter=_read_amount, validator=_check_above_0)]
PageSize = Annotated[WholeNumber, Parameter(validator=Number(gte=1, lte=500))]
Status = Literal["active", "done", "failed", "cancelled"]
RunId = Annotated[str, Parameter(help="The id of the run, the start of it, or `last`.")]
SessionId = Annotated[str, Parameter(help="The id of the session, the start of it, or `last`.")]
Strategy = Annotated[
    str,
    Parameter(help="The strategy, or OUTSIDE(INSIDE, NAME=VALUE); `reasonry strategies` lists the names."),
]
Text = Annotated[str, Parameter(allow_leading_hyphen=True, converter=_read_text)]
"""A text. An argument that begins with a hyphen must come after `--`, unless it is a single `-`."""
Problem = Annotated[
    Text | None,
    Parameter(help="The problem; `-` reads it from standard input. Optional with --session."),
]
Context = Annotated[
    SessionId | None,
    Parameter(
        help="Quote this session with the problem (id, prefix or `last`). Without PROBLEM, its first thought is used."
    ),
]
Options = Annotated[
    tuple[str, ...], Parameter(help="An option of the strategy, as NAME=VALUE; may be repeated.")
]
Criteria = Annotated[
    tuple[str, ...],
    Parameter(help="A criterion in place of all the problem asks for, NAME=SENTENCE; repeatable."),
]
Prompts = Annotated[
    tuple[str, ...],
    Parameter(
        help="A stage's question from a file, as STRATEGY.STAGE=FILE; may be repeated. In the "
        "file, {prompt} and {system} stand for the strategy's own texts, {problem} for the problem."
    ),
]
Limit = Annotated[str | None, Parameter(help="Number of entries at most.")]
Cursor = Annotated[str | None, Parameter(help="`next_cursor` of the previous page.")]


def read_pairs(options: Sequence[str], kind: str = "option", form: str = "NAME=VALUE") -> dict[str, str]:
    """Parse texts of the form NAME=VALUE. A repeated NAME is an error."""
    values: dict[str, str] = {}
    for option in options:
        written, equals, value = option.partition("=")
        name = written.strip()
        if not equals or not name:
            raise UsageError(f"--{kind} must be {form}, got {option!r}", option=option)
        if name in values:
            raise UsageError(f"{kind} {name} is given twice", option=name)
        values[name] = value
    return values


def read_prompts(files: Sequence[str]) -> dict[str, str]:
    """Parse texts of the form STRATEGY.STAGE=FILE. Map each STRATEGY.STAGE to the text in FILE."""
    pairs = read_pairs(files, "prompt", "STRATEGY.STAGE=FILE")
    return {name: read_text(file, "prompt") for name, file in pairs.items()}


def read_text(file: str, option: str) -> str:
    """Return the text of a regular file. If `file` is `-`, return the text of standard input.

    Raises:
        UsageError: The file is unreadable or not UTF-8 text.
        TooLargeError: The text exceeds `MAX_INPUT_BYTES`.
    """
    if file != "-":
        place = f"the file {file!r}"
        data = read_regular_file(Path(file).expanduser(), MAX_INPUT_BYTES, label="file", option=option)
    else:
        place, data = "standard input", sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
        if len(data) > MAX_INPUT_BYTES:
            message = f"{place} is over {MAX_INPUT_BYTES:,} bytes"
            raise TooLargeError(message, limit=MAX_INPUT_BYTES, option=option)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{place} is not UTF-8 text (byte {error.start})", option=option) from None


def read_instant(option: str, text: str | None, forms: str) -> int | None:
    """Convert the time in an option to milliseconds since 1970. Return None if the option is not set.

    Args:
        text: The time in ISO 8601. A time without an offset is local time.
        forms: A description of the accepted forms, for the error message.
    """
    if text is None:
        return None
    try:
        return max(0, round(datetime.fromisoformat(text).astimezone().timestamp() * 1_000))
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"--{option} must be {forms}, got {text!r:.100}", option=option) from None


def _read_since(option: str, text: str | None) -> int | None:
    number, unit = (text or "")[:-1], (text or "")[-1:]
    if unit in _UNITS_MS and number.isdecimal() and len(number) < 7:
        return max(0, now_ms() - int(number) * _UNITS_MS[unit])
    forms = "a time ago (30m, 12h, 7d, 2w) or a date (2026-11-01, 2026-11-01T09:30)"
    return read_instant(option, text, forms)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Filters:
    """The filters of a list. An entry is listed only if it passes all filters.

    Args:
        strategy: Only entries of this strategy.
        search: Only entries with this text in the problem, the answer or a thought; case is ignored.
        since: Only entries since a time: 30m, 12h, 7d or 2w ago, or a date such as 2026-11-01T09:30.
        until: Only entries before a time, in the same form as for `since`.
    """

    strategy: str | None = None
    search: Text | None = None
    since: str | None = None
    until: str | None = None

    def read(self) -> dict[str, Any]:
        """Return the filters by name, with times in milliseconds since 1970."""
        return {
            "strategy": self.strategy,
            "query": self.search,
            "since_ms": _read_since("since", self.since),
            "until_ms": _read_since("until", self.until),
        }


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunChoice(Filters):
    """The filters that select runs for a command.

    Args:
        status: Only runs with this status.
        outcome: Only runs with this outcome; waiting means that the run waits for answers from its caller.
        reason: Only runs that ended for this reason, such as rate_limited.
    """

    status: Status | None = None
    outcome: Outcome | None = None
    reason: str | None = None

    def read(self) -> dict[str, Any]:
        """Return the filters by name: the inherited filters, `status`, `outcome` and `reason`."""
        return {**super().read(), "status": self.status, "outcome": self.outcome, "reason": self.reason}

"""Options that take a whole number: nothing is rounded to one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final

from cyclopts import Parameter, Token

_WHOLE: Final = re.compile(r"[+-]?\d{1,19}(\.0+)?", re.ASCII)


def _read(_: Any, tokens: Sequence[Token]) -> int:
    text = tokens[0].value.strip()
    if not _WHOLE.fullmatch(text):
        shown = text if len(text) <= 40 else f"{text[:39]}…"
        raise ValueError(f"it takes a whole number of at most 19 digits, not {shown!r}")
    return int(text.partition(".")[0])


WholeNumber = Annotated[int, Parameter(converter=_read)]
"""A whole number, such as `30` (or `30.0`)."""

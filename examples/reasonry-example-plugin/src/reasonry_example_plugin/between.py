"""A verifier: the answer is a number within a range.

An entry point of `reasonry.verifiers` takes the text behind the colon of `--verifier PACKAGE/NAME:TEXT`, and returns a
callable `(problem, path, final)` or an object with `verify`. The path is the steps so far, the candidate last; `final`
says whether the candidate claims to be the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_RANGE = re.compile(r"(-?\d+(?:\.\d+)?)\.\.(-?\d+(?:\.\d+)?)")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def open_verifier(text: str) -> Callable[[str, list[str], bool], str | None]:
    """Return the verifier of `LOW..HIGH`."""
    bounds = _RANGE.fullmatch(text)
    if bounds is None:
        raise ValueError(f"the range is written LOW..HIGH, such as 1..12, not {text!r}")
    low, high = float(bounds[1]), float(bounds[2])

    def verify(problem: str, path: list[str], final: bool) -> str | None:
        numbers = _NUMBER.findall(path[-1])
        if not final or len(numbers) != 1:
            return None  # no proof
        if low <= float(numbers[0]) <= high:
            return None  # it may be right; that is not proved by its size
        return f"it is not between {low:g} and {high:g}"

    return verify

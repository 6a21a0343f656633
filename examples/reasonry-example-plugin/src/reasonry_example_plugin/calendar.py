"""Tools: questions about dates that models tend to get wrong.

An entry point of `reasonry.tools` is a function, an object of the `Tool` port, or a list of these. A model is shown the
function's name, its docstring and its parameters.
"""

from __future__ import annotations

from datetime import date


def days_between(first: str, second: str) -> int:
    """Return the days from one date to another.

    Args:
        first: As YYYY-MM-DD.
        second: As YYYY-MM-DD.
    """
    return (date.fromisoformat(second) - date.fromisoformat(first)).days


def day_of_week(day: str) -> str:
    """Return the day of the week that a date falls on.

    Args:
        day: As YYYY-MM-DD.
    """
    return date.fromisoformat(day).strftime("%A")


TOOLS = [days_between, day_of_week]

"""Regular expressions that are compiled when they are first used.

The reading of replies has some 150, and compiling them takes longer than many a command.
"""

from __future__ import annotations

import re
from typing import Any, cast


class _Pattern:
    def __init__(self, text: str, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        # Asked once for each name: what is found stays in the instance, where later calls meet it first.
        found = self.__dict__[name] = getattr(re.compile(self._text, self._flags), name)
        return found


def lazy_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return what `re.compile` would, by its methods; an error in it is raised at its first use."""
    return cast(re.Pattern[str], _Pattern(text, flags))

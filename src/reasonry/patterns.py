"""Regular expressions that are compiled at first use.

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
    """Return a stand-in for `re.compile(…)`. An invalid pattern raises at first use."""
    return cast(re.Pattern[str], _Pattern(text, flags))

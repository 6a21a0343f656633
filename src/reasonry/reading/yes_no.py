"""The words for yes, no and nothing, as models and people write them."""

from __future__ import annotations

import re
from typing import Final

from ..patterns import lazy_pattern

_YES: Final = "true yes 1 ja oui si sí sì sim wahr vrai verdadero vero verdadeiro 是 はい"
_NO: Final = "false no 0 nein non não falsch faux falso 否 いいえ"
_HOLDS: Final = """y correct right valid ok okay holds sound done finished complete completed confirmed verified accept
accepted pass passed"""
_FAILS: Final = (
    """n incorrect wrong invalid unsound unfinished incomplete refuted reject rejected fail failed"""
)

YES_NO: Final = {**dict.fromkeys(_YES.split(), True), **dict.fromkeys(_NO.split(), False)}
"""By word, in lower case, whether it says yes or no."""
TRUTHS: Final = {**YES_NO, **dict.fromkeys(_HOLDS.split(), True), **dict.fromkeys(_FAILS.split(), False)}
"""The same, with the words of a verdict."""

_NO_QUESTION: Final = (
    r"no (?:further|more|other)?\s*(?:sub-?|follow[- ]?up\s+)?(?:questions?|follow[- ]?ups?)"
)
NONE_WORDS: Final = lazy_pattern(
    r"\W*(?:(?:null|none|nil|nothing|n/?a|not applicable|undefined|keine?r?s?|nichts|aucune?|rien|ninguno|nada|nessuno"
    rf"|niente|nenhum|无|なし)(?:\s+(?:is |are )?(?:needed|required))?|{_NO_QUESTION}(?:\s+(?:is |are )?"
    r"(?:needed|required|necessary))?)?\W*",
    re.IGNORECASE,
)
"""A text that says that there is nothing; also an empty one."""

MAX_NONE_CHARS: Final = 80
"""A longer text is no word for nothing."""

"""The closed tables: every word that the reading of replies knows the meaning of.

Rule: no other word is looked at for its meaning. What needs language to judge, a model judges.
"""

from __future__ import annotations

from typing import Final, Literal

Verdict = Literal["holds", "fails", "unsure"]

_VERDICTS: Final[dict[Verdict, str]] = {
    "holds": "holds confirmed true yes",
    "fails": "fails refuted false no",
    "unsure": "unsure undecided inconclusive unclear",
}
VERDICTS: Final[dict[str, Verdict]] = {
    word: verdict for verdict, words in _VERDICTS.items() for word in words.split()
}
"""By word, in lower case, the verdict it gives."""
TRUTHS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
"""By word, in lower case, the truth value it writes."""
NONE_WORDS: Final = frozenset({"", "null", "none", "undefined", "n/a"})
"""Words, in lower case, that fill a place for which there is nothing."""
_MONTHS: Final = "january february march april may june july august september october november december"
MONTHS: Final = tuple(_MONTHS.split())
_UNITS: Final = "$ dollar usd us$, € euro eur, £ pound gbp, ¥ yen jpy, % percent"
UNITS: Final = {name: names.split()[0] for names in _UNITS.split(",") for name in names.split()}
"""By the name of a currency or of per cent, the sign it is compared by."""

"""Tables of all words that this package understands when it reads replies.

Rule: no other word is interpreted. A model makes any judgement of language.
"""

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
"""Maps each word, in lower case, to its verdict."""
TRUTHS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
"""Maps each word, in lower case, to its truth value."""
NONE_WORDS: Final = frozenset({"", "null", "none", "undefined", "n/a"})
"""Words, in lower case, for an absent value."""
_MONTHS: Final = "january february march april may june july august september october november december"
MONTHS: Final = tuple(_MONTHS.split())
_UNITS: Final = "$ dollar usd us$, € euro eur, £ pound gbp, ¥ yen jpy, % percent"
UNITS: Final = {name: names.split()[0] for names in _UNITS.split(",") for name in names.split()}
"""Maps each name of a currency, and the word for per cent, to its sign."""

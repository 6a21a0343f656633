"""Names and words as people and models write them: found whatever their spelling, or the nearest suggested.

Here are also the one table of what else models call the fields of forms, and the one of the words for yes, no and
nothing.

Rule 1: case, spaces, dashes, underscores and a plural's `s` make no difference; a name is never guessed beyond that.
Rule 2: a spelling that could be two names is none.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, TypeVar

from ..patterns import lazy_pattern

T = TypeVar("T")

MAX_WRITTEN_CHARS: Final = 100
"""A longer text is no misspelled name."""
_WORD: Final = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@lru_cache(maxsize=1_000)
def plain_name(key: str) -> str:
    """Return what spellings of a name have in common: `Step-Back Question` and `step_back_question`."""
    return re.sub(r"[\W_]+", "", key.casefold())


def find_named(written: str, named: Mapping[str, T]) -> T | None:
    """Return what goes by the name that a text spells; None if nothing does, or several things do."""
    if written in named:
        return named[written]
    if len(written) > MAX_WRITTEN_CHARS:
        return None
    for ending in ("", "s"):
        wanted = plain_name(written).removesuffix(ending)
        found = [value for name, value in named.items() if plain_name(name).removesuffix(ending) == wanted]
        if wanted and found:
            return found[0] if all(value is found[0] or value == found[0] for value in found) else None
    return None


def find_name(written: str, names: Iterable[str]) -> str | None:
    """Return the name that a text spells; None if it is none of them, or could be several."""
    return find_named(written, {name: name for name in names})


def closest_names(written: str, names: Iterable[str], maximum: int = 3) -> list[str]:
    """Return the names that may have been meant, the nearest first.

    If none is near, they are those with most words of the same stem (`verify` and `verification`).
    """
    if len(written) > MAX_WRITTEN_CHARS:
        return []
    by_plain = {plain_name(name): name for name in names}
    near = difflib.get_close_matches(plain_name(written), by_plain, n=maximum, cutoff=0.75)
    if near:
        return [by_plain[plain] for plain in near]
    stems = _stems(written)
    akin = {name: len(stems & _stems(name)) for name in by_plain.values()}
    return sorted(filter(akin.get, akin), key=lambda name: -akin[name])[:maximum]


def did_you_mean(written: str, names: Iterable[str]) -> str:
    """Return the question to put behind an error about a name, with a space before it; empty if none is near."""
    found = closest_names(written, names)
    return f" Did you mean {' or '.join(found)}?" if found else ""


def _stems(name: str) -> set[str]:
    """Return how the words of a name such as `thoughtNumber` begin, but those of words that say little."""
    return {word[:4].lower() for word in _WORD.findall(name)} - {"of", "is", "a", "the"}


# -- words

_TABLE: Final = """
answer: finalanswer final theanswer correctedanswer correctanswer newanswer result solution response output
  conclusion value antwort ergebnis réponse respuesta risposta resposta 答案 回答 答え
finalanswer: answer final conclusion
value: answer finalanswer result choice
result: answer output finalanswer response value
subquestionanswer: answer subanswer intermediateanswer response result finalanswer
reason: reasoning rationale explanation justification why because comment feedback check checks analysis
  details objection
reasoning: steps thought thoughts reason rationale explanation work analysis thinking
thought: reasoning thinking thoughts analysis reason content nextthought revisedthought currentthinking
  rationale step newthought revision
currentthinking: thinking thought currentthought reasoning
evaluation: evaluationofpreviousthought previousevaluation previousthoughtevaluation review
planning: plan steps updatedplan plansteps
nextthoughtneeded: needsmorethoughts continue morethoughtsneeded nextneeded
substeps: steps children substeps
description: step title task name text content
status: state
correct: iscorrect right valid isvalid holds sound ok verdict answeriscorrect
sound: issound correct valid holds iscorrect ok
holds: correct valid sound verified confirmed iscorrect ok
thoughts: candidates nextsteps steps proposals options ideas alternatives nextthoughts items
steps: reasoning reasoningsteps solutionsteps plan thoughts nextsteps subproblems work solution workings
  derivation reasoningprocess schritte étapes pasos passi passos 步骤 手順
done: isdone finished complete completed isfinished final
finished: done isfinished complete completed isdone
subquestion: followup followupquestion question nextquestion nextsubquestion nextfollowup subq subquestions
  followups followupquestions questions nextquestions
stepbackquestion: question generalquestion stepback abstractquestion broaderquestion
generalprinciple: principle principles generalprinciples answer
approach: plan strategy method choice
application: setup appliedproblem applied
hypothesis: proposedsolution proposal solution statement answer
tool: toolname action function functionname name
arguments: args input actioninput toolinput parameters params toolarguments kwargs inputs
actions: action calls toolcalls toolcall tools
input: arguments args query toolinput parameters actioninput
plan: description why purpose reason thought step
calls: plan steps plans toolcalls actions tasks
id: evidence label name var variable
score: value rating overallscore
overallscore: score rating overall totalscore total value
scores: evaluations ratings candidates results
evaluations: scores ratings plans
statevariables: variables state vars values
calculation: operation computation step line
lines: steps calculations operations
rule: updaterule procedure
quality: verdict rating status decision
next: nextstage stage nextstep decision then
totalthoughts: estimatedthoughts thoughtsneeded estimatedtotalthoughts numberofthoughts total
tasks: plan steps tasklist
taskquery: query task question input
resourcename: resource tool name
toolinput: input arguments query args parameters
continueiterations: continue iterate continueiteration anotheriteration
keyfindings: findings keypoints
complexitylevel: complexity level
keychallenges: challenges
sequentialdependencies: dependencies
formalclaim: claim formal
code: python program script
confidence: certainty
entries: questions subquestions verificationquestions points outline skeleton list items steps
text: answer response content point
ratings: scores rating
differences: difference disagreements reason reasoning
"""

SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    name: tuple(words.split())
    for name, _, words in (row.partition(":") for row in _TABLE.replace("\n  ", " ").strip().splitlines())
}
"""By field, what else models call it, each as `plain_name` writes it."""

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

"""Find the open points of a session in its stored thoughts, without a model.

Open points are assumptions, unmerged branches, untested or refuted claims, unfinished plan steps, and thoughts that
followed a revised thought and were not checked since.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from ..core.strategy import Strategy
from ..records import ThoughtRow
from ..text import display_line, shorten
from .lines import ClaimVerdict, Head, ThoughtLine, ThoughtRecord, ancestry, decode_record, spans

_BEFORE_THE_END: Final = 340
"""The most characters of the reminder before the end. With the refutation sentence, it has about 100 tokens."""
_QUESTION: Final = "Which step is most likely wrong, and what was not checked?"
_SHOWN: Final = 8
_NAME_CHARS: Final = 40
_CLAIM_CHARS: Final = 150
_MOST_VERDICTS: Final = 12


class RecordedThought(NamedTuple):
    """A stored thought and its decoded record."""

    row: ThoughtRow
    record: ThoughtRecord


def with_records(thoughts: Iterable[ThoughtRow]) -> list[RecordedThought]:
    """Return each thought together with its decoded record."""
    return [RecordedThought(row, decode_record(row)) for row in thoughts]


# -- revisions


class Consequence(NamedTuple):
    """The thoughts that followed a revised thought and were not checked since."""

    revised: int
    revision: int
    numbers: tuple[int, ...]


def consequences(head: Head, thoughts: Sequence[RecordedThought]) -> list[Consequence]:
    """Find the thoughts that followed a revised thought and were not checked since."""
    places = {thought.row.seq: place for place, thought in enumerate(thoughts)}
    settled, confirmed, found = set[int | None](), set[int](), list[Consequence]()
    for place, (row, record) in reversed([*enumerate(thoughts)]):
        settled.add(record.revises_seq)
        written = record.facts.get("confirms", ())
        numbers = written if isinstance(written, list) else [written]
        confirmed.update(number for number in numbers if type(number) is int)
        start = places.get(record.revises_seq or 0)
        if start is None:
            continue
        revised = thoughts[start].row
        resting = [
            thought.row
            for thought in thoughts[start + 1 : place]
            if thought.row.seq not in settled
            and thought.row.number not in confirmed
            and not 0 < (thought.record.revises_seq or 0) <= revised.seq
            and _is_downstream(head, thought.row.branch, revised)
        ]
        settled |= {thought.seq for thought in resting}
        if resting:
            resting_numbers = tuple(thought.number for thought in resting)
            found.append(Consequence(revised.number, row.number, resting_numbers))
    return found[::-1]


def _is_downstream(head: Head, branch: str | None, revised: ThoughtRow) -> bool:
    """Whether the path from the first thought to the end of `branch` contains the thought `revised`."""
    lines = dict(ancestry(head, branch))
    return branch == revised.branch or (lines.get(revised.branch) or 0) >= revised.number


def _find_unrevised(thoughts: Sequence[RecordedThought]) -> list[RecordedThought]:
    revised = {thought.record.revises_seq for thought in thoughts}
    return [thought for thought in thoughts if thought.row.seq not in revised]


# -- open points


def left_open(head: Head, strategy: Strategy[Any, Any], thoughts: Sequence[RecordedThought]) -> str:
    """Return the open points of a session as one line of text. The text is empty if nothing is open.

    `thoughts` are all thoughts of the session, oldest first.
    """
    refuted = [verdict.number for verdict in _unrevised_refutations(head, thoughts)]
    return "; ".join(
        [
            *_label("not merged", [_short(name) for name, _ in _branches_beside(head)]),
            *_label("not tested", [f"thought {number}" for number in _untested_claims(strategy, thoughts)]),
            *(_stands_on(found) for found in consequences(head, thoughts)),
            *_label("only assumed", _unrevised_assumptions(thoughts)),
            *_label("refuted", [str(number) for number in refuted if number]),
            *_label("plan", [step for steps in _open_steps(thoughts) for step in steps]),
            *_label("stages", [f"ended at {head.stage}"] * (head.ended and head.stage == strategy.first)),
        ]
    )


def before_the_end(head: Head, thoughts: Sequence[RecordedThought]) -> str:
    """Return the open points and the question that an agent gets before it ends its session."""
    open_steps, dropped_steps = _open_steps(thoughts)
    parts = [
        *(f"{verdict.number} was refuted" for verdict in _unrevised_refutations(head, thoughts)),
        *(_stands_on(found) for found in consequences(head, thoughts)),
        *_label("open", [f"{_short(name)}{_show_score(line)}" for name, line in _branches_beside(head)]),
        *_label("assumed", _unrevised_assumptions(thoughts)),
        *dropped_steps,
        *open_steps[:1],
    ]
    text, room = "", _BEFORE_THE_END - len(_QUESTION)
    for part in parts:
        sentence = f"{part[:1].upper()}{part[1:].rstrip('.')}. "
        text += sentence if len(text) + len(sentence) <= room else ""
    return text + _QUESTION


def _label(label: str, items: Sequence[str]) -> list[str]:
    return [f"{label}: {_join(items)}"] if items else []


def _stands_on(found: Consequence) -> str:
    count = len(found.numbers)
    return (
        f"{spans(found.numbers)} stand{'s' * (count == 1)} on {found.revised}, which {found.revision} revised"
    )


def _branches_beside(head: Head) -> list[tuple[str, ThoughtLine]]:
    """Return the open branches, except the latest thought's branch and its ancestors."""
    followed = dict(ancestry(head, head.latest))
    return [
        (name, line)
        for name, line in head.branches.items()
        if not (line.merged or line.passed_over or name in followed)
    ]


def _untested_claims(strategy: Strategy[Any, Any], thoughts: Sequence[RecordedThought]) -> list[int]:
    """Return the numbers of the thoughts with untested claims."""
    tested_by = {stage.name: stage.tested_by for stage in strategy.stages}
    waiting: dict[str | None, tuple[int, str]] = {}
    """Maps each line with an untested claim to the number of the claim's thought and the stage that tests the claim."""
    for row, record in thoughts:
        branch = row.branch
        for name in record.stages:
            tested = [line for line, (_, test) in waiting.items() if test == name]
            if tested:
                del waiting[branch if branch in tested else tested[-1]]
            # A thought that stays in the stage continues the claim. If the thought has data, it makes a new claim.
            if (test := tested_by.get(name)) and (record.data or branch not in waiting):
                waiting.pop(branch, None)
                waiting[branch] = (row.number, test)
    return [number for number, _ in waiting.values()]


def _unrevised_assumptions(thoughts: Sequence[RecordedThought]) -> list[str]:
    unrevised = _find_unrevised(thoughts)
    marked = [row.number for row, record in unrevised if record.facts.get("evidence") == "assumed"]
    return [spans(marked)] if marked else []


def with_verdicts(head: Head, claims: Iterable[Mapping[str, Any]]) -> Head:
    """Add verdicts on claims to the state of a session. A later verdict on a claim replaces the earlier verdict.

    Args:
        claims: Claims, each with the members `claim`, `thought`, `verdict` and `reason`.
    """
    found = [
        ClaimVerdict(
            claim["thought"],
            claim["verdict"],
            shorten(claim["claim"], _CLAIM_CHARS, one_line=True),
            shorten(claim["reason"], 2 * _CLAIM_CHARS, one_line=True),
            is_new=True,
        )
        for claim in claims
        if claim.get("verdict")
    ]
    judged = {verdict.claim for verdict in found}
    earlier = [verdict for verdict in head.verdicts if verdict.claim not in judged]
    return replace(head, verdicts=tuple([*earlier, *found][-_MOST_VERDICTS:]))


def _unrevised_refutations(head: Head, thoughts: Sequence[RecordedThought]) -> list[ClaimVerdict]:
    revised = {thought.record.revises_thought for thought in thoughts}
    return [
        verdict for verdict in head.verdicts if verdict.verdict == "refuted" and verdict.number not in revised
    ]


def _open_steps(thoughts: Sequence[RecordedThought]) -> tuple[list[str], list[str]]:
    """Return phrases about the open steps of the latest plan, and about open steps of earlier plans."""
    plans = [
        {str(step.get("description")): step.get("status") for step in plan if isinstance(step, dict)}
        for thought in thoughts
        if isinstance(plan := thought.record.facts.get("planning"), list)
    ]
    latest = plans[-1] if plans else {}
    conclusion, known = next(reversed(latest), ""), {name: plan[name] for plan in plans for name in plan}
    pending = [name for name, status in latest.items() if status != "Done" and name != conclusion]
    gone = [name for name, status in known.items() if status != "Done" and name not in latest]
    return [f"{_short(name)} is not done" for name in pending], [
        f"{_short(name)} was dropped while open" for name in gone
    ]


# -- scores: the lines that have scores, best first, such as `B 0.90 · L 0.80 → 0.70`


def scoreboard(head: Head) -> str:
    """Return the scores of the lines as text, best first. The text is empty if no line has a score.

    If the main line continues a branch, both share a score, and only the branch is listed.
    """
    chosen = head.chosen
    lines = [*head.branches.items()]
    lines += [("main line", head.main)] if head.branches and chosen is None else []
    valued = [(name, line) for name, line in lines if line.score is not None]
    valued.sort(key=lambda pair: -(pair[1].score or 0))
    return _join(
        [f"{_short(name)}{_show_score(line)}{' (chosen)' * (name == chosen)}" for name, line in valued], " · "
    )


def _show_score(line: ThoughtLine) -> str:
    scores = [score for score in dict.fromkeys((line.score_before, line.score)) if score is not None]
    shown = [f"{score:.2f}" if abs(score) <= 1 else f"{score:g}" for score in scores]
    return f" {' → '.join(shown)}" if line.score is not None else ""


def _join(items: Sequence[str], between: str = ", ") -> str:
    more = len(items) - _SHOWN
    return between.join([*items[:_SHOWN], *([f"{more} more"] if more > 0 else [])])


def _short(name: str) -> str:
    return display_line(name, _NAME_CHARS) or '""'

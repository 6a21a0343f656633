"""What a session's lines come to: the scores of those that are open, and at the end what was left open.

Each is one line of text, since it is paid for like every other word of a reply.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..core.strategy import Strategy
from .thought import Head, ThoughtLine, ThoughtRecord

_SHOWN_LINES = 8
_NAME_CHARS = 40
_MAIN = "main line"


class LaidThought(NamedTuple):
    """A thought as its session keeps it, without the text."""

    seq: int
    number: int
    branch: str | None
    record: ThoughtRecord


def scoreboard(head: Head) -> str:
    """Return the open, valued lines, best first: `B 0.90 · L 0.70`; nothing where no branch has a score."""
    lines = [*_open_branches(head), (_MAIN, head.main)]
    valued = [(name, line.score) for name, line in lines if line.score is not None]
    if not head.branches or not valued:
        return ""
    valued.sort(key=lambda pair: -pair[1])
    return _join([f"{_short(name)} {_score(score)}" for name, score in valued], " · ")


def what_is_left_open(strategy: Strategy[Any, Any], head: Head, thoughts: Sequence[LaidThought]) -> str:
    """Return in a line what nothing came of; empty if there is nothing of the kind.

    Args:
        thoughts: All of the session, oldest first; what a run thought before it is not asked after.
    """
    own = [thought for thought in thoughts if thought.seq > head.from_run]
    return "; ".join((*_branches_beside(head), *_unused_corrections(own), *_untested_claims(strategy, own)))


def _open_branches(head: Head) -> Iterator[tuple[str, ThoughtLine]]:
    return ((name, line) for name, line in head.branches.items() if not line.merged)


def _branches_beside(head: Head) -> Iterator[str]:
    """Name the open branches, without the one that the last thought is on and those it goes back to."""
    followed, line = set[str | None](), head.latest
    while line is not None and line not in followed:
        followed.add(line)
        line = head.branches[line].parent
    left = [_short(name) for name, _ in _open_branches(head) if name not in followed]
    if left:
        yield f"not merged: {_join(left)}"


def _unused_corrections(thoughts: Sequence[LaidThought]) -> Iterator[str]:
    """Name the thoughts that put another right and after which their line did not go on."""
    waiting: list[LaidThought] = []
    for thought in thoughts:
        record = thought.record
        waiting = [earlier for earlier in waiting if not _follows(thought, earlier)]
        if record.is_revision:
            waiting.append(thought)
    if waiting:
        yield f"nothing was built on: {_join([_correction(earlier) for earlier in waiting])}"


def _follows(thought: LaidThought, correction: LaidThought) -> bool:
    """Whether a later thought goes on from a correction, or corrects it in its turn."""
    record = thought.record
    if record.is_revision:
        revised = record.revises_seq
        return revised is not None and revised in (correction.seq, correction.record.revises_seq)
    if correction.branch in (thought.branch, record.merges or thought.branch):
        return True
    return record.branch_from_seq is not None and record.branch_from_seq >= correction.seq


def _correction(thought: LaidThought) -> str:
    revises = thought.record.revises
    return f"revision {thought.number}" if revises is None else f"revision {thought.number} of {revises}"


def _untested_claims(strategy: Strategy[Any, Any], thoughts: Sequence[LaidThought]) -> Iterator[str]:
    """Name the thoughts of stages whose claims another stage tests, where no thought of that stage came after."""
    waiting: list[tuple[LaidThought, str]] = []
    for thought in thoughts:
        for name in thought.record.stages:
            tested = [pair for pair in waiting if pair[1] == name]
            own = [pair for pair in tested if pair[0].branch == thought.branch]
            for pair in (own or tested)[-1:]:
                waiting.remove(pair)
            stage = strategy.by_name.get(name)
            own = [pair for pair in waiting if pair[0].branch == thought.branch]
            # A thought that stays in the stage goes on with the claim; with data it makes it anew.
            if stage is not None and stage.tested_by and (thought.record.data or not own):
                waiting = [*(pair for pair in waiting if pair not in own), (thought, stage.tested_by)]
    if waiting:
        yield f"not tested: {_join([f'thought {earlier.number}' for earlier, _ in waiting])}"


def _join(items: Sequence[str], between: str = ", ") -> str:
    more = len(items) - _SHOWN_LINES
    return between.join([*items[:_SHOWN_LINES], *([f"{more} more"] if more > 0 else [])])


def _short(name: str) -> str:
    text = " ".join(name.split()) or '""'
    return text if len(text) <= _NAME_CHARS else text[: _NAME_CHARS - 1] + "…"


def _score(score: float) -> str:
    return f"{score:.2f}" if abs(score) <= 1 else f"{score:g}"

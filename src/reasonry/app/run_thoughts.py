"""Store a run's thoughts in its session, and quote a session's thoughts in a problem."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from ..core.bodies import Thought
from ..core.problem import quote_latest, with_quoted
from ..core.registry import Registry, find_strategy
from ..engine.run import Run
from ..errors import NotFoundError, StoreError, UsageError
from ..guided.lines import ThoughtRecord, decode_record, encode
from ..guided.sessions import Sessions
from ..records import ThoughtRow
from ..text import shorten
from .requests import RunRequest

MAX_QUOTED_CHARS = 16_000
"""The most characters of all quoted thoughts. The first thought is quoted, and the latest thoughts that fit."""
MAX_QUOTED_THOUGHT_CHARS = 4_000


def thought_rows(
    thoughts: Iterable[Thought], before: int = 0, branches: dict[str, int] | None = None
) -> list[ThoughtRow]:
    """Convert thoughts of a run to rows of its session, numbered in order.

    Args:
        before: How many earlier thoughts the run has.
        branches: Maps each earlier branch to the number of its first thought. This function adds new branches.
    """
    rows, firsts = list[ThoughtRow](), {} if branches is None else branches
    for number, thought in enumerate(thoughts, before + 1):
        left = None if thought.branch is None or thought.leaves is None else firsts.get(thought.leaves)
        record = ThoughtRecord(
            stage=thought.stage,
            is_revision=thought.revises is not None,
            revises_thought=thought.revises,
            revises_seq=thought.revises,
            branch_from_thought=left,
            branch_from_seq=left,
            data=thought.data or None,
            score=thought.score,
        )
        if thought.branch is not None:
            firsts.setdefault(thought.branch, number)
        rows.append(ThoughtRow(number, number, thought.text, thought.branch, encode(record)))
    return rows


def quote_thoughts(thoughts: Sequence[ThoughtRow]) -> str:
    """Quote thoughts in order, with their numbers, branches and revisions.

    If not all thoughts fit, the thoughts between the first and the latest are omitted, and the text says so.
    """
    texts = [_text_of(thought) for thought in thoughts]
    first = texts[:1]
    room = MAX_QUOTED_CHARS - sum(map(len, first))
    return "\n".join([*first, *quote_latest(texts[1:], room, "thoughts")])


def _text_of(thought: ThoughtRow) -> str:
    record = decode_record(thought)
    about = [
        f"branch {thought.branch}" if thought.branch else "",
        f"revises thought {record.revises_thought}" if record.revises_thought is not None else "",
        f"takes branch {record.merge_branch} back in" if record.merge_branch else "",
        str(record.facts.get("evidence") or ""),
    ]
    shown = ", ".join(filter(None, about))
    text = shorten(thought.text, MAX_QUOTED_THOUGHT_CHARS)
    return f"Thought {thought.number}{f' ({shown})' if shown else ''}: {text}"


async def problem_after(
    request: RunRequest, sessions: Callable[[], Sessions], strategies: Registry
) -> tuple[str, str | None]:
    """Return a request's problem and session id. The problem quotes the thoughts of the session, if any.

    Raises:
        UsageError: The request has neither a problem nor a session with thoughts.
        NotFoundError: There is no such session.
    """
    problem = request.problem
    claims = request.options.get("claims")
    if problem is None and request.session is None and isinstance(claims, list):
        problem = "\n".join(map(str, claims))
    strategy = request.strategy
    named = find_strategy(strategy, strategies) if isinstance(strategy, str) else strategy
    task = getattr(named, "task_after_thoughts", "")
    if request.session is None:
        if problem is None:
            wanted = "what to refute: a problem, claims or a session" if task else "the problem to solve"
            raise UsageError(f"problem is missing; give {wanted}", field="problem")
        return problem, None
    stored = sessions().stored
    row = await stored.row(request.session)
    session_id, thoughts = row.session_id, await stored.thoughts(row.session_id)
    if not thoughts:
        raise UsageError(f"session {session_id} has no thoughts to begin with", field="session_id")
    if problem is not None or task:
        return with_quoted(problem or task, quote_thoughts(thoughts)), session_id
    if row.run_id is not None:
        message = f"session {session_id} is the record of a run; give the problem in `problem`"
        raise UsageError(message, field="problem")
    return with_quoted(thoughts[0].text, quote_thoughts(thoughts[1:])), session_id


async def tell_verdicts(run: Run, sessions: Callable[[], Sessions]) -> None:
    """Record a run's verdicts in the session that the run started from."""
    conclusion, session_id = run.snapshot.conclusion, run.begun.from_session
    claims = conclusion and conclusion.document.get("claims")
    if session_id is not None and claims:
        with suppress(NotFoundError, StoreError):
            places = [{**claim, **place} for claim in claims for place in claim.get("also", ())]
            await sessions().stored.take_verdicts(session_id, [*claims, *places])

"""Begin a fork: a run that copies the first events of another run and then continues independently.

A fork may reword questions. The machine identifies a question by a digest of the strategy's text. So the new text
replaces only the text of the pending question (`run.reword`). Later tries of this question use the new text.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from ..core.effects import Ask
from ..core.problem import check_characters
from ..core.registry import Registry
from ..errors import ConflictError, TooLargeError, UsageError
from ..records import now_ms
from ..system.masking import SECRETS
from .journal import Begun, Entry, ParticipantNames, Resumed, Settled
from .run import Run, recorded_strategy

MAX_QUESTION_CHARS: Final = 400_000
"""The length limit of a reworded question, in characters."""


class Fork(NamedTuple):
    """The events that a new run copies from the run `run_id`, and the participants of the run `run_id`.

    Attributes:
        reworded: Maps question ids to new texts. Questions that the run `run_id` itself has reworded are included.
        new_questions: The ids of reworded questions that must be open after the copied events.
    """

    run_id: str
    participants: ParticipantNames
    taken: Sequence[Settled]
    reworded: Mapping[str, str]
    new_questions: Sequence[str]


def begin_run(order: Begun, fork: Fork | None, strategies: Registry) -> tuple[Run, list[Entry]]:
    """Return the run that `order` begins, and the entries copied from `fork`. Secret keys are masked.

    Raises:
        ConflictError: A copied event does not fit the run, or a reworded question is not open after the copied events.
    """
    begun = replace(
        order,
        problem=SECRETS.mask(order.problem),
        form=SECRETS.mask_data(order.form),
        options=SECRETS.mask_data(order.options),
        prompts=SECRETS.mask_data(order.prompts),
        version=recorded_strategy(strategies, order.strategy).version,
        created_at_ms=now_ms(),
    )
    if fork is None:
        return Run(begun, strategies), []
    texts = SECRETS.mask_data(dict(fork.reworded))
    begun = replace(begun, forked_from=fork.run_id, forked_at=len(fork.taken), reworded=texts)
    run = Run(begun, strategies)
    entries = _take_over(run, fork)
    # The new texts of later questions are dropped, since this run may never ask these questions.
    asked = {effect_id: text for effect_id, text in texts.items() if effect_id in run.asked}
    run.begun = replace(begun, reworded=asked)
    return run, entries


def _take_over(run: Run, fork: Fork) -> list[Entry]:
    """Fold a fork's copied events into `run`. If the run ends before the last event, resume it. Return the entries."""
    entries: list[Entry] = []
    try:
        for settled in fork.taken:
            if run.snapshot.status != "active":
                entries.append(Resumed())
                run.apply(entries[-1])
            run.take(settled)
            entries.append(run.events[-1])
    except ConflictError as error:
        raise ConflictError(
            f"the first {len(fork.taken)} answers of run {fork.run_id} do not fit the new options: {error.message}",
            run_id=fork.run_id,
        ) from error
    waiting = [pending.id for pending in run.open_effects if isinstance(pending.effect, Ask)]
    for effect_id in fork.new_questions:
        if effect_id not in waiting:
            raise ConflictError(
                f"question {effect_id[:60]!r} is not asked after the first {len(fork.taken)} answers of run "
                f"{fork.run_id}; asked then: {', '.join(waiting) or 'none'}",
                field="prompt",
                choices=waiting,
            )
    return entries


def check_rewordings(texts: Mapping[str, str]) -> None:
    """Check the new texts of questions. `texts` maps question ids to texts.

    Raises:
        UsageError: A text is empty, is too long, or cannot be stored or sent.
    """
    for text in texts.values():
        if not text.strip():
            raise UsageError("prompt is empty; give the question to ask", field="prompt")
        if len(text) > MAX_QUESTION_CHARS:
            message = f"prompt has {len(text):,} characters; the limit is {MAX_QUESTION_CHARS:,}"
            raise TooLargeError(message, field="prompt", limit=MAX_QUESTION_CHARS)
        check_characters(text, "prompt")

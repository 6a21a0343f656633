"""Direct: send the problem alone, in a single question. This is the baseline for every other strategy.

Algorithm, for a problem x:

    y ~ π(y | x)                                                                        answering

The question adds no word to the problem. The model is asked only once, unless a verifier checks the answer.
"""

from collections.abc import Sequence

from ..blocks.answers import AnswerOptions, AnswerState, ReasonedAnswer
from ..core.bodies import Body, Conclusion
from ..core.effects import Ask
from ..core.readings import Unreadable
from ..core.strategy import AnswerDetails, Stage, Strategy, final_response, problem_reception
from ..reading.form import read_form


class State(AnswerState, frozen=True, omit_defaults=True, kw_only=True):
    """The state of the strategy: the problem x, and finally the answer y."""

    options: AnswerOptions


def answer(s: State) -> Body:
    """Send problem x alone, and get the answer y: y ~ π(y | x)."""
    prompt = "\n\n".join((s.problem, *s.final.objections))
    verify, facts = s.options.verify, {"kind": "sample", "problem": s.problem}
    question = Ask(prompt, retries=int(verify), wants_value=verify, facts=facts)
    return (yield from s.settle_answer(question, ()))


def read_reply(s: State, ask: Ask, texts: Sequence[str]) -> tuple[ReasonedAnswer, str] | Unreadable:
    """Read the answer in a reply. With `verify` off, a reply without a marked answer is itself the answer."""
    reading = read_form(texts, ReasonedAnswer)
    if isinstance(reading, Unreadable) and reading.is_unmarked and not s.options.verify:
        return ReasonedAnswer(answer=texts[-1]), "text"
    return reading


def conclude(state: State) -> Conclusion:
    """Return the answer and the result of its check."""
    return state.conclude(state.final.document)


DIRECT: Strategy[State, AnswerOptions] = Strategy(
    name="direct",
    title="Direct",
    source="this project",
    summary="Sends the problem as it is, in one call: the baseline of every comparison.",
    options=AnswerOptions,
    state=State,
    conclude=conclude,
    details=AnswerDetails,
    stages=(
        problem_reception(("answering",), "Take the problem as it is."),
        Stage(
            "answering",
            ("final_response",),
            description="Answer it.",
            guidance="Answer at once.",
            body=answer,
            example={"answer": "11"},
            read=read_reply,
            value=ReasonedAnswer,
        ),
        final_response(),
    ),
)

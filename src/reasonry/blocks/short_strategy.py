"""Make a strategy from a short generator, such as this loop of two prompts in ten lines.

    @reasonry.strategy
    def draft_and_critic(problem: str) -> Loop:
        draft = yield ask(f"Write this: {problem}")
        for _ in range(3):
            fault = yield ask(f"Name the worst fault, or reply OK. {draft}", name="critic")
            if fault == "OK":
                break
            draft = yield ask(f"Mend this fault: {fault} {draft}", name="mend")
        return draft

Like the body of any stage, the generator is replayed with its earlier replies, so equal replies must lead to equal
questions. Each reply is recorded as a step under the name of its `ask`. If a verifier refutes the answer, the last
questions are asked again with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..core.bodies import Body, Thought, go, request, stay
from ..core.effects import Ask
from ..core.readings import Unreadable
from ..core.strategy import AnswerDetails, Stage, Strategy
from .answer_form import read_in_form
from .answers import AnswerOptions, AnswerState
from .data_types import read_as, schema_of

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=str)
else:
    from typing import TypeVar

    T = TypeVar("T")


class Prompt(Struct, Generic[T], frozen=True):
    """A question of a short strategy; see `ask`."""

    ask: Ask
    reply: type[T] | None

    def __iter__(self) -> Generator[tuple[Prompt[Any], ...], Any, T]:
        (reply,) = yield (self,)
        return reply


Loop = Generator[Prompt[T] | tuple[Prompt[Any], ...], T, Any]
"""A run of a short strategy's function: it yields prompts, receives the replies, and returns the answer. `yield`
returns text. `yield from` returns a reply of the prompt's type."""


class LoopState(AnswerState, frozen=True, kw_only=True):
    """The state of a short strategy: the replies so far, one tuple for each `yield` of its generator."""

    replies: tuple[tuple[Any, ...], ...] = ()
    objection: str = ""
    """The objection with which the last questions are asked again."""


def ask(
    prompt: str,
    *,
    name: str = "ask",
    system: str = "",
    reply: type[T] | None = None,
    temperature: float | None = None,
) -> Prompt[T]:
    """Build a question for a short strategy to `yield`. The `yield` returns the reply.

    Args:
        name: The name of the step in the record.
        reply: The type of the reply, for `yield from`: any type that JSON can represent. Defaults to text.
    """
    form = None if reply is None else schema_of(reply)
    return Prompt(Ask(prompt, system, about=name, temperature=temperature, form=form), reply)


def ask_all(*prompts: Prompt[T]) -> Generator[tuple[Prompt[Any], ...], Any, list[T]]:
    """Ask several questions in parallel. `yield from` returns the replies in the order of the prompts."""
    return (yield prompts)


def strategy(function: Callable[[str], Loop[Any]]) -> Strategy[LoopState, AnswerOptions]:
    """Turn a function that generates prompts into a strategy. The first line of its docstring is the summary."""
    name = function.__name__
    return Strategy(
        name=name,
        title=name.replace("_", " ").capitalize(),
        source=function.__module__,
        summary=(function.__doc__ or "").partition("\n")[0] or "A loop of prompts.",
        options=AnswerOptions,
        state=LoopState,
        conclude=lambda s: s.conclude(
            s.final.document, so_far=_text(s.replies[-1][-1]) if s.replies else None
        ),
        details=AnswerDetails,
        stages=(
            Stage(
                "loop",
                to=("final_response",),
                body=partial(_run, function),
                read=partial(_read, function),
                repeats=True,
            ),
            Stage("final_response"),
        ),
    )


def _next_prompts(function: Callable[[str], Loop[Any]], state: LoopState) -> tuple[Prompt[Any], ...]:
    """Replay the generator with its replies so far. Return its next prompts, or raise StopIteration with its answer."""
    loop = function(state.problem)
    wanted = next(loop)
    for replies in state.replies:
        typed = [
            value if prompt.reply is None else read_as(prompt.reply, value)
            for prompt, value in zip(_prompts_of(wanted), replies, strict=True)
        ]
        wanted = loop.send(typed[0] if isinstance(wanted, Prompt) else typed)
    return _prompts_of(wanted)


def _run(function: Callable[[str], Loop[Any]], state: LoopState) -> Body:
    try:
        prompts = _next_prompts(function, state)
    except StopIteration as end:
        answer = _text(end.value)
        path = [text for had in state.replies for reply in had if (text := _text(reply)) != answer]
        state, _ = yield from replace(state, final=state.final.propose(answer)).verify_answer(path)
        if state.final.text is not None:
            return go(state, "final_response")
        # Drop the last replies together with the wrong answer, so that their questions are asked again.
        can_ask, objection = bool(state.replies), state.final.objections[-1]
        state = replace(state, replies=state.replies[:-1], objection=objection)
        return state.repair_or_fail(can_ask=can_ask)
    objection = f"\n\n{state.objection}" if state.objection else ""
    # Equal prompts in one request draw independent replies.
    numbered = enumerate(prompts)
    asks = [replace(each.ask, prompt=each.ask.prompt + objection, sample=n) for n, each in numbered]
    replies = yield request(state, *asks)
    values = tuple(each.value for each in replies)
    steps = [
        Thought(_text(value), data={"ask": prompt.ask.about})
        for prompt, value in zip(prompts, values, strict=True)
    ]
    return stay(replace(state, replies=(*state.replies, values), objection=""), *steps)


def _prompts_of(wanted: Prompt[Any] | Sequence[Prompt[Any]]) -> tuple[Prompt[Any], ...]:
    return (wanted,) if isinstance(wanted, Prompt) else tuple(wanted)


def _read(
    function: Callable[[str], Loop[Any]], state: LoopState, asked: Ask, texts: Sequence[str]
) -> tuple[Any, str] | Unreadable:
    if asked.form is None:
        return texts[-1].strip(), "text"
    found = read_in_form(texts[-1], asked.form)
    if isinstance(found, Unreadable):
        return found
    about, prompts = (asked.about, asked.form), _next_prompts(function, state)
    kind = next(prompt.reply for prompt in prompts if (prompt.ask.about, prompt.ask.form) == about)
    try:
        read_as(kind, found[0])
    except ValueError as error:
        return Unreadable(str(error))
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()

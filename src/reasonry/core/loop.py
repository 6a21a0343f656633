"""Strategies of one looping stage, made of a short generator: a loop of two prompts in ten lines.

    @reasonry.strategy
    def draft_and_critic(problem: str):
        draft = yield ask(f"Write this: {problem}")
        for _ in range(3):
            fault = yield ask(f"Name the worst fault, or reply OK. {draft}", name="critic")
            if fault == "OK":
                break
            draft = yield ask(f"Mend this fault: {fault} {draft}", name="mend")
        return draft

The generator is run again over the replies it has had, as the body of any stage is: it must ask the same again when it
is given the same. Each reply is a step of the record, under the name of its ask.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..reading.fit import Unreadable
from .answer_form import read_in_form
from .data_types import read_as, schema_of
from .effects import Ask
from .strategy import Body, Conclusion, NoOptions, Stage, Strategy, Thought, go, request, stay

Loop = Generator["Prompt | Sequence[Prompt]", Any, Any]
"""What the function of a short strategy returns: yields prompts, is sent the replies, returns the answer."""


class Prompt(Struct, frozen=True):
    """A question of a short strategy; see `ask`."""

    text: str
    name: str
    system: str
    reply: Any
    temperature: float | None


class LoopState(Struct, frozen=True):
    """The replies of a short strategy, one tuple for each yield."""

    problem: str
    options: NoOptions = NoOptions()
    replies: tuple[tuple[Any, ...], ...] = ()
    answer: str | None = None


def ask(
    prompt: str, *, name: str = "ask", system: str = "", reply: Any = None, temperature: float | None = None
) -> Prompt:
    """Return a question for `yield` in a short strategy, which is sent the reply; of a list of them, the replies.

    Args:
        name: Of the step in the record.
        reply: The type of the reply, as `solve` takes `output_type`; None: text.
    """
    return Prompt(prompt, name, system, reply, temperature)


def strategy(function: Callable[[str], Loop]) -> Strategy[LoopState, NoOptions]:
    """Return the strategy of a generator function of the problem; its docstring is the summary."""
    name = function.__name__
    return Strategy(
        name=name,
        title=name.replace("_", " ").capitalize(),
        source=function.__module__,
        summary=(function.__doc__ or "").partition("\n")[0] or "A loop of prompts.",
        state=LoopState,
        conclude=_conclude,
        stages=(
            Stage("loop", to=("final_response",), body=partial(_run, function), read=_read, repeats=True),
            Stage("final_response"),
        ),
    )


def _run(function: Callable[[str], Loop], state: LoopState) -> Body:
    loop = function(state.problem)
    try:
        wanted = next(loop)
        for replies in state.replies:
            wanted = loop.send(_read_replies(wanted, replies))
    except StopIteration as end:
        return go(replace(state, answer=_text(end.value)), "final_response")
    prompts = _prompts_of(wanted)
    replies = yield request(state, *map(_ask, prompts))
    values = tuple(each.value for each in replies)
    steps = [
        Thought(_text(value), data={"ask": prompt.name})
        for prompt, value in zip(prompts, values, strict=True)
    ]
    return stay(replace(state, replies=(*state.replies, values)), *steps)


def _prompts_of(wanted: Prompt | Sequence[Prompt]) -> tuple[Prompt, ...]:
    return (wanted,) if isinstance(wanted, Prompt) else tuple(wanted)


def _ask(prompt: Prompt) -> Ask:
    form = None if prompt.reply is None else schema_of(prompt.reply)
    return Ask(
        prompt.text, system=prompt.system, temperature=prompt.temperature, form=form, about=prompt.name
    )


def _read_replies(wanted: Prompt | Sequence[Prompt], replies: Sequence[Any]) -> Any:
    typed = [
        value if prompt.reply is None else read_as(prompt.reply, value)
        for prompt, value in zip(_prompts_of(wanted), replies, strict=True)
    ]
    return typed[0] if isinstance(wanted, Prompt) else typed


def _read(_: LoopState, asked: Ask, texts: Sequence[str]) -> tuple[Any, str] | Unreadable:
    return (texts[-1].strip(), "text") if asked.form is None else read_in_form(texts[-1], asked.form)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()


def _conclude(state: LoopState) -> Conclusion:
    if state.answer is not None:
        return Conclusion(state.answer)
    return Conclusion(_text(state.replies[-1][-1]) if state.replies else None, standing="best_so_far")

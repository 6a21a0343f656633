"""Answers in a form: a strategy's answer as JSON that fits the caller's schema (the form).

A strategy reasons as usual. Its last stage then asks for the answer in the form, unless the answer already fits. After
a reply that does not fit, the stage asks again and states the fault. If the form was made from a type, the run's
verifier applies the checks that no schema expresses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from ..core.bodies import Body, EffectFailed, Move, Thought, request
from ..core.effects import Ask, Verify
from ..core.events import UNREADABLE, Answered, Failed, Verified
from ..core.json_schema import faults
from ..core.readings import Reading, Unreadable, ask_again
from ..core.strategy import Strategy
from ..reading.json_in_text import json_values

OUTPUT = "output"
"""The `about` of the effect that checks an answer against its type."""

VALUES = ("number", "integer", "boolean")
"""JSON types whose values are never a whole text."""

PROMPT = """{problem}

This answer has been found:
{answer}

Write it as JSON that fits this schema, and nothing else:
{schema}
Change nothing of what the answer says. Members that the schema asks for beyond that follow from the problem."""


def with_form(
    strategy: Strategy[Any, Any], problem: str, form: Mapping[str, Any] | None, *, is_checked: bool = False
) -> Strategy[Any, Any]:
    """Return a copy of the strategy. In the copy, the last stage converts the answer to a form.

    Args:
        form: The JSON schema of the answer. None leaves the strategy unchanged.
        is_checked: Whether the verifier checks the converted answer.
    """
    if form is None:
        return strategy

    def put_in_form(state: Any) -> Body:
        answer = strategy.conclude(state).answer
        if answer is None:
            return Move(None)
        schema = msgspec.json.encode(form).decode()
        prompt = PROMPT.format(problem=problem, answer=answer, schema=schema)
        facts = {"kind": "answer_form", "problem": problem, "answer": answer}
        ask = question = Ask(prompt, facts=facts, form=dict(form))
        found = read_in_form(answer, form)
        # An answer that is already JSON in the form needs no question.
        text = answer if isinstance(found, tuple) and found[1] == "json" else None
        thoughts, fault = (), ""
        for _ in range(ask.retries + 1):
            if text is None:
                (reply,) = yield request(state, ask)
                text = msgspec.json.encode(reply.value).decode()
                thoughts = (Thought(text, data={"answer": text}),)
            if is_checked:
                check = Verify(problem, (text,), final=True, about=OUTPUT)
                (verdict,) = yield request(state, check, give_failures=True)
                is_wrong = isinstance(verdict, Verified) and verdict.verdict == "wrong"
                fault = verdict.detail if is_wrong else ""
            if not fault:
                return Move(text, thoughts=thoughts)
            ask, text = ask_again(question, Answered(text), Reading(refusal=fault)), None
        raise EffectFailed(Failed(UNREADABLE, fault))

    def read(state: Any, ask: Ask, texts: Sequence[str]) -> tuple[Any, str] | Unreadable:
        return read_in_form(texts[-1], form)

    stages = tuple(
        stage if stage.to else replace(stage, body=put_in_form, read=read) for stage in strategy.stages
    )
    return replace(strategy, stages=stages, wants_value=form.get("type") in VALUES)


def read_in_form(text: str, form: Mapping[str, Any]) -> tuple[Any, str] | Unreadable:
    """Find the first JSON value in a text that fits the schema `form`. Return the value, and how it was found."""
    first: str | None = None
    for value, rung in json_values(text):
        fault = next(faults(value, form, "the answer"), None)
        if fault is None:
            return value, rung
        first = first or fault
    return Unreadable(first or "reply with JSON that fits the schema, and nothing else")

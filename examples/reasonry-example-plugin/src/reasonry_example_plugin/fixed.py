"""A model that answers every question with the same text: to try out what comes after the model.

An entry point of `reasonry.models` takes the text behind the colon of `--model PACKAGE/NAME:TEXT`, and returns an
object with `answer` and `close`. Reasonry gives it its name.
"""

from __future__ import annotations

import json

from reasonry.ext import Answered, OnText, Question, Usage


class FixedModel:
    """Answers with a text: in its mark or, where a form is wanted, as its `answer`."""

    is_free = True

    def __init__(self, text: str) -> None:
        if not text:
            raise ValueError("say what to answer: reasonry-example-plugin/fixed:TEXT")
        self.text = text
        self.name = ""

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        """Return the text."""
        text = f"<answer>{self.text}</answer>" if "<answer>" in question.prompt else self.text
        text = json.dumps({"answer": self.text}) if question.ask.form else text
        return Answered(text, usage=Usage(calls=1))

    async def close(self) -> None:
        """Nothing is open."""

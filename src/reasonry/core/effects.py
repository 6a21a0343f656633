"""Effects: the actions that a stage requests, as plain frozen data.

An effect does not say who performs it: a model, the calling agent, or a person at a terminal. Its outcome is an event
(`events`).
"""

from __future__ import annotations

from itertools import chain
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from ..text import lazy_pattern

_PLACE: Final = lazy_pattern(r"\{(prompt|system|problem)\}")
"""A placeholder for a part of the question in a user's prompt."""


class Turn(Struct, frozen=True, array_like=True):
    """An unusable reply, and the short objection to it."""

    reply: str
    objection: str


class Ask(Struct, frozen=True, tag="ask", omit_defaults=True, gc=False):
    """Ask a question of a model, an agent or a person.

    The question consists of the problem and its material, the instructions for calls and for the mark, and the task.
    Asks that differ only in `sample` and `about` are independent draws of one question.
    """

    prompt: str
    """The problem and its material."""
    system: str = ""
    """The role. It is the same in every call and comes first, so that providers can cache it."""
    mark: str = ""
    """How to mark the answer in a reply that reasons; empty if the reply is data. A reply with a mark is free text: no
    schema is sent for it, and for a coached agent the field `answer` is the mark."""
    task: str = ""
    """The instruction at the end of the question."""
    step_by_step: str = ""
    """How to reason in the reply: the end of the task. Left out for models that reason by themselves."""
    tools: tuple[dict[str, Any], ...] = ()
    """The tools a reply may call, each a `name`, a `description` and `parameters`; for models that take tools."""
    by_hand: str = ""
    """The tools, and how to call them in plain text: for models that take no tools."""
    turns: tuple[Turn, ...] = ()
    """The unusable replies so far, each with its objection."""
    wants_value: bool = False
    """Whether a whole reply without a mark is never the answer, because a verifier, a vote or a choice examines it."""
    facts: dict[str, Any] = {}
    """The question as data (`problem`, `path`, `count`, …), for models that do not read prose."""
    by: str = "writer"
    """The role that answers, if there are several models: `writer`, `judge` (which values), `drafter` (which proposes
    candidates to value), or `seat-N` (a member of a panel)."""
    sample: int = 0
    retries: int = 2
    """How many times to ask again after an unusable reply."""
    temperature: float | None = None
    max_output_tokens: int | None = None
    """The limit of the reply without hidden reasoning; the machine fills it in from the stage."""
    form: dict[str, Any] | None = None
    """JSON schema of the reply; the machine fills it in from the stage."""
    about: str = ""
    """The part of the result document that the question is about (`node_3`, `iteration-1/task-2`), for displays."""

    @property
    def question(self) -> str:
        """The question without the role and the turns."""
        return _join_parts(self.prompt, self.by_hand, self.mark, self.task, self.step_by_step)

    @property
    def text(self) -> str:
        """Role, question and turns as one text, for models that take no turns."""
        turns = (part for turn in self.turns for part in (turn.reply, turn.objection))
        return _join_parts(self.system, self.question, *turns)

    @property
    def messages(self) -> list[tuple[str, str]]:
        """Role, question and turns as a conversation: pairs of (`system`, `user` or `assistant`) and text."""
        turns = ((("assistant", turn.reply), ("user", turn.objection)) for turn in self.turns)
        parts = (("system", self.system), ("user", self.question), *chain.from_iterable(turns))
        return [(role, text) for role, text in parts if text]

    def spelled_out(
        self, *, reasons: bool = False, has_fields: bool = False, takes_tools: bool = False
    ) -> Ask:
        """Return the question for one receiver; without tools, its `prompt` is the whole question.

        Args:
            reasons: Whether the receiver reasons by itself before it replies.
            has_fields: Whether it submits fields, as a coached agent does; otherwise a reply with a mark is free text.
            takes_tools: Whether it takes native tools. Otherwise `by_hand` describes them.
        """
        step_by_step = "" if reasons else self.step_by_step
        mark = "" if has_fields else self.mark
        put = replace(
            self,
            mark=mark,
            step_by_step=step_by_step,
            form=self.form if has_fields or not self.mark else None,
        )
        if self.tools and takes_tools:
            return put
        return replace(put, prompt=put.question, tools=(), by_hand="", mark="", task="", step_by_step="")

    def with_prompt(self, text: str, problem: str) -> Ask:
        """Replace the text by a user's prompt; the mark stays, and so does the task if the prompt has `{prompt}`."""
        parts = {"prompt": self.prompt, "system": self.system, "problem": problem}
        other = self.in_other_words(_PLACE.sub(lambda place: parts[place[1]], text))
        task, step_by_step = (self.task, self.step_by_step) if "{prompt}" in text else ("", "")
        return replace(other, mark=self.mark, task=task, step_by_step=step_by_step)

    def in_other_words(self, text: str) -> Ask:
        """Replace the whole text. Old parts that the new text contains stay separate parts."""
        start = f"{self.system}\n\n"
        system = self.system if text.startswith(start) else ""
        prompt = text.removeprefix(start) if system else text
        kept = {"by_hand": "", "mark": "", "task": "", "step_by_step": ""}
        for name in reversed(kept):
            end = f"\n\n{getattr(self, name)}"
            if end.strip() and prompt.endswith(end):
                kept[name], prompt = getattr(self, name), prompt.removesuffix(end)
        return replace(self, system=system, prompt=prompt, turns=(), **kept)


def _join_parts(*parts: str) -> str:
    return "\n\n".join([part for part in parts if part])


class CallTool(Struct, frozen=True, tag="call_tool", omit_defaults=True):
    """Call one tool of the run's catalog."""

    tool: str
    arguments: dict[str, Any] = {}
    about: str = ""
    """As in `Ask`."""


class Verify(Struct, frozen=True, tag="verify", omit_defaults=True):
    """Have the run's verifier check a candidate.

    No model takes part. Without a verifier the verdict is `unknown`.
    """

    problem: str
    path: tuple[str, ...]
    """The thoughts that lead to the candidate, oldest first; the last item is the candidate."""
    final: bool = False
    """Whether the last item claims to be the answer rather than a step towards it."""
    about: str = ""
    """As in `Ask`."""


class RunStrategy(Struct, frozen=True, tag="run_strategy", omit_defaults=True):
    """Run another strategy as a child of this run, with the same journal and budget."""

    strategy: str
    problem: str
    options: dict[str, Any] = {}
    sample: int = 0
    about: str = ""
    """As in `Ask`; applies to all questions of the child."""
    by: str = "writer"
    """The role that answers the questions the child asks its writer."""


Effect = Ask | CallTool | Verify | RunStrategy

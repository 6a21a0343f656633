"""Effects: the actions that a stage requests, as plain frozen data.

An effect does not say whether a model, the calling agent or a person at a terminal performs it. The result of an effect
is an event; see `events`.
"""

from itertools import chain
from typing import Any, Final, Self

from msgspec import Struct
from msgspec.structs import replace

from ..text import lazy_pattern

_PLACE: Final = lazy_pattern(r"\{(prompt|system|problem)\}")
"""Matches a placeholder in a user's prompt. A part of the question replaces the placeholder."""


class Turn(Struct, frozen=True, array_like=True):
    """An unusable reply, and the short objection to it."""

    reply: str
    objection: str


class Ask(Struct, frozen=True, tag="ask", omit_defaults=True, gc=False):
    """Ask a question of a model, an agent or a person.

    The question consists of the problem with its material, the instructions for tool calls and for marking the answer,
    and the task. `Ask`s that differ only in `sample` and `about` request independent replies to the same question.
    """

    prompt: str
    """The problem and its material."""
    system: str = ""
    """The role of the model. It comes first and is the same in every call, so that providers can cache it."""
    mark: str = ""
    """The instruction to mark the answer in a reply with reasoning. Empty if the reply is data. A reply with a mark is
    free text, so no schema is sent. A coached agent puts the answer into the field `answer` instead of a mark."""
    task: str = ""
    """The instruction at the end of the question."""
    step_by_step: str = ""
    """The end of the task: how to reason in the reply. Models that reason by themselves do not receive this part."""
    tools: tuple[dict[str, Any], ...] = ()
    """The tools for models with native tools. Each tool has a `name`, a `description` and `parameters`."""
    by_hand: str = ""
    """The tools, and how to call them in plain text, for models without native tools."""
    turns: tuple[Turn, ...] = ()
    """The unusable replies so far, each with its objection."""
    wants_value: bool = False
    """Whether a reply without a mark never counts as the answer, because the answer is checked, voted on or chosen."""
    facts: dict[str, Any] = {}
    """The question as data (`problem`, `path`, `count`, …), for models that do not read prose."""
    by: str = "writer"
    """The role that answers, if there are several models: `writer`, `judge` (rates candidates), `drafter` (proposes
    candidates to rate), or `seat-N` (a member of a panel)."""
    sample: int = 0
    retries: int = 2
    """How many times to ask again after an unusable reply."""
    temperature: float | None = None
    max_output_tokens: int | None = None
    """The token limit of the reply, hidden reasoning excluded. If None, the machine inserts the stage's limit."""
    form: dict[str, Any] | None = None
    """The JSON schema of the reply. If None, the machine inserts the stage's form."""
    about: str = ""
    """The part of the result document that the question is about (`node_3`, `iteration-1/task-2`), for display."""

    @property
    def question(self) -> str:
        """The question without the role and the turns."""
        return _join_parts(self.prompt, self.by_hand, self.mark, self.task, self.step_by_step)

    @property
    def text(self) -> str:
        """The whole question as one text (role, question and turns), for models that do not accept a conversation."""
        turns = (part for turn in self.turns for part in (turn.reply, turn.objection))
        return _join_parts(self.system, self.question, *turns)

    @property
    def messages(self) -> list[tuple[str, str]]:
        """The whole question as a conversation: pairs of a speaker (`system`, `user` or `assistant`) and a text."""
        turns = ((("assistant", turn.reply), ("user", turn.objection)) for turn in self.turns)
        parts = (("system", self.system), ("user", self.question), *chain.from_iterable(turns))
        return [(role, text) for role, text in parts if text]

    def spelled_out(
        self, *, reasons: bool = False, has_fields: bool = False, takes_tools: bool = False
    ) -> Self:
        """Adapt the question to its receiver. If no native tools are sent, put the whole question into `prompt`.

        Args:
            reasons: Whether the receiver reasons by itself before it replies.
            has_fields: Whether the receiver submits fields, like a coached agent. If not, a marked reply is free text.
            takes_tools: Whether the receiver accepts native tools. Otherwise `by_hand` describes the tools.
        """
        put = replace(
            self,
            mark="" if has_fields else self.mark,
            step_by_step="" if reasons else self.step_by_step,
            form=self.form if has_fields or not self.mark else None,
        )
        if self.tools and takes_tools:
            return put
        return replace(put, prompt=put.question, tools=(), by_hand="", mark="", task="", step_by_step="")

    def with_prompt(self, text: str, problem: str) -> Self:
        """Replace the question with a user's prompt. Placeholders in `text`, such as `{prompt}`, are filled."""
        parts = {"prompt": self.prompt, "system": self.system, "problem": problem}
        other = self.in_other_words(_PLACE.sub(lambda place: parts[place[1]], text))
        task, step_by_step = (self.task, self.step_by_step) if "{prompt}" in text else ("", "")
        return replace(other, mark=self.mark, task=task, step_by_step=step_by_step)

    def in_other_words(self, text: str) -> Self:
        """Replace the question with `text`. Parts of the old question at either end remain separate fields."""
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
    """The same as `Ask.about`."""


class Verify(Struct, frozen=True, tag="verify", omit_defaults=True):
    """Ask the run's verifier to check a candidate.

    No model takes part. If the run has no verifier, the verdict is `unknown`.
    """

    problem: str
    path: tuple[str, ...]
    """The thoughts that lead to the candidate, oldest first. The last item is the candidate itself."""
    final: bool = False
    """Whether the candidate claims to be the answer. Otherwise, the candidate is a step toward the answer."""
    about: str = ""
    """The same as `Ask.about`."""


class RunStrategy(Struct, frozen=True, tag="run_strategy", omit_defaults=True):
    """Run another strategy as a child of this run, with the same journal and budget."""

    strategy: str
    problem: str
    options: dict[str, Any] = {}
    sample: int = 0
    about: str = ""
    """The same as `Ask.about`, for all questions of the child run."""
    by: str = "writer"
    """The role that answers the child run's questions to the writer."""


Effect = Ask | CallTool | Verify | RunStrategy

"""Effects: what a stage wants done, as plain frozen data.

An effect is a request and says nothing about who performs it: a model, the calling agent, or a person at a terminal.
What came of it is an event (`events`).
"""

from __future__ import annotations

from itertools import chain
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from ..text import lazy_pattern

_PLACE: Final = lazy_pattern(r"\{(prompt|system|problem)\}")
"""What a user's prompt has in place of a part of the question."""


class Turn(Struct, frozen=True, array_like=True):
    """A reply that could not be used, and the short message that answered it."""

    reply: str
    objection: str


class Ask(Struct, frozen=True, tag="ask", omit_defaults=True):
    """Ask whoever thinks a question.

    The question reads: problem and material, how tools are called by hand, how the answer is marked, and last the
    task.
    Equal asks that differ only in `sample` and `about` are independent draws of one question.
    """

    prompt: str
    """The problem and its material."""
    system: str = ""
    """The role. It stays the same from call to call and stands first, so that providers can cache it."""
    mark: str = ""
    """How the answer is marked in a reply that reasons; empty where the reply is data. Such a reply is free text: no
    schema is sent for it, and for a coached agent the field `answer` is the mark."""
    task: str = ""
    """What to do now: the last words of the question."""
    step_by_step: str = ""
    """How to reason in the reply: the end of the task. Models that reason by themselves are not told."""
    tools: tuple[dict[str, Any], ...] = ()
    """What a reply may call, each a `name`, a `description` and `parameters`; only put to models that take tools."""
    by_hand: str = ""
    """Which tools there are, and how a reply calls one: for those to whom the tools do not go along."""
    turns: tuple[Turn, ...] = ()
    """The replies so far that could not be used, each with its objection."""
    wants_value: bool = False
    """Whether a reply without its mark is never the answer as a whole: a verifier, a vote or a choice looks at it."""
    facts: dict[str, Any] = {}
    """The question once more as data (`problem`, `path`, `count`, …), for thinkers that do not read prose."""
    by: str = "writer"
    """Who is asked where there are several models: `writer`, `judge`, which values, `drafter`, which proposes what is
    valued, or `seat-N`, one of several that answer side by side."""
    sample: int = 0
    retries: int = 2
    """How often an unusable reply is asked for again."""
    temperature: float | None = None
    max_output_tokens: int | None = None
    """Of the reply, hidden reasoning apart; the machine fills it in from the stage."""
    form: dict[str, Any] | None = None
    """JSON schema of the wanted reply; the machine fills it in from the stage."""
    about: str = ""
    """What of the result document it is asked about (`node_3`, `iteration-1/task-2`), for whoever shows the run."""

    @property
    def question(self) -> str:
        """The question itself, without the role and without the turns."""
        return _join_parts(self.prompt, self.by_hand, self.mark, self.task, self.step_by_step)

    @property
    def text(self) -> str:
        """All of it as one text, for models that take no turns."""
        turns = (part for turn in self.turns for part in (turn.reply, turn.objection))
        return _join_parts(self.system, self.question, *turns)

    @property
    def messages(self) -> list[tuple[str, str]]:
        """All of it as a conversation: (`system`, `user` or `assistant`, text) each."""
        turns = ((("assistant", turn.reply), ("user", turn.objection)) for turn in self.turns)
        parts = (("system", self.system), ("user", self.question), *chain.from_iterable(turns))
        return [(role, text) for role, text in parts if text]

    def spelled_out(
        self, *, reasons: bool = False, has_fields: bool = False, takes_tools: bool = False
    ) -> Ask:
        """Return the question as it is put to someone: its `prompt` is all of it, unless tools go along.

        Args:
            reasons: Whether they reason by themselves before they reply.
            takes_tools: Whether they may be given tools; who then does not give them leaves in what is `by_hand`.
            has_fields: Whether they hand in fields, as a coached agent does; else a reply with a mark is free text.
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
        """Return the question with a user's prompt; the mark stays, and the task where the question's own text does."""
        parts = {"prompt": self.prompt, "system": self.system, "problem": problem}
        other = self.in_other_words(_PLACE.sub(lambda place: parts[place[1]], text))
        task, step_by_step = (self.task, self.step_by_step) if "{prompt}" in text else ("", "")
        return replace(other, mark=self.mark, task=task, step_by_step=step_by_step)

    def in_other_words(self, text: str) -> Ask:
        """Return the question with another text; parts that stand in it unchanged stay parts."""
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
    """Have the run's verifier look at a candidate.

    Performed without a model; with no verifier given the verdict is `unknown`.
    """

    problem: str
    path: tuple[str, ...]
    """The thoughts that lead to the candidate, oldest first; the last one is the candidate."""
    final: bool = False
    """Whether the last item claims to be the answer, rather than a step towards one."""
    about: str = ""
    """As in `Ask`."""


class RunStrategy(Struct, frozen=True, tag="run_strategy", omit_defaults=True):
    """Run another strategy inside this run: same journal, same budget."""

    strategy: str
    problem: str
    options: dict[str, Any] = {}
    sample: int = 0
    about: str = ""
    """As in `Ask`; holds for all that is asked inside."""
    by: str = "writer"
    """Who answers what the strategy asks its writer."""


Effect = Ask | CallTool | Verify | RunStrategy

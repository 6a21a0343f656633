"""Effects: what a stage wants done, as plain frozen data.

An effect is a request and says nothing about who performs it: a model, the calling agent, or a person at a terminal.
What came of it is an event (`events`).
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace


class Ask(Struct, frozen=True, tag="ask", omit_defaults=True):
    """Ask whoever thinks a question.

    Equal asks that differ only in `sample` and `about` are independent draws of one question.
    """

    prompt: str
    system: str = ""
    """The part that stays the same from call to call; stands first, so that providers can cache it."""
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
    step_by_step: str = ""
    """How to reason in the reply, put after the prompt; not put to models that reason by themselves."""
    about: str = ""
    """What of the result document it is asked about (`node_3`, `iteration-1/task-2`), for whoever shows the run."""

    @property
    def text(self) -> str:
        """The question as one text."""
        return f"{self.system}\n\n{self.prompt}" if self.system else self.prompt

    def spelled_out(self, *, reasons: bool = False) -> Ask:
        """Return the question as it is put to someone.

        Args:
            reasons: Whether they reason by themselves before they reply.
        """
        if not self.step_by_step:
            return self
        prompt = self.prompt if reasons else f"{self.prompt}\n\n{self.step_by_step}"
        return replace(self, prompt=prompt, step_by_step="")

    def in_other_words(self, text: str) -> Ask:
        """Return the question with another text, spelled out; parts that stand in it unchanged stay parts."""
        start, end = f"{self.system}\n\n", f"\n\n{self.step_by_step}"
        system = self.system if text.startswith(start) else ""
        prompt = text.removeprefix(start) if system else text
        step_by_step = self.step_by_step if prompt.endswith(end) else ""
        prompt = prompt.removesuffix(end) if step_by_step else prompt
        return replace(self, system=system, prompt=prompt, step_by_step=step_by_step)


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

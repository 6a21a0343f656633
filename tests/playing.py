"""A world to play strategies in: replies that fit their form, replies that do not, failures; all by seed."""

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from reasonry.blocks.reply import read_reply
from reasonry.blocks.why import Why
from reasonry.core import machine
from reasonry.core.bodies import Thought
from reasonry.core.effects import Ask, CallTool, Verify
from reasonry.core.events import Answered, Event, Failed, Stopped, ToolReturned, Usage, Verified
from reasonry.core.machine import Pending, Snapshot, Step, begin, open_effects
from reasonry.core.strategy import Strategy

from .filling import TEXTS, fill

MAX_EVENTS = 3_000

advance = partial(machine.advance, read=read_reply)
"""The machine with the reader of the project, as a run has it."""


@dataclass
class World:
    """Answers every effect by (seed, effect id) alone, so the order of arrival cannot matter."""

    seed: int
    hostility: float = 0.0
    """Share of answers that are unusable or failures."""
    examples: Mapping[str, Any] = field(default_factory=dict)
    returns: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """By tool, what it may return; of any other, some text."""

    def answer(self, one: Pending) -> Event:
        rng = random.Random(f"{self.seed} {one.id}")
        at_ms = rng.randint(0, 50)
        match one.effect:
            case Ask():
                return msgspec.structs.replace(
                    self._reply(one, one.effect, rng, at_ms), usage=Usage(usd=0.01)
                )
            case CallTool():
                bad = rng.random() < self.hostility
                value = rng.choice(self.returns.get(one.effect.tool, TEXTS))
                return Failed("tool_error", "broken", at_ms) if bad else ToolReturned(value, at_ms)
            case Verify():
                verdict = rng.choice(["right", "wrong", "unknown"])
                return Verified(verdict, answer="42" if verdict == "right" else None, at_ms=at_ms)
            case _:
                raise AssertionError(one)

    def _reply(self, one: Pending, ask: Ask, rng: random.Random, at_ms: int) -> Event:
        if rng.random() < self.hostility:
            return rng.choice(
                [
                    Failed("provider_error", "down", at_ms),
                    Answered("", at_ms),
                    Answered("I will not say.", at_ms, refused=True),
                    Answered("{{{[", at_ms),
                    Answered('{"thoughts": ["cut', at_ms, truncated=True),
                    Answered(json.dumps({"nonsense": [None]}), at_ms),
                ]
            )
        example = self.examples.get(one.stage)
        if example is not None and rng.random() < 0.5:
            return Answered(json.dumps(example), at_ms)
        if "<answer>" in ask.question:
            return Answered(f"It was counted.\n\n<answer>{rng.choice(TEXTS)}</answer>", at_ms)
        return Answered(json.dumps(fill(ask.form or {}, rng)), at_ms)


@dataclass
class Played:
    """What came of a play."""

    snapshot: Snapshot
    edges: list[tuple[str, str]]
    events: list[tuple[str | None, Event]]
    snapshots: list[Snapshot]
    thoughts: list[Thought]


def play(
    strategy: Strategy[Any, Any],
    world: World,
    strategies: Mapping[str, Strategy[Any, Any]],
    options: Any = None,
    pick: Callable[[int], int] = lambda n: 0,
    problem: str = "Use 4, 6 and 1 to make 24",
    prompts: Mapping[str, str] | None = None,
) -> Played:
    """Play a run to its end.

    Args:
        pick: Of n effects waiting, which one is answered next.
    """
    step: Step = begin(strategy, problem, options, strategies=strategies, prompts=prompts)
    played = Played(step.snapshot, list(step.edges), [], [step.snapshot], list(step.thoughts))
    while step.snapshot.status == "active":
        assert len(played.events) < MAX_EVENTS, (
            f"{strategy.name} does not end; it stands in {step.snapshot.stage}"
        )
        waiting = open_effects(step.snapshot)
        assert waiting, f"{strategy.name} waits for nothing in {step.snapshot.stage}"
        one = waiting[pick(len(waiting))]
        event = world.answer(one)
        step = advance(strategy, step.snapshot, one.id, event, strategies=strategies)
        played.events.append((one.id, event))
        played.edges += step.edges
        played.snapshots.append(step.snapshot)
        played.thoughts += step.thoughts
    played.snapshot = step.snapshot
    return played


def stop(strategy: Strategy[Any, Any], snapshot: Snapshot, strategies: Mapping[str, Any]) -> Snapshot:
    """Stop a run where it stands."""
    return advance(strategy, snapshot, None, Stopped("max_calls", "limit"), strategies=strategies).snapshot


def check_reason(why: Why | None, thoughts: Sequence[Thought], *sources: Any) -> None:
    """Check a reason: short, without JSON and broken words, and its numbers are those of thoughts that it names.

    Args:
        sources: All that it may quote beside the thoughts.
    """
    assert why is not None
    assert 0 < len(why.text) <= 300, why.text
    assert not [*filter(_begins_json, why.text.replace("[", "\n[").replace("{", "\n{").split("\n"))], why.text
    lists = re.findall(r"[Tt]houghts? ((?:\d+(?:, | and )?)+)", why.text)
    assert {*map(str, why.thoughts)} <= {*re.findall(r"\d+", " ".join(lists))}, why
    assert all(1 <= number <= len(thoughts) for number in why.thoughts), why
    said = f"{msgspec.to_builtins([thoughts, sources])}".replace("\\n", " ").split()
    whole = {word.strip("'\",()[]{}") for word in said}
    for word in re.findall(r"(\S+)…", why.text):
        assert word.strip("'\",()[]{}“") in whole, why.text


def _begins_json(text: str) -> bool:
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return False
    return isinstance(value, dict) or (
        isinstance(value, list) and value != [] and not isinstance(value[0], int)
    )

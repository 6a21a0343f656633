"""Searching a tree that is written down beforehand, through the pure machine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from reasonry.core.effects import Ask, Verify
from reasonry.core.events import Event, Verified
from reasonry.core.machine import Pending
from reasonry.core.options import read_options
from reasonry.core.registry import resolve
from reasonry.strategies import STRATEGIES

from .walking import Walked, reply, walk

TREE_OF_THOUGHTS = resolve("tree_of_thoughts", STRATEGIES)


@dataclass
class World:
    """Who answers: proposes `a`, `b`, `c`, below them `aa`, `ab`, …, and values each as `scores` has it.

    `say` may answer first, by the question's kind (`propose`, `value`, `answer`) and its facts; None leaves it be.
    """

    scores: Mapping[str, Any] = field(default_factory=dict)
    otherwise: float = 0.5
    letters: str = "abc"
    answer: Any = "an answer"
    verdicts: Mapping[str, Verified] = field(default_factory=dict)
    say: Callable[[str, dict[str, Any]], Any] = lambda kind, facts: None
    ms: int = 10
    now: int = 0

    def __call__(self, one: Pending) -> Event:
        self.now += self.ms
        if isinstance(one.effect, Verify):
            verdict = self.verdicts.get(one.effect.path[-1], Verified("unknown"))
            return Verified(verdict.verdict, verdict.detail, verdict.answer, at_ms=self.now)
        assert isinstance(one.effect, Ask)
        facts = one.effect.facts
        said = self.say(facts["kind"], facts)
        event = self._said(facts) if said is None else said
        event = event if isinstance(event, Event) else reply(event)
        return type(event)(
            **{name: getattr(event, name) for name in event.__struct_fields__} | {"at_ms": self.now}
        )

    def _said(self, facts: dict[str, Any]) -> Any:
        match facts["kind"]:
            case "propose":
                above = facts["path"][-1] if facts["path"] else ""
                return {"thoughts": [above + letter for letter in self.letters[: facts["count"]]]}
            case "value":
                values = [self.scores.get(text, self.otherwise) for text in facts["thoughts"]]
                return {"scores": {str(place): value for place, value in enumerate(values, start=1)}}
            case _:
                return {"answer": self.answer}


def search(world: World | None = None, problem: str = "P", **options: Any) -> Walked:
    """Search to the end."""
    chosen = msgspec.to_builtins(read_options(TREE_OF_THOUGHTS, options))
    return walk(TREE_OF_THOUGHTS, problem, world or World(), chosen)


def search_as_seed(world: World | None = None, problem: str = "P", **options: Any) -> Walked:
    """Search to the end with the defaults of seed 004."""
    return search(world, problem, **{"preset": "seed", **options})


def expanded(walked: Walked) -> list[str]:
    """The texts of the nodes that were expanded, in that order; "" is the root."""
    asks = [ask.facts for ask in walked.asks if ask.facts["kind"] == "propose"]
    texts = [facts["path"][-1] if facts["path"] else "" for facts in asks]
    return [text for place, text in enumerate(texts) if place == 0 or text != texts[place - 1]]


def best(walked: Walked) -> str | None:
    """The text of the best candidate."""
    shown = walked.conclusion.document["best"]
    return None if shown is None else shown["content"]


def texts(walked: Walked) -> list[str]:
    """The texts of the candidates, best first."""
    return [one["content"] for one in walked.conclusion.document["candidates"]]


FOREVER = {"min_score_improvement": 0, "early_success_threshold": 1, "max_nodes": 10_000}
"""Options with which only depth or an empty frontier ends a search."""

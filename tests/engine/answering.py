"""Someone who answers everything a run asks, the same way each time; as model, tools and verifier, or as the caller."""

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec.structs import replace

from reasonry.core.budget import Budget
from reasonry.core.effects import Verify
from reasonry.core.events import Answered, Failed, Usage, Verified
from reasonry.core.machine import Pending
from reasonry.core.strategy import Strategy
from reasonry.engine import journal
from reasonry.engine.coach import Coach, document
from reasonry.engine.drive import drive_run
from reasonry.engine.engine import Engine
from reasonry.engine.journal import Begun, ParticipantNames, Settled
from reasonry.engine.open_questions import questions
from reasonry.engine.policy import Performers
from reasonry.engine.ports import OnText, Question
from reasonry.engine.run import fold
from reasonry.errors import ModelError, ToolError
from reasonry.records import Line, SessionRow
from reasonry.stores.sqlite import MemoryStore
from reasonry.strategies import STRATEGIES

from ..filling import TEXTS
from ..playing import World
from .playing import by
from .running import order_of, take_over, trace_of

PROBLEM = "Use 4, 6 and 1 to make 24"
UNLIKE = {
    *("usage", "duration_ms", "events", "model", "crew", "run_id", "session_id", "created_at_ms", "origins")
}
"""Members of a trace that differ from run to run, or with who performs it."""


class WorldModel:
    """A world's answers as a model's; counts what it is asked.

    Args:
        free: Answers cost nothing, like those of a caller.
    """

    name = "world"

    def __init__(self, world: World, free: bool = False) -> None:
        self.world, self.free = world, free
        self.asked: Counter[str] = Counter()

    def say(self, effect_id: str, stage: str, ask: Any) -> Answered | Failed:
        event = self.world.answer(Pending(effect_id, stage, ask, 1))
        assert isinstance(event, Answered | Failed)
        return replace(event, usage=Usage()) if self.free else event

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        self.asked[question.id] += 1
        event = self.say(question.id, question.stage, question.ask)
        if isinstance(event, Failed):
            raise ModelError(event.message, code=event.code)
        return event

    async def close(self) -> None:
        pass


class WorldTools:
    """Tools that return, or fail, by their arguments alone."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        rng = random.Random(f"{self.world.seed} {name} {arguments}")
        if rng.random() < self.world.hostility:
            raise ToolError("broken")
        return rng.choice(TEXTS)


class WorldVerifier:
    """Verdicts by the candidate alone."""

    name = "world"

    def __init__(self, world: World) -> None:
        self.world = world

    async def verify(self, claim: Verify) -> Verified:
        rng = random.Random(f"{self.world.seed} {claim.path} {claim.final}")
        verdict = rng.choice(["right", "wrong", "unknown"])
        return Verified(verdict, answer="42" if verdict == "right" else None)


def performers_of(world: World, free: bool = False) -> Performers:
    return Performers(WorldModel(world, free), verifier=WorldVerifier(world), tools=WorldTools(world))


def order(strategy: Strategy[Any, Any], options: Any, budget: Budget | None = None) -> Begun:
    return order_of(
        strategy, PROBLEM, options, budget=budget or Budget(), participants=ParticipantNames("world")
    )


def engine() -> Engine:
    return Engine(MemoryStore(), STRATEGIES)


async def after_crash(store: MemoryStore, run_id: str, lines: list[Line]) -> Engine:
    """Return an engine over what a process would find that died when these lines of a run were written."""
    row = await store.run(run_id)
    found = Engine(MemoryStore(), STRATEGIES)
    began = replace(row, status="active", reason=None, answer=None)
    session = SessionRow(row.session_id, row.strategy, row.created_at_ms, row.created_at_ms, run_id=run_id)
    await found.store.create_run(began, lines, session)
    return found


async def coach_on(
    engine: Engine,
    run_id: str,
    world: World,
    most: int | None = None,
    pick: Callable[[list[Any]], list[Any]] = lambda asked: asked,
) -> dict[str, Any]:
    """Answer a run's questions as its caller, at most so many, one batch after the other.

    Args:
        pick: Of the questions handed out, those that are answered next, in this order.
    """
    performers, model = performers_of(world), WorldModel(world)
    shown = await take_over(engine, run_id, performers)
    given = 0
    while shown["status"] == "active" and (most is None or given < most):
        run = (await engine.read(run_id, whole=False)).run
        asks = {one.id: one for one in run.open_effects}
        picked = pick(shown["questions"])
        picked = picked if most is None else picked[: most - given]
        replies = [model.say(one["id"], one["stage"], asks[one["id"]].effect) for one in picked]
        answers = {one["id"]: said.text for one, said in zip(picked, replies, strict=True)
                   if isinstance(said, Answered)}  # fmt: skip
        assert len(answers) == len(picked)
        given += len(answers)
        readings = [
            run.step_after(Settled(effect_id, Answered(text))).reading for effect_id, text in answers.items()
        ]
        if any(reading and reading.refusal and not reading.doubted for reading in readings):
            shown = await record_answers(engine, run_id, answers, performers)
        else:
            shown = await Coach(engine).answer(run_id, answers, by(performers))
    return shown


async def record_answers(
    engine: Engine, run_id: str, answers: Mapping[str, str], performers: Performers
) -> dict[str, Any]:
    """Record answers as a model's would be: those too that a caller's door refuses, as they cannot be read."""
    async with engine.open(run_id) as opened:
        at_ms = opened.run.snapshot.at_ms
        in_order = [pending.id for pending in questions(opened.run) if pending.id in answers]
        await opened.take_answers(
            [(effect_id, Answered(answers[effect_id], at_ms)) for effect_id in in_order]
        )
        await drive_run(opened, performers, coached=True)
        return document(opened)


def at_any_pace(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document without the time that a search says it took."""
    termination = {name: part for name, part in document["termination"].items() if name != "duration_ms"}
    return document | {"termination": termination}


async def record(engine: Engine, run_id: str) -> dict[str, Any]:
    """Return what a run leaves behind, whoever drove it and however often it was interrupted.

    What is done side by side is listed as the answers came in, so it is put into the order of ids.
    """
    trace = await trace_of(engine, run_id)
    trace["questions"].sort(key=lambda question: numbers_of(question["id"]))
    trace["thoughts"] = in_order_of_lines(trace["thoughts"])
    wanted = {effect["id"]: {**effect, "at_ms": None} for effect in trace["effects"]}
    whole = trace | {"effects": wanted, "cut": await _cut_off(engine, run_id, trace)}
    return at_any_pace({name: part for name, part in whole.items() if name not in UNLIKE})


def numbers_of(effect_id: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", effect_id)]


def in_order_of_lines(thoughts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return thoughts with those of runs inside, which come in side by side, in the order of these runs."""

    def inside(thought: dict[str, Any]) -> bool:
        return re.match(r"e\d+(/|$)", thought.get("branch") or "") is not None

    stretches = [(is_inside, list(group)) for is_inside, group in groupby(thoughts, inside)]
    ordered = (
        sorted(group, key=lambda thought: numbers_of(thought["branch"].split("/")[0])) if is_inside else group
        for is_inside, group in stretches
    )
    return [thought for group in ordered for thought in group]


async def _cut_off(engine: Engine, run_id: str, trace: dict[str, Any]) -> list[str]:
    """Return the effects that were not waited for, because what came in before was enough."""
    if {effect["id"] for effect in trace["effects"]} <= {event["id"] for event in trace["events"]}:
        return []
    entries, _ = journal.read(run_id, await engine.store.lines(run_id))
    run = fold(entries[:1], engine.strategies)
    steps = [run.apply(entry) for entry in entries[1:]]
    return [effect_id for step in steps if step is not None for effect_id in step.cancelled]


def is_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two runs left the same record.

    Where what came in was enough for one of them, what else came in depends on the order of arrival; they end alike.
    """
    if not (one["cut"] or other["cut"]):
        return one == other
    return all(one[name] == other[name] for name in ("status", "answer", "termination"))


def spelled_out(questions: Sequence[Mapping[str, Any]], shared: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return brief questions as they are asked, from all that was shared so far."""
    texts = {f"[#{text_id}]": text for text_id, text in shared.items()}
    prompts = (
        "\n\n".join(texts.get(part, part) for part in each["prompt"].split("\n\n")) for each in questions
    )
    return [
        {**question, "prompt": prompt, "answer_schema": texts[question["answer_schema"]]}
        for question, prompt in zip(questions, prompts, strict=True)
    ]

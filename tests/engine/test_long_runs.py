"""A long run is shown in time and memory that grow with what was said in it, and nobody waits for it."""

import dataclasses
import threading
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reasonry.app.app import App
from reasonry.core.bodies import Body, go, request, stay
from reasonry.core.effects import Ask
from reasonry.core.strategy import Stage, Strategy
from reasonry.engine.journal import DIRECT_LINES, Chain, Ended, read
from reasonry.engine.policy import Performers
from reasonry.engine.record import record_of, record_of_run
from reasonry.engine.run import PromptLog, fold
from reasonry.errors import StoreError
from reasonry.records import new_id

from .answering import order
from .playing import LOOP, CountingModel, Loops, Seen
from .running import accept, drive, trace_of

pytestmark = pytest.mark.anyio

effects = st.builds("{}e{}".format, st.sampled_from(["", "e1/", "e2/", "e1/e3/"]), st.integers(1, 9))


@given(st.lists(st.tuples(effects, st.text(alphabet="ab\n\u2028é", max_size=12))))
def test_prompts_are_restored_as_they_were(asked: list[tuple[str, str]]) -> None:
    shortening, restoring = PromptLog(), PromptLog()
    for effect_id, prompt in asked:
        assert restoring.restore(effect_id, *shortening.shorten(effect_id, prompt)) == prompt


THREADS: set[int] = set()


def _ask_with_history(state: Seen) -> Body:
    THREADS.add(threading.get_ident())
    (reply,) = yield request(state, Ask("\n".join([state.problem, *state.texts])))
    state = Seen(state.problem, state.steps, state.width, (*state.texts, reply.text))
    done = len(state.texts) >= state.steps
    return go(state, "end", reply.text) if done else stay(state, reply.text)


HISTORY: Strategy[Seen, Loops] = dataclasses.replace(
    LOOP, stages=(Stage("think", to=("end",), body=_ask_with_history), Stage("end"))
)
"""Asks with all that was answered so far, as most strategies do."""


async def finish(app: App, steps: int) -> str:
    run_id = await accept(app.engine, order(HISTORY, Loops(steps=steps)))
    await drive(app.engine, run_id, Performers(CountingModel(reply=lambda question: question.id * 4)))
    return run_id


async def interrupt(app: App, run_id: str, count: int) -> str:
    """Return a run of which only so many lines of another one are there."""
    row, lines = await app.store.run(run_id), (await app.store.lines(run_id))[:count]
    entries, _ = read(run_id, lines)
    other = new_id()
    row = replace(row, run_id=other, session_id=new_id(), status="active", reason=None, answer=None)
    await app.store.create_run(row, Chain(other).lines(entries))
    return other


@pytest.fixture
async def app(tmp_path: Path) -> AsyncGenerator[App]:
    async with App(str(tmp_path / "store.db"), strategies={"loop": HISTORY}) as app:
        yield app


async def test_a_run_keeps_its_prompts_in_what_they_add(app: App) -> None:
    kept: dict[int, tuple[int, int]] = {}
    for steps in (100, 400):
        run_id = await finish(app, steps)
        run = (await app.engine.read(run_id)).run
        (*_, ended), _ = read(run_id, await app.store.lines(run_id))
        assert isinstance(ended, Ended)
        prompts = sum(len(asked.prompt) for asked in run.asked.values())
        kept[steps] = prompts, memoryview(ended.record).nbytes
        trace = await trace_of(app.engine, run_id)
        texts = [event["text"] for event in trace["events"]]
        for number, question in enumerate(trace["questions"]):
            assert question["prompt"].partition("\n")[2] == "\n".join(texts[:number])
            assert list(question) == ["id", "stage", "prompt", "reply", "read", "tried"]
    for few, many in zip(kept[100], kept[400], strict=True):
        assert many < 5 * few


async def test_the_record_of_a_run_says_what_its_journal_says(app: App) -> None:
    run_id = await finish(app, 520)
    entries, _ = read(run_id, await app.store.lines(run_id))
    row, ended = await app.store.run(run_id), entries[-1]
    recorded, folded = record_of(ended), record_of_run(row, fold(entries, app.strategies))
    assert recorded is not None
    documents = recorded.document(), folded.document(), await trace_of(app.engine, run_id)
    assert len({msgspec.json.encode(document) for document in documents}) == 1
    assert list(recorded.thoughts()) == list(folded.thoughts())


@pytest.mark.parametrize("ended", [True, False])
async def test_a_long_journal_is_read_beside_the_event_loop(app: App, ended: bool) -> None:
    run_id = await finish(app, DIRECT_LINES + 10)
    if not ended:
        run_id = await interrupt(app, run_id, DIRECT_LINES + 5)
    for look in ("record", "read", "result", "recorded_run", "replay"):
        THREADS.clear()
        await getattr(app.engine, look)(run_id)
        assert threading.get_ident() not in THREADS
    assert THREADS


async def test_damage_anywhere_in_a_long_journal_is_found(app: App) -> None:
    run_id = await finish(app, 40)
    lines = await app.store.lines(run_id)
    for number, line in enumerate(lines):
        changed = [*lines[:number], replace(line, body=line.body + b" "), *lines[number + 1 :]]
        with pytest.raises(StoreError, match=f"at line {number + 1} "):
            read(run_id, changed)
    for of_run, foreign in ((run_id, [lines[0], *lines[2:]]), ("another run", lines)):
        with pytest.raises(StoreError, match="damaged"):
            read(of_run, foreign)

"""Coached runs are read on from a checkpoint: the same questions and the same end, and no more to read as they grow."""

import dataclasses
from pathlib import Path

import apsw
import pytest
from msgspec.structs import replace

from reasonry.app.app import App
from reasonry.core.bodies import Body, go, request, stay
from reasonry.core.effects import Ask, Verify
from reasonry.core.events import Verified
from reasonry.core.strategy import Stage, Strategy
from reasonry.engine.coach import Coach
from reasonry.engine.open_run import CHECKPOINT_EVERY
from reasonry.engine.policy import Performers
from reasonry.errors import ConflictError

from ..guided.test_search import ALL, order
from .playing import LOOP, CountingModel, Loops, Seen, by
from .running import accept, take_over, trace_of

pytestmark = pytest.mark.anyio
NOBODY = by(Performers(CountingModel()))


def _think(state: Seen) -> Body:
    (reply,) = yield request(state, Ask(f"thought {len(state.texts)}"))
    yield request(state, Verify(state.problem, (reply.text,)))
    now = replace(state, texts=(*state.texts, reply.text))
    return go(now, "end", reply.text) if len(now.texts) >= state.steps else stay(now, reply.text)


VERIFIED: Strategy[Seen, Loops] = dataclasses.replace(
    LOOP, name="verified", stages=(Stage("think", to=("end",), body=_think), Stage("end"))
)


class BrokenVerifier:
    name = "broken"

    async def verify(self, claim: Verify) -> Verified:
        raise RuntimeError("no verdict today")


STEPS = 3 * CHECKPOINT_EVERY


async def coached(app: App, steps: int) -> str:
    run_id = await accept(app.engine, order(LOOP, LOOP.options(steps=steps)))
    await take_over(app.engine, run_id, Performers(CountingModel()))
    return run_id


async def answer(app: App, run_id: str, number: int) -> dict:
    answers = [{"id": f"e{number}", "answer": f"thought {number}"}]
    return await Coach(app.engine).answer(run_id, answers, NOBODY)


async def test_answers_read_no_more_of_the_journal_as_it_grows_and_each_is_taken_once(tmp_path: Path) -> None:
    async with App(str(tmp_path / "store.db"), strategies=ALL) as app:
        run_id = await coached(app, STEPS)
        for number in range(1, STEPS + 1):
            shown = await answer(app, run_id, number)
            if shown["status"] == "active":
                assert len((await app.engine.store.tail(run_id))[1]) <= CHECKPOINT_EVERY
                assert shown["progress"]["answered"] == number
            if number == CHECKPOINT_EVERY + 2:
                # Also where the answer was given before the checkpoint.
                for other, why in ((1, "has been answered already"), (STEPS + 1, "was never asked")):
                    with pytest.raises(ConflictError, match=why):
                        await answer(app, run_id, other)
        assert shown["status"] == "done"
        trace = await trace_of(app.engine, run_id)
        assert [asked["reply"] for asked in trace["questions"]] == [
            f"thought {number}" for number in range(1, STEPS + 1)
        ]
        assert (await app.engine.replay(run_id))["replay"]["identical"] is True


async def test_a_checkpoint_that_is_damaged_or_gone_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    for spoil in (
        "DELETE FROM checkpoint",
        "UPDATE checkpoint SET body = x'00'",
        "UPDATE checkpoint SET line = line - 1",
        "UPDATE checkpoint SET digest = x'00112233445566778899aabbccddeeff'",
    ):
        async with App(str(path), strategies=ALL) as app:
            run_id = await coached(app, CHECKPOINT_EVERY + 4)
            for number in range(1, CHECKPOINT_EVERY + 3):
                await answer(app, run_id, number)
            before = await Coach(app.engine).status(run_id)
        db = apsw.Connection(str(path))
        assert db.execute("SELECT count(*) FROM checkpoint").fetchall() != [(0,)]
        db.execute(spoil)
        db.close()
        async with App(str(path), strategies=ALL) as app:
            assert await Coach(app.engine).status(run_id) == before


async def test_what_the_verifier_failed_at_before_the_checkpoint_is_counted_at_the_end(
    tmp_path: Path,
) -> None:
    async with App(str(tmp_path / "store.db"), strategies={"verified": VERIFIED}) as app:
        coach, performers = Coach(app.engine), Performers(CountingModel(), verifier=BrokenVerifier())
        run_id = await accept(app.engine, order(VERIFIED, Loops(steps=CHECKPOINT_EVERY)))
        shown = await take_over(app.engine, run_id, performers)
        while shown["status"] == "active":
            (question,) = shown["questions"]
            answers = [{"id": question["id"], "answer": "a thought"}]
            shown = await coach.answer(run_id, answers, by(performers))
        (warning,) = shown["result"]["warnings"]
        assert f"{CHECKPOINT_EVERY} of {CHECKPOINT_EVERY} times" in warning
        assert await coach.status(run_id) == shown

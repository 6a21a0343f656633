"""Two runs part at the first thing that was asked or answered otherwise."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry import UsageError
from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.runs import coach_start
from reasonry.engine.run_diff import diff_runs
from reasonry.models.scripted import ScriptedModel

from .running import order_and_solve, request_of
from .test_long_runs import HISTORY

pytestmark = pytest.mark.anyio


async def solve(app: App, words: Sequence[str], problem: str = "x") -> str:
    model = ScriptedModel.of(*[{"stage": "think", "reply": word} for word in words])
    return (await order_and_solve(app, problem, HISTORY, options={"steps": len(words)}, model=model)).run_id


async def diff(app: App, a: str, b: str) -> dict[str, Any]:
    return diff_runs(await app.engine.record(a), await app.engine.record(b))


@given(st.lists(st.tuples(*[st.sampled_from("ab")] * 2), min_size=1, max_size=5))
async def test_the_first_other_answer_is_where_they_part(pairs: list[tuple[str, str]]) -> None:
    first, second = zip(*pairs, strict=True)
    same = next((at for at, (a, b) in enumerate(pairs) if a != b), None)
    async with App("memory", environ={}) as app:
        ids = [await solve(app, words) for words in (first, second)]
        there, back = await diff(app, *ids), await diff(app, *reversed(ids))
    assert there["asked"] == {"alike": len(pairs) if same is None else same, "a": len(pairs), "b": len(pairs)}
    assert there["answer"] == {"same": first[-1] == second[-1], "a": first[-1], "b": second[-1]}
    assert there["terms"] == []
    if same is None:
        assert there["parting"] is None
    else:
        parting = there["parting"]
        assert (parting["what"], parting["stage"]) == ("outcome", "think")
        assert (parting["a"], parting["b"]) == pairs[same]
        assert {**parting, "a": parting["b"], "b": parting["a"]} == back["parting"]


async def test_a_fork_is_compared_from_its_point_on() -> None:
    async with App("memory", environ={}) as app:
        run = await solve(app, "abc")
        model = ScriptedModel.of(*[{"stage": "think", "reply": word} for word in "abzy"])
        source = await app.engine.recorded_run(run)
        order, performers = await app.order_fork(source, Participants(model=model), {"steps": 4}, None)
        fork = await app.solve(order, performers, fork=source.fork(2))
        document = await diff(app, fork.run_id, run)
        other = await diff(app, run, fork.run_id)
    assert document["fork"] == {"of": "b", "at": 2}
    assert other["fork"] == {"of": "a", "at": 2}
    assert document["asked"] == {"alike": 2, "a": 4, "b": 3}
    assert (document["parting"]["a"], document["parting"]["b"]) == ("z", "c")
    assert document["terms"] == [{"name": "options.steps", "a": 4, "b": 3}]
    spend = {row["name"]: (row["a"], row["b"]) for row in document["spend"]}
    assert spend["thoughts"] == (4, 3)


async def test_other_questions_other_strategies_and_a_run_that_stands_are_said_as_such() -> None:
    async with App("memory", environ={}) as app:
        run, longer = await solve(app, "ab"), await solve(app, "abc")
        started = await coach_start(app, request_of("x", HISTORY, options={"steps": 2}))
        tree = await coach_start(app, request_of("x", "chain_of_thought"))
        with pytest.raises(UsageError, match="name two runs"):
            await diff(app, run, run)
        only = await diff(app, run, longer)
        assert (only["parting"]["what"], only["parting"]["a"]) == ("only_b", None)
        assert only["parting"]["b"] == "x\na\nb"
        other = await diff(app, run, await solve(app, "ab", "y"))
        assert (other["parting"]["what"], other["problem"]["same"]) == ("question", False)
        active = await diff(app, run, started["run_id"])
        assert active["runs"]["b"]["status"] == "active"
        assert (active["asked"]["alike"], active["parting"]["what"]) == (0, "outcome")
        apart = await diff(app, run, tree["run_id"])
        assert (apart["parting"]["what"], apart["asked"]["alike"]) == ("strategy", 0)
        assert {"name": "strategy", "a": "loop", "b": "chain_of_thought"} in apart["terms"]

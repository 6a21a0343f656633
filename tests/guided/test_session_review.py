"""What a session's replies say of the thinking itself, without a model."""

import json
import random
from functools import partial
from typing import Any

import pytest

from reasonry.app.agent_calls import RefuteClaims
from reasonry.app.app import App
from reasonry.app.requests import RunRequest
from reasonry.app.runs import coach_answer, coach_start
from reasonry.guided.session_choice import Thinker
from reasonry.puzzles.equations import false_equations
from reasonry.stores.sqlite import MemoryStore

from .desk import Desk

pytestmark = pytest.mark.anyio


async def think_all(*steps: dict[str, Any], total: int = 9) -> list[dict[str, Any]]:
    """Think in one session, one thought for each step; return the replies."""
    replies: list[dict[str, Any]] = []
    at, thinker = Desk(MemoryStore()), Thinker()
    for number, step in enumerate(steps, 1):
        replies.append(await at.think(number, **{"total_thoughts": total, **step}, thinker=thinker))
    return replies


def notices(reply: dict[str, Any]) -> dict[str, str]:
    return {one["reason"]: one["message"] for one in reply.get("notices", ())}


# -- before the end


async def test_one_reply_asks_before_the_end_names_what_is_open_and_comes_once() -> None:
    replies = await think_all(
        {"thought": "Cache A is stale? It lacks the locale."},
        {"thought": "So the fix goes into A's key. Do other caches share that key?", "evidence": "assumed"},
        {"thought": "B keeps pages.", "branch_id": "b", "data": {"score": 0.4}},
        {"thought": "Wrong: I read the old file.", "branch_id": "", "revises_thought": 1},
        {"thought": "The key is fine."},
        {"thought": "Done.", "next_thought_needed": False},
        total=6,
    )
    asked = [reply["before_you_end"] for reply in replies if "before_you_end" in reply]
    assert len(asked) == 1
    assert "before_you_end" in replies[4], "a call before the end"
    assert asked[0].startswith("2-3 stand on 1, which 4 revised. Open: b 0.40. Assumed: 2.")
    assert asked[0].endswith("tries to refute the session.")
    assert len(asked[0]) / 4 <= 100


async def test_a_step_that_was_dropped_while_open_is_named_while_it_can_still_be_mended() -> None:
    def plan(**steps: str) -> dict[str, Any]:
        rows = [
            {"description": name, "status": status} for name, status in {**steps, "End": "Pending"}.items()
        ]
        return {"data": {"planning": rows}}

    replies = await think_all(
        plan(Measure="Pending", Cut="Pending", Glue="Pending"),
        plan(Measure="Done", Glue="Pending"),
        plan(Measure="Done", Glue="Pending"),
        {"next_thought_needed": False},
        total=4,
    )
    told = "Cut was dropped while open. Glue is not done. "
    assert replies[2]["before_you_end"].startswith(told)
    assert replies[3]["left_open"] == "plan: Glue is not done, Cut was dropped while open"


async def test_a_concluding_stage_on_offer_is_the_end_too() -> None:
    replies = await think_all(
        {"strategy": "chain_of_thought"},
        {"stage": ["step_decomposition", "sequential_reasoning"]},
        {"stage": "solution_formulation"},
        {"stage": "answer_verification"},
        total=20,
    )
    assert ["before_you_end" in reply for reply in replies] == [False, False, False, True]


async def test_many_open_matters_stay_within_100_tokens() -> None:
    steps = [{"branch_id": f"way number {n}", "branch_from_thought": 1} for n in range(30)]
    replies = await think_all({"thought": "Start."}, *steps, {"branch_id": ""}, total=32)
    asked = [reply["before_you_end"] for reply in replies if "before_you_end" in reply]
    assert [len(text) / 4 <= 100 for text in asked] == [True]


# -- revisions, arithmetic, predictions, scores, evidence


async def test_a_revision_is_told_what_stands_on_it_until_that_is_confirmed_or_revised() -> None:
    steps: list[dict[str, Any]] = [{}, {}, {}, {"revises_thought": 1}, {"data": {"confirms": [2]}}]
    end: dict[str, Any] = {"next_thought_needed": False}
    replies = await think_all(*steps, end)
    assert notices(replies[3])["stands_on_revised"].startswith("2-3 came after 1 on its line.")
    assert replies[-1]["left_open"] == "3 stands on 1, which 4 revised"
    replies = await think_all(*steps, {"revises_thought": 3, "data": {"confirms": [5]}}, {}, end)
    assert "left_open" not in replies[-1]


async def test_a_false_equation_is_told_with_the_right_value() -> None:
    replies = await think_all({"thought": "4736 * 8 = 37788, so it fits."}, {"thought": "4736 * 8 = 37888."})
    assert notices(replies[0])["arithmetic"] == "4736 × 8 is 37888, not 37788."
    assert "arithmetic" not in notices(replies[1])


TEXTS = (
    "Adding {a} and {b}: {a} + {b} = {sum}, and {a} * {b} = {product}.",
    "{product} / {b} = {a}; the rest is {a}-{b} in the list of {a}.{b}.{a}.",
    "On 2026-{m:02}-{d:02} at {m}:{d:02} the share was {a}% + {b}% of the last one.",
    "x = {a} + {b}; y == x - {b}; then `total = {a} * {b} + 1` in the code.",
    "{a} + {b} is not {wrong}: if {a} + {b} = {wrong} held, {b} would be another number.",
    "{a} / 7 ≈ {seventh:.2f}, about {seventh:.1f}, and {a} / 7 = {seventh:.3f}.",
    "Is {a} + {b} = {wrong}? The draft claims {a} + {b} = {wrong}, which is wrong.",
    "{a} h at {b} MB/s = some {a} GB; ports {a}-{b}; version {a}.{b} = {a}.{b}.0",
    "({a} + {b}) * 2 = {twice}. With a separator: 1,{a:03} + {b} = {thousand:,}.",
    "{a} + {b} = {wrong}. Wait, that is wrong: {a} + {b} = {sum}.",
)


def test_no_right_text_is_called_false() -> None:
    chance, found = random.Random(7), dict[str, list[str]]()
    for place in range(200):
        a, b = chance.randint(2, 999), chance.randint(2, 999)
        numbers = {"sum": a + b, "product": a * b, "wrong": a + b + 1, "twice": 2 * (a + b), "seventh": a / 7}
        text = TEXTS[place % len(TEXTS)].format(
            a=a, b=b, m=a % 12 + 1, d=b % 28 + 1, thousand=1000 + a + b, **numbers
        )
        if faults := false_equations(text):
            found[text] = faults
    assert found == {}


async def test_evidence_and_confidence_are_kept_and_resuming_names_what_is_open(fleeting: Desk) -> None:
    first = await fleeting.think(1, "Is the cache stale?", evidence="Assumed", confidence="70%")
    session = {"session_id": first["session_id"]}
    for number in range(2, 8):
        await fleeting.think(number, evidence="ran", next_thought_needed=number < 7, **session)
    kept = await fleeting.sessions.get(session)
    assert kept["thoughts"][0]["data"] == {"evidence": "assumed", "confidence": 0.7}
    resumed = await fleeting.sessions.resume(session)
    assert resumed["left_open"] == "only assumed: 1"
    assert [one["thought_number"] for one in resumed["thought_history"]] == [5, 6, 7]


# -- other eyes


async def test_verdicts_come_back_as_notices_and_a_refuted_thought_stays_open_until_revised() -> None:
    async with App("memory", environ={}) as app:
        at = Desk(app.store)
        at.sessions, think = app.sessions(), partial(at.think, total_thoughts=9)
        session = (await think(1, "Plan: copy, then switch."))["session_id"]
        await think(2, "Counting the five tables takes 20 s. score: 0.85", session_id=session)
        run = await coach_start(
            app, RefuteClaims(session_id=session, claims=("Counting the five tables takes 20 s.",)).request()
        )
        assert "0.85" not in json.dumps(run)
        finding = {"quote": "takes 20 s", "reason": "A count reads all.", "verdict": "fails"}
        for count in (1, 2):
            assert len(run["questions"]) == count
            answers = {question["id"]: finding for question in run["questions"]}
            run = await coach_answer(app, run["run_id"], answers)
        assert run["result"]["claims"][0]["verdict"] == "refuted"
        told = notices(await think(3, "Go on.", session_id=session))
        assert told["refuted"] == (
            'Thought 2, "Counting the five tables takes 20 s." is refuted: A count reads all.'
        )
        assert "notices" not in await think(4, "On we go.", session_id=session), "told once"
        ended = await think(5, "End.", session_id=session, next_thought_needed=False)
        assert ended["left_open"] == "refuted: 2"


async def test_a_coached_agent_is_told_what_exact_arithmetic_refuted_and_why() -> None:
    async with App("memory", environ={}) as app:
        start = RunRequest(problem="Use 1, 5, 5 and 5 to make 24.", strategy="tree_of_thoughts")
        run = await coach_start(app, start, brief=True)
        steps = [("5 - 1 = 4 (left: 4 5 5)", 0.5), ("5 + 5 = 11 (left: 11 1 5)", 0.5)]
        answer = {"thoughts": [{"thought": step, "score": score} for step, score in steps]}
        reply = await coach_answer(app, run["run_id"], {run["questions"][0]["id"]: answer}, brief=True)
        assert reply["refuted"] == [{"thought": steps[1][0], "reason": "5 + 5 is 10, not 11"}]


async def test_a_session_that_never_leaves_the_first_stage_of_its_strategy_says_so_at_its_end(
    fleeting: Desk,
) -> None:
    linear, moves = {"strategy": "linear"}, {"stage": "initial_thought_planning"}
    for named, moved, ended in ((linear, {}, True), (linear, moves, False), ({}, {}, False)):
        sid = (await fleeting.think(1, total_thoughts=2, **named))["session_id"]
        last = await fleeting.think(2, total_thoughts=2, next_thought_needed=False, session_id=sid, **moved)
        assert ("stages: ended at problem_reception" in last.get("left_open", "")) is ended
        assert "stages:" not in (await fleeting.sessions.resume({"session_id": sid})).get("open", "") or ended

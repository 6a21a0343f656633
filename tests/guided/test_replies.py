"""What a reply says, and what it leaves out."""

import asyncio
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from reasonry.errors import UsageError
from reasonry.guided.session_calls import ACTIONS
from reasonry.guided.session_choice import Seen, Thinker
from reasonry.guided.thinking_tool import ThinkingReply, tool_schema
from reasonry.guided.turn import cut_history
from reasonry.records import ThoughtRow
from reasonry.stores.sqlite import MemoryStore
from reasonry.strategies import STRATEGIES
from reasonry.surfaces.sequential_thinking import in_camel_case, thinking_input

from .desk import Desk, desk
from .walking import filled

pytestmark = pytest.mark.anyio

ALWAYS = {
    "thought_number",
    "total_thoughts",
    "next_thought_needed",
    "branches",
    "thought_history_length",
    "session_id",
}


def numbers(reply: dict[str, Any]) -> list[int]:
    """Return the numbers of the thoughts that a reply of the thinking tool, or of `resume`, shows."""
    return [one["thought_number"] for one in reply.get("thought_history", [])]


# -- always there, and the rest


async def test_who_names_neither_strategy_nor_stage_gets_the_six_that_are_always_there(at: Desk) -> None:
    first = await at.think(1)
    assert set(first) == ALWAYS
    on_branch = await at.think(2, session_id=first["session_id"], branch_id="b")
    assert (set(on_branch), on_branch["branch_id"]) == (ALWAYS | {"branch_id"}, "b")
    end = await at.think(3, session_id=first["session_id"], branch_id="b", next_thought_needed=False)
    assert set(end) == ALWAYS | {"summary", "branch_id"}
    assert set(tool_schema(ThinkingReply)["required"]) == ALWAYS


async def test_no_stage_is_seen_where_none_was_named(at: Desk) -> None:
    sid = (await at.think(1))["session_id"]
    await at.think(2, session_id=sid, branch_from_thought=1, branch_id="b")
    resumed = await at.sessions.resume({"session_id": sid})
    got = await at.sessions.get({"session_id": sid})
    listed = (await at.sessions.list({}))["sessions"][0]
    whole = await at.sessions.export({"session_id": sid})
    for document in (resumed, got, listed, whole, *whole["branches"], *whole["thoughts"], *got["thoughts"]):
        assert not {"stage", "strategy", "next_stages", "from_stage", "guidance"} & set(document)
    text = (await at.sessions.export({"session_id": sid, "format": "markdown"}))["text"]
    assert not any(word in text for word in ("linear", "problem_reception", "Strategy"))
    copy = await at.sessions.import_({name: value for name, value in whole.items() if name != "session_id"})
    assert "strategy" not in copy


async def test_a_stage_named_later_is_taken_and_shown_from_then_on(at: Desk) -> None:
    sid = (await at.think(1))["session_id"]
    reply = await at.think(2, session_id=sid, stage="thought_evaluation")
    assert (reply["strategy"], reply["stage"]) == ("linear", "thought_evaluation")
    assert [one["name"] for one in reply["next_stages"]] == ["thought_revision", "continuation_decision"]
    assert (await at.think(3, session_id=sid))["stage"] == "thought_evaluation"
    assert (await at.sessions.list({}))["sessions"][0]["strategy"] == "linear"


async def test_guidance_comes_with_the_offer_and_required_fields_on_entering(at: Desk) -> None:
    react = {stage.name: stage.guidance for stage in STRATEGIES["react"].stages}
    first = await at.think(1, total_thoughts=6, strategy="react")
    assert first == {
        "thought_number": 1,
        "total_thoughts": 6,
        "next_thought_needed": True,
        "branches": [],
        "thought_history_length": 1,
        "session_id": first["session_id"],
        "strategy": "react",
        "stage": "problem_reception",
        "next_stages": [{"name": "initial_reasoning", "guidance": react["initial_reasoning"]}],
        "guidance": react["problem_reception"],
    }
    at_once = {"session_id": first["session_id"], "stage": "initial_reasoning"}
    moved, stayed = await at.think(2, **at_once), await at.think(3, **at_once)
    told = {"guidance": react["action_planning"], "requires": {"action": "text"}}
    assert moved["next_stages"] == [{"name": "action_planning", **told}]
    assert stayed["next_stages"] == [{"name": "action_planning"}]
    assert not {"guidance", "strategy"} & (set(stayed) | set(moved))


class EveryGuidanceInAdvance(RuleBasedStateMachine):
    """Sessions of all strategies, on any of their lines."""

    @initialize(name=st.sampled_from(sorted(STRATEGIES)), adopts=st.booleans())
    def begin(self, name: str, adopts: bool) -> None:
        self.table = STRATEGIES[name].by_name
        self.desk, self.count = Desk(MemoryStore()), 0
        self.offered, self.stood = set[str](), Counter[str]()
        self.session: dict[str, Any] = {}
        if adopts:
            self.think()
        self.think(strategy=name)

    def think(self, **more: Any) -> bool:
        self.count += 1
        try:
            reply = asyncio.run(self.desk.think(1, f"thought {self.count}", **more, **self.session))
        except UsageError:
            return False
        self.session = {"session_id": reply["session_id"]}
        if "stage" in reply:
            shown = [{**reply, "name": reply["stage"]}, *reply["next_stages"]]
            self.stood.update(one["name"] for one in shown if "guidance" in one)
            for one in shown:
                assert one.get("guidance") in (None, self.table[one["name"]].guidance)
            self.offered |= {one["name"] for one in shown}
        return True

    @rule(data=st.data(), branch=st.sampled_from([None, "", "a", "b"]), merges=st.booleans())
    def name_a_stage(self, data: st.DataObject, branch: str | None, merges: bool) -> None:
        stages = data.draw(st.lists(st.sampled_from(sorted(self.table)), min_size=1, max_size=1))
        walked = self.walk_on(stages, data)
        parts = {name: filled(self.table[name]) for name in walked}
        more: dict[str, Any] = {"stage": walked, "data": parts}
        if len(walked) == 1:
            more = {"stage": walked[0], "data": parts[walked[0]]}
        before = Counter(self.stood)
        line = {} if branch is None else {"branch_id": branch}
        merge = {"merge_branch": "b"} if merges and branch != "b" else {}
        if self.think(**more, **line, **merge) and walked[0] in self.offered_before:
            assert before[walked[0]] == 1

    def walk_on(self, stages: list[str], data: st.DataObject) -> list[str]:
        self.offered_before = set(self.offered)
        while self.table[stages[-1]].to and len(stages) < 4 and data.draw(st.booleans()):
            stages.append(data.draw(st.sampled_from(self.table[stages[-1]].to)))
        return stages

    @rule(branch=st.sampled_from([None, "", "a", "b"]))
    def stay(self, branch: str | None) -> None:
        self.think(**({} if branch is None else {"branch_id": branch}))

    @invariant()
    def no_guidance_stands_twice_and_what_is_offered_has_it(self) -> None:
        assert set(self.stood.values()) <= {1}
        assert self.offered == set(self.stood)


EveryGuidanceInAdvance.TestCase.settings = settings(stateful_step_count=15)
TestEveryGuidanceInAdvance = EveryGuidanceInAdvance.TestCase


async def test_a_stage_entered_again_tells_the_required_fields_and_not_the_guidance(at: Desk) -> None:
    sid = (await at.think(1, strategy="react", stage="evaluation_checkpoint"))["session_id"]
    for stage, data in (
        ("action_planning", {"action": "look"}),
        ("action_execution", {}),
        ("observation_reception", {"observation": "4"}),
        ("reasoning_update", {}),
    ):
        await at.think(2, session_id=sid, stage=stage, data=data)
    again = await at.think(3, session_id=sid, stage="evaluation_checkpoint")
    assert again["next_stages"] == [
        {"name": "action_planning", "requires": {"action": "text"}},
        {"name": "solution_formulation"},
    ]
    assert "guidance" not in again


# -- history


async def test_the_history_comes_when_it_is_asked_for_and_tells_what_thoughts_refer_to(at: Desk) -> None:
    sid = (await at.think(1))["session_id"]
    await at.think(2, session_id=sid, is_revision=True, revises_thought=1)
    await at.think(2, session_id=sid, branch_from_thought=1, branch_id="side")
    reply = await at.think(3, session_id=sid, merge_branch="side", history=9)
    assert [{k: v for k, v in one.items() if k != "thought"} for one in reply["thought_history"]] == [
        {"thought_number": 1},
        {"thought_number": 2, "is_revision": True, "revises_thought": 1},
        {"thought_number": 2, "branch_id": "side", "branch_from_thought": 1},
        {"thought_number": 3, "merge_branch": "side"},
    ]
    assert reply["history_truncated"] is False


@pytest.mark.parametrize(("wanted", "shown"), [(1, [3]), (2, [2, 3]), ("2", [2, 3]), (99, [1, 2, 3])])
async def test_as_much_history_comes_as_is_asked_for(fleeting: Desk, wanted: Any, shown: list[int]) -> None:
    sid = (await fleeting.think(1))["session_id"]
    await fleeting.think(2, session_id=sid)
    reply = await fleeting.think(3, session_id=sid, history=wanted)
    assert numbers(reply) == shown
    assert reply["history_truncated"] == (len(shown) < 3)
    assert "thought_history" not in await fleeting.think(4, session_id=sid, history=0, whole=True)


@pytest.mark.parametrize("bound", [50, 5_000])
async def test_the_bound_is_a_setting_and_the_thought_just_sent_is_in_it(tmp_path: Path, bound: int) -> None:
    async with desk("memory", tmp_path, max_history_chars=bound) as at:
        sid = (await at.think(1, "a" * 20))["session_id"]
        await at.think(2, "b" * 20, session_id=sid)
        for more in ({"whole": True}, {"history": 9}):
            reply = await at.think(3, f"{more}" + "c" * 6_000, session_id=sid, **more)
            assert (numbers(reply), reply["history_truncated"]) == ([3], True)
        assert numbers(await at.think(4, "d", session_id=sid, history=9)) == [4]


async def test_an_earlier_session_that_is_new_to_a_connection_shows_its_history_once(at: Desk) -> None:
    sid = (await at.think(1, strategy="react", thinker=Thinker()))["session_id"]
    again = await at.think(2, session_id=sid, thinker=Thinker())
    assert numbers(again) == [1, 2]
    assert (again["strategy"], again["stage"]) == ("react", "problem_reception")
    table = STRATEGIES["react"].by_name
    assert again["guidance"] == table["problem_reception"].guidance
    assert again["next_stages"][0]["guidance"] == table["initial_reasoning"].guidance
    assert "thought_history" not in await at.think(3, session_id=sid, thinker=Thinker(seen={sid: Seen()}))
    assert "thought_history" not in await at.think(4, session_id=sid, thinker=Thinker(), history=0)
    assert "thought_history" not in await at.think(1, thinker=Thinker())


async def test_resuming_shows_history_guidance_and_required_fields(at: Desk) -> None:
    sid = (await at.think(1, "x" * 30_000, strategy="react", stage="initial_reasoning"))["session_id"]
    await at.think(2, session_id=sid)
    resumed = await at.sessions.resume({"session_id": sid})
    assert (numbers(resumed), resumed["history_truncated"]) == ([2], True)
    table = STRATEGIES["react"].by_name
    told = {"guidance": table["action_planning"].guidance, "requires": {"action": "text"}}
    assert resumed["next_stages"] == [{"name": "action_planning", **told}]
    assert resumed["guidance"] == table["initial_reasoning"].guidance
    assert "guidance" not in await at.think(3, session_id=sid, stage="action_planning", data={"action": "a"})


async def test_what_resuming_an_imported_session_told_is_not_told_again(at: Desk) -> None:
    sid = (await at.think(1, strategy="react", stage="initial_reasoning"))["session_id"]
    copy = (await at.sessions.import_(await at.sessions.export({"session_id": sid})))["session_id"]
    assert "guidance" in await at.sessions.resume({"session_id": copy})
    stayed = await at.think(2, session_id=copy)
    assert "guidance" not in stayed
    assert stayed["next_stages"] == [{"name": "action_planning"}]


TEXTS = st.lists(st.integers(0, 40), min_size=1, max_size=30)


@given(TEXTS, st.none() | st.integers(0, 35), st.none() | st.integers(1, 400))
def test_a_history_is_the_longest_run_of_latest_thoughts_within_its_bounds(
    sizes: list[int], thoughts: int | None, chars: int | None
) -> None:
    rows = [ThoughtRow(n, n, "x" * size) for n, size in enumerate(sizes, 1)]
    shown = cut_history(rows, thoughts, chars)
    assert list(shown) == rows[len(rows) - len(shown) :]
    assert thoughts == 0 or shown
    fits = (
        count
        for count in range(len(rows) + 1)
        if (thoughts is None or count <= thoughts)
        and (chars is None or count <= 1 or sum(sizes[-count:]) <= chars)
    )
    assert len(shown) == max(fits)


# -- scores


async def valued(at: Desk, *scores: tuple[str, float]) -> str:
    start = await at.think(1, strategy="tree_of_thoughts", stage="approach_exploration")
    sid = start["session_id"]
    path = ["branch_creation", "branch_development", "branch_evaluation"]
    for name, score in scores:
        more = {"branch_id": name, "branch_from_thought": 1, "data": {"branch_evaluation": {"score": score}}}
        await at.think(4, session_id=sid, stage=path, **more)
    return sid


async def test_a_stage_that_compares_shows_the_lines_best_first(fleeting: Desk) -> None:
    sid = await valued(fleeting, ("L", 0.7), ("D", 0.25), ("B", 0.9))
    reply = await fleeting.think(5, session_id=sid, stage="branch_selection", branch_id="B")
    assert reply["scores"] == "B 0.90 · L 0.70 · D 0.25"
    decided = await fleeting.think(
        6, session_id=sid, stage="continuation_decision", branch_id="B", merge_branch="L"
    )
    assert decided["scores"] == "B 0.90 · L 0.70 · D 0.25"
    worked = await fleeting.think(7, session_id=sid, stage="branch_development", branch_id="B")
    assert "scores" not in worked


SELECTION: list[tuple[str, dict[str, Any], str]] = [
    ("branch_creation", {"branch_id": "A"}, ""),
    ("branch_development", {"branch_id": "A"}, ""),
    ("branch_evaluation", {"branch_id": "A", "data": {"score": 0.8}}, "A 0.80"),
    ("branch_selection", {"data": {"selected": "A"}}, "A 0.80 (chosen)"),
    ("continuation_decision", {}, "A 0.80 (chosen)"),
    ("branch_creation", {"branch_id": "B"}, ""),
    ("branch_development", {"branch_id": "B"}, ""),
    ("branch_evaluation", {"branch_id": "B", "data": {"score": 0.4}}, "A 0.80 (chosen) · B 0.40"),
    ("branch_selection", {"data": {"selected": "a"}}, "A 0.80 (chosen) · B 0.40"),
    ("continuation_decision", {}, "A 0.80 (chosen) · B 0.40"),
    ("branch_development", {"branch_id": "A"}, ""),
    ("branch_evaluation", {"branch_id": "A", "data": {"score": 0.9}}, "A 0.80 → 0.90 (chosen) · B 0.40"),
    ("branch_selection", {"data": {"selected": "A"}}, "A 0.80 → 0.90 (chosen) · B 0.40"),
    ("continuation_decision", {}, "A 0.80 → 0.90 (chosen) · B 0.40"),
]
"""Two branches that are valued, and one of them selected each time: the stages, and the scores in the replies."""


@pytest.mark.parametrize("names_after", [True, False], ids=["named", "not named after the selection"])
async def test_a_selected_branch_keeps_its_name_and_its_newest_score(
    fleeting: Desk, names_after: bool
) -> None:
    sid = (await fleeting.think(1, strategy="tree_of_thoughts", stage="approach_exploration"))["session_id"]
    for number, (stage, more, scores) in enumerate(SELECTION, 2):
        # The main line has taken the branch in, so a thought that continues it need not name it.
        call = {name: value for name, value in more.items() if names_after or number < 12 or name == "data"}
        reply = await fleeting.think(number, session_id=sid, stage=stage, **call)
        assert reply.get("scores", "") == scores, number
    whole = await fleeting.sessions.export({"session_id": sid})
    assert [thought["seq"] for thought in whole["thoughts"] if "merge_branch" in thought] == (
        [5, 14] if names_after else [5]
    )
    ended = await fleeting.think(16, session_id=sid, stage="solution_formulation", next_thought_needed=False)
    assert "left_open" not in ended, "B was passed over by a later selection"


async def test_a_branch_that_was_taken_in_keeps_its_score_once_another_is_chosen(fleeting: Desk) -> None:
    sid = await valued(fleeting, ("A", 0.8), ("B", 0.9))
    for name, scores in [("A", "B 0.90 · A 0.80 (chosen)"), ("B", "B 0.90 (chosen) · A 0.80")]:
        reply = await fleeting.think(
            5, session_id=sid, stage="branch_selection", branch_id="main", data={"selected": name}
        )
        assert reply["scores"] == scores


async def test_a_main_line_that_creates_branches_anew_values_the_chosen_one_no_more(fleeting: Desk) -> None:
    sid = await valued(fleeting, ("A", 0.8))
    selected = {"selected": "A"}
    await fleeting.think(5, session_id=sid, stage="branch_selection", branch_id="main", data=selected)
    path = ["continuation_decision", "branch_creation", "branch_development"]
    await fleeting.think(6, session_id=sid, stage=path, branch_id="main")
    value = {"score": 0.2}
    reply = await fleeting.think(7, session_id=sid, stage="branch_evaluation", branch_id="main", data=value)
    assert reply["scores"] == "A 0.80 · main line 0.20"


async def test_a_branch_that_was_passed_over_is_open_again_once_it_is_continued(fleeting: Desk) -> None:
    sid = await valued(fleeting, ("L", 0.7), ("B", 0.9))
    await fleeting.think(5, session_id=sid, stage="branch_selection", data={"selected": "B"})
    await fleeting.think(5, session_id=sid, branch_id="L")
    ended = await fleeting.think(6, session_id=sid, branch_id="main", next_thought_needed=False)
    assert ended["left_open"] == "not merged: L"


async def test_the_scoreboard_stays_short(fleeting: Desk) -> None:
    sid = await valued(fleeting, *((f"approach {n} " + "x" * 100, n / 20) for n in range(1, 13)))
    reply = await fleeting.think(
        5, session_id=sid, stage="branch_selection", branch_id="approach 12 " + "x" * 100
    )
    assert reply["scores"].startswith("approach 12 xxx")
    assert reply["scores"].endswith(" · 4 more")
    assert len(reply["scores"]) < 500


# -- the end


async def ended(at: Desk, *thoughts: dict[str, Any]) -> str:
    thinker = Thinker(seen=None)
    for number, more in enumerate(thoughts, 1):
        reply = await at.think(number, next_thought_needed=number < len(thoughts), thinker=thinker, **more)
    assert "summary" in reply
    return reply.get("left_open", "")


HYPOTHESIS = {"stage": "hypothesis_generation", "data": {"hypothesis": "h"}}
LEFT_OPEN: dict[str, tuple[list[dict[str, Any]], str]] = {
    "nothing": ([{}, {}, {}], ""),
    "a branch": ([{}, {"branch_id": "b", "branch_from_thought": 1}, {"branch_id": "main"}], "not merged: b"),
    "a merged branch": ([{}, {"branch_id": "b"}, {"branch_id": "", "merge_branch": "b"}], ""),
    "the branch it ends on": ([{}, {"branch_id": "b"}, {"branch_id": "c"}], ""),
    "a branch beside it": (
        [{}, {"branch_id": "b"}, {"branch_id": "c", "branch_from_thought": 1}],
        "not merged: b",
    ),
    "a correction": ([{}, {}, {"revises_thought": 1}, {}], "2 stands on 1, which 3 revised"),
    "what stood on it revised too": ([{}, {}, {"revises_thought": 1}, {"revises_thought": 2}, {}], ""),
    "what stood on it confirmed": ([{}, {}, {}, {"revises_thought": 1}, {"confirms": [2, 3]}], ""),
    "an assumption": ([{}, {"evidence": "assumed"}, {"evidence": "ran"}, {}], "only assumed: 2"),
    "an assumption revised": (
        [{}, {"evidence": "assumed"}, {"revises_thought": 2, "evidence": "ran"}, {}],
        "",
    ),
    "a correction of a correction": ([{}, {"revises_thought": 1}, {"revises_thought": 2}], ""),
    "a correction on another line": (
        [{}, {"branch_id": "b"}, {"branch_id": "b", "revises_thought": 1}, {"branch_id": "main"}],
        "not merged: b; 2 stands on 1, which 3 revised",
    ),
    "a hypothesis": ([{}, HYPOTHESIS, {}], "not tested: thought 2"),
    "a hypothesis restated in its stage": ([HYPOTHESIS, HYPOTHESIS, {}], "not tested: thought 2"),
    "a tested hypothesis": ([HYPOTHESIS, {"stage": "hypothesis_verification"}], ""),
}


@pytest.mark.parametrize("name", LEFT_OPEN)
async def test_the_end_says_in_a_line_what_is_left_open(fleeting: Desk, name: str) -> None:
    thoughts, said = LEFT_OPEN[name]
    assert await ended(fleeting, *thoughts) == said


# -- the documentation


def test_every_reason_of_a_notice_and_every_field_is_in_the_documentation() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "mcp.md").read_text("utf-8")
    sources = "".join(path.read_text("utf-8") for path in (root / "src").rglob("*.py"))
    reasons = set(re.findall(r'\bNotice\(\s*"(\w*)"', sources))
    assert len(reasons) > 5
    words = {
        *reasons,
        *in_camel_case(tool_schema(ThinkingReply))["properties"],
        *thinking_input(STRATEGIES)["properties"],
        *ACTIONS,
    }
    assert {word for word in words if f"`{word}`" not in page} == set()


# -- the line of a thought that names none


async def lines_of(at: Desk, *thoughts: tuple[int, dict[str, Any]]) -> list[str]:
    """Hand thoughts in, and return the branch that each reply names."""
    thinker = Thinker()
    replies = [await at.think(number, total_thoughts=9, thinker=thinker, **more) for number, more in thoughts]
    named = [reply.get("branch_id", "") for reply in replies]
    kept = (await at.sessions.get({"session_id": replies[-1]["session_id"]}))["thoughts"]
    assert [thought.get("branch_id", "") for thought in kept] == named
    return named


A, B, MAIN = (
    {"branch_id": "A", "branch_from_thought": 2},
    {"branch_id": "B", "branch_from_thought": 1},
    {"branch_id": "main"},
)
CONTINUED: dict[str, tuple[list[tuple[int, dict[str, Any]]], list[str]]] = {
    "the number after the branch's": ([(1, {}), (2, {}), (3, A), (4, {}), (5, {})], ["", "", "A", "A", "A"]),
    "it is the main line's too": ([(1, {}), (2, {}), (3, {}), (3, A), (4, {})], ["", "", "", "A", "A"]),
    "the main line has its own": ([(1, {}), (2, {}), (5, A), (3, {}), (6, {})], ["", "", "A", "", "A"]),
    "the latest is on the main line": ([(1, {}), (2, {}), (3, A), (3, MAIN), (4, {})], ["", "", "A", "", ""]),
    "of two branches": ([(1, {}), (2, {}), (3, A), (6, B), (4, {}), (7, {})], ["", "", "A", "B", "A", "B"]),
    "it was merged": ([(1, {}), (2, {}), (3, A), (3, {"merge_branch": "A"}), (4, {})], ["", "", "A", "", ""]),
    "a merge is on the main line": (
        [(1, {}), (2, {}), (3, A), (4, {"merge_branch": "A"})],
        ["", "", "A", ""],
    ),
    "no line has the number before": ([(1, {}), (2, {}), (3, A), (9, {})], ["", "", "A", ""]),
    "it revises the branch": (
        [(1, {}), (2, {}), (3, A), (4, A), (3, MAIN), (4, {}), (5, {"revises_thought": 4, **MAIN})],
        ["", "", "A", "A", "", "", ""],
    ),
    "the thought it revises is on the branch": (
        [(1, {}), (2, {}), (5, A), (3, {}), (4, {"revises_thought": 5})],
        ["", "", "A", "", "A"],
    ),
    "the thought it revises is on the main line": (
        [(1, {}), (2, {}), (3, A), (4, {"revises_thought": 1}), (5, {})],
        ["", "", "A", "", ""],
    ),
    "both lines have the number that it revises": (
        [(1, {}), (2, {}), (3, {}), (3, A), (4, {"revises_thought": 3})],
        ["", "", "", "A", "A"],
    ),
}


@pytest.mark.parametrize("name", CONTINUED)
async def test_a_thought_that_names_no_line_continues_one_and_the_reply_names_the_branch(
    fleeting: Desk, name: str
) -> None:
    thoughts, branches = CONTINUED[name]
    assert await lines_of(fleeting, *thoughts) == branches


async def test_the_next_number_of_a_branch_continues_it_though_the_main_line_is_nearer_to_the_stage(
    fleeting: Desk,
) -> None:
    assert await lines_of(
        fleeting,
        (1, {"strategy": "linear", "stage": "thought_generation"}),
        (2, {"branch_id": "A", "branch_from_thought": 1, "stage": "thought_evaluation"}),
        (3, {"stage": "thought_evaluation"}),
        (2, {"stage": "thought_evaluation"}),
    ) == ["", "A", "A", ""]


async def test_a_command_that_leaves_its_number_out_has_the_next_one_of_its_line(tmp_path: Path) -> None:
    sessions = Desk(MemoryStore(), directory=str(tmp_path)).sessions
    for more, placed in [
        ({}, (1, "")),
        ({}, (2, "")),
        ({}, (3, "")),
        ({"branch_id": "A", "branch_from_thought": "1"}, (2, "A")),
        ({"revises_thought": "2"}, (3, "A")),
        ({"branch_id": "A"}, (4, "A")),
        ({"revises_thought": "1"}, (4, "")),
        ({}, (5, "")),
    ]:
        reply, _ = await sessions.think_here({"thought": "x", "next_thought_needed": True, **more})
        assert (reply["thought_number"], reply.get("branch_id", "")) == placed
    with pytest.raises(UsageError, match="no thought 9"):
        await sessions.think_here({"thought": "x", "next_thought_needed": True, "revises_thought": "9"})

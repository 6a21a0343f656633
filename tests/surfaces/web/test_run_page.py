"""The page of a run: laws over all strategies, however far a run has got and however it ends."""

import random
import re
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import reasonry
from reasonry.app.app import App
from reasonry.core.bodies import Conclusion
from reasonry.core.events import Answered, Stopped, ToolReturned, Verified
from reasonry.core.machine import Step
from reasonry.core.strategy import Strategy
from reasonry.engine.journal import Begun, Ended, Settled
from reasonry.engine.record import Record, record_of, record_of_run
from reasonry.engine.run import Run
from reasonry.records import RunRow
from reasonry.strategies import STRATEGIES
from reasonry.surfaces.cli.draw import print_tree
from reasonry.surfaces.cli.output import draw_lines
from reasonry.surfaces.cli.watch import Live
from reasonry.surfaces.web.find_page import find_page
from reasonry.surfaces.web.page import EVERYTHING, PageDocument
from reasonry.surfaces.web.run_page import run_page, show_result
from reasonry.text import escape_unseen
from tests.servers import ModelServer

from ...test_every_strategy import each_driven, options, seeds, world
from . import making
from .laws import check_page

few = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
PROBLEM = "What is 6 times 7?"
PUZZLE = "Use 4, 9, 10 and 13 to make 24"
MAX_EVENTS = 120


def play(strategy: Strategy[Any, Any], seed: int, events: int, ending: str = "") -> tuple[Run, Record]:
    """Play a run for so many events, then end it in this way, if in any."""
    answers, rng = world(strategy, seed, 0.2 if seed % 3 == 0 else 0.0), random.Random(seed)
    chosen = msgspec.json.decode(msgspec.json.encode(options(strategy, seed)))
    run = Run(Begun(strategy.name, PROBLEM, chosen, created_at_ms=1), STRATEGIES)
    for _ in range(events):
        waiting = run.open_effects
        if not waiting:
            break
        one = rng.choice(waiting)
        event = answers.answer(one)
        if isinstance(event, Answered):
            usage = msgspec.structs.replace(event.usage, input_tokens=seed % 7, output_tokens=3)
            event = msgspec.structs.replace(event, usage=usage)
        run.take(Settled(one.id, event))
    if ending and run.snapshot.status == "active":
        run.take(Settled(None, Stopped(ending, "it was enough", run.snapshot.at_ms)))
    row = RunRow("r", "s", strategy.name, "world", PROBLEM, run.snapshot.status, 1, 2)
    return run, record_of_run(row, run)


@each_driven
@few
@given(seeds, st.integers(0, MAX_EVENTS), st.sampled_from(["", "max_calls", "cancelled"]))
def test_a_page_is_a_tree_whose_costs_add_up_and_that_leaves_no_thought_out(
    strategy: Strategy[Any, Any], seed: int, events: int, ending: str
) -> None:
    run, record = play(strategy, seed, events, ending)
    page = run_page(record, strategy)
    check_page(page)
    shown = {node.text for node in page.nodes} | {note.text for note in page.notes}
    assert {escape_unseen(thought.text) for thought in run.thoughts} <= shown
    assert [question.id for question in page.questions] == [*run.asked]
    assert all(node.text or not node.score_text for node in page.nodes if node.kind in ("draft", "sample")), (
        "an empty row"
    )
    labels, noted = {node.id: node.label for node in page.nodes}, {note.id for note in page.notes}
    for number, home in zip(page.why.thoughts, page.why.nodes, strict=True) if page.why else ():
        numbers = re.findall(r"\d+", labels[home].lower().partition("thought")[2])
        assert str(number) in numbers or f"t{number}" in noted, "no row has its number"
    ends = [node.label for node in page.nodes if node.state == "answer" and node.label.startswith("Thought")]
    why = page.why.text if page.why and ends else ""
    is_of_thought = not why.startswith("Thought") or why.startswith(f"{ends[0]} ends in the answer")
    assert is_of_thought, "the page marks another thought than the reason names"
    prompts = {each.id: "\n\n".join(page.texts[place] for place in each.prompt) for each in page.questions}
    for asked in record.entries("questions"):
        assert prompts[asked["id"]] == escape_unseen(asked["prompt"])
    assert (page.ended_at_ms is None) == (page.status == "active")


@each_driven
@few
@given(seeds)
def test_a_page_is_the_same_from_the_record_that_was_packed(strategy: Strategy[Any, Any], seed: int) -> None:
    _, record = play(strategy, seed, MAX_EVENTS, "max_calls")
    read = record_of(Ended(record.pack()))
    assert read is not None
    assert run_page(read, strategy) == run_page(record, strategy)


@each_driven
@few
@given(seeds, st.integers(0, 40), st.integers(0, 40))
def test_ids_stay_as_a_run_goes_on(strategy: Strategy[Any, Any], seed: int, events: int, more: int) -> None:
    before = run_page(play(strategy, seed, events)[1], strategy)
    after = run_page(play(strategy, seed, events + more)[1], strategy)
    texts = {node.id: node.text for node in after.nodes}
    for node in before.nodes:
        assert node.id in texts
        # The text of a draft without a thought of its own is its answer, which may be corrected.
        is_answer = node.kind == "draft" and not node.origin
        assert is_answer or node.text in ("", texts[node.id]) or node.kind in ("iteration", "plan")
    assert {question.id for question in before.questions} <= {question.id for question in after.questions}


@each_driven
@few
@given(seeds, st.integers(1, 6), st.integers(1, 200))
def test_a_page_that_was_cut_is_a_page_and_says_what_is_missing(
    strategy: Strategy[Any, Any], seed: int, limit: int, chars: int
) -> None:
    _, record = play(strategy, seed, 40)
    whole = run_page(record, strategy)
    cut = run_page(record, strategy, None, replace(EVERYTHING, text_chars=chars, nodes=limit, entries=limit))
    for name in ("nodes", "questions", "calls", "notes"):
        assert len(getattr(cut, name)) <= limit
        assert len(getattr(whole, name)) == len(getattr(cut, name)) + getattr(cut.cuts, name)
    known = {node.id for node in cut.nodes}
    assert all(node.parent in known for node in cut.nodes[1:])
    assert all(entry.node in known for entry in (*cut.questions, *cut.calls, *cut.notes))
    assert all(len(text) <= chars + 60 for text in cut.texts)
    assert run_page(record, strategy, None, EVERYTHING) == whole
    room = 2 * sum(len(text) for text in whole.texts)
    squeezed = run_page(record, strategy, None, replace(EVERYTHING, all_chars=room))
    assert sum(map(len, squeezed.texts)) <= room or squeezed.cuts.texts


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "nodes", "parent_id", "content", "number", "a"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (Verified("right", "it arrives", answer="1 + 2 = 3"), "confirmed: 1 + 2 = 3"),
        (Verified("wrong", "it ends with 4, not 3"), "refuted: it ends with 4, not 3"),
        (Verified("unknown"), "undecided"),
        (
            ToolReturned({"status": "ok", "stdout": "3\n", "error": None, "truncated": False}),
            "status: ok\nstdout: 3",
        ),
        (ToolReturned([1, 2]), "[1,2]"),
        (ToolReturned("a text"), "a text"),
    ],
)
def test_a_result_of_a_tool_or_verifier_stands_in_words(event: Any, said: str) -> None:
    assert show_result(msgspec.to_builtins(event)) == said


PARTS = ("tree", "samples", "votes", "iterations", "tasks", "plans", "best", "title", "synthesis")


@few
@given(st.dictionaries(st.sampled_from(PARTS), json_values))
def test_a_document_of_any_shape_has_a_page(document: dict[str, Any]) -> None:
    run, _ = play(STRATEGIES["linear"], 1, 30)
    run.snapshot = msgspec.structs.replace(
        run.snapshot, status="done", conclusion=Conclusion("42", document=document)
    )
    row = RunRow("r", "s", "linear", "world", PROBLEM, "done", 1, 2)
    check_page(run_page(record_of_run(row, run), None))


def codes(page: PageDocument) -> set[str]:
    return {node.why.code for node in page.nodes if node.why}


@pytest.mark.anyio
async def test_a_tree_says_why_each_node_was_dropped_and_what_that_cost() -> None:
    options = {"branching_factor": 5, "beam_width": 3, "max_depth": 3}
    terms: dict[str, Any] = {"strategy": "tree_of_thoughts", "options": options, "price": "0.25/2"}
    with ModelServer(reply=making.grower(5)) as server:
        page = await making.solved("memory", "Plan a harbour.", model=server.model, **terms)
    check_page(page)
    assert {"beam", "score"} <= codes(page)
    beam = next(node for node in page.nodes if node.why and node.why.code == "beam")
    assert "3 nodes kept" in (beam.why.text if beam.why else "")
    asked = {question.id: question.node for question in page.questions}
    assert asked["e1"] == page.nodes[0].id
    assert page.cost_of_dropped.calls > 0
    assert (page.cost_of_dropped.usd or 0) > 0
    rounds = {question.round for question in page.questions}
    assert rounds == {*range(1, len(rounds) + 1)}
    assert page.nodes[0].ended_at_ms is not None


@pytest.mark.anyio
async def test_a_vote_shows_who_agrees() -> None:
    terms: dict[str, Any] = {"strategy": "self_consistency", "options": {"window": 4}}
    with ModelServer(reply=making.voter) as server:
        page = await making.solved("memory", "What does she make?", model=server.model, **terms)
    check_page(page)
    samples = [node for node in page.nodes if node.kind == "sample"]
    assert page.answer == "18"
    leader = next(vote for vote in page.votes if vote.leads)
    assert leader.nodes == [node.id for node in samples if node.state == "on_path"]
    assert sorted(question.node for question in page.questions) == sorted(node.id for node in samples)
    assert codes(page) <= {"differs", "failed"}


@pytest.mark.anyio
async def test_a_tree_inside_a_sample_stands_beneath_it_in_page_and_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    strategy = "best_of_n(self_consistency(tree_of_thoughts(max_depth=3), n=2, stop=full), n=1)"
    async with App("memory") as app:
        found = await reasonry.solve(PUZZLE, store=app.store, model="offline", strategy=strategy)
        page = await find_page(app, found.run_id, EVERYTHING)
    check_page(page)
    texts = {node.id: node.text for node in page.nodes}
    (end,) = (node for node in page.nodes if node.score == 1 and node.id.startswith("draft-1/sample-2/"))
    path = [end]
    while path[0].parent is not None:
        path.insert(0, next(node for node in page.nodes if node.id == path[0].parent))
    assert [node.id for node in path[:3]] == ["root", "draft-1", "draft-1/sample-2"]
    assert [node.state for node in path] == ["on_path"] * 6
    assert {call.node for call in page.calls} >= {node.id for node in path[3:]}
    print_tree({**found.document(), "problem": PUZZLE})
    drawn = capsys.readouterr().out
    assert all(texts[node.id] in drawn for node in path)


@pytest.mark.parametrize(("name", "own"), [("best_of_n", {"n": 2}), ("self_consistency", {"samples": 2})])
def test_a_tree_inside_a_sample_is_drawn_while_the_sample_works(
    capsys: pytest.CaptureFixture[str], name: str, own: dict[str, Any]
) -> None:
    first = "draft-1" if name == "best_of_n" else "sample-1"
    inside = {"over": "tree_of_thoughts", "over_options": {"max_depth": 2}}
    run = Run(Begun(name, PROBLEM, {**own, **inside}, created_at_ms=1), STRATEGIES)
    answers, known, drawn = world(STRATEGIES["tree_of_thoughts"], 1, 0.0), set[str](), 0
    while run.snapshot.status == "active":
        run.take(Settled(run.open_effects[0].id, answers.answer(run.open_effects[0])))
        row = RunRow("r", "s", name, "world", PROBLEM, run.snapshot.status, 1, 2)
        record = record_of_run(row, run)
        page = run_page(record, STRATEGIES[name])
        check_page(page)
        thoughts = [node for node in page.nodes if node.id.startswith(f"{first}/node_")]
        assert known <= {node.id for node in page.nodes}, "what was drawn stays"
        known |= {node.id for node in thoughts}
        at_work = [each.effect.about for each in run.snapshot.pending if each.settled is None]
        if thoughts and first in at_work:
            drawn += 1
            assert {node.state for node in thoughts} <= {"open", "dropped"}
            live = Live()
            live.stepped(run, Step(run.snapshot))
            assert thoughts[0].text in "".join(draw_lines(live.console, live.draw()))
            print_tree(record.document())
            assert thoughts[0].text in capsys.readouterr().out
    assert drawn > 1

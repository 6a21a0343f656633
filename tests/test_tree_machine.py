"""The tree machine: what its messages do where things go another way."""

from typing import Any

import msgspec
import pytest

from reasonry import UsageError, tree_machine
from reasonry.core.options import read_options
from reasonry.strategies.tree_of_thoughts import TREE_OF_THOUGHTS
from reasonry.tree_machine import OPTIONS, TreeMachine, from_map, new, to_map, update

START = ("start", "P", "c")
PHASES = {"generation": 0, "evaluation": 0}


def started(**options: Any) -> TreeMachine:
    return update(new(**options), START)[0]


def evaluating(*thoughts: str, **options: Any) -> TreeMachine:
    return update(started(**options), ("thoughts_generated", "c", thoughts))[0]


def test_an_idle_machine_has_every_attribute_and_the_defaults_of_the_design() -> None:
    read = read_options(TREE_OF_THOUGHTS, {"preset": "seed"})
    nothing: dict[str, Any] = {
        **dict.fromkeys(("prompt", "root_id", "current_node_id", "current_call_id", "parser_mode"), None),
        **dict.fromkeys(("termination_reason", "result", "started_at", "snapshot"), None),
        **{name: [] for name in ("frontier", "pending_thoughts", "parser_errors", "recent_best_scores")},
        **{name: {} for name in ("nodes", "pending_scores", "usage")},
        **{
            "status": "idle",
            "streaming_text": "",
            "call_id": "",
            "solution_path": [],
            "parse_retries": PHASES,
        },
    }
    assert msgspec.structs.asdict(new()) == {name: getattr(read, name) for name in OPTIONS} | nothing
    assert len(OPTIONS) == 12


@pytest.mark.parametrize(
    ("usage", "summed"),
    [
        (
            {"tokens": 3, "cached": 0, "cost": None, "details": {"a": 1}, "usd": 0.5},
            {"tokens": 3, "cached": 0},
        ),
        (["tokens"], {}),
        (None, {}),
    ],
)
def test_of_a_reported_usage_the_whole_numbers_are_summed(usage: Any, summed: dict[str, int]) -> None:
    made = started()
    for count in (1, 2):
        call_id = made.current_call_id
        made, _ = update(made, ("llm_result", call_id, ("ok", {"text": "Hm.", "usage": usage})))
        assert made.usage == {name: count * tokens for name, tokens in summed.items()}


def test_a_lone_surrogate_of_a_provider_is_replaced_and_the_machine_is_still_json() -> None:
    half = "a\ud83d"
    streamed, _ = update(started(), ("llm_partial", "c", half, "content"))
    failed, _ = update(started(), ("llm_result", "c", ("error", half)))
    given, _ = update(started(), ("thoughts_generated", "c", [half, "b"]))
    told, _ = update(started(), ("llm_result", "c", ("ok", {"text": f"1. {half}\n2. b", "usage": {}})))
    for made in (streamed, failed, given, told):
        assert from_map(msgspec.json.decode(msgspec.json.encode(to_map(made)))).status == made.status
    contents = [[each["content"] for each in made.pending_thoughts] for made in (given, told)]
    assert contents == [["a\ufffd", "b"]] * 2


def test_an_empty_call_id_is_refused_at_the_start() -> None:
    with pytest.raises(UsageError, match="call id"):
        update(new(), ("start", "P", ""))


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (started(), "busy"),
        (evaluating("a"), "busy"),
        (update(started(), ("llm_result", "c", ("error", "down")))[0], "error"),
        (update(evaluating("a", max_depth=1), ("thoughts_evaluated", "c/e2", {"t1": 0.5}))[0], "completed"),
    ],
)
def test_a_start_that_cannot_be_is_a_request_error(made: TreeMachine, reason: str) -> None:
    same, (directive,) = update(made, ("start", "another", "d"))
    assert same == made
    assert directive[:3] == ("request_error", "d", reason)
    assert made.status in directive[3]


@pytest.mark.parametrize(
    "made", [new(), started(), update(started(), ("llm_result", "c", ("error", "x")))[0]]
)
@pytest.mark.parametrize(
    "rest",
    [
        ("thoughts_generated", ["late"]),
        ("thoughts_evaluated", {"t1": 1}),
        ("llm_result", ("ok", {"text": "1. late"})),
        ("llm_partial", "late", "content"),
    ],
)
@pytest.mark.parametrize("call_id", ["stale", "", None, 1])
def test_a_message_under_another_id_changes_nothing(made: TreeMachine, rest: Any, call_id: Any) -> None:
    assert update(made, (rest[0], call_id, *rest[1:])) == (made, [])


@pytest.mark.parametrize(
    "message",
    [
        (),
        ("stop", "c"),
        ("start",),
        ("start", 1, "c"),
        ("thoughts_evaluated", "c", {"t1": 0.5}),
        ("thoughts_generated", "c", "one text"),
        ("llm_result", "c", ("maybe", "")),
        ("llm_partial", "c", 1, "content"),
        "start",
    ],
)
def test_what_is_no_message_for_the_machine_as_it_stands_is_refused_with_the_list(message: Any) -> None:
    with pytest.raises(UsageError) as refused:
        update(started(), message)
    assert refused.value.details["choices"] == [*tree_machine.MESSAGES]
    assert "the machine is generating" in refused.value.message


def test_pieces_of_a_reply_are_kept_and_are_the_reply_where_it_has_no_text() -> None:
    made = started()
    for delta, kind in (("1. one", "content"), ("hm", "thinking"), ("\n2. two", "content")):
        made, directives = update(made, ("llm_partial", "c", delta, kind))
        assert directives == []
    assert made.streaming_text == "1. one\n2. two"
    assert from_map(to_map(made)) == made
    made, (directive,) = update(made, ("llm_result", "c", ("ok", {"usage": {"total_tokens": 3}})))
    assert directive == (
        "evaluate_thoughts",
        "c/e2",
        [{"id": "t1", "content": "one"}, {"id": "t2", "content": "two"}],
    )
    assert (made.streaming_text, made.usage) == ("", {"total_tokens": 3})


def test_what_is_typed_is_taken_as_it_is() -> None:
    thoughts = ["1. numbered", '{"a": 1}', "n/a", "two\nlines", "Score: 0.7"]
    made = evaluating(*thoughts, branching_factor=5)
    assert [entry["content"] for entry in made.pending_thoughts] == thoughts
    made, _ = update(
        made, ("thoughts_evaluated", "c/e2", {"t1": 0, "n/a": 0.25, "t2": 1, "t4": 0.5, "t5": 0.1})
    )
    assert [node["score"] for node in made.nodes.values()] == [None, 0, 1, 0.25, 0.5, 0.1]


def test_the_time_of_messages_counts_from_the_start() -> None:
    made, _ = update(new(max_duration_ms=1_000, max_depth=9), START, {"at_ms": 50_000})
    assert made.started_at == 50_000
    made, _ = update(made, ("thoughts_generated", "c", ["a"]), {"at_ms": 50_400})
    made, (directive,) = update(made, ("thoughts_evaluated", "c/e2", {"t1": 0.5}), {"at_ms": 50_900})
    assert directive[0] == "generate_thoughts"
    made, _ = update(made, ("thoughts_generated", "c/e3", ["b"]), {"at_ms": 50_950})
    made, _ = update(made, ("thoughts_evaluated", "c/e4", {"t1": 0.6}), {"at_ms": 51_000})
    assert (made.status, made.termination_reason) == ("completed", "max_duration")
    assert made.result is not None
    assert made.result["termination"] == {
        "depth_reached": 2,
        "node_count": 3,
        "reason": "max_duration",
        "status": "completed",
        "duration_ms": 1_000,
    }


def test_a_search_with_nothing_left_to_expand_ends_in_success() -> None:
    made = started(traversal_strategy="bfs", max_depth=5, branching_factor=1, max_parse_retries=0)
    made, _ = update(made, ("thoughts_generated", "c", ["a"]))
    made, _ = update(made, ("thoughts_evaluated", "c/e2", {"t1": 0.5}))
    made, _ = update(made, ("llm_result", "c/e3", ("ok", {"text": ""})))
    assert (made.status, made.termination_reason) == ("completed", "success")
    assert made.solution_path == ["node_1", "node_2"]


def test_prompts_of_ones_own_come_with_the_start() -> None:
    _, (directive,) = update(new(), START, {"generation_prompt": "Propose chess moves."})
    assert "Propose chess moves." in directive[2][-1]["content"]


def test_a_map_may_lack_members_and_have_others() -> None:
    assert from_map({}) == new()
    assert from_map({"max_depth": 7, "since": "2.2.0"}) == new(max_depth=7)
    for wrong in (None, [], {"snapshot": {"schema": 99}}, {"snapshot": 1}, {"max_depth": 0}, {"nodes": 1}):
        with pytest.raises(UsageError):
            from_map(wrong)  # pyright: ignore[reportArgumentType]

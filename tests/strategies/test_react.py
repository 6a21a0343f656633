"""ReAct: the paper's loop, its tools, its limits."""

import pytest

from reasonry.blocks.toolcard import ToolCard
from reasonry.core.effects import CallTool, Verify
from reasonry.core.events import Failed, ToolReturned, Verified
from reasonry.core.machine import Pending, begin
from reasonry.strategies.react import REACT, TASK, Options
from reasonry.surfaces.present import thought_lines

from .walking import Walked, in_order, reply, walk

TEXT = {"type": "object", "properties": {"entity": {"type": "string"}}, "required": ["entity"]}
COUNT = {"type": "object", "properties": {"n": {"type": "integer"}, "entity": {"type": "string"}}}
TOOLS = {
    "tools": [
        {"name": "search", "description": "Looks an entity up.", "parameters": TEXT},
        {"name": "lookup"},
    ]
}


def act(thought: str, *actions: tuple[str, dict]) -> dict:
    return {"thought": thought, "actions": [{"tool": tool, "arguments": given} for tool, given in actions]}


def finish(answer: object) -> dict:
    return {"thought": "That settles it.", "answer": answer}


SEARCH = act("Look it up.", ("search", {"entity": "High Plains"}))


def observations(walked: Walked) -> list[str]:
    return [thought.text for thought in walked.thoughts if thought.stage == "observation_reception"]


def test_passages_are_shown_to_be_cited_and_named_when_they_come_again() -> None:
    mill = {"source": "mill.md", "text": "The mill was built in 1812.\n", "score": 9e-06, "line": 1}
    coast = {"source": "coast.md", "text": "The coast is long.", "score": 1e-06, "page": 2}
    again = act("And again.", ("search", {"entity": "Coast"}))
    events = in_order(
        SEARCH,
        ToolReturned({"passages": [mill]}),
        again,
        ToolReturned({"passages": [coast, mill]}),
        finish("1812"),
    )
    walked = walk(REACT, "p", events, TOOLS)
    assert observations(walked) == [
        "[1] (mill.md, line 1) The mill was built in 1812.",
        "[1] (coast.md, page 2) The coast is long.\n[2] (mill.md, line 1) stands above",
    ]


def test_the_prover_is_offered_only_where_nothing_can_be_looked_up() -> None:
    prover, python, search = (ToolCard(name) for name in ("check_claim", "py_executor", "search_documents"))
    for cards, offered in (((prover, python), True), ((prover, python, search), False)):
        asked = walk(REACT, "p", in_order(finish("x")), {"tools": cards}).asks[0]
        assert ("check_claim" in asked.text) is offered


def test_independent_actions_go_out_together_and_are_observed_in_order() -> None:
    both = act("Two lookups.", ("search", {"entity": "A"}), ("search", {"entity": "B"}))
    step = begin(REACT, "p", Options(tools=(ToolCard("search"),)))
    walked = walk(REACT, "p", in_order(both, ToolReturned("a"), ToolReturned("b"), finish("c")), TOOLS)
    calls = [one for one in walked.performed if isinstance(one.effect, CallTool)]
    assert [one.round for one in calls] == [2, 2]
    assert observations(walked) == ["a\nb"]
    assert step.effects[0].effect.facts["tools"] == ["search"]


def test_each_action_is_shown_and_which_observation_belongs_to_which() -> None:
    both = act("Two lookups.", ("search", {"entity": "A"}), ("search", {"entity": "B"}))
    walked = walk(REACT, "p", in_order(both, ToolReturned("a"), ToolReturned("b"), finish("c")), TOOLS)
    thought, observed, _ = walked.thoughts
    assert thought_lines(thought.text, thought.data, 80) == [
        "Two lookups.",
        '  → search {"entity":"A"}',
        '  → search {"entity":"B"}',
    ]
    assert thought_lines(observed.text, observed.data, 80)[1:] == [
        '  ← search {"entity":"A"}: a',
        '  ← search {"entity":"B"}: b',
    ]


def test_a_tool_error_is_an_observation() -> None:
    walked = walk(
        REACT, "p", in_order(SEARCH, Failed("tool_error", "page is gone"), finish("unknown")), TOOLS
    )
    assert walked.snapshot.status == "done"
    assert observations(walked) == ["Error: page is gone"]


def test_an_unknown_tool_is_answered_with_the_legal_ones() -> None:
    walked = walk(REACT, "p", in_order(act("Try.", ("google", {})), finish("x")), TOOLS)
    assert observations(walked) == ["Error: there is no tool 'google'; the tools are: search, lookup"]
    assert walked.conclusion.document["tool_calls"] == 0


@pytest.mark.parametrize(
    ("first", "second"),
    [(("count", {"n": 2}), ("count", {"n": "2"})), (("count", {}), ("Count", {})), (("x", {}), ("x", {}))],
)
def test_actions_are_the_same_if_the_same_call_is_made(first: tuple, second: tuple) -> None:
    options = {"tools": [{"name": "count", "parameters": COUNT}]}

    def answer(replies: list):
        return lambda one: ToolReturned(1) if isinstance(one.effect, CallTool) else reply(replies.pop(0))

    turns = walk(REACT, "p", answer([act("a", first), act("b", second), finish("x")]), options)
    assert "You took this very action before, in turn 1" in turns.asks[-1].text
    both = walk(REACT, "p", answer([act("a", first, second), finish("x")]), options)
    assert both.conclusion.document["tool_calls"] <= 1
    assert "The same as action 1 of this turn" in both.asks[-1].text


def test_a_line_that_is_no_call_is_observed_beside_those_that_are() -> None:
    pair = {"name": "pair", "parameters": {"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}}
    options = {"tools": [*TOOLS["tools"], pair]}
    text = "I take two Actions now.\nAction: search[A]\nAction: pair[a, b]\nAction: search[B [b]]"
    walked = walk(REACT, "p", in_order(text, ToolReturned("1"), ToolReturned("2"), finish("x")), options)
    assert walked.thoughts[0].text == "I take two Actions now."
    assert walked.performed[2].effect == CallTool("search", {"entity": "B [b]"})
    assert observations(walked) == [
        "1\nError: pair has no argument input; it is called pair(a: any, b: any)\n2"
    ]
    assert '{"tool":"pair","arguments":{"input":"a, b"}}' in walked.asks[-1].text


@pytest.mark.parametrize(
    "text",
    [
        "Thought: x\nAction: search",
        "<tool_call>search for A</tool_call>",
        {"thought": "x", "actions": [{"tool": "search", "entity": "A"}]},
    ],
)
def test_a_call_in_no_form_that_is_read_is_asked_for_again_and_is_never_the_answer(text: object) -> None:
    walked = walk(REACT, "p", in_order(text, finish("x")), TOOLS)
    assert "A call in it cannot be read; call a tool as you were told." in walked.asks[1].text
    assert (walked.conclusion.answer, walked.conclusion.document["tool_calls"]) == ("x", 0)
    stubborn = walk(REACT, "p", in_order(text, text, text), TOOLS)
    assert (stubborn.snapshot.status, stubborn.snapshot.error) == ("failed", "output_invalid")


def test_tools_go_along_where_they_are_taken_and_are_told_of_where_they_are_not() -> None:
    (ask,) = walk(REACT, "p", in_order(finish("x")), TOOLS).asks
    told, given = ask.spelled_out(), ask.spelled_out(takes_tools=True)
    assert (told.tools, given.form, told.form) == ((), None, None)
    assert [tool["name"] for tool in given.tools] == ["search", "lookup"]
    assert given.tools[0]["parameters"] == TEXT
    assert "- search(entity: string): Looks an entity up." in told.prompt
    assert told.text == given.text == ask.text
    assert told.prompt.endswith(TASK)


def test_more_actions_than_a_turn_may_have_are_asked_for_again() -> None:
    many = "\n".join(f"Action: search[{n}]" for n in range(17))
    walked = walk(REACT, "p", in_order(many, finish("x")), TOOLS)
    assert "Take at most 16 actions in a turn." in walked.asks[1].text


def test_a_model_that_never_ends_is_asked_for_its_answer_at_the_limit() -> None:
    def answer(one: Pending):
        if isinstance(one.effect, CallTool):
            return ToolReturned("nothing new")
        return reply({"answer": "my best guess"} if one.stage == "solution_formulation" else SEARCH)

    walked = walk(REACT, "p", answer, TOOLS | {"max_steps": 2})
    assert (walked.conclusion.answer, walked.conclusion.reason) == ("my best guess", "max_steps")
    assert walked.snapshot.rounds == 3
    assert "No turns are left" in walked.asks[-1].text
    assert "(Turns left before the answer is due: 1.)" in walked.asks[1].text


@pytest.mark.parametrize(
    "action", [SEARCH, {"thought": "t", "actions": [{"tool": "nowhere", "arguments": {}}]}]
)
def test_the_third_same_action_or_the_third_without_a_tool_leads_to_the_answer(
    action: dict[str, object],
) -> None:
    def answer(one: Pending):
        if isinstance(one.effect, CallTool):
            return ToolReturned("nothing new")
        return reply({"answer": "my best guess"} if one.stage == "solution_formulation" else action)

    walked = walk(REACT, "p", answer, TOOLS)
    assert (walked.conclusion.answer, walked.conclusion.reason) == ("my best guess", "repeated_actions")
    assert walked.snapshot.rounds == 4


def test_a_question_that_needs_no_tool_is_answered_in_one_call() -> None:
    walked = walk(REACT, "2 + 2?", in_order(finish(4)))
    assert walked.conclusion.answer == "4"
    assert len(walked.performed) == 1
    assert "There are no tools." in walked.asks[0].text


def test_an_answer_given_beside_actions_waits_for_their_results() -> None:
    hasty = SEARCH | {"answer": "hasty"}
    walked = walk(REACT, "p", in_order(hasty, ToolReturned("x"), finish("considered")), TOOLS)
    assert "Error: an answer counts only in a turn without actions" in observations(walked)[0]
    assert walked.conclusion.answer == "considered"


@pytest.mark.parametrize(
    "empty", [{"thought": "hm"}, {"thought": "hm", "answer": "  "}, {"thought": "", "actions": []}]
)
def test_a_turn_with_neither_action_nor_answer_is_asked_again(empty: dict) -> None:
    walked = walk(REACT, "p", in_order(empty, finish("x")))
    assert "Give at least one action, or the answer." in walked.asks[1].text
    assert walked.conclusion.answer == "x"


def test_a_result_of_ten_megabytes_is_cut_for_the_prompt() -> None:
    walked = walk(REACT, "p", in_order(SEARCH, ToolReturned("x" * 10_000_000), finish("y")), TOOLS)
    assert len(walked.asks[-1].text) < 5_000
    assert "characters in all" in walked.asks[-1].text


def test_an_answer_proved_wrong_is_an_observation_and_the_turns_go_on() -> None:
    walked = walk(
        REACT,
        "p",
        in_order(
            finish("5"), Verified("wrong", "It must be even."), finish("6"), Verified("right", answer="6!")
        ),
        {"verify": True},
    )
    assert observations(walked) == ['The answer "5" was checked and is wrong. It must be even.']
    assert walked.conclusion.answer == "6!"
    claimed = [one.effect for one in walked.performed if isinstance(one.effect, Verify)]
    assert claimed[0] == Verify("p", ("That settles it.", "5"), final=True)

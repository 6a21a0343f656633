import pytest

from reasonry.blocks.answers import MARKED
from reasonry.blocks.toolcard import ToolCard
from reasonry.core.effects import CallTool
from reasonry.core.events import Failed, ToolReturned, Verified
from reasonry.core.options import read_options
from reasonry.core.readings import EXTRACT
from reasonry.errors import UsageError
from reasonry.strategies.self_ask import ASKS_ON, SELF_ASK, SUB_ANSWER

from .walking import in_order, reply, stopped_after, walk

# The paper's example (figure 3).
QUESTION = "Who lived longer, Theodor Haecker or Harry Vaughan Watkins?"
FIRST = {"thought": "It rests on both ages.", "subQuestion": "How old was Theodor Haecker when he died?"}
SECOND = {"thought": "One age is missing.", "subQuestion": "How old was Harry Vaughan Watkins when he died?"}
LAST = {"thought": "69 is more than 65.", "subQuestion": None}
AGES = ["65 years old", "69 years old"]
ANSWER = {"answer": "Harry Vaughan Watkins"}
SEARCH = ToolCard(
    "search", "Finds.", {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
)


def age(index: int) -> dict:
    return {"subQuestionAnswer": AGES[index]}


def test_the_reply_that_needs_no_further_question_gives_the_answer_so_that_one_call_less_is_made() -> None:
    closing = LAST | ANSWER
    walked = walk(SELF_ASK, QUESTION, in_order(FIRST, age(0), SECOND, age(1), closing))
    assert (walked.conclusion.answer, walked.conclusion.reason) == ("Harry Vaughan Watkins", "success")
    assert (len(walked.asks), set(walked.edges)) == (5, set(SELF_ASK.edges))
    at_once = walk(
        SELF_ASK, "What is 2 + 2?", in_order({"thought": "A sum.", "subQuestion": "n/a", "answer": 4})
    )
    assert (at_once.conclusion.answer, len(at_once.asks)) == ("4", 1)
    early = walk(SELF_ASK, QUESTION, in_order(FIRST | {"answer": "hasty"}, age(0), closing))
    assert early.conclusion.answer == "Harry Vaughan Watkins"


def test_a_turn_may_give_the_answer_in_its_mark_and_a_text_without_one_is_asked_for_it() -> None:
    marked = "A sum of two numbers.\n<answer>4</answer>"
    walked = walk(SELF_ASK, "2 + 2?", in_order(marked))
    assert (walked.conclusion.answer, walked.thoughts[0].text) == ("4", "A sum of two numbers.")
    quoting = 'It needs no {"subQuestion": "…"} at all.\n<answer>4</answer>'
    walked = walk(SELF_ASK, "2 + 2?", in_order(quoting))
    assert (walked.conclusion.answer, len(walked.asks)) == ("4", 1)
    open_turn = (
        "Are follow up questions needed here: Yes.\nFollow up: How old was Theodor Haecker when he died?"
    )
    asked = walk(SELF_ASK, QUESTION, in_order(open_turn, FIRST, age(0), LAST | ANSWER))
    (turn,) = asked.asks[1].turns
    assert turn.objection == EXTRACT
    assert [hop["question"] for hop in asked.conclusion.document["sub_questions"]] == [FIRST["subQuestion"]]


def test_a_turn_reasons_and_ends_with_its_question_as_data() -> None:
    asks = f'It rests on both ages.\n\n{{"subQuestion": "{FIRST["subQuestion"]}"}}'
    answers = 'Known is {"age": 69}.\n<answer>Watkins</answer>'
    walked = walk(SELF_ASK, QUESTION, in_order(asks, age(0), answers))
    assert (walked.thoughts[0].text, walked.thoughts[0].data) == (
        "It rests on both ages.",
        {"subQuestion": FIRST["subQuestion"]},
    )
    assert (walked.conclusion.answer, len(walked.asks)) == ("Watkins", 3)


def test_a_sub_answer_and_the_answer_stand_in_their_marks() -> None:
    options = {"max_questions": 1, "verify": True}
    known = "Theodor Haecker was born in 1879 and died in 1945.\n<answer>65 years old</answer>"
    events = in_order(FIRST, known, SECOND, "69 > 65.\n<answer>Watkins</answer>", Verified("right"))
    walked = walk(SELF_ASK, QUESTION, events, options)
    assert walked.conclusion.document["sub_questions"][0]["answer"] == "65 years old"
    assert (walked.conclusion.answer, walked.conclusion.document["verification"]) == ("Watkins", "proved")
    assert [ask.mark for ask in walked.asks] == [ASKS_ON, SUB_ANSWER, ASKS_ON, MARKED]
    assert {ask.spelled_out().form is None for ask in walked.asks} == {True}
    assert [ask.wants_value for ask in walked.asks] == [True, False, True, True]


def test_sub_questions_are_answered_by_a_tool_where_one_is_named() -> None:
    options = {"tools": [{"name": "search", "parameters": SEARCH.parameters}], "tool": "search"}
    events = in_order(FIRST, ToolReturned(AGES[0]), SECOND, ToolReturned({"age": 69}), LAST, ANSWER)
    walked = walk(SELF_ASK, QUESTION, events, options)
    calls = [one.effect for one in walked.performed if isinstance(one.effect, CallTool)]
    assert calls[0] == CallTool("search", {"q": FIRST["subQuestion"]})
    assert walked.conclusion.document["sub_questions"][1]["answer"] == '{"age":69}'
    assert walked.snapshot.rounds == 4


def test_a_tool_that_fails_leaves_its_question_unanswered_and_the_run_goes_on() -> None:
    options = {"tools": [{"name": "search"}], "tool": "search"}
    walked = walk(
        SELF_ASK, QUESTION, in_order(FIRST, Failed("tool_error", "no network"), LAST, ANSWER), options
    )
    assert walked.snapshot.status == "done"
    assert walked.conclusion.document["sub_questions"][0]["answer"] == "(none: no network)"


def test_a_tool_that_does_not_exist_is_refused_naming_those_that_do() -> None:
    with pytest.raises(UsageError, match="there is no tool 'find'; the tools are: search"):
        read_options(SELF_ASK, {"tools": [{"name": "search"}], "tool": "find"})


def test_the_only_tool_there_is_need_not_be_named_but_one_of_several_must() -> None:
    walked = walk(
        SELF_ASK, QUESTION, in_order(FIRST, ToolReturned("x"), LAST, ANSWER), {"tools": [{"name": "look"}]}
    )
    assert walked.performed[1].effect == CallTool("look", {"query": FIRST["subQuestion"]})
    with pytest.raises(
        UsageError, match="say in option tool which one answers the sub-questions: search, look"
    ):
        read_options(SELF_ASK, {"tools": [{"name": "search"}, {"name": "look"}]})


def test_a_model_that_never_stops_asking_is_stopped_at_the_limit() -> None:
    def answer(one):
        replies = {"sub_question_answering": age(0), "solution_formulation": ANSWER}
        return reply(replies.get(one.stage, FIRST))

    walked = walk(SELF_ASK, QUESTION, answer, {"max_questions": 3})
    assert len(walked.conclusion.document["sub_questions"]) == 3
    assert (walked.snapshot.status, walked.conclusion.reason) == ("done", "max_questions")


def test_a_stop_gives_no_thought_as_the_answer() -> None:
    assert stopped_after(SELF_ASK, QUESTION, FIRST, age(0), SECOND).answer is None

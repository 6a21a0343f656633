from reasonry.blocks.answers import MARKED
from reasonry.strategies.scratchpad import CALCULATE, EXTRACT, INITIALIZE, SCRATCHPAD, STATE

from .walking import in_order, reply, stopped_after, walk

# The paper's first example (figure 2): addition with a carry, digit by digit.
ADDITION = "29 + 57"
START = {
    "stateVariables": {"rest": "29 + 57", "sum": "", "C": 0},
    "rule": "Add the last digits and the carry C.",
}
LINES = [
    {
        "calculation": "9 + 7 = 16: 6, C 1",
        "stateVariables": {"rest": "2 + 5", "sum": "6", "C": 1},
        "finished": False,
    },
    {"calculation": "2 + 5 + 1 = 8", "stateVariables": {"rest": "", "sum": "86", "C": 0}, "finished": True},
]
RESULT = "<answer>86</answer>"


def test_the_state_after_each_operation_is_recorded_as_data() -> None:
    walked = walk(SCRATCHPAD, ADDITION, in_order(START, *LINES, RESULT))
    tracked = [one for one in walked.thoughts if one.stage == "state_tracking"]
    assert [one.data["stateVariables"]["sum"] for one in tracked] == ["6", "86"]
    assert tracked[0].text == 'rest = "2 + 5", sum = "6", C = 1'


def test_a_variable_that_a_reply_leaves_out_keeps_its_value() -> None:
    line = {"calculation": "9 + 7 = 16", "stateVariables": {"C": 1}, "finished": True}
    walked = walk(SCRATCHPAD, ADDITION, in_order(START, line, RESULT))
    assert walked.conclusion.document["state_variables"] == {"rest": "29 + 57", "sum": "", "C": 1}


def test_a_computation_that_never_ends_is_cut_at_max_steps() -> None:
    line = {"calculation": "n + 1", "stateVariables": {"n": 1}, "finished": False}

    def answer(one):
        replies = {
            "scratchpad_initialization": START,
            "iterative_calculation": line,
            "result_extraction": RESULT,
        }
        return reply(replies[one.stage])

    walked = walk(SCRATCHPAD, ADDITION, answer, {"max_steps": 5})
    assert [one.stage for one in walked.performed].count("iterative_calculation") == 5
    assert (walked.snapshot.status, walked.conclusion.reason) == ("done", "max_steps")


def test_a_stop_gives_no_variables_as_the_answer() -> None:
    stopped = stopped_after(SCRATCHPAD, ADDITION, START, LINES[0])
    assert stopped.answer is None
    assert stopped.document["state_variables"] == {"rest": "2 + 5", "sum": "6", "C": 1}


def test_a_reply_may_hold_many_lines_and_the_result() -> None:
    whole = {
        "calculation": ["9 + 7 = 16: 6, C 1", "2 + 5 + 1 = 8: 8", "that is 86"],
        "stateVariables": {"rest": "", "sum": "86", "C": 0},
        "finished": True,
        "answer": 86,
    }
    walked = walk(SCRATCHPAD, ADDITION, in_order(START, whole))
    assert (walked.conclusion.answer, walked.conclusion.document["steps"]) == ("86", 3)
    assert [ask.facts["kind"] for ask in walked.asks] == ["initialize", "calculate"]
    assert [ask.task for ask in walked.asks] == [INITIALIZE, CALCULATE]
    assert [ask.mark for ask in walked.asks] == ["", STATE]
    assert [ask.spelled_out().form is None for ask in walked.asks] == [False, True]


def test_lines_are_free_text_with_the_state_as_data_and_the_result_in_its_mark() -> None:
    first = '9 + 7 = 16: 6, C 1\n\n```json\n{"rest": "2 + 5", "sum": "6", "C": 1}\n```'
    last = '2 + 5 + 1 = 8\n{"rest": "", "sum": "86"}\n<answer>86</answer>'
    walked = walk(SCRATCHPAD, ADDITION, in_order(START, first, last))
    assert (walked.conclusion.answer, len(walked.asks)) == ("86", 3)
    assert walked.conclusion.document["state_variables"] == {"rest": "", "sum": "86", "C": 1}
    said = [one.text for one in walked.thoughts if one.stage == "iterative_calculation"]
    assert said == ["9 + 7 = 16: 6, C 1", "2 + 5 + 1 = 8"]


def test_the_only_value_of_the_state_is_the_result() -> None:
    line = {"calculation": "29 + 57 = 86", "stateVariables": {"sum": 86}, "finished": True}
    walked = walk(SCRATCHPAD, ADDITION, in_order({**START, "stateVariables": {"sum": 0}}, line))
    assert walked.conclusion.answer == "86"
    assert len(walked.asks) == 2


def test_a_result_that_is_said_too_early_is_none() -> None:
    early = LINES[0] | {"answer": "8"}
    walked = walk(SCRATCHPAD, ADDITION, in_order(START, early, LINES[1], RESULT))
    assert walked.conclusion.answer == "86"
    assert (walked.asks[-1].mark, walked.asks[-1].task) == (MARKED, EXTRACT)


def test_a_false_line_is_asked_for_again_with_what_is_true() -> None:
    slip = {"calculation": "4736 * 8 = 37788", "stateVariables": {"part": 37788}, "finished": False}
    right = {"calculation": "4736 * 8 = 37888", "stateVariables": {"part": 37888}, "finished": True}
    start = {"stateVariables": {"part": 0}}
    walked = walk(SCRATCHPAD, "4736 * 8", in_order(start, slip, right))
    assert (
        walked.asks[2]
        .turns[-1]
        .objection.startswith("4736 × 8 is 37888, not 37788. Answer the question again")
    )
    assert walked.conclusion.answer == "37888"


def test_where_the_result_cannot_be_read_the_variables_are_given_unchecked() -> None:
    walked = walk(SCRATCHPAD, ADDITION, in_order(START, *LINES, "", "", ""))
    assert (walked.snapshot.status, walked.conclusion.answer) == ("done", 'rest = "", sum = "86", C = 0')
    assert walked.conclusion.document["verification"] == "unchecked"


def test_a_variable_without_a_value_stays_in_the_prompt_and_out_of_the_thoughts() -> None:
    start = {"stateVariables": {"sum": 1, "carry": None}, "rule": "Add."}
    line = {"calculation": "1 + 1 = 2", "stateVariables": {"sum": 2}, "finished": True, "answer": "2"}
    walked = walk(SCRATCHPAD, ADDITION, in_order(start, line))
    assert "carry = null" in walked.asks[1].prompt
    texts = [one.text for one in walked.thoughts]
    assert "Scratchpad: sum = 1\nRule: Add." in texts
    assert "sum = 2" in texts
    assert not any("null" in text for text in texts)

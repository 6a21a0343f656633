"""Recursive language model: programs over a long input, their questions asked side by side, and limits that hold."""

from typing import Any

import pytest

from reasonry import solve
from reasonry.core.budget import Budget
from reasonry.core.effects import Ask
from reasonry.strategies.recursive import FORMULATE, OR_ANSWER

from .walking import Mind

pytestmark = pytest.mark.anyio

LETTERS = [f"Letter {n}: {'I am furious.' if n % 3 == 0 else 'All is well.'}" for n in range(1, 10)]
CONTEXT = "\n".join(LETTERS)
SEARCH = """letters = context.split("\\n")
answers = ask_all("Is the writer angry?", letters)
final(sum(1 for answer in answers if answer == "yes"))"""


class Reader(Mind):
    """Writes these programs, and reads the pieces it is asked about."""

    def __init__(self, *programs: str) -> None:
        super().__init__()
        self.programs, self.pieces, self.prompts = list(programs), list[str](), list[str]()

    def reply(self, ask: Ask) -> Any:
        if ask.facts["kind"] == "sub_question":
            self.pieces.append(ask.facts["text"])
            return "yes" if "furious" in ask.facts["text"] else "no"
        self.prompts.append(ask.prompt)
        return self.programs.pop(0) if self.programs else {"reasoning": "-", "answer": "unknown"}


async def run(model: Reader, budget: Budget | None = None, **options: Any) -> Any:
    return await solve(
        "How many writers are angry?",
        strategy="recursive",
        model=model,
        store="memory",
        options={"context": CONTEXT, **options},
        budget=budget or Budget(),
    )


async def test_a_program_asks_about_pieces_side_by_side_and_ends_with_the_answer() -> None:
    model = Reader(SEARCH)
    result = await run(model)
    assert (result.answer, result.usage.calls) == ("3", 1 + len(LETTERS))
    assert model.pieces == LETTERS
    assert result.details["questions_asked"] == len(LETTERS)


async def test_no_call_reads_the_input_whole() -> None:
    model = Reader("print(context[:20])", SEARCH)
    await run(model)
    assert "It printed:\nLetter 1: All is wel" in model.prompts[1]
    assert all(CONTEXT not in text for text in [*model.prompts, *model.pieces])


async def test_one_question_may_rest_on_the_answer_to_another() -> None:
    model = Reader(
        """first = ask("Is the writer angry?", context[:23])
second = ask("Is the writer angry, and not " + first + "?", "Letter 0: furious, and in no letter")
final(first + " " + second)"""
    )
    result = await run(model)
    assert (result.answer, result.usage.calls) == ("no yes", 3)


async def test_an_error_is_shown_to_the_writer_of_the_next_program() -> None:
    model = Reader("print(1)\n1 / 0", SEARCH)
    assert (await run(model)).answer == "3"
    assert "ZeroDivisionError" in model.prompts[1]


async def test_beyond_the_limits_nothing_is_asked_and_what_was_printed_is_answered_from() -> None:
    model = Reader(SEARCH, "print(len(context))")
    result = await run(model, questions=4, programs=2)
    assert (result.answer, result.details["questions_asked"]) == ("1", 4)
    model = Reader("print(6 * 7)", "print(7 * 7)")
    result = await run(model, programs=2)
    assert result.answer == "unknown"
    assert FORMULATE in model.prompts[-1]


async def test_the_budget_of_the_run_holds_for_the_questions_of_its_programs() -> None:
    model = Reader(SEARCH)
    result = await run(model, Budget(calls=5))
    assert (result.outcome, result.termination.reason) == ("answered", "max_calls")
    assert (result.usage.calls, len(model.pieces)) == (5, 3), "the last call is for the answer"


async def test_without_an_input_of_its_own_the_problem_is_the_input() -> None:
    model = Reader("final(len(context))")
    problem = "How long is this?\n" + "x" * 9_000
    result = await solve(problem, strategy="rlm", model=model, store="memory")
    assert result.answer == str(len(problem))
    assert len(model.prompts[0]) < 5_000


async def test_what_was_printed_may_settle_the_answer_without_another_program() -> None:
    model = Reader("print(1)\nprint(2)", "Both lines are there.\n<answer>3</answer>")
    result = await run(model)
    assert (result.answer, result.usage.calls) == ("3", 2)
    assert "It printed:\n1\n2\n" in model.prompts[1]
    assert OR_ANSWER not in model.prompts[0]
    assert model.prompts[1].endswith(OR_ANSWER)


async def test_the_problem_is_shown_more_briefly_once_a_program_has_looked_at_it() -> None:
    model = Reader("print(1)", "final(2)")
    await solve("How long is this?\n" + "x" * 9_000, strategy="rlm", model=model, store="memory")
    first, second = model.prompts
    assert first.count("x") > 3_900
    assert second.count("x") < 1_200


async def test_without_an_answer_of_its_own_the_last_line_printed_is_the_best_there_is() -> None:
    class Silent(Reader):
        def reply(self, ask: Ask) -> Any:
            given = str(super().reply(ask))
            return given if "print" in given else ""

    result = await run(Silent("print('The total:')\nprint(42)"), programs=1)
    assert (result.answer, result.details["verification"]) == ("42", "unchecked")
    result = await run(Silent())
    assert (result.answer, result.termination.code) == (None, "output_invalid")


async def test_if_no_further_program_can_be_read_what_was_printed_is_answered_from() -> None:
    model = Reader("print(42)", "I see.", "I see.", "It printed 42.\n<answer>42</answer>")
    result = await run(model)
    assert (result.answer, result.usage.calls) == ("42", 4)
    assert FORMULATE in model.prompts[-1]

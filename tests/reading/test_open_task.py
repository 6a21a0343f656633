"""Open tasks: which problems ask for a text, and that every strategy gives the text as it was written."""

from __future__ import annotations

import json

import msgspec
import pytest
from msgspec import Struct

from reasonry.core.effects import Ask
from reasonry.core.events import Answered, ToolReturned
from reasonry.core.machine import advance, begin, open_effects
from reasonry.reading.open_task import is_open_task
from reasonry.strategies import STRATEGIES

from .corpus import TOOLS
from .test_prose import OPEN as PROBLEM
from .test_prose import TEXTS

OPEN = """
How can you determine whether a mushroom is safe to eat?
Write an essay of about 400 words on why small towns lose their shops.
Please write a short e-mail to my landlord asking for the heating to be repaired.
Write a Python function that returns the longest run of equal characters in a string.
I run a shop. Can you draft a polite letter to a supplier who is late?
Give me an SQL query that lists each customer with the number of orders in 2023.
Give me a simple recipe for lentil soup for four.
Make a table comparing AA, AAA and 9 V batteries.
Translate into German: "The meeting has been moved to Thursday."
Plan a weekend in Lisbon for two people who like food and walking.
Explain to a ten-year-old why the sky is blue.
Prove that the sum of two odd integers is even.
Show the change as a diff: in config.ini set timeout from 30 to 60.
My kitchen smells odd after I used the gas oven. What should I do?
How do I change a bicycle inner tube?
How should I reply to a colleague who always sends me work at 5 pm?
Why does bread go stale faster in the fridge?
Compare Go and Rust for a beginner who wants to write a web service. Recommend one.
(a) Define inflation. (b) Name two causes.
Schreibe eine kurze Kündigung für mein Fitnessstudio.
Escribe un poema de seis versos sobre el mar.
Écris une lettre de motivation pour un stage.
Scrivi una ricetta breve per la bruschetta al pomodoro.
Recipe for banana bread without sugar.
Need a JS function debounce(fn, ms) that keeps the arguments.
Tables customers(id, name) and orders(id, customer_id). SQL for PostgreSQL: the customers without an order
linux command: delete all log files older than 30 days
Convert to JSON: Ada Berg, born 1984, speaks German and Danish.
Make a 4-week plan for learning touch typing.
Think about the role of failure in science and write me an essay.
Ten name ideas for a small bakery, please.
""".strip().splitlines()

VALUE = """
A tank of 90 l loses 4 l a day. Can you determine how much is left after a week?
What is 17 times 3?
Write 0.75 as a fraction.
Write down the number of days in a leap year.
A code has four digits: 0, then 4, then 1, then 2. Write it down.
Use 4, 7, 8 and 8 to make 24. Use each number exactly once and + - * / and parentheses.
Make 24 from 3, 3, 8 and 8.
Plan A costs 15 euros a month, plan B costs 22 euros flat. Which is cheaper at 180 minutes?
Who wrote Middlemarch?
Is 91 a prime number?
How many seconds are there in a year of 365 days? Give it as a number.
Give the answer in centimetres: how long is half a metre?
What is the difference between 9 and 4?
A train covers 150 km in 2.5 hours. How long does it take for 210 km? Explain your reasoning.
Solve for x: 3x - 7 = 20.
Compare 3/4 and 5/8. Which is larger?
Wie heißt die Hauptstadt von Spanien?
17 乘以 3 等于多少?
Write the first five terms of the sequence that begins with 2 and doubles.
Sort these numbers and write all of them in one line: 3, 1, 2
Recipe for 4 people: 300 g of flour. How much flour do 6 people need?
The function that doubles a number is applied to 5, and then to the result.
""".strip().splitlines()


class Options(Struct):
    verify: bool = False


@pytest.mark.parametrize("problem", OPEN)
def test_a_problem_that_asks_for_a_text_says_so(problem: str) -> None:
    assert is_open_task(problem, Options())


@pytest.mark.parametrize("problem", VALUE)
def test_a_problem_that_may_ask_for_a_value_is_no_open_task(problem: str) -> None:
    assert not is_open_task(problem, Options())


def test_an_answer_that_a_verifier_looks_at_is_a_value() -> None:
    assert not is_open_task("Write a Python function that sorts a list.", Options(verify=True))


WRITES = {
    "chain_of_thought": "sequential_reasoning",
    "step_back": "step_by_step_solution",
    "tree_of_thoughts": "continuation_decision",
    "planned_thinking": "think",
    "react": "initial_reasoning",
    "rewoo": "solving_phase",
    "analysis": "synthesis",
    "self_consistency": "reasoning_path_execution",
}
"""The stages in which the text is written; the others are answered with their examples."""


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("name", WRITES)
def test_every_strategy_gives_the_text_of_an_open_task_as_it_was_written(name: str, text: str) -> None:
    strategy = STRATEGIES[name]
    has_tools = "tools" in strategy.options.__struct_fields__
    given = {"tools": [msgspec.to_builtins(TOOLS["search"])]} if has_tools else {}
    options = msgspec.convert(given, strategy.options)
    step = begin(strategy, PROBLEM, options, strategies=STRATEGIES)
    while waiting := open_effects(step.snapshot):
        stage = strategy.by_name[waiting[0].stage]
        reply = text if stage.name == WRITES[name] else json.dumps(dict(stage.example or {}))
        event = Answered(reply) if isinstance(waiting[0].effect, Ask) else ToolReturned("a passage")
        step = advance(strategy, step.snapshot, waiting[0].id, event, strategies=STRATEGIES)
    assert step.snapshot.conclusion is not None
    assert step.snapshot.conclusion.answer == text

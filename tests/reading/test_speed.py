"""The processor time that reading takes grows with the length of a reply, whatever the reply repeats."""

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from msgspec import Struct

from reasonry import text as texts
from reasonry.blocks.actions import read_turn
from reasonry.blocks.answers import CheckReply, ReasonedAnswer
from reasonry.blocks.toolcard import ToolCard
from reasonry.puzzles import equations, steps
from reasonry.puzzles import reading as puzzles
from reasonry.puzzles.term import Puzzle
from reasonry.reading import candidates, coerce, json_in_text, mark, numbers, thinking, verdicts, vote
from reasonry.reading.form import no_reply, read_form
from reasonry.reading.words import VERDICTS

from ..servers.game24 import check

PUZZLE = Puzzle((Fraction(4), Fraction(6)), Fraction(24))
SIZE = 32_000
MOST_RATIO = 2.5
"""Of the time for twice the length to the time for the length."""
MOST_SECONDS = 2.0
TOO_SHORT = 0.02
"""Seconds; a shorter time says nothing about a ratio."""
TRIES = 5

# fmt: off
SHAPES = [
    '```\n', '```python\n', '```python\n((((\n```\n', '```json\n{"', '```{', '~~~\n', '`', '`a` ', '``',
    'Answer: ', 'Answer:\n', 'Answer: 4\n', 'FINAL ANSWER: ', '**Answer:** ', 'The answer is ', '####',
    '#### 4\n', '<answer>', '</answer>', '<answer></answer>', '<answer>4</answer>\n', '"<answer>"',
    '`<answer>', '<', '<answer', '<think>', '</think>', '<think>a</think>\n', '[THINK]', '◁think▷',
    '<|channel|>final<|message|>', '<tool_call>', '(', ')', '[', ']', '{', '}', '{}', '{"', '{"a":',
    '{"a": 1} ', '{"answer": 4} ', '[1,', "{'a': ", '{- 1}', '"', "'", '"a" ', "'a' ", '“', '„', '\\', '\\"',
    '\\boxed{', '\\boxed{4} ', '\\frac{1}{', '\\text{', '$', '$1 ', '*', '**', '**a** ', '__', '-', '- a\n',
    '1. a\n', '1: 0.7\n', '1', '1 ', '1,', '1/', '1.', '.', ':', '#', 'a', 'a ', 'a\n', '\n', ' ', 'a: b\n',
    '- a: ', '&a ', '|', '!', '%', '½', '一', '\xa0', '\ud800', '20 July ',
]
CALLS = ['<tool_call>', '<function=f><parameter=a>', '[TOOL_CALLS]', 'a', 'Action: a[', '<arg_key>', 'a[ARGS]']
VERDICTS_LIKE = ['x {"', "A: 9, ", "A: 9\n", '"{', "`", "```\n", "[[A]] ", "> A: 9\n", "verdict ", "{", "* "]
PUZZLES_LIKE = ['(', '1/', '9', '= ', '1-1=', 'left: ', '1 + ', '3 * 8 = 25 apples and ', 'a1=', '1, ', 'make ']
# fmt: on
SHAPES_OF = {
    "read_turn": CALLS,
    "echo_in reasons": ["a ", "1 "],
    **dict.fromkeys(("read_scores", "read_choice"), VERDICTS_LIKE),
    **dict.fromkeys(("false_equations", "follow", "read_puzzle", "check"), PUZZLES_LIKE),
}
"""The shapes for functions that read little else."""


class Thoughts(Struct):
    thoughts: list[str]


class Scores(Struct):
    scores: dict[str, float]
    best: int = 0


FUNCTIONS: dict[str, Callable[[str], Any]] = {
    **{
        form.__name__: lambda text, form=form: read_form(text, form)
        for form in (CheckReply, Thoughts, Scores)
    },
    "an answer": lambda text: read_form(text, ReasonedAnswer),
    "an answer in its mark": lambda text: read_form(f"<answer>{text}</answer>", ReasonedAnswer),
    "an answer given again": lambda text: read_form([text, "<answer>4</answer>"], ReasonedAnswer),
    "no_reply": lambda text: no_reply(text, "What is it?"),
    "without_thinking": thinking.without_thinking,
    "thinking before it": lambda text: thinking.without_thinking(f"<think>{text}</think>{text}"),
    "balances": thinking.balances,
    "echo_in": lambda text: thinking.echo_in({"answer": text}, text, {"properties": {"answer": {}}}, text),
    "echo_in reasons": lambda text: thinking.echo_in(
        [{"reason": f"{word} b"} for word in text.split()], "q", {}, "p"
    ),
    "repeats_itself": texts.repeats_itself,
    "closes_mark": mark.closes_mark,
    "calls_a_tool": mark.calls_a_tool,
    "find_ending": mark.find_ending,
    "tidy": lambda text: vote.tidy(text),
    "tally": lambda text: vote.tally([text, f"{text}x", "4"]),
    "numbers_in": lambda text: numbers.numbers_in(numbers.without_latex(text)),
    "read_scaled": numbers.read_scaled,
    "read_quantity": numbers.read_quantity,
    "read_date": numbers.read_date,
    "fit": lambda text: coerce.fit({"reason": text, "correct": text, "answer": text}, CheckReply),
    "fit a list": lambda text: coerce.fit({"thoughts": text}, Thoughts),
    "fit numbers": lambda text: coerce.fit({"best": text, "scores": text}, Scores),
    "json_value": json_in_text.json_value,
    "without_surrogates": texts.without_surrogates,
    "parse_thoughts": candidates.parse_thoughts,
    "parse_scores": lambda text: candidates.parse_scores(text, ["a", "b"]),
    "did_you_mean": lambda given: texts.did_you_mean(given, ["abc"]),
    "plain_name": texts.plain_name,
    "read_turn": lambda text: read_turn((ToolCard("f", "", {"properties": {"a": {}}}),), [text]),
    "read_scores": lambda text: verdicts.read_scores([text], [("A", ""), ("B", "")], (1, 10)),
    "false_equations": lambda text: equations.false_equations(f"{text} = 3"),
    "follow": lambda text: [*steps.follow(PUZZLE, [text]).left, *steps.expressions(text)],
    "read_puzzle": lambda text: (puzzles.read_puzzle(text[:600]), puzzles.read_numbers(text)),
    "check": lambda text: check(text, PUZZLE),
    "read_choice": lambda text: verdicts.read_choice(text, VERDICTS),
}


def seconds(work: Callable[[str], Any], text: str) -> float:
    for cached in (vote.tidy, vote.normalise, texts.plain_name):
        cached.cache_clear()
    begun = time.process_time()
    work(text)
    return time.process_time() - begun


@pytest.mark.parametrize("name", FUNCTIONS)
def test_reading_takes_time_in_proportion_to_the_length(name: str) -> None:
    work, slow = FUNCTIONS[name], list[str]()
    assert len(set(SHAPES)) == len(SHAPES) >= 76
    for shape in SHAPES_OF.get(name, SHAPES):
        text = (shape * (SIZE // len(shape) + 1))[:SIZE]
        once = seconds(work, text)
        if once < TOO_SHORT / 4:
            # Also a time that grows with the square of the length is too short then.
            continue
        longer = seconds(work, text + text)
        if longer > TOO_SHORT and longer > MOST_RATIO * once:
            # In turns, so that both meet the quiet moments of a busy machine.
            tries = [(seconds(work, text), seconds(work, text + text)) for _ in range(TRIES)]
            once, longer = map(min, zip(*tries, strict=True))
            if longer > TOO_SHORT and longer > MOST_RATIO * once:
                slow.append(f"{shape!r}: {once:.3f} s, and {longer:.3f} s for twice as much")
        if longer > MOST_SECONDS:
            slow.append(f"{shape!r}: {longer:.3f} s")
    assert not slow, "\n".join(slow)

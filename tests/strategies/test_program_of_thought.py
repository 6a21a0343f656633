"""Program of thought: programs run in the sandbox, corrected until they run, held to examples, and counted."""

from pathlib import Path
from typing import Any

import pytest

from reasonry import solve
from reasonry.blocks.programs import output_of, program_in
from reasonry.core.events import Failed
from reasonry.models.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


def program(text: str) -> dict[str, Any]:
    return {"stage": "*", "reply": text}


async def run(*programs: str, **options: Any) -> Any:
    model = ScriptedModel.of(*map(program, programs))
    return await solve(
        "How many eggs?", strategy="program_of_thought", model=model, store="memory", options=options
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("print(1 + 1)", "print(1 + 1)"),
        ("x = 2\nprint(x)", "x = 2\nprint(x)"),
        ("Here it is:\n```python\nx = 2\n```\nDone.", "x = 2"),
        ("```\nx = 2\n```\n```py\ny = 3\nprint(y)\n```", "y = 3\nprint(y)"),
        ("```bash\nls\n```\n```python\nx = 2\n```\nRun it:\n```bash\npython3 x.py\n```", "x = 2"),
        ("1. So:\n\n    ``` Python\n    if 1:\n        x = 2\n", "if 1:\n    x = 2"),
        ("```bash\nls\n```\n```json\n[1]\n```", None),
        ("The answer is 4.", None),
        ("x = = 2", None),
        ("42", None),
        ("```\n```\nprint(2)\n```", None),
        ('{"program": "print(2)"}', None),
    ],
)
def test_a_program_is_found_in_a_fence_or_alone(text: str, expected: str | None) -> None:
    assert program_in(text) == expected


async def test_an_error_goes_back_with_the_program_until_it_runs() -> None:
    result = await run("x = 1 / 0\nprint(x)", "x = 9 * 2\nprint(x)")
    assert (result.answer, result.usage.calls, result.details["rounds"]) == ("18", 2, 2)
    assert "ZeroDivisionError" in result.details["drafts"][0]["dropped"]["text"]


async def test_the_last_line_that_a_program_prints_is_the_answer() -> None:
    result = await run("for day in (1, 2):\n    print('day', day)\nprint(9 * 2)")
    assert (result.answer, result.usage.calls) == ("18", 1)


async def test_after_the_last_round_the_error_is_the_reason() -> None:
    result = await run(*["x = 1 / 0"] * 2, rounds=2)
    assert (result.answer, result.usage.calls) == (None, 2)
    assert "ZeroDivisionError" in result.termination.detail


async def test_only_the_programs_of_the_last_round_are_repaired() -> None:
    none, fails, right = "It is 18.", "x = 1 / 0\nprint(x)", "x = 9 * 2\nprint(x)"
    # The first program cannot be read, at both tries; the other two fail, and so do their repairs.
    result = await run(none, fails, fails, none, fails, fails, right, right, programs=3, rounds=3)
    assert (result.answer, len(result.details["drafts"])) == ("18", 3 + 2 + 2)


async def test_programs_vote_by_their_outputs() -> None:
    result = await run("x = 9 * 2\nprint(x)", "x = 9 + 4\nprint(x)", "x = 2 * 9\nprint(x)", programs=3)
    assert (result.answer, result.usage.calls) == ("18", 3)
    assert result.details["votes"] == [{"answer": "18", "count": 2}, {"answer": "13", "count": 1}]


async def test_a_program_has_to_reproduce_its_examples_before_its_answer_counts() -> None:
    wrong = "def solve(given):\n    return given + 1\nprint(solve(4))"
    right = "def solve(given):\n    return given * 2\nprint(solve(4))"
    examples = [{"input": 1, "output": 2}, {"input": 3, "output": 6}]
    result = await run(wrong, right, examples=examples)
    assert (result.answer, result.usage.calls) == ("8", 2)
    assert "solve(3) returned 4, not 6" in result.details["drafts"][0]["dropped"]["text"]


async def test_a_sandbox_that_cannot_start_is_no_error_of_the_program_and_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    binary = tmp_path / "monty"
    binary.write_text("#!/bin/sh\nexit 3\n")
    binary.chmod(0o755)
    monkeypatch.setenv("MONTY_BIN", str(binary))
    result = await run("```python\nprint(6 * 7)\n```")
    assert (result.outcome, result.termination.code) == ("error", "sandbox_unavailable")
    assert any("1 of the programs could not be run" in warning for warning in result.warnings)


def test_a_program_that_never_ran_has_an_error_even_if_its_failure_says_nothing() -> None:
    assert output_of(Failed("cancelled", "")).error

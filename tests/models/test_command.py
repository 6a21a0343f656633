"""A program as a model: text or JSON, limits, no key of ours, and nothing run that only a record names."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from reasonry import solve
from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.core.effects import Turn
from reasonry.engine.ports import BrokenReplyError
from reasonry.errors import ModelError, UsageError
from reasonry.models.choose import open_model
from reasonry.models.command import CommandModel
from tests.forked import forking_python

from ..engine.running import accept
from .asking import question

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="commands of a POSIX shell"),
]

ENVIRON = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "OPENAI_API_KEY": "sk-secret", "REASONRY_MODEL": "x"}


def command(code: str) -> str:
    return f"{shlex.quote(forking_python())} -c {shlex.quote(code)}"


async def reply(code: str, timeout_s: float = 20.0) -> str:
    asked = question("What is 6 times 7?", timeout_s, system="Answer.")
    return (await CommandModel(command(code), ENVIRON).answer(asked)).text


async def test_the_question_comes_on_standard_input_and_the_reply_is_what_it_prints() -> None:
    assert await reply("import sys; print(sys.stdin.read().upper())") == "ANSWER.\n\nWHAT IS 6 TIMES 7?"


async def test_turns_come_on_standard_input_as_plain_text_without_labels() -> None:
    asked = question("What is 6 times 7?", system="You count.", turns=(Turn("24", "That is wrong."),))
    echo = CommandModel(command("import sys; print(sys.stdin.read())"), ENVIRON)
    answered = await echo.answer(asked)
    assert answered.text == "You count.\n\nWhat is 6 times 7?\n\n24\n\nThat is wrong."


async def test_it_runs_in_an_empty_folder_without_a_key_in_its_environment() -> None:
    told = json.loads(
        await reply("import os, json; print(json.dumps([os.listdir(), sorted(os.environ), os.getcwd()]))")
    )
    assert told[0] == []
    assert {"OPENAI_API_KEY", "REASONRY_MODEL"}.isdisjoint(told[1])
    assert {"PATH", "HOME"} <= set(told[1])
    assert not Path(told[2]).exists()


async def test_json_of_an_agent_is_opened_and_its_usage_taken() -> None:
    document = {
        "type": "result",
        "is_error": False,
        "result": "42",
        "usage": {"input_tokens": 3, "cache_read_input_tokens": 9, "output_tokens": 1},
        "total_cost_usd": 0.01,
    }
    answered = await CommandModel(command(f"print({json.dumps(json.dumps(document))})"), ENVIRON).answer(
        question()
    )
    assert (answered.text, answered.usage.input_tokens, answered.usage.output_tokens) == ("42", 12, 1)
    assert answered.usage.usd == 0.01
    assert answered.usage.estimated_tokens == 0


async def test_json_that_is_the_reply_itself_stays_as_it_is() -> None:
    assert await reply("""print('{"result": "42"}')""") == '{"result": "42"}'


@pytest.mark.parametrize(
    ("code", "expected", "retryable", "why"),
    [
        (
            "import sys; print('not logged in', file=sys.stderr); sys.exit(3)",
            "provider_error",
            False,
            "not logged in",
        ),
        (
            "import sys; print('Rate limit reached', file=sys.stderr); sys.exit(1)",
            "rate_limited",
            True,
            "Rate limit",
        ),
        ("import time; time.sleep(30)", "provider_timeout", True, "did not reply"),
        (
            """print('{"type": "result", "is_error": true, "result": "no credit"}')""",
            "provider_error",
            False,
            "no credit",
        ),
    ],
)
async def test_a_program_that_fails_is_a_model_error_with_its_last_line(
    code: str, expected: str, retryable: bool, why: str
) -> None:
    with pytest.raises(ModelError, match=why) as caught:
        await reply(code, 1.0 if "sleep" in code else 20.0)
    assert (caught.value.code, caught.value.retryable) == (expected, retryable)


@pytest.mark.parametrize(
    "code", ["pass", "print('x' * 5_000_000)", "print('x' * 5_000_000, flush=True); raise SystemExit(1)"]
)
async def test_an_empty_reply_and_one_without_end_are_none(code: str) -> None:
    with pytest.raises(BrokenReplyError):
        await reply(code)


def test_a_program_that_is_not_there_is_refused_when_it_is_named() -> None:
    for spec, why in (
        ("command:no-such-program-x -p", "no program"),
        ("command:", "is written command:PROGRAM"),
        ('command:"a', "read"),
    ):
        with pytest.raises(UsageError, match=why):
            open_model(spec, ENVIRON)


async def test_a_run_is_solved_by_a_program() -> None:
    code = """print('{"steps": ["6 * 7 = 42"], "answer": "42"}')"""
    result = await solve(
        "6 times 7?", strategy="chain_of_thought", model=f"command:{command(code)}", store="memory"
    )
    assert (result.answer, result.usage.calls) == ("42", 1)
    assert result.usage.estimated_tokens > 0


async def test_a_program_that_only_a_record_names_is_not_run(folder: Path) -> None:
    touched = folder / "touched"
    code = f"import pathlib; pathlib.Path({str(touched)!r}).touch()"
    spec = f"command:{command(code)}"
    store = str(folder / "store.db")
    async with App(store, environ={}) as app:
        order, _ = app.order(
            RunRequest(problem="p", strategy="chain_of_thought", participants=Participants(model=spec))
        )
        run_id = await accept(app.engine, order)
    async with App(store, environ={}) as app:
        with pytest.raises(UsageError, match="only if you name it"):
            await app.resume(run_id)
    assert not touched.exists()
    async with App(store, environ={"REASONRY_MODELS": spec}) as app:
        await app.resume(run_id)
    assert touched.exists()

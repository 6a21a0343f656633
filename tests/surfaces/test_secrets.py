"""A provider gives the user's key away in every reply it can; nothing of it is shown, sent, logged or stored."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.app.runs import coach_answer, coach_start
from reasonry.core.budget import Budget
from reasonry.engine.policy import Policy
from reasonry.errors import ModelError, UsageError
from reasonry.surfaces.present import error_document, masked_output
from reasonry.system.masking import SECRETS
from tests.engine.running import order_and_solve
from tests.in_process import run
from tests.servers import Fault, ModelServer
from tests.servers.echoes import written

from .mcp.raw import Raw, thought

KEY = "sk-CANARY/0123456789+abcdef"
WAYS = written(KEY)
ONCE = Policy(max_attempts=2, backoff_s=0.01)


def found_in(folder: Path) -> list[str]:
    """The ways of writing the key that are found in any file, as they are or inside JSON."""
    stored = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file()).decode("latin-1")
    return found_of(stored)


def found_of(text: str) -> list[str]:
    return [way for way in WAYS if way in text or json.dumps(way)[1:-1] in text]


@pytest.mark.anyio
async def test_nothing_of_the_key_that_a_tool_or_a_verifier_gives_away_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SERVICE_API_KEY", KEY)

    def leak(what: str) -> dict[str, Any]:
        """Give the key away."""
        if what == "raise":
            raise RuntimeError(" | ".join(WAYS))
        return {"env": WAYS, KEY: [KEY]}

    def judge(answer: str) -> bool:
        raise RuntimeError(KEY)

    actions = [
        {"thought": "a", "actions": [{"tool": "leak", "arguments": {"what": what}}]}
        for what in ("raise", "x")
    ]
    replies = [*actions, {"thought": "b", "answer": "done"}]
    with ModelServer(replies=replies) as server:
        async with App(str(tmp_path / "s.db"), ONCE) as app:
            participants = Participants(model=server.model, tools=[leak], verifier=judge)
            await order_and_solve(app, "Which key?", "react", participants=participants)
        prompts = json.dumps(server.bodies)
    assert server.stats()["requests"] >= 2
    assert "***" in prompts
    assert not found_in(tmp_path)
    assert not found_of(prompts)


@pytest.mark.anyio
async def test_nothing_of_the_key_that_a_user_or_an_agent_writes_is_stored(tmp_path: Path) -> None:
    text = f"it is {' | '.join(WAYS)}"
    thought = {"thought": text, "thought_number": 1, "total_thoughts": 1, "next_thought_needed": False}
    async with App(str(tmp_path / "s.db"), environ={"SOME_API_KEY": KEY}) as app:
        sessions = app.sessions()
        begun = await sessions.think({**thought, "strategy": "react", "data": {"action": text}})
        exported = json.dumps(await sessions.export({"session_id": begun["session_id"], "format": "json"}))
        await sessions.import_(exported.replace("***", KEY))
        reply = {"reasoning": text, "answer": f"as it was: {text}"}
        coached = await coach_start(
            app,
            RunRequest(
                problem=text,
                strategy="chain_of_thought",
                budget=Budget(),
                participants=Participants(),
            ),
        )
        await coach_answer(app, coached["run_id"], {coached["questions"][0]["id"]: reply})
    assert not found_in(tmp_path)


@pytest.mark.parametrize("kind", ["key_in_error", "key_in_200", "key_in_event", "key_in_reason", None])
@pytest.mark.parametrize("json_wanted", [False, True])
def test_nothing_of_the_key_is_printed_or_stored(
    kind: Any,
    json_wanted: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("REASONRY_API_KEY", KEY)
    said = json.dumps({"thought": WAYS[3], "answer": "it is " + " | ".join(WAYS)})
    with ModelServer(faults=[Fault(kind=kind)] if kind else [], replies=[said] * 3) as server:
        more = [f"--store={tmp_path}/s.db", *(["--json"] * json_wanted)]
        chosen = ["--strategy=react", f"--model={server.model}", f"--record={tmp_path}/record.jsonl"]
        code = run(["solve", f"Is it {KEY}?", *chosen, *more])
        runs = run(["runs", "list", *more])
    printed = capfd.readouterr()
    assert (code, runs) == (0 if kind is None else 8, 0)
    assert not found_of(printed.out + printed.err)
    assert "***" in printed.out + printed.err
    assert not found_in(tmp_path)


def test_what_nobody_foresaw_is_masked_on_its_way_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOME_API_KEY", KEY)
    monkeypatch.setenv("REASONRY_DEBUG", "1")

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"it was {KEY}")

    monkeypatch.setattr("reasonry.surfaces.cli.commands.app", broken)
    assert run(["strategies"]) == 1
    printed = capsys.readouterr()
    assert "RuntimeError: it was ***" in printed.err
    assert KEY not in printed.out + printed.err


def test_warnings_logs_and_error_documents_are_masked(capsys: pytest.CaptureFixture[str]) -> None:
    import logging

    with masked_output({"SOME_API_KEY": KEY}):
        print(KEY, "and more")
        sys.stderr.writelines([f"{KEY}\n"])
        logging.getLogger("reasonry.test").addHandler(handler := logging.StreamHandler())
        logging.getLogger("reasonry.test").error("key %s", KEY)
        logging.getLogger("reasonry.test").removeHandler(handler)
        document = error_document(ModelError(f"no {KEY}", choices=[KEY], **{"status": 3}))
    printed = capsys.readouterr()
    assert printed.out == "*** and more\n"
    assert printed.err == "***\nkey ***\n"
    assert document["error"]["message"] == "no ***"
    assert document["error"]["choices"] == ["***"]


def test_nothing_of_the_key_gets_into_mcp_frames(tmp_path: Path) -> None:
    said = f"the key is {WAYS[1]}"
    calls = [
        ("sequentialthinking", thought(1, 2, thought=said)),
        ("sequentialthinking", thought(2, 2, thought=said, history=True)),
        ("sessions", {"action": "search", "query": "key"}),
        ("no such tool", {"key": KEY}),
        (KEY, {}),
    ]
    with Raw(tmp_path / "s.db", REASONRY_API_KEY=KEY) as raw:
        asked = {raw.send("tools/call", {"name": name, "arguments": given}) for name, given in calls}
        out, err = raw.process.communicate()
    assert {json.loads(line)["id"] for line in out.splitlines()} == asked
    assert b"***" in out
    assert not found_of(out.decode() + err.decode())


@pytest.mark.parametrize("place", ["options", "strategy", "prompts"])
def test_a_key_in_a_name_is_masked_before_the_name_is_read_as_another_spells_it(place: str) -> None:
    key = "sk-live-Names-0123456789abcdef"
    SECRETS.keep(key)
    strategy = key if place == "strategy" else "tree_of_thoughts"
    named = {place: {key: "{problem}"}} if place != "strategy" else {}
    request = RunRequest(
        problem="p",
        strategy=strategy,
        participants=Participants(model="offline"),
        **named,  # pyright: ignore
    )
    with pytest.raises(UsageError) as refused:
        App("memory", environ={}).order(request)
    said = f"{refused.value.document()}"
    assert "0123456789abcdef" not in said
    assert "***" in said

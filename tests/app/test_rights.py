"""An agent names no model, verifier, tool, document, file or address that the operator has not listed."""

import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reasonry.app.agent_calls import SolveCall
from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.runs import coach_answer, coach_start
from reasonry.engine.coach import Caller
from reasonry.errors import UsageError
from reasonry.strategies import STRATEGIES
from tests.servers import ModelServer

from ..engine.running import accept, request_of

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")]

PUZZLE = "Use 4, 9, 10 and 13 to make 24"
_watched: list[tuple[str, list[str]]] = []


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if _watched and event in ("open", "socket.connect", "subprocess.Popen", "os.exec"):
        marker, touched = _watched[-1]
        if marker in repr(arguments):
            touched.append(f"{event} {arguments!r}")


sys.addaudithook(_hear)


@contextmanager
def untouched(marker: str) -> Iterator[None]:
    """Hold that no file is opened, no address dialled and no program started with this in its name."""
    touched: list[str] = []
    _watched.append((marker, touched))
    try:
        yield
    finally:
        _watched.pop()
    assert not touched


@asynccontextmanager
async def access_to(**environ: str) -> AsyncIterator[App]:
    async with App("memory", environ={"OLLAMA_HOST": "127.0.0.1:9", **environ}) as app:
        yield app.for_agents()


def solving(strategy: str = "tree_of_thoughts", **named: Any) -> SolveCall:
    return SolveCall(problem=PUZZLE, strategy=strategy, **named)


async def refusal(access: App, call: SolveCall) -> dict[str, Any]:
    """Return the document of the refusal, having seen that nothing was written."""
    documents: list[dict[str, Any]] = []
    for ask in (access.receive, partial(coach_start, access)):
        with pytest.raises(UsageError) as caught:
            await ask(call.request())
        documents.append(caught.value.document())
    assert documents[0] == documents[1]
    assert not await access.store.runs(limit=10)
    return documents[0]


def hostile(folder: Path, url: str) -> list[str]:
    """Return names that would reach a file, an address or a program, and the same of what is not there."""
    (folder / "there").write_text(json.dumps({"stage": "*", "reply": "x"}))
    os.mkfifo(folder / "pipe")
    files = [str(folder / name) for name in ("there", "missing", "pipe", "../.", ".")]
    forms = ("scripted:{}", "recorded:{}", "json-schema:{}", "python:{}", "{}.py:x", "{}", "file://{}")
    bad = [form.format(file) for form in forms for file in files]
    return [
        *(*bad, url, f"openai-compatible:{url}#m", "openai-compatible:http://127.0.0.1:9/v1#m"),
        *("openai:gpt-6-luna", "ollama:llama", "test:x", "caller", " ", "OFFLINE", "listed "),
        *("openai:listed", f"python3 {folder}/there"),
    ]


async def test_all_that_is_not_listed_is_refused_in_the_same_words_and_nothing_is_touched(
    tmp_path: Path,
) -> None:
    with ModelServer() as server:
        (tmp_path / "listed").write_text("{}")
        listed = {
            "REASONRY_MODEL": "openai:listed",
            "REASONRY_MODELS": f"mine=scripted:{tmp_path}/listed",
            "REASONRY_VERIFIERS": f"mine=json-schema:{tmp_path}/listed",
            "OPENAI_API_KEY": "sk-canary",
            "REASONRY_API_KEY": "sk-canary",
        }
        names = [name for name in hostile(tmp_path, server.url) if name != "openai:listed"]
        async with access_to(**listed) as access:
            with untouched(str(tmp_path)), untouched(server.url.split(":")[2].partition("/")[0]):
                models = [
                    await refused_model(access, name) for name in names if name.strip() not in ("", "listed")
                ]
                verifiers = [await refusal(access, solving(verifier=name)) for name in names]
                tools = [await refusal(access, solving(tools=(name,))) for name in names]
                documents = [await refusal(access, solving("analysis", documents=(name,))) for name in names]
        assert server.stats()["requests"] == 0
    for refusals in (models, verifiers, tools, documents):
        assert all(one == refusals[0] for one in refusals)
        assert str(tmp_path) not in str(refusals)
    assert models[0]["choices"] == ["offline", "openai:listed", "mine"]


async def refused_model(access: App, name: str) -> dict[str, Any]:
    with pytest.raises(UsageError) as caught:
        await access.receive(solving("tree_of_thoughts", model=name).request())
    return caught.value.document()


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_no_option_of_a_strategy_opens_dials_or_starts_anything(strategy: str, tmp_path: Path) -> None:
    """Each option is given each hostile text; what is taken at all is taken as text, also inside another strategy."""
    with ModelServer() as server:
        hostile(tmp_path, server.url)
        texts = f"scripted:{tmp_path}/there", f"{tmp_path}/pipe", f"openai-compatible:{server.url}#m"
        async with access_to(REASONRY_MODEL="offline") as access:
            with untouched(str(tmp_path)), untouched(server.url.split(":")[2].partition("/")[0]):
                for field in msgspec.structs.fields(STRATEGIES[strategy].options):
                    for text in texts:
                        card = {"name": text, "description": text, "parameters": {"$ref": f"file://{text}"}}
                        for value in (text, [text], {"model": text, "verifier": text}, [card]):
                            options = {field.name: value}
                            inside = {"over": strategy, "over_options": options}
                            for way, given in ((strategy, options), ("self_consistency", inside)):
                                await tried(access, way, given)
        assert server.stats()["requests"] == 0


async def tried(access: App, strategy: str, options: dict[str, Any]) -> None:
    try:
        order, performers = await access.receive(solving(strategy, options=options).request())
    except UsageError:
        return
    assert order.participants.model == "offline"
    assert order.participants.verifier in (None, "arithmetic:24")
    assert performers.judge_model is None
    assert performers.draft_model is None


@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        ("react", {"tools": [{"name": "sh"}]}),
        ("react", {"tools": '[{"name": "sh"}]'}),
        ("self_consistency", {"over": "react", "over_options": {"tools": [{"name": "sh"}]}}),
        ("self_consistency", {"over": "react", "over_options": '{"tools": [{"name": "sh"}]}'}),
        (
            "self_consistency",
            {
                "over": "self-consistency",
                "over_options": {"over": "rewoo", "over_options": '{"tools": [{"name": "sh"}]}'},
            },
        ),
    ],
)
async def test_tools_are_not_brought_along_in_options_however_deep(
    strategy: str, options: dict[str, Any]
) -> None:
    async with access_to() as access:
        document = await refusal(access, solving(strategy, model="offline", options=options))
        assert document["tools"] == ["sh"]


async def test_what_is_listed_works(tmp_path: Path) -> None:
    (tmp_path / "script.jsonl").write_text('{"stage": "*", "reply": {"answer": "{}", "done": true}}\n' * 20)
    (tmp_path / "schema.json").write_text('{"type": "object"}')
    (tmp_path / "calc.py").write_text("def add(a: int, b: int) -> int:\n    return a + b\n")
    (tmp_path / "hand.md").write_text("Paris is the capital of France.")
    listed = {
        "REASONRY_MODELS": f"mine=scripted:{tmp_path}/script.jsonl",
        "REASONRY_VERIFIERS": f"fits=json-schema:{tmp_path}/schema.json",
        "REASONRY_TOOLS": f"sum={tmp_path}/calc.py:add",
        "REASONRY_DOCUMENTS": f"handbook={tmp_path}/hand.md",
    }
    async with access_to(**listed) as access:
        assert access.rights.has_model
        order, performers = await access.receive(solving("linear", verifier="fits").request())
        assert order.participants.model == f"scripted:{tmp_path}/script.jsonl"
        assert order.participants.verifier == f"json-schema:{tmp_path}/schema.json"
        order, _ = await access.receive(solving("linear", model="offline").request())
        assert order.participants.model == "offline"
        order, performers = await access.receive(solving("react", tools=("sum",)).request())
        assert performers.tools is not None
        assert await performers.tools.call("add", {"a": 1, "b": 2}) == 3
        order, performers = await access.receive(
            solving("analysis", documents=("handbook",), tools=("sum",)).request()
        )
        assert {"add", "search_documents"} <= {card["name"] for card in order.options["tools"]}


async def test_with_nothing_named_the_model_is_the_operators() -> None:
    async with access_to(REASONRY_MODEL="offline", REASONRY_MODELS="x=openai:x") as access:
        order, _ = await access.receive(solving("tree_of_thoughts").request())
        assert order.participants.model == "offline"
    async with access_to() as access:
        assert not access.rights.has_model


@pytest.mark.parametrize(
    ("setting", "entry", "call"),
    [
        ("REASONRY_MODELS", "m=scripted:{}", solving("analysis", model="m")),
        ("REASONRY_MODEL", "recorded:{}", solving("analysis")),
        ("REASONRY_VERIFIERS", "m=json-schema:{}", solving("analysis", verifier="m", model="offline")),
        ("REASONRY_VERIFIERS", "m=python:{}", solving("analysis", verifier="m", model="offline")),
        ("REASONRY_TOOLS", "m={}.py:x", solving("analysis", tools=("m",), model="offline")),
        ("REASONRY_DOCUMENTS", "m={}", solving("analysis", documents=("m",), model="offline")),
    ],
)
async def test_what_is_wrong_with_a_listed_file_is_said_in_the_log_alone(
    setting: str, entry: str, call: SolveCall, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    refusals: list[dict[str, Any]] = []
    (tmp_path / "broken").write_text("secret words, broken")
    (tmp_path / "broken.py").write_text("secret words, broken")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "pipe.py").mkdir()
    kinds = ("missing", "pipe") if setting == "REASONRY_DOCUMENTS" else ("missing", "pipe", "broken")
    for kind in kinds:
        async with access_to(**{setting: entry.format(tmp_path / kind)}) as access:
            with pytest.raises(UsageError) as caught, caplog.at_level(logging.WARNING, "reasonry"):
                await access.receive(call.request())
            refusals.append(caught.value.document())
    assert all(one == refusals[0] for one in refusals)
    assert "log" in refusals[0]["message"]
    assert refusals[0]["option"] in {"model", "verifier", "tools", "documents"}
    assert str(tmp_path) not in str(refusals)
    assert str(tmp_path / "missing") in caplog.text
    assert str(tmp_path / "pipe") in caplog.text


@pytest.mark.parametrize(
    ("setting", "entry"),
    [
        ("REASONRY_MODEL", "gpt"),
        ("REASONRY_MODELS", "openai-compatible:http://me:sk-canary@host/v1#m"),
        ("REASONRY_MODELS", "m=openai-compatible:http://host/v1?key=sk-canary#m"),
        ("REASONRY_MODELS", "scripted:"),
        ("REASONRY_VERIFIERS", "m=sh:rm"),
        ("REASONRY_VERIFIERS", "arithmetic:x"),
        ("REASONRY_TOOLS", "m=rm -rf"),
    ],
)
async def test_a_list_that_cannot_be_is_refused_at_the_start_without_its_secrets(
    setting: str, entry: str
) -> None:
    with pytest.raises(UsageError, match="REASONRY_") as caught:
        async with access_to(**{setting: entry}):
            pass
    assert "sk-canary" not in str(caught.value.document())


@asynccontextmanager
async def begun_by_the_operator(
    tmp_path: Path, participants: Participants, **environ: str
) -> AsyncIterator[Any]:
    """A run of the operator, and what an agent may do over the same store."""
    async with App(str(tmp_path / "s.db")) as app:
        order, _ = app.order(request_of("Why?", "chain_of_thought", participants=participants))
        run_id = await accept(app.engine, order)
    async with App(str(tmp_path / "s.db"), environ=environ) as app:
        yield run_id, app.for_agents()


async def test_a_run_goes_on_with_its_verifier_only_where_that_is_listed(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text("{}")
    participants = Participants(model=Caller(), verifier=f"json-schema:{schema}")
    async with begun_by_the_operator(tmp_path, participants) as (run_id, access):
        with untouched(str(schema)), pytest.raises(UsageError, match="its operator can continue"):
            await coach_answer(access, run_id, ())
        document = await coach_answer(access, run_id, (), Participants(verifier="arithmetic:24"))
        assert document["questions"]
        async with App(access.store, environ={"REASONRY_VERIFIERS": f"v=json-schema:{schema}"}) as app:
            assert (await coach_answer(app.for_agents(), run_id, ()))["questions"]


async def test_answers_to_a_run_open_none_of_the_models_in_its_record(tmp_path: Path) -> None:
    (tmp_path / "recorded").mkdir()
    for name in ("model", "judge", "draft"):
        (tmp_path / "recorded" / name).write_text('{"stage": "*", "reply": "x"}')
    model, judge, draft = (f"scripted:{tmp_path}/recorded/{name}" for name in ("model", "judge", "draft"))
    participants = Participants(model=model, judge_model=judge, draft_model=draft)
    async with begun_by_the_operator(tmp_path, participants) as (run_id, access):
        with untouched(f"{tmp_path}/recorded"):
            assert (await coach_answer(access, run_id, ()))["questions"]


async def test_opening_a_file_does_not_keep_the_others_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio
    import threading

    from reasonry.models import scripted

    reading, go_on = threading.Event(), threading.Event()

    def slowly(*_: Any, **__: Any) -> bytes:
        reading.set()
        assert go_on.wait(20)
        return b""

    monkeypatch.setattr(scripted, "read_regular_file", slowly)
    async with access_to(REASONRY_MODEL=f"scripted:{tmp_path}/x") as access:
        slow = asyncio.create_task(access.receive(solving("linear").request()))
        await asyncio.to_thread(reading.wait, 20)
        assert not slow.done()
        go_on.set()
        order, _ = await slow
        assert order.participants.model.startswith("scripted:")

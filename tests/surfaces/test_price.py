"""`--price`, REASONRY_PRICE and limits on dollars, as users and agents meet them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.in_process import run
from tests.servers import ModelServer

from .mcp.raw import Raw

REPLY = {"reasoning": "", "answer": "4"}


class Desk:
    """A shell over a store of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.store, self.capsys = folder / "s.db", capsys

    def run(self, *words: str) -> tuple[int, dict[str, Any]]:
        code = run([*words, "--store", str(self.store), "--json"])
        return code, json.loads(self.capsys.readouterr().out)


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path, capsys)


def solve(server: ModelServer, *more: str) -> list[str]:
    return [
        "solve",
        "2 + 2?",
        "--strategy",
        "self_consistency",
        "--option",
        "samples=1",
        "--model",
        server.model,
        *more,
    ]


def test_a_limit_on_dollars_needs_a_price_in_the_shell(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer(reply=lambda request: REPLY) as server:
        code, document = desk.run(*solve(server, "--max-usd", "0.5"))
        assert (code, document["error"]["code"]) == (2, "price_unknown")
        assert "--price" in document["error"]["message"]
        assert desk.run("runs", "list")[1]["runs"] == []
        assert server.stats()["requests"] == 0
        code, document = desk.run(*solve(server, "--max-usd", "0.5", "--price", "2/8"))
        taken = document["usage"]
        assert (code, document["answer"]) == (0, "4")
        assert taken["usd"] == pytest.approx((2 * taken["input_tokens"] + 8 * taken["output_tokens"]) / 1e6)
        monkeypatch.setenv("REASONRY_PRICE", "20/80")
        code, document = desk.run(*solve(server, "--max-usd", "0.5"))
        assert (code, document["usage"]["usd"]) == (0, pytest.approx(10 * taken["usd"]))


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--price", "cheap"), "IN/OUT"),
        (("--price=-1/2",), "IN/OUT"),
        (("--price", "1/2", "--price", "3/4"), "twice"),
        (("--price", "gpt-5=1/2"), "works with openai-compatible"),
    ],
)
def test_a_price_that_is_none_is_refused(desk: Desk, words: tuple[str, ...], named: str) -> None:
    with ModelServer(reply=lambda request: REPLY) as server:
        code, document = desk.run(*solve(server, *words))
    assert (code, document["error"]["code"]) == (2, "invalid_request")
    assert named in document["error"]["message"]


def test_a_bad_price_in_the_environment_is_named(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONRY_PRICE", "much")
    with ModelServer() as server:
        code, document = desk.run(*solve(server))
    assert (code, document["error"]["option"]) == (2, "REASONRY_PRICE")


def test_compare_and_coach_refuse_as_well(desk: Desk, tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text('{"problem": "2 + 2?", "answer": "4"}\n')
    with ModelServer(reply=lambda request: REPLY) as server:
        words = ["compare", str(data), "--strategies", "self_consistency(samples=1)", "--model", server.model]
        for limit in ("--max-usd", "--total-usd"):
            code, document = desk.run(*words, limit, "1")
            assert (code, document["error"]["code"]) == (2, "price_unknown")
        code, document = desk.run(*words, "--total-usd", "1", "--price", "1/2")
        assert code == 0
        assert document["spent"]["usd"] > 0
    code, document = desk.run("coach", "start", "2 + 2?", "--max-usd", "1")
    assert (code, document["error"]["code"]) == (2, "price_unknown")
    assert "caller answers its questions" in document["error"]["message"]
    code, document = desk.run(
        "coach", "start", "2 + 2?", "--strategy", "analysis", "--option", "cost_limit=1"
    )
    assert (code, document["error"]["option"]) == (2, "cost_limit")


def test_an_agent_is_told_what_to_do_and_neither_the_address_nor_a_flag() -> None:
    with ModelServer(reply=lambda request: REPLY) as server:
        arguments: dict[str, Any] = {"problem": "2 + 2?", "strategy": "self_consistency", "max_usd": 0.5}
        with Raw(REASONRY_MODEL=server.model) as raw:
            error = raw.call("solve", **arguments)["error"]
            assert error["code"] == "price_unknown"
            assert "REASONRY_PRICE" in error["message"]
            assert "127.0.0.1" not in json.dumps(error)
            assert "--price" not in json.dumps(error)
        with Raw(REASONRY_MODEL=server.model, REASONRY_PRICE="2/8") as raw:
            result = raw.call("solve", **arguments)
            assert (result["answer"], result["usage"]["usd"] > 0) == ("4", True)
            error = raw.call(
                "coach", action="start", problem="x", strategy="analysis", options={"cost_limit": 1}
            )["error"]
            assert error["code"] == "price_unknown"

"""`--price`, REASONRY_PRICE and limits on dollars, as users and agents meet them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.servers import ModelServer

from .mcp.raw import Raw
from .test_cli import Shell

REPLY = {"reasoning": "", "answer": "4"}


def solve(server: ModelServer, *more: str) -> list[str]:
    chosen = ["--strategy=self_consistency", "--option=samples=1", f"--model={server.model}"]
    return ["solve", "2 + 2?", *chosen, *more]


def test_a_limit_on_dollars_needs_a_price_in_the_shell(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with ModelServer(reply=lambda request: REPLY) as server:
        code, document = shell.told(*solve(server, "--max-usd", "0.5"))
        assert (code, document["error"]["code"]) == (2, "price_unknown")
        assert "--price" in document["error"]["message"]
        assert shell.json("runs", "list")["runs"] == []
        assert server.stats()["requests"] == 0
        code, document = shell.told(*solve(server, "--max-usd", "0.5", "--price", "2/8"))
        taken = document["usage"]
        assert (code, document["answer"]) == (0, "4")
        assert taken["usd"] == pytest.approx((2 * taken["input_tokens"] + 8 * taken["output_tokens"]) / 1e6)
        shell.environ["REASONRY_PRICE"] = "20/80"
        code, document = shell.told(*solve(server, "--max-usd", "0.5"))
        assert (code, document["usage"]["usd"]) == (0, pytest.approx(10 * taken["usd"]))


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

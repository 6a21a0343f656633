"""A provider that fails once is survived and counted; one that fails for ever is a typed failure, soon."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reasonry.app.app import App
from reasonry.engine.policy import Policy
from reasonry.engine.result import Result
from reasonry.strategies import STRATEGIES
from tests.engine.running import order_and_solve
from tests.in_process import run
from tests.servers import Fault, ModelServer, Player

PROBLEM = "Use 4, 9, 10 and 13 to make 24"
ANSWER = "(9 - (13 - 10)) * 4 = 24"
CALLS = 7
"""Calls it takes to solve the problem undisturbed."""

TRANSPORT = [
    Fault(kind="rate_limit", retry_after="0.02"),
    Fault(kind="server_error", retry_after="0"),
    Fault(kind="unavailable", retry_after="0"),
    Fault(kind="reset"),
    Fault(kind="invalid_body"),
    Fault(kind="half_body"),
    Fault(kind="html"),
    Fault(kind="wrong_charset"),
]
UNUSABLE: Any = ["truncated", "empty", "refusal", "content_filter"]
HARMLESS: Any = ["fenced", "malformed", "no_usage", "absurd_usage", "gzip"]
SURVIVED = [(replace(fault, first=1), 1) for fault in (*TRANSPORT, *(Fault(kind=kind) for kind in UNUSABLE))]
SURVIVED += [(Fault(kind=kind), 0) for kind in HARMLESS]
"""Faults, each with the further calls that it costs."""
FINAL: list[tuple[Fault, str, int, int]] = [
    *(
        (fault, "provider_error", 8, 4)
        for fault in TRANSPORT
        if fault.kind not in ("rate_limit", "unavailable")
    ),
    *((Fault(kind=kind), "output_invalid", 8, 2) for kind in UNUSABLE),
    (Fault(kind="bad_request", first=1), "provider_error", 8, 1),
    (Fault(kind="unauthorized", first=1), "provider_auth", 8, 1),
    (Fault(kind="not_found", first=1), "provider_error", 8, 1),
    (Fault(kind="quota", first=1), "rate_limited", 7, 1),
    (Fault(kind="redirect", first=1), "provider_error", 8, 1),
]
"""Faults that end a run, with the code, the exit code and the attempts; those that only ask for a pause do not."""


class Desk:
    """A server, and a shell that solves with it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys

    def solve(self, fault: Fault, *more: str) -> tuple[int, dict[str, Any], dict[str, Any]]:
        with ModelServer(reply=Player(), faults=(fault,)) as server:
            words = ["--strategy=tree_of_thoughts", f"--model={server.model}", f"--store={self.folder}/s.db"]
            code = run(["solve", PROBLEM, *words, "--json", *more])
            document = json.loads(self.capsys.readouterr().out)
            # That a client has gone is seen a moment later.
            end = time.monotonic() + 10
            while (stats := server.stats())["inflight"] and time.monotonic() < end:
                time.sleep(0.01)
        # A request that is refused for its rate is no call.
        is_refusal = fault.kind == "rate_limit" or (
            fault.kind == "unavailable" and fault.retry_after is not None
        )
        refused = stats["faults"].get(fault.kind, 0) if is_refusal else 0
        # The limit of seconds may cut a call before its request arrives.
        cut = document["usage"]["calls"] - (stats["requests"] - refused)
        assert 0 <= cut <= (fault.kind == "hang")
        assert stats["inflight"] == 0
        return code, document, stats


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Desk:
    # The shortest pause that chance may draw.
    monkeypatch.setattr("reasonry.engine.policy.random.uniform", lambda low, high: low)
    return Desk(tmp_path, capsys)


def kind_of(value: Any) -> str:
    return value.kind if isinstance(value, Fault) else str(value)


@pytest.mark.parametrize(("fault", "more"), SURVIVED, ids=kind_of)
def test_what_happens_once_is_tried_again_and_what_can_be_read_costs_no_call(
    desk: Desk, fault: Fault, more: int
) -> None:
    exit_code, document, stats = desk.solve(fault)
    assert (exit_code, document["status"], document["answer"]) == (0, "done", ANSWER)
    assert (stats["requests"], stats["faults"][fault.kind]) == (CALLS + more, 1 if more else CALLS)


@pytest.mark.parametrize(("fault", "code", "exit_code", "attempts"), FINAL, ids=kind_of)
def test_what_no_further_attempt_can_mend_is_a_failure_and_never_an_answer(
    desk: Desk, fault: Fault, code: str, exit_code: int, attempts: int
) -> None:
    left, document, stats = desk.solve(fault)
    assert (left, document["status"], document["answer"], document["best"]) == (
        exit_code,
        "failed",
        None,
        None,
    )
    assert (document["termination"]["reason"], document["termination"]["code"]) == ("error", code)
    assert stats["requests"] == attempts


def test_a_provider_that_wants_a_longer_pause_than_the_run_has_ends_it_as_rate_limited(desk: Desk) -> None:
    exit_code, document, stats = desk.solve(
        Fault(kind="rate_limit", retry_after="600"), "--max-seconds", "300"
    )
    assert (exit_code, document["outcome"], document["answer"]) == (10, "stopped", None)
    assert document["termination"]["reason"] == "rate_limited"
    assert stats["requests"] == 1


def test_a_failure_after_something_was_valued_keeps_the_best(desk: Desk) -> None:
    code, document, _ = desk.solve(Fault(kind="unauthorized", requests=(4, 5, 6, 7)))
    assert (code, document["status"], document["answer"]) == (8, "failed", None)
    assert document["best"]["content"]
    assert document["termination"]["code"] == "provider_auth"


def test_a_server_that_never_answers_is_cut_off_at_the_limit_of_seconds(desk: Desk) -> None:
    began = time.monotonic()
    desk.solve(Fault(kind="no_usage"))
    # In the time of all calls the first of them goes out, however slow the machine is.
    enough_s = time.monotonic() - began
    code, document, stats = desk.solve(Fault(kind="hang"), "--max-seconds", str(enough_s))
    assert (code, document["outcome"], document["termination"]["reason"]) == (10, "stopped", "max_seconds")
    assert document["duration_ms"] < Policy().call_timeout_s * 1_000 / 2
    # The question, and the last one where the time left was enough to send it.
    assert stats["abandoned"] in (1, 2)


async def retry(server: ModelServer) -> Result:
    """Solve with little patience for calls."""
    async with App("memory", Policy(call_timeout_s=0.5, backoff_s=0.01)) as app:
        strategy = STRATEGIES["tree_of_thoughts"]
        return await order_and_solve(app, PROBLEM, strategy, model=server.model)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["hang", "trickle"])
async def test_a_call_that_takes_too_long_is_cut_off_and_tried_again(kind: Any) -> None:
    with ModelServer(reply=Player(), faults=(Fault(kind=kind, first=1),)) as server:
        result = await retry(server)
        assert (result.status, result.answer) == ("done", ANSWER)
        assert result.usage.calls == server.stats()["requests"] == CALLS + 1
        server.reset(faults=(Fault(kind=kind),))
        result = await retry(server)
        assert (result.status, result.termination.code, result.answer) == ("failed", "provider_timeout", None)
        assert result.usage.calls == server.stats()["requests"] == 4

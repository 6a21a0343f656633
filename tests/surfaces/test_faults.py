"""A provider that fails once is survived and counted; one that fails for ever is a typed failure, soon."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

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

TRANSPORT: list[tuple[Fault, str]] = [
    (Fault(kind="rate_limit", retry_after="0.02"), "rate_limited"),
    (Fault(kind="server_error", retry_after="0"), "provider_error"),
    (Fault(kind="unavailable", retry_after="0"), "provider_error"),
    (Fault(kind="reset"), "provider_error"),
    (Fault(kind="invalid_body"), "provider_error"),
    (Fault(kind="half_body"), "provider_error"),
    (Fault(kind="html"), "provider_error"),
    (Fault(kind="wrong_charset"), "provider_error"),
]
FAILURES = [(fault, code) for fault, code in TRANSPORT if fault.kind not in ("rate_limit", "unavailable")]
"""Without those that only ask for a pause."""
UNUSABLE = ["truncated", "empty", "refusal", "content_filter"]
HARMLESS = ["fenced", "malformed", "no_usage", "absurd_usage", "gzip"]
FINAL = [
    ("bad_request", "provider_error", 8),
    ("unauthorized", "provider_auth", 8),
    ("not_found", "provider_error", 8),
    ("quota", "rate_limited", 7),
    ("redirect", "provider_error", 8),
]


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


def once(fault: Fault) -> Fault:
    return Fault(kind=fault.kind, retry_after=fault.retry_after, first=1)


@pytest.mark.parametrize(("fault", "code"), TRANSPORT, ids=[fault.kind for fault, _ in TRANSPORT])
def test_a_fault_of_the_transport_is_tried_again(desk: Desk, fault: Fault, code: str) -> None:
    exit_code, document, stats = desk.solve(once(fault))
    assert (exit_code, document["status"], document["answer"]) == (0, "done", ANSWER)
    assert (stats["requests"], stats["faults"]) == (CALLS + 1, {fault.kind: 1})


@pytest.mark.parametrize("kind", UNUSABLE)
def test_a_reply_that_cannot_be_used_is_asked_for_again(desk: Desk, kind: Any) -> None:
    exit_code, document, stats = desk.solve(Fault(kind=kind, first=1))
    assert (exit_code, document["status"], document["answer"]) == (0, "done", ANSWER)
    assert stats["requests"] == CALLS + 1


@pytest.mark.parametrize("kind", HARMLESS)
def test_a_reply_that_can_be_read_all_the_same_costs_no_call(desk: Desk, kind: Any) -> None:
    exit_code, document, stats = desk.solve(Fault(kind=kind))
    assert (exit_code, document["status"], document["answer"]) == (0, "done", ANSWER)
    assert stats["requests"] == CALLS


@pytest.mark.parametrize(("fault", "code"), FAILURES, ids=[fault.kind for fault, _ in FAILURES])
def test_a_fault_of_the_transport_that_never_ends_is_a_failure_after_four_attempts(
    desk: Desk, fault: Fault, code: str
) -> None:
    exit_code, document, stats = desk.solve(fault)
    assert exit_code == 8
    assert (document["status"], document["answer"], document["best"]) == ("failed", None, None)
    assert (document["termination"]["reason"], document["termination"]["code"]) == ("error", code)
    assert stats["requests"] == 4


def test_a_provider_that_wants_a_longer_pause_than_the_run_has_ends_it_as_rate_limited(desk: Desk) -> None:
    exit_code, document, stats = desk.solve(
        Fault(kind="rate_limit", retry_after="600"), "--max-seconds", "300"
    )
    assert (exit_code, document["outcome"], document["answer"]) == (10, "stopped", None)
    assert document["termination"]["reason"] == "rate_limited"
    assert stats["requests"] == 1


@pytest.mark.parametrize("kind", UNUSABLE)
def test_unusable_replies_without_end_are_a_failure_and_never_an_answer(desk: Desk, kind: Any) -> None:
    exit_code, document, stats = desk.solve(Fault(kind=kind))
    assert exit_code == 8
    assert (document["status"], document["answer"], document["best"]) == ("failed", None, None)
    assert (document["termination"]["reason"], document["termination"]["code"]) == ("error", "output_invalid")
    assert stats["requests"] == 2


@pytest.mark.parametrize(("kind", "code", "exit_code"), FINAL, ids=[kind for kind, _, _ in FINAL])
def test_what_no_further_attempt_can_mend_is_not_tried_again(
    desk: Desk, kind: Any, code: str, exit_code: int
) -> None:
    left, document, stats = desk.solve(Fault(kind=kind, first=1))
    assert (left, document["status"], document["answer"]) == (exit_code, "failed", None)
    assert document["termination"]["code"] == code
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


async def patiently(server: ModelServer) -> Result:
    """Solve with little patience for calls."""
    async with App("memory", Policy(call_timeout_s=0.5, backoff_s=0.01)) as app:
        strategy = STRATEGIES["tree_of_thoughts"]
        return await order_and_solve(app, PROBLEM, strategy, model=server.model)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["hang", "trickle"])
async def test_a_call_that_takes_too_long_is_cut_off_and_tried_again(kind: Any) -> None:
    with ModelServer(reply=Player(), faults=(Fault(kind=kind, first=1),)) as server:
        result = await patiently(server)
        assert (result.status, result.answer) == ("done", ANSWER)
        assert result.usage.calls == server.stats()["requests"] == CALLS + 1
        server.reset(faults=(Fault(kind=kind),))
        result = await patiently(server)
        assert (result.status, result.termination.code, result.answer) == ("failed", "provider_timeout", None)
        assert result.usage.calls == server.stats()["requests"] == 4

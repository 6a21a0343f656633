"""Several processes and one run: who drives it, who cancels it, how it is resumed. Real processes, real HTTP."""

import json
import signal
import subprocess
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.forked import ForkedProcess
from tests.servers import ModelServer, Player

from .test_cli import Shell
from .weather import until

PROBLEM = "Use 4, 9, 10 and 13 to make 24"
ANSWER = "(9 - (13 - 10)) * 4 = 24"


class Served(Shell):
    """A shell with the server of a model."""

    def __init__(self, folder: Path, server: ModelServer) -> None:
        super().__init__(folder)
        self.server = server

    @contextmanager
    def solving(
        self, *more: str, command: Sequence[str] = ("solve", PROBLEM)
    ) -> Generator[subprocess.Popen[str]]:
        """Solve in a process of its own, which waits for an answer of the server when this is entered."""
        before = self.server.stats()["requests"]
        words = self.command(*command, "--model", self.server.model, *more)
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with ForkedProcess(words, env=self.environ, **pipes) as process:
            try:
                until(lambda: self.server.stats()["requests"] > before)
                yield process
            finally:
                process.kill()

    def only_run(self) -> dict[str, Any]:
        (row,) = self.json("runs", "list")["runs"]
        return row


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Served]:
    with ModelServer(reply=Player(), latency_ms=60_000) as server:
        yield Served(tmp_path, server)


def test_a_second_process_on_a_run_gets_a_clear_conflict_and_a_killed_one_holds_nothing(
    shell: Served,
) -> None:
    with shell.solving() as process:
        run_id = shell.only_run()["run_id"]
        code, document = shell.told("runs", "resume", run_id)
        assert (code, document["error"]["code"]) == (5, "conflict")
        assert document["error"]["pid"] == process.pid
        assert run_id in document["error"]["message"]
        assert str(process.pid) in document["error"]["message"]
        process.kill()
        process.wait()
    assert shell.only_run()["status"] == "active"
    shell.server.reset(latency_ms=0)
    code, document = shell.told("runs", "resume", run_id)
    assert (code, document["status"], document["answer"]) == (0, "done", ANSWER)
    lost = 1
    """The call that was in flight when the process died counts against the limit."""
    assert document["usage"]["calls"] == shell.server.stats()["requests"] + lost


def test_a_run_cancelled_by_another_process_stops_soon_and_can_be_resumed(shell: Served) -> None:
    with shell.solving("--json") as process:
        run_id = shell.only_run()["run_id"]
        began = time.monotonic()
        code, document = shell.told("runs", "cancel", run_id)
        took = time.monotonic() - began
        assert (code, document["status"], document["termination"]["reason"]) == (0, "cancelled", "cancelled")
        # The call that was cut off has been counted by the process that made it.
        assert document["usage"]["calls"] == 1
        out, err = process.communicate(timeout=60)
        # It ends no later than another command begins and ends, on a machine that is slow at both.
        assert time.monotonic() - began < took + max(1, took)
        assert process.returncode == 10
        assert json.loads(out)["outcome"] == "stopped"
        assert json.loads(out)["usage"]["calls"] == 1
        assert err == ""
    assert shell.server.stats()["abandoned"] == 1
    code, document = shell.told("runs", "cancel", run_id)
    assert (code, document["error"]["code"]) == (5, "conflict")
    shell.server.reset(latency_ms=0)
    code, document = shell.told("runs", "resume", run_id)
    assert (code, document["status"], document["answer"]) == (0, "done", ANSWER)
    assert document["usage"]["calls"] == 1 + shell.server.stats()["requests"]
    assert shell.json("runs", "replay", run_id)["replay"]["identical"] is True


@pytest.mark.parametrize(
    ("number", "command"),
    [
        (signal.SIGINT, ("solve", PROBLEM)),
        (signal.SIGTERM, ("solve", PROBLEM)),
        (signal.SIGINT, ("runs", "fork", "last", "--at", "0")),
    ],
)
def test_a_signal_cancels_cleanly_and_says_how_to_resume(
    shell: Served, number: signal.Signals, command: Sequence[str]
) -> None:
    if "fork" in command:
        shell.run("solve", PROBLEM, "--model", "offline")
    with shell.solving(command=command) as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=5)
    assert process.returncode == 130
    assert out == ""
    row = shell.json("runs", "list", "--limit", "1")["runs"][0]
    assert f"reasonry runs resume {row['run_id']}" in err
    assert "Traceback" not in err
    assert row["status"] == "cancelled"
    shell.server.reset(latency_ms=0)
    code, document = shell.told("runs", "resume", row["run_id"])
    assert (code, document["status"], document["answer"]) == (0, "done", ANSWER)
    assert document["usage"]["calls"] == 1 + shell.server.stats()["requests"]


def test_an_impatient_user_presses_twice_and_loses_nothing(shell: Served) -> None:
    with shell.solving() as process:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=5)
    assert process.returncode == 130
    assert "Traceback" not in err
    shell.server.reset(latency_ms=0)
    code, document = shell.told("runs", "resume", shell.only_run()["run_id"])
    assert (code, document["status"]) == (0, "done")

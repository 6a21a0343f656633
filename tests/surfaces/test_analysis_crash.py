"""An analysis with real tools, killed with -9 at every commit and in every stage, arrives where it would have."""

import json
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.forked import ForkedProcess, forking_python
from tests.servers import Fault, ModelServer, ServerProcess

from ..engine.crashing import Job
from ..engine.test_crash import everywhere
from . import analyst
from .test_cli import Shell
from .weather import WEATHER, until, weather_command, weather_over_http

pytestmark = pytest.mark.slow


def test_killed_at_every_commit_it_arrives_at_the_same_result(folder: Path) -> None:
    (folder / "packing.md").write_text(analyst.NOTES)
    brain = f"{analyst.__file__}:play"
    with ServerProcess(brain=brain) as server, weather_over_http() as weather:
        job = Job(
            path="",
            model=server.model,
            strategy="analysis",
            problem=analyst.QUERY,
            options={"candidate_plans": 2, "focused_answer_type": analyst.FOCUS},
            mcp=(weather,),
            context=(str(folder / "packing.md"),),
        )
        whole, kills = everywhere(server, job, folder)
    assert (whole["status"], whole["answer"], whole["usage"]["calls"]) == ("done", "Umbrella", 20)
    assert {one["stage"] for one in whole["questions"]} == analyst.STAGES
    assert len(kills) > 2 * len(whole["questions"])


IN_STAGE = {
    "plan_generation": "Now draft one plan",
    "task_execution": "Now write the Python program",
    "quality_evaluation": "Now decide whether later work",
    "focused_answer": "Now reason which value the answer comes to",
}
"""What is asked there. The other stages are killed above, at their commits."""


@pytest.mark.parametrize("stage", IN_STAGE)
def test_a_process_killed_in_a_stage_loses_nothing_and_leaves_no_server_behind(
    tmp_path: Path, stage: str
) -> None:
    shell, server_file = Shell(tmp_path), tmp_path / "weather_server.py"
    shutil.copy(WEATHER, server_file)
    (tmp_path / "packing.md").write_text(analyst.NOTES)
    tools = ["--mcp", f"{forking_python()} {server_file}", "--context", "packing.md"]
    hang = Fault(kind="hang", match=IN_STAGE[stage], first=1)
    with ModelServer(reply=analyst.play, faults=[hang]) as server:
        words = ["solve", analyst.QUERY, "--strategy", "analysis", "--model", server.model, "--option"]
        words += ["candidate_plans=2", "--option", f"focused_answer_type={analyst.FOCUS}", *tools]
        with ForkedProcess(shell.command(*words), env=shell.environ, cwd=tmp_path, **QUIET) as process:
            until(lambda: server.stats()["faults"])
            process.send_signal(signal.SIGKILL)
        until(lambda: not running(str(server_file)))
        (row,) = shell.json("runs", "list")["runs"]
        assert row["status"] == "active"
        done = shell.run("runs", "resume", row["run_id"], *tools)
        assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Umbrella")
        # The other plan may have been in flight too.
        assert server.stats()["requests"] in ((21, 22) if stage == "plan_generation" else (21,))
    assert not running(str(server_file))


def test_a_run_goes_on_only_with_the_tools_it_began_with(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (tmp_path / "packing.md").write_text(analyst.NOTES)
    tools = ["--mcp", weather_command(), "--context", "packing.md"]
    with ModelServer(reply=analyst.play) as server:
        words = [analyst.QUERY, "--strategy", "analysis", "--model", server.model, *tools]
        limited = shell.json("solve", *words, "--max-calls", "6")
        assert limited["termination"]["reason"] == "max_calls"
        for words in (["runs", "resume"], ["runs", "resume", "--coach"], ["runs", "fork", "--at", "2"]):
            refused = shell.run(*words[:2], limited["run_id"], *words[2:], "--json")
            assert refused.returncode == 2
            missing = json.loads(refused.stdout)["error"]["tools"]
            assert set(missing) == {"climate", "fahrenheit", "search_documents"}
        assert server.stats()["requests"] == 6
        again = shell.json("runs", "resume", limited["run_id"], "--max-calls", "100", *tools)
        assert (again["status"], again["final_answer"]) == ("done", "Share: 0.7097")


QUIET: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def running(name: str) -> bool:
    found = False
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = file.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        found = found or (name in arguments and "solve" not in arguments)
    return found

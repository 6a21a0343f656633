"""What installed packages bring is used wherever a built-in part is; what cannot be loaded hurts nothing else."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reasonry
from reasonry.app.installed import installed_strategies
from reasonry.core.registry import resolve
from reasonry.errors import UsageError
from reasonry.models.choose import open_model
from reasonry.strategies import STRATEGIES
from reasonry.system import plugins
from tests.forked import ForkedProcess

from .mcp.raw import Raw
from .plugin_packages import EXAMPLE, FAULTY, PACKAGE, install_example, install_faulty
from .test_cli import Shell

pytestmark = pytest.mark.anyio

LEGS = "How many legs do 3 dogs and 2 birds have?"
STRATEGY = f"{PACKAGE}/least_to_most"
SCRIPT = (
    {"stage": "decomposition", "reply": {"subproblems": ["How many legs do 3 dogs have?", "And 2 birds?"]}},
    {"stage": "subproblem_solving", "reply": {"answer": 12}},
    {"stage": "subproblem_solving", "reply": {"answer": "4"}},
    {"stage": "final_answer", "reply": {"answer": "16"}},
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("installed") / "site"
    target.mkdir()
    install_example(target)
    install_faulty(target)
    return target


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process, as if the packages were installed beside Reasonry."""
    monkeypatch.syspath_prepend(str(site))
    plugins.installed_plugins.cache_clear()
    yield
    plugins.installed_plugins.cache_clear()
    for name in [name for name in sys.modules if name.startswith(("faulty_", "reasonry_example_plugin"))]:
        del sys.modules[name]


@pytest.fixture
def script(tmp_path: Path) -> str:
    return Shell(tmp_path).script(*SCRIPT)


def command(
    site: Path | None, store: Path, *arguments: str, **environ: str
) -> subprocess.CompletedProcess[str]:
    path = {"PYTHONPATH": "" if site is None else str(site), "REASONRY_STORE": str(store / "store.db")}
    environ = {**os.environ, "OLLAMA_HOST": "127.0.0.1:9", **path, **environ}
    words = [sys.executable, "-m", "reasonry", *arguments]
    streams: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with ForkedProcess(words, env=environ, cwd=store, text=True, **streams) as process:
        out, err = process.communicate()
    assert "Traceback" not in err, err
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def test_each_part_is_listed_as_loaded_or_with_the_reason_why_not(site: Path, tmp_path: Path) -> None:
    done = command(site, tmp_path, "plugins", "--json")
    assert done.returncode == 0
    assert "loud" not in done.stdout
    rows = {(row["kind"], row["name"]): row for row in json.loads(done.stdout)["plugins"]}
    example = {name: row["loaded"] for (_, name), row in rows.items() if name.startswith(PACKAGE)}
    assert example == {
        f"{PACKAGE}/{name}": True
        for name in ("between", "calendar", "fixed", "graph_of_thoughts", "least_to_most")
    }
    why = {
        name.removeprefix("faulty-parts/"): row["why"]
        for (kind, name), row in rows.items()
        if kind == "strategies" and not row["loaded"]
    }
    assert set(why) == {*FAULTY, "a b"} - {"fine"}
    reasons = {
        "missing": "there_is_no_such_module",
        "leaves": "SystemExit: 3",
        "worst": "out of everything",
        "stops": "GeneratorExit",
        "mute": "Mute",
        "number": "it must be a Strategy, not int",
        "empty": "has no attribute 'VALUE'",
        "table": "leads to 'nowhere'",
        "options": "msgspec.Struct",
        "a b": "its name may have letters",
    }
    for name, reason in reasons.items():
        assert reason in why[name], name
    assert why["form"]
    assert "callable" in rows["verifiers", "faulty-parts/number"]["why"]
    assert "neither a tool nor a callable" in rows["tools", "faulty-parts/number"]["why"]
    assert rows["strategies", STRATEGY]["version"] == "1.0.0"
    assert rows["strategies", STRATEGY]["package"] == PACKAGE
    people = command(site, tmp_path, "plugins")
    assert f"strategies\t{STRATEGY}\t1.0.0\tyes" in people.stdout
    assert "strategies\tfaulty-parts/leaves\t0.1\tno\tSystemExit: 3" in people.stdout


def test_a_package_with_broken_files_hides_only_its_own_parts(site: Path, tmp_path: Path) -> None:
    for name, text in {
        "undecodable": b"[reasonry.tools]\n\xff = a:b\n",
        "no_value": b"[reasonry.tools]\nwords\n",
    }.items():
        folder = tmp_path / "broken" / f"{name}-1.0.dist-info"
        folder.mkdir(parents=True)
        (folder / "entry_points.txt").write_bytes(text)
    done = command(None, tmp_path, "plugins", "--json", PYTHONPATH=f"{tmp_path / 'broken'}{os.pathsep}{site}")
    assert done.returncode == 0
    assert STRATEGY in {row["name"] for row in json.loads(done.stdout)["plugins"]}
    assert done.stderr.count("a package has files that cannot be read") == 2


def test_a_run_reads_without_the_package_and_goes_on_only_with_it(
    site: Path, tmp_path: Path, script: str
) -> None:
    done = command(site, tmp_path, "solve", LEGS, "--strategy", STRATEGY, "--model", script)
    assert (done.returncode, done.stdout) == (0, "16\n"), done.stderr
    started = command(site, tmp_path, "coach", "start", LEGS, "--strategy", STRATEGY, "--json")
    run = json.loads(started.stdout)["run_id"]
    listed = json.loads(command(None, tmp_path, "runs", "list", "--json").stdout)["runs"]
    assert [row["strategy"] for row in listed] == [STRATEGY, STRATEGY]
    ended = json.loads(command(None, tmp_path, "runs", "show", listed[1]["run_id"], "--json").stdout)
    assert (ended["answer"], len(ended["questions"])) == ("16", 4)
    shown = json.loads(command(None, tmp_path, "runs", "show", run, "--json").stdout)
    assert STRATEGY in shown["warnings"][0]
    for refused in (
        command(None, tmp_path, "runs", "resume", run, "--model", "offline", "--json"),
        command(None, tmp_path, "coach", "status", run, "--json"),
    ):
        error = json.loads(refused.stdout)["error"]
        assert (error["code"], refused.returncode) == ("strategy_unknown", 5)
        assert f"install the package {PACKAGE}" in error["message"]
    again = json.loads(command(site, tmp_path, "coach", "status", run, "--json").stdout)
    assert again["questions"][0]["stage"] == "decomposition"


def test_code_of_a_package_runs_only_when_it_is_named(site: Path, tmp_path: Path) -> None:
    seen = """
import atexit
import sys
import tomllib

def look():
    ours = [name for name in sys.modules if name.startswith(("faulty_", "reasonry_example"))]
    print("IMPORTED", *ours, file=sys.stderr)

atexit.register(look)
"""
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch" / "sitecustomize.py").write_text(seen, "utf-8")
    path = os.pathsep.join([str(tmp_path / "watch"), str(site)])
    environ = {**os.environ, "PYTHONPATH": path, "REASONRY_STORE": str(tmp_path / "store.db")}

    def tell_imported(*words: str) -> str:
        # A real start: a forked process has no sitecustomize.
        program = [sys.executable, "-m", "reasonry", *words]
        return subprocess.run(program, capture_output=True, text=True, env=environ, check=True).stderr

    for words in (
        ["--help"],
        ["solve", "Use 4, 9, 10 and 13 to make 24", "--model", "offline"],
        ["think", "x", "--number", "1", "--total", "2", "--next"],
    ):
        assert tell_imported(*words).endswith("IMPORTED\n"), words
    named = tell_imported("strategies", STRATEGY)
    assert named == "IMPORTED reasonry_example_plugin reasonry_example_plugin.least_to_most\n"


def test_over_mcp_a_strategy_is_thought_by_and_only_listed_models_and_verifiers_are_named(
    site: Path, tmp_path: Path
) -> None:
    listed = {
        "REASONRY_MODELS": f"answer={PACKAGE}/fixed:7",
        "REASONRY_VERIFIERS": f"month={PACKAGE}/between:1..12",
        "REASONRY_TOOLS": f"{PACKAGE}/calendar,broken=faulty-parts/number",
        "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]),
    }
    with Raw(tmp_path / "store.db", **listed) as raw:
        tools = {
            tool["name"]: tool["inputSchema"]["properties"]
            for tool in raw.ask("tools/list")["result"]["tools"]
        }
        assert STRATEGY in tools["sequentialthinking"]["strategy"]["description"]
        first = raw.think(strategy=STRATEGY, stage="decomposition")
        assert [stage["name"] for stage in first["nextStages"]] == ["subproblem_solving"]
        prompts = [prompt["name"] for prompt in raw.ask("prompts/list")["result"]["prompts"]]
        assert set(prompts) == {*STRATEGIES, STRATEGY, f"{PACKAGE}/graph_of_thoughts", "faulty-parts/fine"}
        lesson = raw.ask("prompts/get", {"name": STRATEGY})["result"]["messages"][0]["content"]["text"]
        assert f'`strategy: "{STRATEGY}"`' in lesson
        resources = raw.ask("resources/list")["result"]["resources"]
        (uri,) = [each["uri"] for each in resources if each["name"] == STRATEGY]
        for address in (uri, uri.replace(f"{PACKAGE}/", f"{PACKAGE}%2F")):
            read = raw.ask("resources/read", {"uri": address})["result"]["contents"][0]["text"]
            assert json.loads(read)["source"] == "arXiv:2205.10625"
        solved = raw.call("solve", problem="x", strategy="self_consistency", model="answer", verifier="month")
        assert (solved["status"], solved["answer"]) == ("done", "7")
        coached = raw.call(
            "coach", action="start", problem="x", strategy="react", tools=[f"{PACKAGE}/calendar"]
        )
        assert "days_between" in json.dumps(coached)
        for argument, name in (("model", f"{PACKAGE}/fixed:1"), ("verifier", f"{PACKAGE}/between:1..2")):
            refused = raw.call("solve", problem="x", **{argument: name})
            assert "operator" in refused["error"]["message"]
        broken = raw.call("coach", action="start", problem="x", strategy="react", tools=["broken"])
        assert "the server's log says why" in broken["error"]["message"]
        unusable = raw.call("coach", action="start", problem="x", strategy="faulty-parts/leaves")
        assert unusable["error"]["code"] == "plugin_failed"
        assert raw.think(2)["thoughtNumber"] == 2


@pytest.mark.usefixtures("installed")
async def test_python_programs_name_them_too(script: str) -> None:
    result = await reasonry.solve(LEGS, strategy=STRATEGY, model=script, store="memory")
    assert (result.answer, result.strategy, result.details["subproblems"][1]) == (
        "16",
        STRATEGY,
        "And 2 birds?",
    )
    over = {"over": STRATEGY, "samples": 1}
    voted = await reasonry.solve(
        LEGS, strategy="self_consistency", options=over, model=script, store="memory"
    )
    assert voted.answer == "16"
    tool = reasonry.thinking_tool(store="memory")
    assert STRATEGY in tool.input_schema["properties"]["strategy"]["description"]
    async with await reasonry.coach(
        LEGS,
        strategy="react",
        tools=[f"{PACKAGE}/calendar"],
        verifier=f"{PACKAGE}/between:1..20",
        store="memory",
    ) as coaching:
        assert "day_of_week" in coaching.questions[0]["prompt"]


@pytest.mark.usefixtures("installed")
def test_names_are_whole_and_spelled_as_one_likes() -> None:
    known = installed_strategies()
    assert resolve("Reasonry_Example_Plugin/Least-To-Most", known).name == STRATEGY
    with pytest.raises(UsageError, match=f"Did you mean {STRATEGY}?") as refused:
        resolve("example_plugin/least_to_most", known)
    assert {*STRATEGIES, STRATEGY, "faulty-parts/fine"} <= set(refused.value.details["choices"])
    assert "faulty-parts/a b" not in refused.value.details["choices"]
    assert resolve("sequential", known) is STRATEGIES["linear"]
    model = open_model("reasonry_example_plugin/FIXED:a:b", {})
    assert model.name == f"{PACKAGE}/fixed:a:b"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        ({"model": f"{PACKAGE}/fixed"}, "plugin_failed", "say what to answer"),
        ({"model": f"{PACKAGE}/fixd:1"}, "invalid_request", f"Did you mean {PACKAGE}/fixed?"),
        ({"model": "no-package/x:1"}, "invalid_request", "there is no model"),
        ({"verifier": f"{PACKAGE}/between:x"}, "plugin_failed", "LOW..HIGH"),
        ({"verifier": "no-package/x"}, "invalid_request", "there is no verifier"),
        ({"tools": [f"{PACKAGE}/calender"]}, "invalid_request", f"Did you mean {PACKAGE}/calendar?"),
        ({"tools": ["faulty-parts/number"]}, "plugin_failed", "neither a tool nor a callable"),
        ({"strategy": "faulty-parts/table"}, "plugin_failed", "leads to 'nowhere'"),
        ({"strategy": "faulty-parts/mute"}, "plugin_failed", "Mute"),
        ({"strategy": "faulty-parts/x"}, "invalid_request", "there is no strategy"),
    ],
)
async def test_what_cannot_be_used_is_refused_with_its_reason(
    words: dict[str, Any], code: str, reason: str
) -> None:
    for _ in range(2):
        with pytest.raises(UsageError) as refused:
            await reasonry.solve("x", **{"model": "offline", **words}, store="memory")
        assert refused.value.code == code
        assert reason in refused.value.message


def test_the_page_about_plugins_holds(site: Path, tmp_path: Path) -> None:
    page = (EXAMPLE.parents[1] / "docs" / "plugins.md").read_text("utf-8")
    (toml,) = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    written = tomllib.loads((EXAMPLE / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    assert tomllib.loads(toml)["project"]["entry-points"] == written
    commands = re.findall(r"^\$ reasonry (.*)$", page, re.MULTILINE)
    assert len(commands) == 3
    for words in commands:
        done = command(site, tmp_path, *shlex.split(words))
        assert done.returncode == 0, done.stderr
        assert f"{PACKAGE}/least_to_most" in done.stdout or done.stdout == "42\n"

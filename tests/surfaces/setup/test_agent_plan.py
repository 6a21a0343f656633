"""Every agent's own files, on every system: what comes in goes out again, and nothing else is ever touched."""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from reasonry.errors import ConflictError, ReasonryError, UsageError
from reasonry.surfaces.cli.setup import server_options
from reasonry.surfaces.setup.agent_plan import (
    AgentPlan,
    SetupRequest,
    compare_skills,
    plan_setup,
    skill_files,
)
from reasonry.surfaces.setup.agents import (
    AGENTS,
    Agent,
    Launch,
    Machine,
    find_agent,
    read_launch,
    this_installation,
)
from reasonry.surfaces.setup.config_file import (
    edit_text,
    find_entry,
    make_change,
    read_config,
    read_data,
)

from .fixtures import CLAUDE, texts

SYSTEMS = ("Linux", "Darwin", "Windows")
LAUNCH = Launch("/opt/reasonry tools/bin/reasonry", ("mcp",))
WANTED = SetupRequest(LAUNCH, "reasonry")
GONE = structs.replace(WANTED, remove=True)
ALL = pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)


class Desk:
    """A machine of one user in a folder."""

    def __init__(self, folder: Path, system: str = "Linux", **environ: str) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.project = folder / "project"
        self.home.mkdir(parents=True, exist_ok=True)
        self.project.mkdir(exist_ok=True)
        self.machine = Machine(system, self.home, environ, self.project)

    def plan(self, agent: Agent, wanted: SetupRequest = WANTED) -> AgentPlan:
        return plan_setup(self.machine, agent, wanted)

    def add(self, agent: Agent, wanted: SetupRequest = WANTED) -> AgentPlan:
        plan = self.plan(agent, wanted)
        carry_out(plan)
        return plan

    def take_out(self, agent: Agent, wanted: SetupRequest = WANTED) -> AgentPlan:
        return self.add(agent, structs.replace(wanted, remove=True))

    def file(self, agent: Agent) -> Path:
        return self.machine.config_file(agent)

    def entry(self, agent: Agent, name: str = "reasonry") -> Any:
        text = read_config(self.file(agent))
        return find_entry(read_data(agent.format, text or ""), (*agent.keys, name))

    def tree(self) -> dict[str, bytes]:
        """Return all files of the user and the project."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for root in (self.home, self.project)
            for path in sorted(root.rglob("*"))
            if path.is_file()
        }


def carry_out(plan: AgentPlan) -> None:
    for change in plan.changes:
        make_change(change)


def write(path: Path, text: str | None) -> None:
    if text is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


@pytest.fixture(autouse=True)
def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the disk take its time."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@ALL
def test_set_up_and_taken_out_all_is_as_it_was(agent: Agent, tmp_path: Path) -> None:
    for number, (kind, text) in enumerate(texts(agent.name, agent.format).items()):
        desk = Desk(tmp_path / kind, SYSTEMS[number % len(SYSTEMS)])
        path = desk.file(agent)
        write(path, text)
        plan = desk.add(agent)
        assert plan.state == "add", kind
        assert read_launch(desk.entry(agent), agent.shape) == LAUNCH, kind
        after = desk.tree()
        again = desk.plan(agent)
        assert again.state == "unchanged", kind
        assert again.changes == []
        carry_out(again)
        assert desk.tree() == after, kind
        assert desk.take_out(agent).state == "remove"
        assert desk.entry(agent) is None
        left = path.read_bytes().decode() if path.exists() else None
        assert (left is None) == (text is None), kind
        now, before = (read_data(agent.format, text or "") for text in (left, text))
        assert now == {key: value for key, value in before.items() if value or key not in agent.keys}, kind
        kept = desk.tree()
        assert {Path(name).name for name in kept} <= {path.name, f"{path.name}.reasonry.bak"}
        assert desk.take_out(agent).state == "absent"
        assert desk.tree() == kept, kind


@ALL
def test_an_entry_of_somebody_else_stays(agent: Agent, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    theirs = Launch("/their/own", ("thing",), {"KEY": "sk-not-to-be-shown"}).entry(agent.shape, "reasonry")
    entry = {"keep": {"a": "b"}} if agent.format == "json" else theirs
    text = edit_text(agent.format, "", (*agent.keys, "reasonry"), entry)
    write(desk.file(agent), text)
    before = desk.tree()
    for plan in (desk.plan(agent), desk.plan(agent, GONE)):
        assert isinstance(plan.error, ConflictError)
        assert "--name" in plan.error.message
        assert "sk-not-to-be-shown" not in plan.error.message
    assert desk.tree() == before
    beside = structs.replace(WANTED, name="reasonry-2", with_skills=False)
    desk.add(agent, beside)
    desk.take_out(agent, beside)
    assert desk.entry(agent) == entry


@ALL
def test_a_new_place_of_the_program_is_written_without_a_question(agent: Agent, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    path = desk.file(agent)
    write(path, texts(agent.name, agent.format)["its own"])
    desk.add(agent)
    mine = {**desk.entry(agent), agent.shape.env: {"MINE": "1"}}
    path.write_text(
        edit_text(agent.format, path.read_text("utf-8"), (*agent.keys, "reasonry"), mine), "utf-8"
    )
    moved = Launch("/moved/reasonry", ("mcp", "--store", "memory"))
    assert desk.add(agent, structs.replace(WANTED, launch=moved)).state == "update"
    assert read_launch(desk.entry(agent), agent.shape) == structs.replace(moved, env={"MINE": "1"})
    desk.take_out(agent)
    assert desk.entry(agent) is None


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    desk, cursor = Desk(tmp_path), find_agent("cursor")
    real = tmp_path / "dotfiles" / "cursor.json"
    write(real, "{}\n")
    real.chmod(0o600)
    path = desk.file(cursor)
    path.parent.mkdir()
    path.symlink_to(real)
    desk.add(cursor)
    assert path.is_symlink()
    assert json.loads(real.read_text("utf-8"))["mcpServers"]["reasonry"]["args"] == ["mcp"]
    assert real.stat().st_mode & 0o777 == 0o600
    assert {entry.name for entry in real.parent.iterdir()} == {"cursor.json", "cursor.json.reasonry.bak"}
    desk.take_out(cursor)
    assert path.is_symlink()
    assert json.loads(real.read_text("utf-8")) == {}


def test_a_file_that_changes_while_the_new_one_is_synced_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, cursor = Desk(tmp_path), find_agent("cursor")
    desk.add(cursor)
    plan = desk.plan(cursor, structs.replace(WANTED, launch=Launch("/moved/reasonry")))
    path = desk.file(cursor)
    theirs, sync = '{"mcpServers": {"new": {}}}', os.fsync

    def write_meanwhile(descriptor: int) -> None:
        sync(descriptor)
        path.write_text(theirs, "utf-8")

    monkeypatch.setattr(os, "fsync", write_meanwhile)
    with pytest.raises(ConflictError, match="meanwhile"):
        carry_out(plan)
    assert path.read_text("utf-8") == theirs
    assert [entry.name for entry in path.parent.iterdir()] == ["mcp.json"]


def test_a_file_that_cannot_be_written_is_an_error_and_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, cursor = Desk(tmp_path), find_agent("cursor")
    desk.add(cursor)
    before = desk.tree()
    moved = structs.replace(WANTED, launch=Launch("/moved/reasonry", ("mcp",)))

    def refuse(source: str, target: Path) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        with pytest.raises(ReasonryError, match="cannot be written: Permission denied"):
            desk.add(cursor, moved)
    assert desk.tree() == before
    assert desk.add(cursor, moved).state == "update"


@pytest.mark.skipif(
    not hasattr(os, "fork"), reason="a process is killed in the middle by one that was forked"
)
def test_a_setup_killed_at_any_instant_leaves_a_whole_file_and_the_next_one_works(tmp_path: Path) -> None:
    claude, killed = find_agent("claude"), 0
    for instant in range(200):
        desk = Desk(tmp_path / str(instant))
        path = desk.file(claude)
        write(path, CLAUDE)
        path.chmod(0o600)
        status = in_child(lambda desk=desk: desk.add(claude), killed_at=instant)
        if status == 0:
            break
        killed += 1
        assert os.WTERMSIG(status) == signal.SIGKILL
        now = path.read_text("utf-8")
        assert now == CLAUDE or json.loads(now)["mcpServers"]["reasonry"]
        backup = path.with_name(f"{path.name}.reasonry.bak")
        assert {entry for entry in desk.home.iterdir() if entry.is_file()} <= {path, backup}
        assert not backup.exists() or backup.stat().st_mode & 0o777 == 0o600
        desk.add(claude)
        assert desk.plan(claude).state == "unchanged"
        assert desk.take_out(claude).state == "remove"
        assert path.read_text("utf-8") == CLAUDE
    assert killed > 10


def in_child(work: Callable[[], object], *, killed_at: int) -> int:
    """Do it in a process that is killed as it touches files for the so-many-eth time; return how it ended."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    touched = 0

    def count(event: str, details: object) -> None:
        nonlocal touched
        if event in {"open", "os.mkdir", "os.rename", "os.remove", "os.chmod", "os.chown"}:
            touched += 1
            if touched > killed_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    try:
        work()
    finally:
        os._exit(0)


def test_skills_are_shared_by_those_who_read_one_folder(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    codex, gemini, claude = map(find_agent, ("codex", "gemini", "claude"))
    folder = desk.machine.skills_folder(codex)
    assert folder is not None
    assert compare_skills(folder) == "missing"
    for agent in (codex, gemini, claude):
        desk.add(agent)
    assert compare_skills(folder) == "current"
    shared = [desk.home / ".agents" / "skills" / path for path in skill_files()]
    own = [desk.home / ".claude" / "skills" / path for path in skill_files()]
    assert all(
        path.read_text("utf-8") == skill_files()[path.relative_to(path.parents[1])] for path in shared + own
    )
    desk.take_out(codex)
    assert all(path.exists() for path in shared)
    desk.take_out(gemini)
    assert not any(path.parent.exists() for path in shared)
    assert all(path.exists() for path in own)
    desk.take_out(claude)
    assert not any(path.parent.exists() for path in own)


def test_a_skill_that_is_the_users_stays(tmp_path: Path) -> None:
    desk, claude = Desk(tmp_path), find_agent("claude")
    first, *rest = [desk.home / ".claude" / "skills" / path for path in skill_files()]
    write(first, "mine")
    desk.add(claude)
    assert first.read_text("utf-8") == "mine"
    for path in rest:
        path.write_text("edited", "utf-8")
    assert compare_skills(desk.home / ".claude" / "skills") == "different"
    desk.take_out(claude)
    assert first.read_text("utf-8") == "mine"
    assert all(path.read_text("utf-8") == "edited" for path in rest)


def test_a_skill_of_an_earlier_version_is_replaced_and_kept_beside(tmp_path: Path) -> None:
    desk, claude = Desk(tmp_path), find_agent("claude")
    first, *_ = [desk.home / ".claude" / "skills" / path for path in skill_files()]
    write(first, "an earlier skill of Reasonry")
    assert [skill.state for skill in desk.add(claude).skills] == ["update", "add"]
    assert compare_skills(desk.home / ".claude" / "skills") == "current"
    assert first.with_name("SKILL.md.reasonry.bak").read_text("utf-8") == "an earlier skill of Reasonry"


@pytest.mark.parametrize(
    ("name", "system", "environ", "place"),
    [
        ("claude", "Linux", {}, "home/.claude.json"),
        ("claude", "Linux", {"CLAUDE_CONFIG_DIR": "{}/other"}, "other/.claude.json"),
        ("claude-desktop", "Linux", {}, "home/.config/Claude/claude_desktop_config.json"),
        (
            "claude-desktop",
            "Darwin",
            {},
            "home/Library/Application Support/Claude/claude_desktop_config.json",
        ),
        ("claude-desktop", "Windows", {}, "home/AppData/Roaming/Claude/claude_desktop_config.json"),
        ("claude-desktop", "Windows", {"APPDATA": "{}/roaming"}, "roaming/Claude/claude_desktop_config.json"),
        ("cursor", "Windows", {}, "home/.cursor/mcp.json"),
        ("vscode", "Linux", {}, "home/.config/Code/User/mcp.json"),
        ("vscode", "Linux", {"XDG_CONFIG_HOME": "{}/xdg"}, "xdg/Code/User/mcp.json"),
        ("vscode", "Darwin", {}, "home/Library/Application Support/Code/User/mcp.json"),
        ("vscode", "Windows", {}, "home/AppData/Roaming/Code/User/mcp.json"),
        ("codex", "Linux", {}, "home/.codex/config.toml"),
        ("codex", "Windows", {"CODEX_HOME": "{}/codex"}, "codex/config.toml"),
        ("gemini", "Darwin", {}, "home/.gemini/settings.json"),
        ("zed", "Darwin", {}, "home/.config/zed/settings.json"),
        ("zed", "Windows", {}, "home/AppData/Roaming/Zed/settings.json"),
        ("goose", "Windows", {}, "home/AppData/Roaming/Block/goose/config/config.yaml"),
        ("goose", "Linux", {"XDG_CONFIG_HOME": "relative"}, "home/.config/goose/config.yaml"),
        ("copilot", "Linux", {}, "home/.copilot/mcp-config.json"),
        ("opencode", "Windows", {}, "home/.config/opencode/opencode.json"),
    ],
)
def test_the_places_are_those_of_the_system(
    name: str, system: str, environ: dict[str, str], place: str, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, system, **{key: value.format(tmp_path) for key, value in environ.items()})
    assert desk.file(find_agent(name)) == tmp_path / place


def test_a_packaged_app_on_windows_has_a_folder_of_its_own(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "Windows")
    package = desk.home / "AppData" / "Local" / "Packages" / "Claude_pzs8sxrjxfjjc"
    assert not desk.machine.has(find_agent("claude-desktop"))
    package.mkdir(parents=True)
    assert desk.machine.has(find_agent("claude-desktop"))
    path = desk.file(find_agent("claude-desktop"))
    assert path == package / "LocalCache" / "Roaming" / "Claude" / "claude_desktop_config.json"


def test_the_file_that_is_there_is_taken(tmp_path: Path) -> None:
    desk, opencode = Desk(tmp_path), find_agent("opencode")
    commented = desk.file(opencode).with_suffix(".jsonc")
    write(commented, "// mine\n{}\n")
    assert desk.file(opencode) == commented


@ALL
def test_an_agent_is_found_by_its_traces(agent: Agent, tmp_path: Path) -> None:
    for number, system in enumerate(SYSTEMS):
        desk = Desk(tmp_path / str(number), system, PATH="")
        assert not desk.machine.has(agent)
        write(desk.file(agent), "")
        assert desk.machine.has(agent)


def test_an_agent_is_found_by_its_command(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    write(programs / ("codex.exe" if sys.platform == "win32" else "codex"), "")
    for path in programs.iterdir():
        path.chmod(0o755)
    assert [agent.name for agent in Desk(tmp_path, PATH=str(programs)).machine.agents()] == ["codex"]


def test_the_command_of_this_installation_is_one_that_runs_from_anywhere() -> None:
    launch = this_installation()
    assert Path(launch.command).is_absolute()
    assert Path(launch.command).exists()
    assert launch.args[-1] == "mcp"


def test_an_installation_of_uvx_is_started_by_uvx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suffix = ".exe" if os.name == "nt" else ""
    for name in ("uv", "uvx"):
        write(tmp_path / f"{name}{suffix}", "")
        (tmp_path / f"{name}{suffix}").chmod(0o755)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "archive-v0" / "k7Jx"))
    monkeypatch.setenv("UV", str(tmp_path / f"uv{suffix}"))
    launch = this_installation()
    assert launch.command == str(tmp_path / f"uvx{suffix}")
    assert launch.args[0] == "--from"  # Here the package is that of a clone, with extras.
    assert launch.args[-2:] == ("reasonry", "mcp")


def test_options_hold_in_every_folder(tmp_path: Path) -> None:
    assert server_options("here.db", None, (), tmp_path) == ("--store", str(tmp_path / "here.db"))
    assert server_options("sqlite:here.db", None, (), tmp_path) == ("--store", str(tmp_path / "here.db"))
    assert server_options("memory", "offline", ("fast=openai:gpt-6",), tmp_path) == (
        *("--store", "memory", "--model", "offline", "--models", "fast=openai:gpt-6"),
    )
    with pytest.raises(UsageError):
        server_options(None, None, ("offline=openai:gpt-6",), tmp_path)
    for store in ("", "//host/x", "mongodb://host/x"):
        with pytest.raises(UsageError):
            server_options(store, None, (), tmp_path)

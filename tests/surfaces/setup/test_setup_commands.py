"""`reasonry setup` and `reasonry doctor` in a home of their own."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from ..test_cli import Shell
from .fixtures import CLAUDE, CODEX, VSCODE


class Home(Shell):
    """A user with a home, in which nothing but what a test puts there is installed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "home")
        self.cwd = self.project = folder / "project"
        self.folder.mkdir()
        self.project.mkdir()
        del self.environ["REASONRY_STORE"]
        self.environ |= {
            **{name: os.environ[name] for name in ("SYSTEMROOT", "TEMP") if name in os.environ},
            "PATH": str(folder / "bin"),
            "APPDATA": str(self.folder / "AppData" / "Roaming"),
            "LOCALAPPDATA": str(self.folder / "AppData" / "Local"),
            "XDG_CONFIG_HOME": str(self.folder / ".config"),
            "XDG_DATA_HOME": str(self.folder / ".local" / "share"),
            "OLLAMA_HOST": "127.0.0.1:9",
        }

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    def tree(self) -> dict[str, bytes]:
        """Return all files but those of Reasonry itself."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.suffix != ".bak" and ".local/share/reasonry" not in path.as_posix()
        }


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the places of the files below are those of Linux"
)


def test_all_that_is_installed_is_set_up_checked_and_taken_out(home: Home) -> None:
    home.write(".claude.json", CLAUDE)
    home.write(".codex/config.toml", CODEX.replace("\n", "\r\n"))
    home.write(".config/Code/User/mcp.json", VSCODE)
    before = home.tree()

    shown = home.run("setup")
    assert shown.returncode == 0
    assert "Nothing was written" in shown.stdout
    for title in ("Claude Code", "Codex", "VS Code"):
        assert re.search(rf"^{title} +\+ reasonry in ", shown.stdout, re.MULTILINE)
    assert "sk-secret" not in shown.stdout
    assert home.tree() == before

    document = json.loads(home.run("setup", "all", "--json").stdout)
    assert document["done"] is True
    assert {row["agent"]: row["state"] for row in document["agents"]} == dict.fromkeys(
        ("claude", "vscode", "codex"), "add"
    )
    after = home.tree()
    assert "already in" in home.run("setup", "claude", "codex").stdout
    assert home.tree() == after

    checked = home.run("doctor", "--json")
    rows: dict[str, Any] = {row["agent"]: row["entries"] for row in json.loads(checked.stdout)["agents"]}
    assert checked.returncode == 0, rows
    for name in ("claude", "vscode", "codex"):
        assert [row["ok"] for row in rows[name]] == [True]
        assert rows[name][0]["tools"][0] == "sequentialthinking"

    assert shown.stdout.count("think-it-through") == 2, "one line for each folder of skills"
    assert '"command"' not in shown.stdout, "the diff is for a dry run"
    gone = home.run("setup", "all", "--remove")
    assert gone.returncode == 0, gone.stderr
    assert home.tree() == before


def test_dry_run_names_all_and_does_nothing(home: Home) -> None:
    before = home.tree()
    done = home.run("setup", "cursor", "zed", "--dry-run", "--store", "mine.db", "--name", "thinking")
    assert done.returncode == 0
    assert '"thinking": {' in done.stdout
    assert str(home.project / "mine.db") in done.stdout
    assert "Nothing was written" in done.stdout
    assert home.tree() == before


def test_what_is_refused_is_said_and_the_others_are_done(home: Home) -> None:
    home.write(".cursor/mcp.json", '{"mcpServers": {"reasonry": {"command": "theirs"}}}')
    home.write(".gemini/settings.json", "{")
    done = home.run("setup", "cursor", "gemini", "codex", "--no-skills")
    assert done.returncode == 5
    assert "--name" in done.stderr
    assert "cannot be edited as JSON" in done.stderr
    assert (home.folder / ".codex" / "config.toml").exists()
    assert (home.folder / ".gemini" / "settings.json").read_text() == "{"
    document = json.loads(home.run("setup", "emacs", "--json").stdout)
    assert document["error"]["code"] == "not_found"
    assert home.run("setup", "--name", "a b", "cursor").returncode == 2
    assert home.run("setup").stdout.count("+ reasonry") == 0


def test_a_removal_says_what_failed_and_deletes_what_setup_created(home: Home) -> None:
    home.write(".zed", "")
    before = home.tree()
    assert home.run("setup", "cursor", "codex").returncode == 0
    assert home.run("setup", "cursor", "--store", "memory").returncode == 0
    broken = home.write(".gemini/settings.json", "{")
    gone = home.run("setup", "cursor", "codex", "gemini", "--remove")
    assert gone.returncode == 2
    assert "Restart Cursor, Codex. Failed: Gemini CLI." in gone.stdout
    assert "Done" not in gone.stdout
    broken.unlink()
    assert home.tree() == before


def test_the_doctor_tells_what_does_not_work_and_what_to_do(home: Home) -> None:
    home.write(
        ".cursor/mcp.json", '{"mcpServers": {"reasonry": {"command": "/gone/reasonry", "args": ["mcp"]}}}'
    )
    failing = "import sys; print('the reason', file=sys.stderr); sys.exit(3)"
    servers = {"thinking": {"command": sys.executable, "args": ["-c", failing, "reasonry"]}}
    home.write(".claude.json", json.dumps({"mcpServers": servers}))
    home.write(".codex/config.toml", "x = \n")
    done = home.run("doctor")
    assert done.returncode == 1
    text = " ".join(done.stdout.split())
    assert "PROBLEM: Cursor: 'reasonry' in" in text
    assert "set it up again" in text
    assert "ended with exit code 3" in text
    assert "the reason" in text
    assert "PROBLEM: Codex:" in text
    assert "3 problems to fix" in text

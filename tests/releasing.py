"""A copy of this project that could be released: everything committed, an owner, a dated changelog."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
OWNER = "some-owner"


def load_script(path: Path) -> ModuleType:
    """Return a program of this project that is no part of the package."""
    found = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[module.__name__] = module
    found.loader.exec_module(module)
    return module


def git(root: Path, *arguments: str) -> str:
    command = [
        "git",
        "-c",
        "user.name=Tester",
        "-c",
        "user.email=tester@example.org",
        "-C",
        str(root),
        *arguments,
    ]
    return subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout


def can_release() -> bool:
    """Whether there is what a release takes: git, a clone, and uv."""
    tools = shutil.which("git") and (os.environ.get("UV") or shutil.which("uv"))
    return bool(tools) and (ROOT / ".git").exists()


def copy_project(to: Path) -> Path:
    """Copy what git has or would have, changes that are not committed included."""
    for name in git(ROOT, "ls-files", "-co", "--exclude-standard", "-z").split("\0"):
        if name and (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, to / name)
    return to


def set_owner(root: Path, owner: str = OWNER) -> None:
    change(root / "plugins" / "plugin.toml", r'^owner = ".*"', f'owner = "{owner}"')
    subprocess.run([sys.executable, str(root / "plugins" / "generate.py")], check=True, capture_output=True)


def date_changelog(root: Path) -> None:
    """Give the open entries the heading of the version that is released."""
    version = re.search(r'^version = "(.+)"', (root / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert version is not None
    change(root / "CHANGELOG.md", r"^## .* \(unreleased\)$", f"## {version[1]} (2026-11-22)")


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "A change")


def change(path: Path, pattern: str, replacement: str) -> None:
    text = path.read_text("utf-8")
    path.write_text(re.sub(pattern, replacement, text, flags=re.MULTILINE), "utf-8", newline="\n")


def releasable(to: Path) -> Path:
    """Return a copy of the project that `python release` builds."""
    copy_project(to)
    git(to, "init", "-q")
    set_owner(to)
    date_changelog(to)
    commit(to)
    return to

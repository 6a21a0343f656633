"""What must hold of the source before anything is built from it."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

HEADING = re.compile(r"^## (.+?)\s*$", re.MULTILINE)
RELEASED = re.compile(r"(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?) \(\d{4}-\d{2}-\d{2}\)")
SOURCE = re.compile(r'src(?:set)?="(?![a-z]+:)')
HINT = " Put the address of this repository in place of `REPOSITORY_URL`."
LINK = re.compile(r"(!?)\[([^\]\n]*)\]\(([^)\s]+)\)")


def git(root: Path, *arguments: str) -> str:
    """Return what git prints; an error of git is one of ours."""
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout


def load_generator(root: Path) -> ModuleType:
    """Return the program that writes the manifests."""
    found = importlib.util.spec_from_file_location("generate_plugins", root / "plugins" / "generate.py")
    if found is None or found.loader is None:
        raise FileNotFoundError(f"{root} has no plugins/generate.py")
    module = importlib.util.module_from_spec(found)
    sys.modules[module.__name__] = module  # Its data classes look themselves up there.
    found.loader.exec_module(module)
    return module


def read_project(root: Path) -> dict[str, str]:
    """Return the table `project` of pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]


def find_problems(root: Path, tag: str | None = None) -> list[str]:
    """Return why nothing may be released from this source; an empty list: it may.

    Args:
        tag: The tag that is being released, if there is one.
    """
    version = read_project(root)["version"]
    problems = [*_tree(root), *_manifests(root), *_changelog(root, version)]
    if tag is not None and tag != f"v{version}":
        problems.append(f"the tag {tag} is not v{version}, the version in pyproject.toml")
    return problems


def _tree(root: Path) -> list[str]:
    changed = [line[3:] for line in git(root, "status", "--porcelain").splitlines()]
    return [f"the tree has changes that are not committed: {', '.join(changed[:5])}"] if changed else []


def _manifests(root: Path) -> list[str]:
    generator = load_generator(root)
    source = generator.read_source(root)
    if source.owner == generator.PLACEHOLDER:
        return [
            f"the owner is not set: replace {generator.PLACEHOLDER} in plugins/plugin.toml, then run make plugins"
        ]
    problems = [
        f"{path.relative_to(root).as_posix()} is stale: run make plugins" for path in generator.stale(source)
    ]
    left = f"{generator.PLACEHOLDER}/{source.plugin['name']}"
    pages = git(root, "ls-files", "--", "*.md", "*.toml", "*.json", "*.yml").splitlines()
    problems += [f"{page} still says {left}" for page in pages if left in (root / page).read_text("utf-8")]
    return problems


def _changelog(root: Path, version: str) -> list[str]:
    headings = HEADING.findall((root / "CHANGELOG.md").read_text("utf-8"))
    open_ones = [heading for heading in headings if "unreleased" in heading.lower()]
    if open_ones:
        return [
            f"CHANGELOG.md has unreleased entries: give '{open_ones[0]}' the form '## {version} (YYYY-MM-DD)'"
        ]
    latest = RELEASED.fullmatch(headings[0]) if headings else None
    if latest is None or latest[1] != version:
        return [
            f"the first heading of CHANGELOG.md is not '## {version} (YYYY-MM-DD)', the version in pyproject.toml"
        ]
    return []


def link_to_repository(readme: str, repository: str, version: str) -> str:
    """Return the README with the repository's address, and links that lead to the files of this version."""
    readme = readme.replace(HINT, "").replace("REPOSITORY_URL", repository)
    raw = repository.replace("https://github.com/", "https://raw.githubusercontent.com/")

    def absolute(link: re.Match[str]) -> str:
        picture, text, target = link.groups()
        if re.match(r"[a-z]+:|#", target):
            return link[0]
        place = f"{raw}/v{version}" if picture else f"{repository}/blob/v{version}"
        return f"{picture}[{text}]({place}/{target})"

    return SOURCE.sub(rf"\g<0>{raw}/v{version}/", LINK.sub(absolute, readme))

"""Writes every plugin, marketplace and registry manifest: `uv run python plugins/generate.py [--check]`.

They are written from plugin.toml, and the skills are copied from the package. With --check nothing is written, and the
exit code is 1 if something is stale.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PLACEHOLDER = "OWNER"
"""What stands for the owner's name until somebody sets it."""

SKILLS = "src/reasonry/surfaces/setup/skills"
FOLDER = "plugins/reasonry"
COPIES = ("skills", f"{FOLDER}/skills")
"""Where skills are looked for: by clients that take the repository itself, and in the plugin."""

AGENT_PLUGINS = "https://agent-plugins.org/schemas/1.0.0"
MCP_REGISTRY = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"

MARKER = re.compile(r"^<!-- mcp-name.* -->$", re.MULTILINE)
URLS = re.compile(r"(?<=^\[project\.urls\]\n)(?:\w+ = .*\n)*", re.MULTILINE)

Json = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """What the manifests are written from.

    Args:
        root: The folder of the project.
        plugin: What plugin.toml says.
        project: The table `project` of pyproject.toml.
    """

    root: Path
    plugin: Mapping[str, Any]
    project: Mapping[str, Any]

    @property
    def owner(self) -> str:
        return self.plugin["owner"]

    @property
    def repository(self) -> str:
        return f"https://github.com/{self.owner}/{self.plugin['name']}"

    @property
    def description(self) -> str:
        return self.plugin["description"].strip()

    @property
    def about(self) -> Json:
        """What all plugin manifests say in the same words."""
        return {
            "name": self.plugin["name"],
            "version": self.project["version"],
            "description": self.description,
            "author": {"name": self.owner, "url": f"https://github.com/{self.owner}"},
            "homepage": self.repository,
            "repository": self.repository,
            "license": self.project["license"],
            "keywords": self.project["keywords"],
        }

    def servers(self, **more: str) -> Json:
        server = self.plugin["server"]
        return {self.plugin["name"]: {**more, "command": server["command"], "args": server["arguments"]}}


def read_source(root: Path = ROOT) -> Source:
    plugin = tomllib.loads((root / "plugins" / "plugin.toml").read_text("utf-8"))
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    return Source(root, plugin, project)


def portable_plugin(source: Source) -> dict[str, Json]:
    """Return the manifests of Agent Plugins 1.0."""
    return {
        "plugin.json": {"$schema": f"{AGENT_PLUGINS}/plugin.schema.json", **source.about},
        "mcp.json": {
            "$schema": f"{AGENT_PLUGINS}/mcp.schema.json",
            "mcpServers": source.servers(type="stdio"),
        },
    }


def claude_plugin(source: Source) -> Json:
    """Return the manifest for Claude Code; it finds `skills/` and `.mcp.json` by itself."""
    return source.about


def codex_plugin(source: Source) -> Json:
    """Return the manifest for Codex."""
    return {
        **source.about,
        "skills": "./skills/",
        "mcpServers": "./.mcp.json",
        "interface": {
            "displayName": source.plugin["title"],
            "shortDescription": source.plugin["summary"],
            "longDescription": source.description,
            "developerName": source.owner,
            "category": source.plugin["category"],
            "capabilities": ["Read", "Write"],
            "websiteURL": source.repository,
            "defaultPrompt": source.plugin["prompts"],
        },
    }


def claude_marketplace(source: Source) -> Json:
    """Return the catalogue for Claude Code; the version stands in the plugin's own manifest alone."""
    name = source.plugin["name"]
    return {
        "name": name,
        "description": source.plugin["summary"],
        "owner": {"name": source.owner},
        "plugins": [{"name": name, "source": f"./{FOLDER}", "description": source.description}],
    }


def codex_marketplace(source: Source) -> Json:
    """Return the catalogue for Codex."""
    entry = {
        "name": source.plugin["name"],
        "source": {"source": "local", "path": f"./{FOLDER}"},
        "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
        "category": source.plugin["category"],
    }
    return {
        "name": source.plugin["name"],
        "interface": {"displayName": source.plugin["title"]},
        "plugins": [entry],
    }


def gemini_extension(source: Source) -> Json:
    """Return the manifest for Gemini CLI, which takes the repository itself and finds `skills/` by itself."""
    names = ("name", "version", "description")
    return {**{name: source.about[name] for name in names}, "mcpServers": source.servers()}


def registry_entry(source: Source) -> Json:
    """Return the server's entry in the MCP registry."""
    command, package, *arguments = (source.plugin["server"]["command"], *source.plugin["server"]["arguments"])
    variables = source.plugin["variables"].items()
    return {
        "$schema": MCP_REGISTRY,
        "name": f"io.github.{source.owner}/{source.plugin['name']}",
        "title": source.plugin["title"],
        "description": source.plugin["summary"],
        "version": source.project["version"],
        "repository": {"url": source.repository, "source": "github"},
        "websiteUrl": source.repository,
        "packages": [
            {
                "registryType": "pypi",
                "identifier": package,
                "version": source.project["version"],
                "runtimeHint": command,
                "transport": {"type": "stdio"},
                "packageArguments": [{"type": "positional", "value": value} for value in arguments],
                "environmentVariables": [{"name": name, "description": text} for name, text in variables],
            }
        ],
    }


def manifests(source: Source) -> dict[str, Json]:
    """Return every manifest by its path."""
    in_folder = {
        **portable_plugin(source),
        ".mcp.json": {"mcpServers": source.servers()},
        ".claude-plugin/plugin.json": claude_plugin(source),
        ".codex-plugin/plugin.json": codex_plugin(source),
    }
    return {
        **{f"{FOLDER}/{path}": document for path, document in in_folder.items()},
        ".claude-plugin/marketplace.json": claude_marketplace(source),
        ".agents/plugins/marketplace.json": codex_marketplace(source),
        "gemini-extension.json": gemini_extension(source),
        "server.json": registry_entry(source),
    }


def marked_pages(source: Source) -> dict[str, str]:
    """Return the README and pyproject.toml with the lines in them that name the owner."""
    readme = (source.root / "README.md").read_text("utf-8")
    project = (source.root / "pyproject.toml").read_text("utf-8")
    # Until somebody sets the owner, no reader of the README meets a placeholder.
    name = "" if source.owner == PLACEHOLDER else f": {registry_entry(source)['name']}"
    urls = {
        "Repository": source.repository,
        "Documentation": f"{source.repository}/tree/main/docs#readme",
        "Changelog": f"{source.repository}/blob/main/CHANGELOG.md",
        "Issues": f"{source.repository}/issues",
    }
    lines = "".join(f'{label} = "{url}"\n' for label, url in urls.items())
    return {
        "README.md": fill(readme, MARKER, f"<!-- mcp-name{name} -->", "README.md"),
        "pyproject.toml": fill(project, URLS, lines, "pyproject.toml"),
    }


def fill(text: str, place: re.Pattern[str], content: str, page: str) -> str:
    """Put the content into the only place that the page has for it."""
    if len(place.findall(text)) != 1:
        raise ValueError(f"{page} must have one place for: {content}")
    return place.sub(lambda _: content, text)


def wanted(source: Source) -> dict[Path, str]:
    """Return every generated file with what it is to hold."""
    texts = {
        path: json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        for path, document in manifests(source).items()
    }
    texts |= marked_pages(source)
    skills = source.root / SKILLS
    for path in sorted(skill for skill in skills.rglob("*") if skill.is_file()):
        for copy in COPIES:
            texts[f"{copy}/{path.relative_to(skills).as_posix()}"] = path.read_text("utf-8")
    for path in (source.root / FOLDER / "workflows").glob("*.js"):
        # Written by hand, where the one client that runs them looks.
        texts[path.relative_to(source.root).as_posix()] = path.read_text("utf-8")
    return {source.root / path: text for path, text in texts.items()}


def stale(source: Source) -> list[Path]:
    """Return what is not as it is to be: files that are missing, differ, or should not be there."""
    files = wanted(source)
    differ = [path for path, text in files.items() if not path.is_file() or path.read_text("utf-8") != text]
    folders = [source.root / folder for folder in (*COPIES, FOLDER)]
    there = {path for folder in folders for path in folder.rglob("*") if path.is_file()}
    return sorted({*differ, *(there - files.keys())})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 if something is stale"
    )
    check = parser.parse_args().check
    source = read_source()
    files = wanted(source)
    for path in stale(source):
        print(
            f"{'stale' if check else 'written' if path in files else 'removed'}: {path.relative_to(ROOT).as_posix()}"
        )
        if not check and path in files:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path], "utf-8", newline="\n")
        elif not check:
            path.unlink()
    return 1 if check and stale(source) else 0


if __name__ == "__main__":
    sys.exit(main())

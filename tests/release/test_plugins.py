"""The manifests of plugins and registries are written from one source, and have the form that each client takes."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reasonry.surfaces.cli import settings

from ..releasing import ROOT, change, copy_project, load_script, set_owner
from ..surfaces.mcp.raw import Raw

GENERATOR = load_script(ROOT / "plugins" / "generate.py")
PLUGIN = ROOT / "plugins" / "reasonry"
CLIENT_FORMS = ("plugin.json", ".claude-plugin/plugin.json", ".codex-plugin/plugin.json")


def read(path: str | Path) -> dict[str, Any]:
    return json.loads((ROOT / path).read_text("utf-8"))


def generate(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "plugins" / "generate.py"), *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_project(tmp_path_factory.mktemp("project"))


def test_nothing_is_stale() -> None:
    assert not GENERATOR.stale(GENERATOR.read_source()), "run: uv run python plugins/generate.py"


def test_the_owner_is_named_in_one_place(copy: Path) -> None:
    set_owner(copy, "an-owner")
    assert not GENERATOR.stale(GENERATOR.read_source(copy))
    for path in GENERATOR.wanted(GENERATOR.read_source(copy)):
        text = path.read_text("utf-8")
        assert GENERATOR.PLACEHOLDER not in text, path
    for name in ("README.md", "pyproject.toml", "server.json", "plugins/reasonry/plugin.json"):
        assert "an-owner/reasonry" in (copy / name).read_text("utf-8")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("server.json", "{}\n"),
        ("skills/think-it-through/SKILL.md", "changed\n"),
        ("plugins/reasonry/skills/old/SKILL.md", "of a skill that is gone\n"),
        ("README.md", "# Reasonry\n\n<!-- mcp-name: io.github.somebody-else/reasonry -->\n"),
    ],
)
def test_what_is_stale_is_found_and_put_right(copy: Path, path: str, text: str) -> None:
    assert generate(copy).returncode == 0
    (copy / path).parent.mkdir(parents=True, exist_ok=True)
    (copy / path).write_text(text, "utf-8")
    checked = generate(copy, "--check")
    assert (checked.returncode, checked.stdout) == (1, f"stale: {path}\n")
    assert (copy / path).read_text("utf-8") == text
    assert generate(copy).returncode == 0
    assert generate(copy, "--check").stdout == ""


def test_a_readme_without_the_line_of_the_registry_is_an_error(copy: Path) -> None:
    text = (copy / "README.md").read_text("utf-8")
    change(copy / "README.md", r"^<!-- mcp-name.*$", "")
    done = generate(copy)
    (copy / "README.md").write_text(text, "utf-8")
    assert done.returncode == 1
    assert "README.md must have one place for: <!-- mcp-name" in done.stderr


def test_all_forms_say_the_same() -> None:
    said = [
        {name: form[name] for name in GENERATOR.read_source().about}
        for form in map(read, (PLUGIN / name for name in CLIENT_FORMS))
    ]
    assert said[0] == said[1] == said[2]
    version = GENERATOR.read_source().project["version"]
    assert {said[0]["version"], read("gemini-extension.json")["version"], read("server.json")["version"]} == {
        version
    }


def test_the_portable_plugin_has_the_form_of_agent_plugins_1_0() -> None:
    plugin, servers = read(PLUGIN / "plugin.json"), read(PLUGIN / "mcp.json")
    described = {"version", "description", "author", "homepage", "repository", "license", "keywords"}
    assert {"$schema", "name"} <= set(plugin) <= {"$schema", "name", *described, "extensions"}
    assert set(plugin["author"]) <= {"name", "email", "url"}
    assert re.fullmatch(r"(?!.*(--|\.\.))[a-z0-9]([a-z0-9.-]{0,62}[a-z0-9])?", plugin["name"])
    assert all(isinstance(word, str) for word in plugin["keywords"])
    versions = [one["$schema"].rpartition("/")[0] for one in (plugin, servers)]
    assert versions == ["https://agent-plugins.org/schemas/1.0.0"] * 2
    assert set(servers) == {"$schema", "mcpServers"}
    (server,) = servers["mcpServers"].values()
    assert set(server) == {"type", "command", "args"}
    assert server["type"] == "stdio"
    assert " " not in server["command"]
    assert "/" not in server["command"], "a name that is looked up, or a path that begins with ./"
    skills = {path.parent.name for path in (PLUGIN / "skills").glob("*/SKILL.md")}
    assert skills == {path.name for path in (ROOT / GENERATOR.SKILLS).iterdir()}


@pytest.mark.parametrize(
    ("catalogue", "manifest"),
    [
        (".claude-plugin/marketplace.json", ".claude-plugin/plugin.json"),
        (".agents/plugins/marketplace.json", ".codex-plugin/plugin.json"),
    ],
)
def test_a_marketplace_lists_the_plugin_where_it_is(catalogue: str, manifest: str) -> None:
    document = read(catalogue)
    (entry,) = document["plugins"]
    source = entry["source"] if isinstance(entry["source"], str) else entry["source"]["path"]
    assert source.startswith("./")
    assert re.fullmatch(r"[a-z0-9-]+", document["name"])
    plugin = read(Path(source) / manifest)
    assert plugin["name"] == entry["name"]
    assert "version" not in entry, "where both have one, they could differ"
    for field in ("skills", "mcpServers"):
        if field in plugin:
            assert (ROOT / source / plugin[field]).exists()


def test_the_marketplaces_have_what_their_clients_ask_for() -> None:
    assert read(".claude-plugin/marketplace.json")["owner"]["name"]
    (entry,) = read(".agents/plugins/marketplace.json")["plugins"]
    assert entry["policy"] == {"installation": "AVAILABLE", "authentication": "ON_INSTALL"}
    assert entry["category"]
    interface = read(PLUGIN / ".codex-plugin" / "plugin.json")["interface"]
    assert len(interface["defaultPrompt"]) <= 3
    assert all(len(prompt) <= 128 for prompt in interface["defaultPrompt"])


def test_the_registry_entry_has_the_form_of_2025_12_11() -> None:
    entry = read("server.json")
    assert entry["$schema"].endswith("/2025-12-11/server.schema.json")
    assert re.fullmatch(r"io\.github\.[a-zA-Z0-9-]+/[a-zA-Z0-9._-]+", entry["name"])
    assert 1 <= len(entry["description"]) <= 100
    assert 1 <= len(entry["title"]) <= 100
    assert set(entry["repository"]) == {"url", "source"}
    (package,) = entry["packages"]
    assert package["registryType"] == "pypi"
    assert package["version"] == entry["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", entry["version"])
    assert package["transport"] == {"type": "stdio"}
    assert [one["type"] for one in package["packageArguments"]] == ["positional"]
    known = Path(settings.__file__).read_text("utf-8") + (ROOT / "docs" / "mcp.md").read_text("utf-8")
    assert all(one["name"] in known for one in package["environmentVariables"])
    name = "" if GENERATOR.PLACEHOLDER in entry["name"] else f": {entry['name']}"
    assert f"\n<!-- mcp-name{name} -->\n" in (ROOT / "README.md").read_text("utf-8")


def test_what_the_manifests_start_is_the_server() -> None:
    """The launcher fetches the package; what it then runs is the command of that name with the arguments left."""
    starts = [
        *(read(PLUGIN / name)["mcpServers"]["reasonry"] for name in ("mcp.json", ".mcp.json")),
        read("gemini-extension.json")["mcpServers"]["reasonry"],
    ]
    (package,) = read("server.json")["packages"]
    run = {(one["command"], *one["args"]) for one in starts}
    run.add(
        (
            package["runtimeHint"],
            package["identifier"],
            *(one["value"] for one in package["packageArguments"]),
        )
    )
    assert run == {("uvx", "reasonry", "mcp")}
    with Raw(command=[sys.executable, "-m", "reasonry", "mcp"]) as client:
        names = [tool["name"] for tool in client.ask("tools/list")["result"]["tools"]]
    assert names[:3] == ["sequentialthinking", "sessions", "coach"]

"""A base installation thinks, coaches, solves and serves; what it lacks is named with the command that brings it."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from reasonry.errors import MissingExtraError
from reasonry.models.choose import open_model
from reasonry.system.plugins import EXTRAS, check_extra, has_extra, install_hint
from tests.contracts.without_extras import LOCK, base_packages, without_extras
from tests.servers import ModelServer, Player

from ..surfaces.mcp.raw import Raw

ROOT = Path(__file__).parents[2]
PUZZLE = "Use 4, 9, 10 and 13 to make 24"
ANSWER = "(9 - (13 - 10)) * 4 = 24"
MAX_BASE_PACKAGES = 60
BULKY = {"gym"}
"""Extras that `all` leaves out, and the tests do without."""

COMMANDS = """
import contextlib, io, json, sys
from tests.contracts.without_extras import hide
hide()
from reasonry.surfaces.cli import run
def call(*words):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = run([*words, "--json"])
    return [code, json.loads(out.getvalue())]
print(json.dumps([call(*words) for words in json.loads(sys.argv[1])]))
"""


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run commands, one after the other, in one process without extras; return the code and document of each."""
    monkeypatch.setenv("REASONRY_STORE", str(tmp_path / "store.db"))
    for name in ("ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY"):
        monkeypatch.setenv(name, "k")

    def call(*commands: list[str]) -> list[tuple[int, Any]]:
        done = subprocess.run(
            [sys.executable, "-c", COMMANDS, json.dumps(commands)],
            cwd=ROOT,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [(code, document) for code, document in json.loads(done.stdout)]

    return call


def test_the_extras_are_those_of_the_package_and_all_has_each_but_the_bulky() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = dict(project["optional-dependencies"])
    (everything,) = extras.pop("all")
    assert sorted(extras) == sorted(EXTRAS)
    assert re.findall(r"[a-z]+", everything)[1:] == sorted(EXTRAS.keys() - BULKY)
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    assert not [name for name in (*EXTRAS, "all") if f"| `{name}` |" not in page]


def test_a_base_installation_is_small() -> None:
    assert len(base_packages()) <= MAX_BASE_PACKAGES, LOCK


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_part_that_is_there_is_found_and_one_that_is_not_is_named(
    extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if extra not in BULKY:
        check_extra(extra, "this")
    monkeypatch.setitem(sys.modules, EXTRAS[extra][1].split()[-1], None)
    assert not has_extra(extra)
    with pytest.raises(MissingExtraError, match=re.escape(install_hint(extra))) as caught:
        check_extra(extra, "this")
    assert (caught.value.code, caught.value.details) == ("extra_missing", {"extra": extra})


def test_a_provider_that_is_misspelt_is_no_reason_to_install_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(MissingExtraError, match=r"opnai:… is not built in\. Did you mean openai\? It needs"):
        open_model("opnai:gpt")


def test_a_base_installation_thinks_coaches_and_solves(called: Any) -> None:
    with ModelServer(reply=Player()) as server:
        documents = called(
            ["solve", PUZZLE, "--model", "offline"],
            ["solve", PUZZLE, "--model", server.model],
            ["think", "First", "--number", "1", "--total", "2", "--next"],
            ["coach", "start", "What is 6 * 7?", "--strategy", "step_back"],
            ["runs", "replay", "last"],
            ["strategies"],
            ["doctor"],
        )
    assert [code for code, _ in documents] == [0] * len(documents), documents
    offline, driven, thought, coached, *_ = (document for _, document in documents)
    assert offline["answer"] == driven["answer"] == ANSWER
    assert (thought["thought_number"], len(coached["questions"])) == (1, 1)


def test_a_base_installation_serves_over_standard_input(tmp_path: Path) -> None:
    with Raw(
        tmp_path / "store.db", command=without_extras("reasonry.surfaces.mcp.serve"), REASONRY_MODEL="offline"
    ) as raw:
        tools = [one["name"] for one in raw.ask("tools/list")["result"]["tools"]]
        assert tools == ["sequentialthinking", "sessions", "coach", "solve", "show"]
        assert raw.think(1)["thoughtNumber"] == 1
        assert raw.call("solve", problem=PUZZLE)["answer"] == ANSWER


def test_what_is_missing_is_named_with_what_needs_it_and_nothing_is_begun(
    called: Any, tmp_path: Path
) -> None:
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.7\n")
    offline = ["--model", "offline"]
    wanted = {
        "anthropic": ["solve", "P", "--model", "anthropic:claude-haiku-5-5"],
        "google": ["solve", "P", "--model", "google:gemini-3.5-flash-lite"],
        "providers": ["solve", "P", "--model", "deepseek:deepseek-chat"],
        "mcp": ["solve", "P", "--strategy", "react", "--mcp", "server", *offline],
        "documents": [
            "solve",
            "P",
            "--strategy",
            "react",
            "--context",
            str(tmp_path / "paper.pdf"),
            *offline,
        ],
    }
    *failed, (_, listed) = called(*wanted.values(), ["runs", "list"])
    for (extra, words), (code, document) in zip(wanted.items(), failed, strict=True):
        assert (code, document["error"]["code"]) == (2, "extra_missing"), words
        assert document["error"]["extra"] == extra
        assert install_hint(extra) in document["error"]["message"]
    assert listed["runs"] == []

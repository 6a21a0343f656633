"""Files that a user named: what is no regular file is refused at once, not waited for."""

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reasonry.app.installed import read_strategies
from reasonry.compare.grading import read_dataset
from reasonry.errors import TooLargeError, UsageError
from reasonry.models.choose import open_model
from reasonry.strategies import STRATEGIES
from reasonry.surfaces.cli.parameters import read_prompts
from reasonry.system import processes
from reasonry.system.processes import read_regular_file
from reasonry.tools.knowledge import read_document
from reasonry.tools.verifiers import open_verifier

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")

OPENERS: dict[str, Callable[[str], Any]] = {
    "scripted": lambda path: open_model(f"scripted:{path}", {}),
    "recorded": lambda path: open_model(f"recorded:{path}", {}),
    "json-schema": lambda path: open_verifier(f"json-schema:{path}"),
    "python": lambda path: open_verifier(f"python:{path}"),
    "document": read_document,
    "prompt": lambda path: read_prompts([f"chain_of_thought.final_response={path}"]),
}


def special(folder: Path, kind: str) -> str:
    """Make something that is no regular file."""
    path = folder / kind
    match kind:
        case "a named pipe":
            os.mkfifo(path)
        case "a directory":
            path.mkdir()
        case "a socket":
            # The name of a socket may not be long.
            with contextlib.chdir(folder), socket.socket(socket.AF_UNIX) as bound:
                bound.bind(kind)
        case _:
            return "/dev/zero"
    return str(path)


@pytest.mark.parametrize("kind", ["a named pipe", "a directory", "a socket", "a device"])
@pytest.mark.parametrize("opener", OPENERS)
def test_what_is_no_regular_file_is_refused_at_once(opener: str, kind: str, tmp_path: Path) -> None:
    path = special(tmp_path, kind)
    begun = time.monotonic()
    with pytest.raises(UsageError, match="regular file") as caught:
        OPENERS[opener](path)
    assert time.monotonic() - begun < 5
    assert caught.value.details["file"] == path
    with pytest.raises(UsageError, match=kind):
        read_regular_file(path, 10, label="script", option="model")


@pytest.mark.parametrize("kind", ["a named pipe", "a directory", "a socket", "a device"])
def test_a_folder_of_strategies_holds_regular_files(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "strategies"
    folder.mkdir()
    (folder / "odd.toml").symlink_to(special(tmp_path, kind))
    with pytest.raises(UsageError, match=rf"odd\.toml.*{kind}"):
        read_strategies(str(folder), STRATEGIES)


def test_a_table_of_a_strategy_is_read_up_to_a_size(tmp_path: Path) -> None:
    with (tmp_path / "large.toml").open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(TooLargeError, match=r"large\.toml"):
        read_strategies(str(tmp_path), STRATEGIES)


def test_a_pipe_that_takes_the_place_of_a_file_at_the_last_moment_is_refused_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "script.jsonl"
    path.write_text("{}")
    look = os.stat

    def swap(place: Any, **how: Any) -> os.stat_result:
        found = look(place, **how)
        path.unlink()
        os.mkfifo(path)
        return found

    monkeypatch.setattr(processes.os, "stat", swap)
    with pytest.raises(UsageError, match="a named pipe"):
        read_regular_file(path, 10, label="script", option="model")


@pytest.mark.parametrize(
    ("name", "why"), [("none", "No such file"), ("a\0b", "null"), ("x" * 300, "too long")]
)
def test_what_cannot_be_read_is_said(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read_regular_file(str(tmp_path / name), 10, label="script", option="model")


def test_a_file_is_read_whole_through_a_link_up_to_the_limit(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"0123456789")
    link.symlink_to(path)
    assert read_regular_file(link, 10, label="script", option="model") == b"0123456789"
    with pytest.raises(TooLargeError, match="over 9 bytes"):
        read_regular_file(path, 9, label="script", option="model")


def test_a_file_of_problems_may_begin_with_a_byte_order_mark() -> None:
    items = read_dataset('\ufeff{"problem": "p"}', "a.jsonl")
    assert [(item.id, item.problem) for item in items] == [("1", "p")]


def test_an_id_that_no_table_can_show_is_refused() -> None:
    with pytest.raises(UsageError, match=r"line 1: Expected `str` of length <= 200 - at `\$\.id`"):
        read_dataset(json.dumps({"problem": "p", "id": "i" * 201}), "a.jsonl")

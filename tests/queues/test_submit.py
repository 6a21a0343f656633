"""A file of problems that is submitted again begins nothing anew, and gives the same results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reasonry.errors import StoreError
from reasonry.records import RunRow
from reasonry.stores.sqlite import SqliteStore
from reasonry.surfaces.cli import run

from .working import worker_process

LINES = [
    {"id": "a", "problem": "Use 4, 9, 10 and 13 to make 24"},
    {"problem": "Use 3, 3, 8 and 8 to make 24", "strategy": "tree_of_thoughts"},
]


def test_a_file_is_solved_once_however_often_it_is_submitted(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    away = iter([True])
    read = SqliteStore.run

    async def read_when_there(store: SqliteStore, run_id: str) -> RunRow:
        if next(away, False):
            raise StoreError("the store is away", retryable=True)
        return await read(store, run_id)

    # A store that is started again meanwhile.
    monkeypatch.setattr(SqliteStore, "run", read_when_there)
    file, store = folder / "problems.jsonl", str(folder / "runs.db")
    file.write_text("\n".join(json.dumps(line) for line in LINES), encoding="utf-8")
    found = list[list[str]]()
    command = [
        "submit",
        str(file),
        "--store",
        store,
        "--model",
        "offline",
        "--strategy",
        "tree_of_thoughts",
        "--json",
    ]
    with worker_process(store, "offline"):
        for name in ("first.jsonl", "second.jsonl"):
            results = folder / name
            assert run([*command, "--results", str(results)]) == 0
            said = json.loads(capsys.readouterr().out)
            assert (said["runs"], said["done"]) == (2, 2)
            found.append(sorted(results.read_text(encoding="utf-8").splitlines()))
    assert found[0] == found[1]
    assert next(away, None) is None
    answers = {line["id"]: line["answer"] for line in map(json.loads, found[0])}
    assert answers == {"a": "(9 - (13 - 10)) * 4 = 24", None: "8 / (3 - 8 / 3) = 24"}
    # Another problem under the same id is no repetition.
    file.write_text(json.dumps({**LINES[1], "id": "a"}), encoding="utf-8")
    assert run(command) != 0
    assert "line 1" in capsys.readouterr().out + capsys.readouterr().err


def test_all_lines_that_cannot_be_run_are_named_by_their_place_and_nothing_is_begun(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, store = folder / "problems.jsonl", str(folder / "runs.db")
    common = ["--store", store, "--json"]

    def refused(*lines: str) -> dict[str, Any]:
        file.write_text("\n".join(lines), encoding="utf-8")
        assert run(["submit", str(file), "--model", "offline", *common]) != 0
        return json.loads(capsys.readouterr().out)["error"]

    good = json.dumps(LINES[0])
    assert refused(good, "", "{", good, *("[]" for _ in range(20)))["lines"] == [*range(3, 13)]
    assert refused("", good, good.replace("24", "25"))["lines"] == [3]
    unknown = json.dumps({"problem": "x", "strategy": "nope"})
    error = refused(good, "", unknown, '{"problem": "x", "options": {"nope": 1}}')
    assert error["lines"] == [3, 4]
    assert "There is no strategy 'nope'" in error["message"]
    file.write_text(good, encoding="utf-8")
    assert (
        run(["submit", str(file), "--model", "offline", "--results", str(folder / "no" / "x"), *common]) == 2
    )
    assert "cannot be written" in json.loads(capsys.readouterr().out)["error"]["message"]
    assert run(["runs", "list", *common]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == []


def test_who_begins_what_nobody_drives_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(folder / "runs.db")
    command = ["runs", "start", "Use 4, 9, 10 and 13 to make 24", "--detach", "--model", "offline"]
    assert run([*command, "--store", store, "--json"]) == 0
    printed = capsys.readouterr()
    assert "no worker is there" in printed.err
    run_id = json.loads(printed.out)["run_id"]
    with worker_process(store, "offline"):
        assert run([*command, "--store", store]) == 0
        printed = capsys.readouterr()
        assert not printed.err
    assert printed.out.strip() != run_id


@pytest.mark.parametrize(
    "text", ["", "{", '{"problem": 1}', '{"problem": "x", "model": "y"}', "[" * 100_000, '{"id": 1}', "\x00"]
)
def test_a_file_that_cannot_be_read_begins_nothing(
    folder: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "problems.jsonl"
    file.write_text(text, encoding="utf-8")
    store = folder / "runs.db"
    assert run(["submit", str(file), "--store", str(store), "--json"]) != 0
    assert json.loads(capsys.readouterr().out)["error"]["code"]
    assert not store.exists()

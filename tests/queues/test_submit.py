"""A file of problems that is submitted again starts no run again, and gives the same results."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.errors import StoreError
from reasonry.records import JobOptions, RunRow
from reasonry.stores.sqlite import SqliteStore
from tests.in_process import run

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
    command = ["submit", str(file), "--store", store, "--json"]
    command += ["--model", "offline", "--strategy", "tree_of_thoughts"]
    # The command drives them itself at first, and then there is nothing left to drive.
    for name, who in (
        ("first.jsonl", "this command drives the runs itself"),
        ("second.jsonl", "2 of them ended before"),
    ):
        results = folder / name
        assert run([*command, "--results", str(results)]) == 0
        printed = capsys.readouterr()
        said = json.loads(printed.out)
        assert (said["runs"], said["solved"]) == (2, 2)
        assert who in printed.err
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
    assert "there is no strategy 'nope'" in error["message"]
    file.write_text(good, encoding="utf-8")
    assert (
        run(["submit", str(file), "--model", "offline", "--results", str(folder / "no" / "x"), *common]) == 2
    )
    assert "cannot be written" in json.loads(capsys.readouterr().out)["error"]["message"]
    assert run(["runs", "list", *common]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == []


async def accept_elsewhere(store: str) -> None:
    """Accept a run in a queue that no worker takes from."""
    async with App(store, environ={}) as app:
        request = RunRequest(problem="Use 12 and 30 to make 42", participants=Participants(model="offline"))
        await app.engine.accept(app.order(request)[0], job=JobOptions("elsewhere"))


def test_a_file_is_solved_by_the_workers_of_postgresql(
    postgres_url: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, given = folder / "problems.jsonl", ["--store", postgres_url, "--model", "offline"]
    file.write_text(json.dumps(LINES[0]), encoding="utf-8")
    asyncio.run(accept_elsewhere(postgres_url))
    with worker_process(postgres_url, "offline"):
        assert run(["submit", str(file), "--priority", "0", "--strategy", "tree_of_thoughts", *given]) == 0
        assert run(["worker", "--list", "--store", postgres_url, "--json"]) == 0
        listed = json.loads(capsys.readouterr().out)
        assert (listed["queue"]["depth"], listed["queue"]["workers"], len(listed["workers"])) == (1, 1, 1)


@pytest.mark.parametrize("option", ["--priority=3", "--at=2026-12-24T18:00", "--queue=slow"])
def test_how_jobs_wait_is_refused_where_no_workers_share_the_store(
    folder: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "problems.jsonl"
    file.write_text(json.dumps(LINES[0]), encoding="utf-8")
    given = ["--store", str(folder / "runs.db"), "--model", "offline"]
    assert run(["submit", str(file), option, *given]) != 0
    assert "needs a PostgreSQL store" in capsys.readouterr().err
    assert run(["worker", *given]) != 0
    assert "`reasonry serve` (or `reasonry submit`) runs the queue" in capsys.readouterr().err


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


def test_an_answer_is_written_whole_however_long_it_is(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = " ".join(f"Step {number} is done." for number in range(100))
    script, file, results = folder / "script.jsonl", folder / "problems.jsonl", folder / "results.jsonl"
    script.write_text(json.dumps({"stage": "*", "reply": {"steps": ["Look."], "answer": answer}}), "utf-8")
    file.write_text(json.dumps({"problem": "Write a report."}), "utf-8")
    command = ["submit", str(file), "--store", str(folder / "runs.db"), "--model", f"scripted:{script}"]
    assert run([*command, "--strategy", "chain_of_thought", "--results", str(results)]) == 0
    assert json.loads(results.read_text("utf-8"))["answer"] == answer
    assert "1 answered" in capsys.readouterr().err

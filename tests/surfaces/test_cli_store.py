"""`reasonry store` from outside: real processes, a real file, and real damage."""

import json
from pathlib import Path

import pytest

from reasonry.stores.database import connect

from .test_cli import PUZZLE, Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    assert shell.run("solve", PUZZLE, "--model", "offline").returncode == 0
    assert shell.run("think", "one", "--number", "1", "--total", "2", "--next").returncode == 0
    return shell


def spoil(shell: Shell, statement: str) -> None:
    db = connect(Path(shell.environ["REASONRY_STORE"]), 1.0)
    db.execute(statement)
    assert db.changes() > 0
    db.close()


def test_a_whole_store_is_said_to_be_whole(shell: Shell) -> None:
    document = shell.json("store", "verify")
    assert document["whole"] is True
    assert (document["runs"]["whole"], document["sessions"]["whole"]) == (1, 2)
    assert document["findings"] == []
    everything = shell.json("store", "verify", "--all")["findings"]
    assert [one["kind"] for one in everything] == ["file", "run", "session", "session"]
    done = shell.run("store", "verify")
    assert done.returncode == 0
    assert "whole\tyes\n" in done.stdout


def test_what_is_damaged_is_named_and_the_exit_code_says_so(shell: Shell) -> None:
    spoil(shell, "UPDATE line SET body = x'00' WHERE place & 16777215 = 3")
    document = shell.json("store", "verify")
    assert document["whole"] is False
    assert document["runs"] == {"whole": 0, "damaged": 1}
    (finding,) = document["findings"]
    assert finding["id"] == shell.json("runs", "list")["runs"][0]["run_id"]
    assert "line 3" in finding["message"]
    done = shell.run("store", "verify")
    assert done.returncode == 6
    assert "whole\tno\n" in done.stdout
    assert done.stdout.splitlines()[-1].startswith(f"run\t{finding['id']}\t")


@pytest.mark.parametrize("words", [["verify"], ["backup", "copy.db"]])
def test_a_missing_store_is_named_and_not_created(shell: Shell, words: list[str]) -> None:
    done = shell.run("store", *words, "--store", "typo.db")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no store typo.db" in done.stderr
    assert not (shell.folder / "typo.db").exists()


def test_what_cannot_be_done_says_why_and_exits_so(shell: Shell) -> None:
    (shell.folder / "copy.db").write_text("dear diary", "utf-8")
    for words, code, exit_code in (
        (("backup", "copy.db"), "conflict", 5),
        (("restore", "copy.db"), "store_corrupt", 6),
        (("restore", "nowhere.db"), "invalid_request", 2),
        (("backup", "other.db", "--store", "memory"), "invalid_request", 2),
    ):
        done = shell.run("store", *words, "--json")
        assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (exit_code, code)
    assert shell.json("store", "verify")["whole"] is True


def test_what_differs_or_is_damaged_or_cannot_be_copied_exits_so(shell: Shell) -> None:
    store = shell.environ["REASONRY_STORE"]
    for words in (("nowhere.db", "other.db"), (store, "memory"), ("memory", "other.db")):
        done = shell.run("store", "copy", *words, "--json")
        assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (2, "invalid_request")
    assert not (shell.folder / "nowhere.db").exists()
    assert not (shell.folder / "other.db").exists()
    assert shell.run("store", "copy", store, "other.db", "--store", store).returncode == 2
    assert shell.run("store", "copy", store, "other.db").returncode == 0
    shell.run("think", "two", "--number", "2", "--total", "2", "--done", "--session", "last")
    done = shell.run("store", "copy", "other.db", store)
    assert (done.returncode, "differs: 1" in done.stdout) == (5, True)
    spoil(shell, "UPDATE line SET body = x'00' WHERE place & 16777215 = 3")
    done = shell.run("store", "copy", store, "third.db")
    assert (done.returncode, "line 3" in done.stdout) == (6, True)


def test_a_changed_thought_is_not_shown_with_its_session(shell: Shell) -> None:
    session_id = shell.json("sessions", "list")["sessions"][0]["session_id"]
    of_session = f"SELECT key FROM session WHERE session_id = '{session_id}'"
    spoil(shell, f"UPDATE thought SET text = 'forged' WHERE place >> 24 = ({of_session})")
    for command in ("show", "export"):
        done = shell.run("sessions", command, session_id)
        assert (done.returncode, done.stdout) == (6, "")
    assert shell.json("sessions", "search", "forged")["matches"] == []
    assert shell.run("store", "verify").returncode == 6
    assert shell.run("sessions", "delete", session_id, "--yes").returncode == 0
    assert shell.run("store", "verify").returncode == 0

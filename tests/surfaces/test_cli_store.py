"""`reasonry store` from outside: real processes, a real file, and real damage."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from .test_cli import PUZZLE, Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    assert shell.run("solve", PUZZLE, "--model", "offline").returncode == 0
    assert shell.run("think", "one", "--number", "1", "--total", "2", "--next").returncode == 0
    return shell


def spoil(shell: Shell, statement: str) -> None:
    db = apsw.Connection(shell.environ["REASONRY_STORE"])
    db.execute(statement)
    assert db.changes() > 0
    db.close()


class TestVerify:
    def test_a_whole_store_is_said_to_be_whole(self, shell: Shell) -> None:
        document = shell.json("store", "verify")
        assert document["whole"] is True
        assert (document["runs"]["whole"], document["sessions"]["whole"]) == (1, 2)
        assert document["findings"] == []
        everything = shell.json("store", "verify", "--all")["findings"]
        assert [one["kind"] for one in everything] == ["file", "run", "session", "session"]
        done = shell.run("store", "verify")
        assert done.returncode == 0
        assert "is whole" in done.stdout

    def test_what_is_damaged_is_named_and_the_exit_code_says_so(self, shell: Shell) -> None:
        spoil(shell, "UPDATE line SET body = x'00' WHERE place & 16777215 = 3")
        document = shell.json("store", "verify")
        assert document["whole"] is False
        assert document["runs"] == {"whole": 0, "damaged": 1, "unchecked": 0}
        (finding,) = document["findings"]
        assert finding["id"] == shell.json("runs", "list")["runs"][0]["run_id"]
        assert "line 3" in finding["message"]
        done = shell.run("store", "verify")
        assert done.returncode == 6
        assert "damaged    run" in done.stdout
        assert "DAMAGED" in done.stdout

    def test_the_memory_store_has_nothing_to_lose(self, shell: Shell) -> None:
        assert shell.json("store", "verify", "--store", "memory")["whole"] is True

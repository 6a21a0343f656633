"""The tools that come along: those that can be had, and a clear word where one cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from reasonry.errors import SandboxError, UsageError
from reasonry.tools import sandbox
from reasonry.tools.catalog import built_in

pytestmark = pytest.mark.anyio


async def test_a_strategy_gets_what_it_names(tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    note.write_text("The sky is blue.\n", "utf-8")
    executor, claims, search = built_in(
        ["py_executor", "check_claim", "search_documents"], documents=[str(note)]
    )
    assert (await executor.call({"code": "6 * 7"}))["value"] == 42
    assert claims.name == "check_claim"
    assert "blue" in str(await search.call({"query": "sky"}))
    search.close()  # pyright: ignore[reportAttributeAccessIssue]
    assert built_in([]) == []
    assert built_in(["search_documents"]) == []


async def test_without_a_sandbox_the_tool_says_so_and_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise SandboxError("no sandbox here")

    monkeypatch.setitem(sandbox.SANDBOXES, "monty", missing)
    (executor,) = built_in(["py_executor"])
    with pytest.raises(SandboxError) as error:
        await executor.call({"code": "1"})
    assert error.value.code == "sandbox_unavailable"
    with pytest.raises(SandboxError):
        built_in(["py_executor"], sandbox="monty")


def test_a_wrong_name_or_file_is_refused() -> None:
    with pytest.raises(UsageError):
        built_in(["py_executor"], sandbox="nonsense")
    with pytest.raises(UsageError):
        built_in(["search_documents"], documents=["/no/such/file"])

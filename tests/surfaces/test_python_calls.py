"""`solve` and `coach` refuse what is of a wrong type; a run is taken up with what is its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reasonry import STRATEGIES, UsageError, coach, solve

pytestmark = pytest.mark.anyio


async def test_an_output_type_that_is_no_data_is_refused() -> None:
    for kind in (object(), object, {"type": "x"}):
        with pytest.raises(UsageError):
            await solve("x", output_type=kind, model="offline", store="memory")  # pyright: ignore


@pytest.mark.parametrize("name", ["tools", "mcp", "context"])
async def test_a_text_or_a_number_where_a_list_is_wanted_is_refused(name: str) -> None:
    for value in ("one text", 5):
        with pytest.raises(UsageError, match=f"{name} must be a list"):
            await solve("x", model="offline", store="memory", **{name: value})  # pyright: ignore


async def test_a_run_is_taken_up_with_its_own_strategy_and_verifier(tmp_path: Path) -> None:
    store, own = str(tmp_path / "s.db"), replace(STRATEGIES["scratchpad"], name="my_own", aliases=())
    given: dict[str, Any] = {"store": store, "verifier": lambda problem, path: True}
    async with await coach("x", strategy=own, **given) as coaching:
        document = coaching.document
    run_id = document["run_id"]
    async with await coach(run_id=run_id, strategy=own, **given) as coaching:
        assert coaching.document == document
    with pytest.raises(UsageError, match="pass it again"):
        await coach(run_id=run_id, strategy=own, store=store)
    for kept in ({"strategy": "react"}, {"options": {"max_steps": 2}}):
        with pytest.raises(UsageError, match="keeps its strategy and options"):
            await coach(run_id=run_id, **kept, **given)  # pyright: ignore

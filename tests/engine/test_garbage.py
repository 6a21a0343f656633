"""What is left of a run when it has ended: nothing that only the garbage collector finds.

Cycles of references pile up until they are looked for, which stops a server that drives hundreds of runs a second for
a tenth of a second or more.
"""

import gc
from collections import Counter

import pytest

from reasonry.app.app import App

from .running import order_and_solve

PROBLEM = "Use 4, 9, 10 and 13 to make 24"


@pytest.mark.anyio
@pytest.mark.parametrize("strategy", ["chain_of_thought", "tree_of_thoughts"])
async def test_a_run_that_has_ended_leaves_no_cycles_behind(strategy: str) -> None:
    async with App("memory") as app:

        async def solve() -> str:
            return (await order_and_solve(app, PROBLEM, strategy, model="offline")).status

        await solve()
        gc.collect()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            status = await solve()
            gc.collect()
            left = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.garbage)
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
    assert status != "active"
    assert {name: count for name, count in left.items() if name.startswith("reasonry.")} == {}

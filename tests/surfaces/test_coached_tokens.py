"""What the replies of coached runs cost whoever answers them: characters / 4 of the compact JSON."""

import pytest

from reasonry.puzzles.reading import read_puzzle
from tests.servers.game24 import check

from .coached_agents import PUZZLES, QUERY, analyst, play, solver

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("verifier", [None, "arithmetic:24"])
@pytest.mark.parametrize("puzzle", PUZZLES)
async def test_a_game_of_24_takes_at_most_1500_tokens(puzzle: str, verifier: str | None) -> None:
    shown, sizes = await play(solver(puzzle), puzzle, "tree_of_thoughts", verifier=verifier)
    assert shown["status"] == "done"
    reached = read_puzzle(puzzle)
    assert reached is not None
    assert check(shown["result"]["answer"], reached)[0]
    assert sum(sizes) / 4 <= 1_500


async def test_an_analysis_of_two_tasks_takes_at_most_4000_tokens() -> None:
    shown, sizes = await play(analyst, QUERY, "analysis", {"focused_answer_type": "yes/no"})
    assert (shown["status"], shown["result"]["answer"]) == ("done", "Yes")
    assert sum(sizes) / 4 <= 4_000

"""The brain that plays number puzzles plays them right, from prose alone."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

from reasonry.puzzles.solutions import solve, solve_numbers
from reasonry.puzzles.steps import follow
from reasonry.puzzles.term import Puzzle
from tests.servers import ChatRequest, Player
from tests.servers.game24 import check, puzzle_in

PROBLEM = "Use 4, 9, 10 and 13 to make 24."
PUZZLE = Puzzle(tuple(map(Fraction, (4, 9, 10, 13))), Fraction(24))


def ask(player: Player, prompt: str, wanted: str) -> Any:
    form = {"properties": {wanted: {}}}
    reply = player(ChatRequest(prompt, "", form, number=1, sample=0, body={}))
    return reply if reply is None else reply[wanted]


@pytest.mark.parametrize(
    "prompt",
    [PROBLEM, f"Problem: {PROBLEM}", f"Think hard about this.\n\n{PROBLEM}\n\nSteps so far:\n13 - 9 = 4"],
)
def test_a_puzzle_is_read_from_a_line_of_the_prompt(prompt: str) -> None:
    assert puzzle_in(prompt) == PUZZLE


@pytest.mark.parametrize("prompt", ["Write a poem", "Make 24", "There are 3 birds and 4 apples"])
def test_what_is_no_puzzle_is_left_to_others(prompt: str) -> None:
    assert ask(Player(), prompt, "thoughts") is None


@pytest.mark.parametrize("seed", range(5))
def test_following_the_best_score_solves_the_puzzle(seed: int) -> None:
    chance = random.Random(seed)
    while True:
        puzzle = Puzzle(tuple(Fraction(chance.randint(1, 13)) for _ in range(4)), Fraction(24))
        if solve(puzzle):
            break
    problem = f"Use {', '.join(map(str, puzzle.numbers))} to make 24."
    path: list[str] = []
    for _ in range(3):
        so_far = "\n".join([problem, "So far:", *(f"{at}. {step}" for at, step in enumerate(path, 1))])
        thoughts = ask(Player(), so_far, "thoughts")
        listed = "\n".join(f"{at}. {thought}" for at, thought in enumerate(thoughts, start=1))
        scores = ask(Player(), f"{so_far}\nCandidates:\n{listed}", "scores")
        assert list(scores) == [str(at) for at in range(1, len(thoughts) + 1)]
        path.append(thoughts[int(max(scores, key=lambda at: scores[at])) - 1])
    assert check(ask(Player(), "\n".join([problem, *path]), "answer"), puzzle) == (True, "")


def test_noise_misleads_the_same_way_each_time() -> None:
    noisy = Player(noise=1.0)
    thoughts = ask(noisy, PROBLEM, "thoughts")
    assert thoughts == ask(noisy, PROBLEM, "thoughts")
    assert not any(solve_numbers(follow(PUZZLE, [one]).numbers, PUZZLE.target) for one in thoughts)

"""The brain that plays number puzzles plays them right."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from reasonry.testing import ChatRequest, Player
from reasonry.testing.game24 import moves_from, moves_in, reachable, read_puzzle, score_of, write_out

PROBLEM = "Use 4, 9, 10 and 13 to make 24."


def ask(player: Player, prompt: str, wanted: str) -> object:
    form = {"properties": {wanted: {}}}
    return player(ChatRequest(prompt, "", form, number=1, sample=0, body={}))


@pytest.mark.parametrize(
    "text",
    [
        PROBLEM,
        "Make 24 from 4 9 10 13",
        "Reach 24 with the numbers 4, 9, 10, 13.",
        "numbers: 13, 10, 9, and 4; target: 24",
    ],
)
def test_a_puzzle_is_read_from_prose(text: str) -> None:
    assert read_puzzle(text) == (tuple(map(Fraction, (4, 9, 10, 13))), Fraction(24))


@pytest.mark.parametrize("text", ["Write a poem", "Make 24", "There are 3 and 4 apples"])
def test_what_is_no_puzzle_is_left_alone(text: str) -> None:
    assert read_puzzle(text) is None
    assert ask(Player(), text, "thoughts") is None


@pytest.mark.parametrize("seed", range(5))
def test_following_the_best_score_solves_the_puzzle(seed: int) -> None:
    chance = random.Random(seed)
    numbers: tuple[Fraction, ...] = ()
    while not numbers or not reachable(numbers, Fraction(24)):
        numbers = tuple(sorted(Fraction(chance.randint(1, 13)) for _ in range(4)))
    problem = f"Use {', '.join(map(str, numbers))} to make 24."
    path: list[str] = []
    for _ in range(3):
        thoughts = ask(Player(), "\n".join([problem, "So far:", *path]), "thoughts")["thoughts"]  # type: ignore[index]
        listed = "\n".join(f"{at}. {thought}" for at, thought in enumerate(thoughts, start=1))
        scores = ask(Player(), f"{problem}\n{listed}", "scores")["scores"]  # type: ignore[index]
        assert set(scores) == {str(at) for at in range(1, len(thoughts) + 1)}
        path.append(thoughts[int(max(scores, key=lambda at: scores[at])) - 1])
    answer = ask(Player(), "\n".join([problem, *path]), "answer")["answer"]  # type: ignore[index]
    assert eval(answer.replace("/", "*Fraction(1)/")) == 24


def test_moves_written_are_moves_read() -> None:
    numbers = tuple(map(Fraction, (1, 3, 4, 6)))
    for move in moves_from(numbers):
        assert list(moves_in(str(move))) == [move]


def test_noise_misleads_the_same_way_each_time() -> None:
    noisy = Player(noise=1.0)
    assert ask(noisy, PROBLEM, "thoughts") == ask(noisy, PROBLEM, "thoughts")
    moves = [next(moves_in(text)) for text in ask(noisy, PROBLEM, "thoughts")["thoughts"]]  # type: ignore[index]
    assert not any(reachable(move.rest, Fraction(24)) for move in moves)


def test_scores_and_expressions_are_exact() -> None:
    assert score_of((Fraction(24),), Fraction(24)) == 1
    assert score_of((Fraction(23),), Fraction(24)) == 0
    moves = moves_in("10 - 4 = 6 (left: 6 9 13)\n13 - 9 = 4 (left: 4 6)\n4 * 6 = 24 (left: 24)")
    assert write_out(tuple(map(Fraction, (4, 9, 10, 13))), moves) == "(13 - 9) * (10 - 4)"

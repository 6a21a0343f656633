"""Tournaments: who is compared with whom, in which order, and who wins."""

import random
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from reasonry.blocks.tournament import Contender, Ratings, Rules, Tournament, borda

RULES: list[Rules] = ["halving", "heats", "points"]


def run(
    rules: Rules, size: int, rate: Callable[[int], float | None], seed: int = 0, leader: int = 1
) -> tuple[list[Ratings], int, list[int]]:
    """Return the verdicts, the rounds and the ranking of a tournament whose judge rates by number."""
    contenders = [Contender(number) for number in range(1, size + 1)]
    contenders.sort(key=lambda each: each.number != leader)
    verdicts: list[Ratings] = []
    rounds = 0
    while questions := Tournament(rules, contenders, verdicts, seed).next_questions():
        verdicts += [Ratings(shown, tuple(rate(number) for number in shown)) for shown in questions]
        rounds += 1
        assert rounds < 20
    return verdicts, rounds, list(Tournament(rules, contenders, verdicts, seed).standings())


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 9])
def test_a_judge_that_knows_has_the_best_one_win(rules: Rules, size: int) -> None:
    for best in range(1, size + 1):
        _, _, ranking = run(rules, size, lambda number, best=best: 9 if number == best else 3)
        assert ranking[0] == best
        assert sorted(ranking) == list(range(1, size + 1))


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize(("rating", "first"), [(9.0, 1), (2.0, 2)])
def test_a_candidate_that_the_judge_left_out_counts_as_the_middle(
    rules: Rules, rating: float, first: int
) -> None:
    _, _, ranking = run(rules, 2, lambda number: rating if number == 1 else None)
    assert ranking[0] == first


def test_a_candidate_that_a_seat_left_out_stands_between_those_it_rated() -> None:
    verdict = Ratings((1, 2, 3), (2.0, None, 9.0))
    assert [borda(number, [verdict]) for number in (1, 2, 3)] == [0.0, 0.5, 1.0]
    assert borda(2, [Ratings((1, 2, 3))]) == 0


def test_in_heats_the_leader_so_far_is_replaced_by_who_beats_it_in_both_orders() -> None:
    contenders = [Contender(number) for number in range(1, 17)]
    verdicts: list[Ratings] = []
    leaders = [Tournament("heats", contenders, verdicts).leader()]
    while questions := Tournament("heats", contenders, verdicts).next_questions():
        for shown in questions:
            verdicts.append(Ratings(shown, tuple(map(float, shown))))
            leaders.append(Tournament("heats", contenders, verdicts).leader())
    assert leaders == sorted(leaders)
    assert leaders[0] == leaders[1] == 1
    assert leaders[-1] == 16


def test_halving_shows_each_candidate_once_in_each_place_of_its_level() -> None:
    verdicts, rounds, _ = run("halving", 5, float)
    assert [len(verdict.shown) for verdict in verdicts] == [5] * 5 + [3] * 3 + [2] * 2
    assert rounds == 3
    for size in (5, 3, 2):
        level = [verdict.shown for verdict in verdicts if len(verdict.shown) == size]
        assert all(len(set(place)) == size for place in zip(*level, strict=True))
    verdicts, _, ranking = run("halving", 64, float)
    assert len(verdicts) == 126
    assert max(len(verdict.shown) for verdict in verdicts) == 8
    assert ranking[0] == 64


def test_halving_counts_the_ratings_of_all_levels() -> None:
    contenders = [Contender(number) for number in (1, 2, 3)]
    rated = {1: 9.0, 2: 6.0, 3: 2.0}
    questions = Tournament("halving", contenders).next_questions()
    verdicts = [Ratings(shown, tuple(rated[number] for number in shown)) for shown in questions]
    half = Tournament("halving", contenders, verdicts)
    assert sorted(half.next_questions()) == [(1, 2), (2, 1)]
    narrow = [Ratings(shown, tuple(5.1 - at % 2 / 10 for at in shown)) for shown in half.next_questions()]
    assert list(replace(half, verdicts=[*verdicts, *narrow]).standings()) == [1, 2, 3]


@pytest.mark.parametrize("size", [5, 8])
def test_halving_has_the_best_rated_candidate_lead_after_each_reply(size: int) -> None:
    contenders, verdicts = [Contender(number) for number in range(1, size + 1)], list[Ratings]()
    while questions := Tournament("halving", contenders, verdicts).next_questions():
        for shown in questions:
            verdicts.append(Ratings(shown, tuple(map(float, shown))))
            assert Tournament("halving", contenders, verdicts).leader_so_far() == size


def test_the_loser_of_the_last_pair_is_second() -> None:
    for seed in range(40):
        rng = random.Random(seed)
        verdicts, _, ranking = run("halving", 8, lambda _, rng=rng: rng.choice([1.0, 4.0, 6.0, 9.0]))
        assert sorted(verdicts[-1].shown) == sorted(ranking[:2])


def test_without_a_reading_votes_decide_then_the_shorter_text() -> None:
    contenders = [Contender(2, 0.6, 90), Contender(1, 0.2, 5), Contender(3, 0.2, 2)]
    assert list(Tournament("points", contenders, [Ratings((1,)), Ratings((2,))]).standings()) == [2, 3, 1]


def test_a_lead_that_no_missing_verdict_can_take_is_decided() -> None:
    rng = random.Random(4)

    def judge(shown: tuple[int, ...]) -> Ratings:
        return Ratings(shown, tuple(rng.choice([1.0, 4.0, 9.0]) for _ in shown))

    decided = 0
    for _ in range(2000):
        contenders = [Contender(number, rng.choice([0.1, 0.6])) for number in (1, 2, 3, 4)]
        first = Tournament("halving", contenders)
        half = replace(first, verdicts=[judge(shown) for shown in first.next_questions()])
        questions = half.next_questions()
        known = {place: judge(shown) for place, shown in enumerate(questions) if rng.random() < 0.7}
        if not half.is_decided(questions, known):
            continue
        decided += 1
        every = [known.get(place) or judge(shown) for place, shown in enumerate(questions)]
        leader = next(iter(replace(half, verdicts=[*half.verdicts, *every]).standings()))
        # A verdict that did not come, or that nobody can read, takes no lead either.
        came = [known.get(place, Ratings(shown)) for place, shown in enumerate(questions)]
        cut_off = replace(half, verdicts=[*half.verdicts, *came])
        assert leader == cut_off.leader_so_far() == next(iter(cut_off.standings()))
    assert decided > 20


@pytest.mark.parametrize(
    ("size", "length", "shown"), [(64, 0, [8] * 18), (9, 0, [8, 8, 2, 2]), (6, 40_000, [2] * 10)]
)
def test_heats_are_judged_in_both_orders_and_hold_what_a_judge_has_room_for(
    size: int, length: int, shown: list[int]
) -> None:
    contenders = [Contender(number, length=length) for number in range(1, size + 1)]
    verdicts: list[Ratings] = []
    while questions := Tournament("heats", contenders, verdicts).next_questions():
        verdicts += [Ratings(each, tuple(100.0 - number for number in each)) for each in questions]
    assert [len(verdict.shown) for verdict in verdicts] == shown
    assert all(verdict.shown[::-1] in {each.shown for each in verdicts} for verdict in verdicts)
    assert next(iter(Tournament("heats", contenders, verdicts).standings())) == 1

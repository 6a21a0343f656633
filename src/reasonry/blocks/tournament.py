"""Tournaments: choose the candidates that a judge compares next, and find the leader.

`halving`    A judge rates a heat of n candidates (at most eight) n times, so that each candidate is once in each
             position. The better half of each heat enters the next level, where the ratings so far still count
             (sequential halving of Karnin, Koren and Somekh, ICML 2013).
`heats`      A judge rates a heat of up to eight candidates twice, in opposite orders. The best enters the next level.
`points`     A judge rates each candidate alone.

Rule 1: the order in which a judge sees candidates depends only on the seed and on the numbers of the candidates.
Rule 2: a candidate's score is its mean preference plus a quarter of the logarithm of its share of the votes.
        `bench/selection.py` found that a quarter is the best weight, whether few or many drafts are right. On a tie,
        the shorter text wins. If the lengths are equal too, the earlier candidate wins.
Rule 3: the next questions depend only on the verdicts so far, so no question is asked twice.
Rule 4: the first contender leads at the start. In `points`, it leads until the tournament ends; in `heats`, until it
        loses a heat; in `halving`, until another candidate of its heat has a better score.
Rule 5: a candidate that does not enter the next level ranks below all candidates that enter it.
"""

from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from math import exp, log
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

Rules = Literal["halving", "heats", "points"]

ROOM = 100_000
"""How many characters all candidates of one question may have together."""
HEAT = 8
"""How many candidates one question may have."""

VOTES = 0.25
"""The weight of the logarithm of a candidate's share of the votes. The mean preference has the weight 1."""
MIDDLE = 5.5
"""The middle of the scale of ratings: the rating of an unrated candidate."""


class Ratings(Struct, frozen=True):
    """A judge's ratings, from 1 to 10, of the candidates in one question. They are in the order of `shown`.

    A missing rating is None and counts as the middle of the scale. Without a readable reply, `ratings` is empty.
    """

    shown: tuple[int, ...]
    ratings: tuple[float | None, ...] = ()
    reason: str = ""

    @property
    def counted(self) -> list[float]:
        """The ratings, with the middle of the scale in place of each missing rating."""
        return [MIDDLE if rating is None else rating for rating in self.ratings]

    def preference(self, number: int) -> float:
        """Return how much a judge prefers a candidate to its rivals on average, from 0 to 1."""
        if not self.ratings:
            return 0.5
        rivals = self.counted
        own = rivals.pop(self.shown.index(number))
        # Compare by differences, because a judge's scale changes from reply to reply.
        preferences = [1 / (1 + exp(rating - own)) for rating in rivals] or [(own - 1) / 9]
        return sum(preferences) / len(preferences)


class Contender(Struct, frozen=True):
    """A candidate of a tournament: its number, its share of the votes, and its length."""

    number: int
    share: float = 1.0
    length: int = 0


def seeded_order(numbers: Sequence[int], seed: int) -> list[int]:
    """Shuffle numbers. The order depends only on the numbers and the seed."""
    return sorted(numbers, key=lambda number: sha256(f"{seed}, {number}".encode()).digest())


def borda(number: int, verdicts: Sequence[Ratings]) -> float:
    """Return a candidate's Borda score: on average, the share of rivals with a lower rating. A tie counts half."""
    shares: list[float] = []
    for verdict in verdicts:
        if verdict.ratings and number in verdict.shown:
            own = verdict.counted[verdict.shown.index(number)]
            below = sum((own > rating) + (own == rating) / 2 for rating in verdict.counted) - 0.5
            shares.append(below / (len(verdict.ratings) - 1))
    return sum(shares) / max(1, len(shares))


def scores(contenders: Sequence[Contender], verdicts: Sequence[Ratings]) -> dict[int, float]:
    """Map each candidate to its score, best candidate first."""
    score = {each.number: _score(each, verdicts) for each in contenders}
    ranked = sorted(contenders, key=lambda each: (-score[each.number], each.length, each.number))
    return {each.number: score[each.number] for each in ranked}


def _score(contender: Contender, verdicts: Sequence[Ratings], missing: Sequence[float] = ()) -> float:
    """Return a candidate's score. `missing` has the preferences that stand in for missing verdicts."""
    number = contender.number
    had = [each.preference(number) for each in verdicts if each.ratings and number in each.shown]
    counted = [*had, *missing] or [0.5]
    return sum(counted) / len(counted) + VOTES * log(contender.share)


class Tournament(Struct, frozen=True):
    """The state of a tournament.

    Attributes:
        contenders: The candidates. The first contender leads at the start (rule 4).
        verdicts: The judge's ratings so far.
    """

    rules: Rules
    contenders: Sequence[Contender]
    verdicts: Sequence[Ratings] = ()
    seed: int = 0

    @property
    def order(self) -> list[int]:
        """The candidates in the order in which a judge sees them."""
        return seeded_order([each.number for each in self.contenders], self.seed)

    def next_questions(self) -> list[tuple[int, ...]]:
        """Return the next questions. A question is a list of candidates, in the order to show them."""
        if self.rules != "points":
            return self._bracket()[0]
        judged = {verdict.shown for verdict in self.verdicts}
        return [(number,) for number in self.order if (number,) not in judged]

    def leader(self) -> int:
        """Return the number of the candidate that leads now (see rule 4)."""
        leader = self.contenders[0].number
        _, beaten, out = self._bracket() if self.rules != "points" else ([], {}, [])
        while leader in beaten:
            leader = beaten[leader]
        beside = [verdict.shown for verdict in self.verdicts if verdict.ratings and leader in verdict.shown]
        if self.rules != "halving" or not beside:
            return leader
        return self._rank([number for number in beside[-1] if number not in out])[0]

    def leader_so_far(self) -> int:
        """Return the winner if the rules are `points` and the tournament is decided. Otherwise, return `leader()`."""
        if self.rules != "points" or self.next_questions():
            return self.leader()
        unread = [verdict.shown for verdict in self.verdicts if not verdict.ratings]
        readable = replace(self, verdicts=[verdict for verdict in self.verdicts if verdict.ratings])
        is_over = not unread or readable.is_decided(unread, {})
        return next(iter(self.standings())) if is_over else self.leader()

    def standings(self) -> dict[int, float]:
        """Map each candidate to its final score, winner first."""
        found = scores(self.contenders, self.verdicts)
        winner, out = next(iter(found)), list[int]()
        if self.rules != "points":
            winner, out = self.leader(), self._bracket()[2]
        left = [number for number in found if number not in out]
        return {number: found[number] for number in dict.fromkeys([winner, *left, *out])}

    def is_decided(self, questions: Sequence[tuple[int, ...]], brought: Mapping[int, Ratings]) -> bool:
        """Whether no missing verdict can change the leader.

        Args:
            brought: Maps the index of a question in `questions` to the verdict that has arrived.
        """
        rivals, verdicts = self.contenders, self.verdicts
        if self.rules != "points":
            rivals = [each for each in rivals if each.number in questions[0]]
            verdicts = self._votes(questions[0])
        known = [*verdicts, *brought.values()]
        leader = next(iter(scores(rivals, known)))
        missing = [shown for place, shown in enumerate(questions) if place not in brought]

        def bound(each: Contender, preference: float) -> float:
            return _score(each, known, [preference for shown in missing if each.number in shown])

        lead = next(bound(each, 0) for each in rivals if each.number == leader)
        return all(bound(each, 1) < lead for each in rivals if each.number != leader)

    def _bracket(self) -> tuple[list[tuple[int, ...]], dict[int, int], list[int]]:
        """Return the level's open questions, the winner that beat each loser, and the losers from best to worst."""
        beaten: dict[int, int] = {}
        out: list[int] = []
        level, longest = self.order, max((each.length for each in self.contenders), default=0)
        size = max(2, min(HEAT, ROOM // max(1, longest)))
        is_halving = self.rules == "halving"
        while len(level) > 1:
            questions: list[tuple[int, ...]] = []
            lost: list[int] = []
            for shown in (tuple(level[at : at + size]) for at in range(0, len(level) - 1, size)):
                ranked = self._rank(shown)
                count = len(shown) if is_halving else 1
                orders = [shown[n:] + shown[:n] for n in range(count)] if count > 2 else [shown, shown[::-1]]
                judged = {vote.shown for vote in self._votes(shown)}
                open_votes = [order for order in orders if order not in judged]
                questions += open_votes
                if not open_votes:
                    losers = ranked[(len(shown) + 1) // 2 if is_halving else 1 :]
                    beaten |= dict.fromkeys(losers, ranked[0])
                    lost += losers
            out = [*(number for number in scores(self.contenders, self.verdicts) if number in lost), *out]
            if questions:
                return questions, beaten, out
            level = [number for number in level if number not in beaten]
        return [], beaten, out

    def _votes(self, shown: Collection[int]) -> list[Ratings]:
        """Return the verdicts in which a judge saw all candidates in `shown` together."""
        return [verdict for verdict in self.verdicts if set(shown) <= set(verdict.shown)]

    def _rank(self, shown: Collection[int]) -> list[int]:
        return list(scores([each for each in self.contenders if each.number in shown], self._votes(shown)))

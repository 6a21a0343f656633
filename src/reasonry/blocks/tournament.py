"""Tournaments: the next candidates for a judge to compare, and the leader.

`pairs`      the Probabilistic Pivot Tournament of arXiv:2607.05391 on ratings, in two rounds: a ring, in which each
             candidate is once first and once second, then every other candidate beside two pivots, the leader so far
             and the best other candidate of the ring; a pair of the ring is judged again in swapped order
`halving`    up to eight candidates rated at once, as often as there are candidates, so that each is once in each place;
             the better half enters the next level, where the ratings so far still count (sequential halving of Karnin,
             Koren and Somekh, ICML 2013)
`heats`      up to eight candidates rated at once, in both orders; the best of each heat enters the next level
`points`     each candidate rated alone

Rule 1: the order in which a judge sees candidates depends on the seed and their numbers alone.
Rule 2: a candidate's score is its mean preference plus a quarter of the logarithm of its share of the votes (the weight
        that `bench/selection.py` found best for few and many right drafts); a tie goes to the shorter text, then to the
        earlier candidate.
Rule 3: the next questions are a function of the verdicts so far, so that no pair is judged again.
Rule 4: the first contender leads until the end of the tournament, in heats until it loses one, in halving until
        another is rated better beside it; in pairs it stays the leader if the judge always prefers it to the winner.
        In an unfinished tournament, a candidate that has beaten the leader leads.
Rule 5: a candidate that leaves a level is ranked below all that enter the next one.
"""

from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from math import exp, log
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

Rules = Literal["halving", "pairs", "heats", "points"]
_BRACKETS = ("halving", "heats")

ROOM = 100_000
"""The characters of all candidates of a question that a judge has room for."""
HEAT = 8
"""The most candidates of a heat."""

VOTES = 0.25
"""The weight of the logarithm of a share of the votes beside a mean preference."""
MIDDLE = 5.5
"""The middle of the scale of ratings: the rating of an unrated candidate."""


class Ratings(Struct, frozen=True):
    """Ratings of candidates from 1 to 10, by number, in the order shown; empty without a readable reply.

    A candidate without a rating is None, and counts as the middle.
    """

    shown: tuple[int, ...]
    ratings: tuple[float | None, ...] = ()
    reason: str = ""

    @property
    def counted(self) -> list[float]:
        """The ratings, with the middle for unrated candidates."""
        return [MIDDLE if rating is None else rating for rating in self.ratings]

    def preference(self, number: int) -> float:
        """Return the mean preference for a candidate over its rivals, from 0 to 1; alone, its rating as a share."""
        if not self.ratings:
            return 0.5
        rivals = self.counted
        own = rivals.pop(self.shown.index(number))
        # By differences, since a judge's scale is another one in each reply.
        preferences = [1 / (1 + exp(rating - own)) for rating in rivals] or [(own - 1) / 9]
        return sum(preferences) / len(preferences)


class Contender(Struct, frozen=True):
    """A candidate of a tournament: its number, its share of the votes, and its length."""

    number: int
    share: float = 1.0
    length: int = 0


def seeded_order(numbers: Sequence[int], seed: int) -> list[int]:
    """Shuffle numbers by a seed."""
    return sorted(numbers, key=lambda number: sha256(f"{seed}, {number}".encode()).digest())


def borda(number: int, verdicts: Sequence[Ratings]) -> float:
    """Return the share of other candidates ranked below a candidate, averaged over its judges; 0 without judges."""
    shares: list[float] = []
    for verdict in verdicts:
        if verdict.ratings and number in verdict.shown:
            own = verdict.counted[verdict.shown.index(number)]
            below = sum((own > rating) + (own == rating) / 2 for rating in verdict.counted) - 0.5
            shares.append(below / (len(verdict.ratings) - 1))
    return sum(shares) / max(1, len(shares))


def scores(contenders: Sequence[Contender], verdicts: Sequence[Ratings]) -> dict[int, float]:
    """Return the score of each candidate, the leader first."""
    score = {each.number: _score(each, verdicts) for each in contenders}
    ranked = sorted(contenders, key=lambda each: (-score[each.number], each.length, each.number))
    return {each.number: score[each.number] for each in ranked}


def _score(contender: Contender, verdicts: Sequence[Ratings], missing: Sequence[float] = ()) -> float:
    """Return the score of a candidate by its verdicts and by possible further preferences."""
    number = contender.number
    had = [each.preference(number) for each in verdicts if each.ratings and number in each.shown]
    counted = [*had, *missing] or [0.5]
    return sum(counted) / len(counted) + VOTES * log(contender.share)


class Tournament(Struct, frozen=True):
    """The state of a tournament.

    Attributes:
        contenders: The candidates, the leader so far first.
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
        """Return the next candidates to show a judge, each tuple in the order shown; empty at the end."""
        order, judged = self.order, {verdict.shown for verdict in self.verdicts}
        if self.rules == "points":
            return [(number,) for number in order if (number,) not in judged]
        if len(order) < 2:
            return []
        if self.rules in _BRACKETS:
            return self._bracket()[0]
        ring = [(number, order[(place + 1) % len(order)]) for place, number in enumerate(order)]
        # A tournament that is cut short has first what may take the lead from the leader.
        ring.sort(key=lambda pair: self.contenders[0].number not in pair)
        rounds = (ring, self._beside_pivots(ring))
        return next(filter(None, ([pair for pair in pairs if pair not in judged] for pairs in rounds)), [])

    def leader(self) -> int:
        """Return the leader so far: the first contender, or in levels the contender that beat it."""
        leader = self.contenders[0].number
        _, beaten, out = self._bracket() if self.rules in _BRACKETS else ([], {}, [])
        while leader in beaten:
            leader = beaten[leader]
        beside = [verdict.shown for verdict in self.verdicts if verdict.ratings and leader in verdict.shown]
        if self.rules != "halving" or not beside:
            return leader
        return self._rank([number for number in beside[-1] if number not in out])[0]

    def leader_so_far(self) -> int:
        """Return the leader of an unfinished tournament: the candidate that has beaten the leader, and so on."""
        leader, left = self.leader(), [verdict for verdict in self.verdicts if verdict.ratings]
        if self.rules in _BRACKETS:
            return leader
        unread = [verdict.shown for verdict in self.verdicts if not verdict.ratings]
        if not self.next_questions() and (not unread or replace(self, verdicts=left).is_decided(unread, {})):
            return next(iter(self.standings()))
        while beaten := next(
            (each for each in left if leader in each.shown and each.preference(leader) < 0.5), None
        ):
            left = [each for each in left if leader not in each.shown]
            leader = beaten.shown[beaten.counted.index(max(beaten.counted))]
        return leader

    def standings(self) -> dict[int, float]:
        """Return the final score of each candidate, the winner first."""
        found, leader = scores(self.contenders, self.verdicts), self.leader()
        winner, out = next(iter(found)), list[int]()
        if self.rules in _BRACKETS:
            winner, out = leader, self._bracket()[2]
        elif self.rules == "pairs":
            beside = _preferences(leader, winner, self.verdicts)
            winner = leader if beside and min(beside) > 0.5 else winner
        left = [number for number in found if number not in out]
        return {number: found[number] for number in dict.fromkeys([winner, *left, *out])}

    def is_decided(self, questions: Sequence[tuple[int, ...]], brought: Mapping[int, Ratings]) -> bool:
        """Whether no missing verdict can change the leader.

        Args:
            brought: The verdicts so far, by the position of their question.
        """
        rivals, verdicts = self.contenders, self.verdicts
        if self.rules in _BRACKETS:
            rivals = [each for each in rivals if each.number in questions[0]]
            verdicts = self._votes(questions[0])
        known = [*verdicts, *brought.values()]
        leader = next(iter(scores(rivals, known)))
        missing = [shown for place, shown in enumerate(questions) if place not in brought]
        first = self.contenders[0].number
        # By rule 4 the first contender may stay the leader, unless the judge did not prefer it once.
        is_preferred = min(_preferences(first, leader, known), default=1) > 0.5
        if is_preferred and any(set(shown) == {first, leader} for shown in missing):
            return False

        def bound(each: Contender, preference: float) -> float:
            return _score(each, known, [preference for shown in missing if each.number in shown])

        lead = next(bound(each, 0) for each in rivals if each.number == leader)
        return all(bound(each, 1) < lead for each in rivals if each.number != leader)

    def _beside_pivots(self, ring: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return every pair with a pivot: the leader so far or the best other. Pairs of the ring are swapped."""
        leader = self.contenders[0].number
        of_ring = [verdict for verdict in self.verdicts if verdict.shown in ring]
        rival = next(number for number in scores(self.contenders, of_ring) if number != leader)
        pairs: list[tuple[int, ...]] = []
        for pivot in (leader, rival):
            for number in self.order:
                if number not in (pivot, leader):
                    pair = (pivot, number) if len(pairs) % 2 else (number, pivot)
                    pairs.append(pair[::-1] if pair in ring else pair)
        return pairs

    def _bracket(self) -> tuple[list[tuple[int, ...]], dict[int, int], list[int]]:
        """Return the open questions of the first open level, the winner over each loser, and the losers ranked."""
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
        """Return the verdicts on candidates that a judge saw together."""
        return [verdict for verdict in self.verdicts if set(shown) <= set(verdict.shown)]

    def _rank(self, shown: Collection[int]) -> list[int]:
        """Rank candidates by the verdicts on them together."""
        return list(scores([each for each in self.contenders if each.number in shown], self._votes(shown)))


def _preferences(number: int, rival: int, verdicts: Sequence[Ratings]) -> list[float]:
    """Return the preferences for a candidate over a rival in verdicts on these two alone."""
    return [
        each.preference(number) for each in verdicts if each.ratings and set(each.shown) == {number, rival}
    ]

"""Voting: what agrees, who wins, when to stop."""

import random
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.reading.vote import agree, is_settled, normalise, tally, tidy
from reasonry.strategies.self_consistency import confidence, lead_confidence

SAME = [
    ("0.5", "0.50", "1/2", ".5", "½", "5e-1", "\\frac{1}{2}", "$\\dfrac{1}{2}$", "x = 0.5"),
    ("18", "$18", "18.00", "18 dollars", "**18**", "$18!", "\\boxed{18}", "<answer>18</answer>", "`18`"),
    ("1000", "1,000", "1e3", "+1000", "1\u00a0000", "1\u202f000"),
    ("1000000.5", "1,000,000.5", "1\u2009000\u2009000.5"),
    ("-3", "−3", "- 3", "-3.0", "(-3)", "\u20133", "(\u20133)"),
    ("3/2", "1½", "1 1/2", "1.5"),
    ("5 km", "5km", "5 KM", "5"),
    ("50%", "50 percent", "50 %", "50"),
    ("50%", "0.5", "1/2", "1 out of 2"),
    ("37.5%", "3/8", "3 out of 8"),
    ("47,5 Euro", "47.50 €", "€47,50"),
    ("No", "No, 91 = 7 × 13.", "no (7·13)"),
    ("B", "(B)", "b)", "b."),
    ("Paris", "paris", " PARIS. ", '"Paris"', "**Paris**"),
    ("blue  whale", "Blue Whale"),
    ("3.5 hours", "\\boxed{3.5 \\text{ hours}}", "7/2 hours"),
    ("$60", "60 dollars", "US$60", "USD 60", "\\$60", "60 USD", "$60.00"),
    ("€47.50", "47,50 €", "47.5 euros", "EUR 47.50"),
    ("0.75", "\\(\\frac{3}{4}\\)", "$\\frac34$", "\\[\\dfrac{3}{4}\\]", "3/4", "75e-2"),
    ("-0.5", "-\\frac{1}{2}", "$-\\frac12$"),
    ("3000", "3 \\times 10^3", "3 × 10^{3}", "$3 \\cdot 10^{3}$"),
    ("52 eggs", "52"),
    ("16 Pieces, 30 cm left  over.", "16 pieces, 30 cm left over"),
    ("20 July 1969", "July 20, 1969", "1969-07-20", "20.07.1969", "20th of July 1969", "Jul. 20, 1969"),
]
DIFFERENT = [
    ("5 km", "5 m"),
    ("1,5", "15"),
    ("1,5", "1.5"),
    ("1.2.3", "1.2"),
    ("yes", "no"),
    ("1/0", "0"),
    ("18 eggs and 3 ducks", "18"),
    ("18 or more", "18"),
    ("12", "21"),
    ("-3", "3"),
    ("1 000", "1000"),
    ("1\u20133", "1-3 of them"),
    ("(-1, 3)", "-1"),
    ("3.5 hours", "3.5 minutes"),
    ("$60", "60 euros"),
    ("It is not 60.", "60"),
    ("The answer is 60.", "60"),
    ("about 60", "60"),
    ("Boeing 747", "747"),
    ("It is 18 of 20.", "18"),
    ("52 eggs", "52 ducks"),
    ("none", "no"),
    ("20 July 1969", "21 July 1969"),
    ("13.13.1969", "1969-13-13"),
    ("U.S.", "US"),
    ("The order is: Ben, Anna", "Ben, then Anna"),
    ("Anna, Ben", "Ben, Anna"),
    ("possible", "not possible"),
    ("16 pieces", "16 pieces, 30 cm left over"),
    ("16 pieces, 30 cm", "30 pieces, 16 cm"),
]
answers = st.lists(st.sampled_from(["A", "B", "C", "1", "1.0", "1 km", "1 m", "2"]), max_size=14)


@pytest.mark.parametrize("group", SAME, ids=lambda group: group[0])
def test_answers_that_say_the_same_agree(group: tuple[str, ...]) -> None:
    for other in group:
        assert agree(normalise(group[0]), normalise(other)), other
    assert len(tally(group)) == 1


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_answers_that_differ_do_not_agree(one: str, other: str) -> None:
    assert not agree(normalise(one), normalise(other))


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**6))
def test_a_number_is_the_same_however_it_is_written(numerator: int, denominator: int) -> None:
    fraction = normalise(f"{numerator}/{denominator}")
    assert agree(fraction, normalise(f"**{numerator * 7}/{denominator * 7}**"))
    assert agree(normalise(f"{numerator}"), normalise(f"{numerator:,}.000"))
    assert agree(normalise(f"{numerator} kg"), normalise(f"{numerator}kg"))


@given(st.dates())
def test_a_day_is_the_same_however_it_is_written(day: date) -> None:
    year = f"{day.year:04}"
    for text in (f"{day.day} {day:%B} {year}", f"{day:%B} {day.day}, {year}", f"{day:%d.%m}.{year}"):
        assert agree(normalise(text), normalise(day.isoformat())), text


quantities = st.builds(
    lambda number, unit, form: form.format(number, unit).strip(),
    st.sampled_from(["3", "3.5", "210", "1/2", "60", "-2"]),
    st.sampled_from(["", "hours", "h", "min", "km", "m", "dollars", "euros", "%", "eggs"]),
    st.sampled_from(
        ["{} {}", "It is {} {}.", "**{} {}**", "$\\frac{{3}}{{4}}$", "There are {} {} and 7 more."]
    ),
)


@given(quantities, quantities)
def test_to_agree_is_mutual(one: str, other: str) -> None:
    assert agree(normalise(one), normalise(other)) == agree(normalise(other), normalise(one))
    assert agree(normalise(one), normalise(one))


@given(st.text(max_size=60))
def test_any_text_has_a_key_and_agrees_with_itself_in_any_case_and_with_a_period(text: str) -> None:
    key = normalise(text)
    assert agree(key, normalise(text))
    assert agree(key, normalise(f"  {text} "))


@pytest.mark.parametrize(
    "text", ["9" * 100_000, "1e999", "1e999999999", "(" * 10_000, "**" * 10_000, "$" * 9_999]
)
def test_monstrous_answers_are_read_quickly(text: str) -> None:
    assert normalise(text).text or not text


def test_a_tidy_answer_keeps_its_case_and_unit_and_loses_its_marks_in_pairs_only() -> None:
    assert tidy(" **New York**. ") == "New York"
    plain = {"12.": "12", "$18": "$18", "\\boxed{1/2}": "1/2", "...": "...", "5 km.": "5 km", "U.S.": "U.S."}
    assert {text: tidy(text) for text in plain} == plain
    for text in ("**Paris** — the city", "Paris** (since 987)", "**a** or **b**", "The answer is 4"):
        assert tidy(text) == text


def test_most_votes_win_and_a_tie_goes_to_the_first_to_have_as_many() -> None:
    votes = tally(["B", "A", "a.", "b", "C"])
    assert [(vote.answer, vote.count, vote.voters) for vote in votes] == [
        ("A", 2, (1, 2)),
        ("B", 2, (0, 3)),
        ("C", 1, (4,)),
    ]


def test_a_number_without_a_unit_joins_the_first_of_that_number() -> None:
    votes = tally(["5", "5 km", "5 m", "5", "5 m"])
    assert [(vote.answer, vote.count) for vote in votes] == [("5", 3), ("5 m", 2)]


@given(answers, answers)
def test_once_settled_no_further_votes_change_the_winner(drawn: list[str], further: list[str]) -> None:
    votes = tally(drawn)
    if votes and is_settled(votes, len(further)):
        for count in range(len(further) + 1):
            assert tally([*drawn, *further[:count]])[0].answer == votes[0].answer


@given(answers, st.integers(0, 14))
def test_the_bound_is_exact_and_not_merely_safe(drawn: list[str], remaining: int) -> None:
    votes = tally(drawn)
    if votes and not is_settled(votes, remaining):
        rivals = [vote.answer for vote in votes[1:]] + ["never seen"]
        winners = {tally([*drawn, *[rival] * remaining])[0].answer for rival in rivals}
        assert winners != {votes[0].answer}


@given(answers, answers)
def test_counts_only_grow(drawn: list[str], further: list[str]) -> None:
    later = {vote.answer: vote.count for vote in tally([*drawn, *further])}
    for vote in tally(drawn):
        assert later[vote.answer] >= vote.count


def test_without_votes_it_is_settled_only_when_none_can_come() -> None:
    assert is_settled((), 0)
    assert not is_settled((), 1)
    assert confidence(()) == 0.0


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (5, 0), (4, 1), (7, 3), (20, 15), (3, 9)])
def test_the_beta_rule_is_the_integral_of_its_density(first: int, second: int) -> None:
    steps = 20_000
    weights = [(n / steps) ** first * (1 - n / steps) ** second for n in range(steps + 1)]
    expected = (sum(weights[steps // 2 :]) - weights[steps // 2] / 2) / sum(weights)
    assert lead_confidence(first, second) == pytest.approx(expected, abs=1e-3)


def test_the_beta_rule_is_fair_at_a_tie_and_sure_at_a_landslide() -> None:
    assert lead_confidence(4, 4) == 0.5
    assert lead_confidence(1_000, 10) == pytest.approx(1.0)
    rng = random.Random(1)
    for _ in range(50):
        a, b = rng.randint(0, 50), rng.randint(0, 50)
        assert lead_confidence(a, b) + lead_confidence(b, a) == pytest.approx(1.0)

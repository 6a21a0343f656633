"""Laws of metering: what is impossible is never booked, what is possible is booked as stated."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.core.events import Usage
from reasonry.engine.usage import (
    MOST_HIDDEN_TOKENS,
    Stated,
    check_usage,
    dollars,
    estimate_tokens,
    estimate_usage,
    meter,
    tokens_of,
    weigh,
)

texts = st.text(max_size=400)
junk = st.recursive(
    st.none() | st.booleans() | st.text(max_size=8) | st.integers(max_value=-1) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
).filter(lambda one: not (isinstance(one, float) and one.is_integer() and one >= 0))
PROMPT, REPLY = "What is the capital of Norway? " * 20, "It is Oslo, as everybody knows. " * 20


def price(taken: int, made: int, cached: int) -> float:
    return (taken - cached) * 1e-6 + cached * 1e-7 + made * 4e-6


@given(junk, junk, junk, junk, texts, texts)
def test_what_is_no_count_is_replaced_by_the_estimate_and_said_to_be_one(
    taken: Any, made: Any, cached: Any, usd: Any, prompt: str, reply: str
) -> None:
    usage = meter(Stated(taken, made, cached, usd), prompt, [reply], price=price)
    guess = estimate_usage(prompt, reply, price)
    assert (usage.input_tokens, usage.output_tokens) == (guess.input_tokens, guess.output_tokens)
    assert usage.estimated_tokens == usage.tokens
    assert usage.cached_input_tokens == 0
    listed = pytest.approx(price(usage.input_tokens, usage.output_tokens, 0))
    assert usage.usd == (listed if usage.tokens else dollars(usd)), (
        "nothing went over: nothing to hold a cost to"
    )


@given(texts, texts, st.integers(0, 200_000), st.integers(0, 200_000), st.floats(0.5, 3), st.floats(0, 1))
def test_an_honest_provider_is_believed_however_much_is_reasoned_out_of_sight(
    prompt: str, reply: str, added: int, reasoned: int, tokenizer: float, share: float
) -> None:
    taken = max(1, int(tokenizer * estimate_tokens(prompt))) + added
    made = max(1, int(tokenizer * estimate_tokens(reply))) + reasoned
    cached = int(share * taken)
    usage = meter(Stated(taken, made, cached), prompt, [reply], price=price)
    assert usage == Usage(
        input_tokens=taken, output_tokens=made, cached_input_tokens=cached, usd=price(taken, made, cached)
    )


@pytest.mark.parametrize("stated", [0, 1, 5, 30, 10**7, 10**15])
def test_what_is_too_little_or_too_much_for_the_text_is_not_believed(stated: int) -> None:
    usage = meter(Stated(stated, stated), PROMPT, [REPLY])
    assert usage == estimate_usage(PROMPT, REPLY)
    assert usage.estimated_tokens == usage.tokens > 200


def test_one_figure_may_be_right_and_the_other_wrong() -> None:
    usage = meter(Stated(150, None, 100), PROMPT, [REPLY])
    assert (usage.input_tokens, usage.cached_input_tokens) == (150, 100)
    assert usage.output_tokens == usage.estimated_tokens == estimate_tokens(REPLY)


def test_the_most_that_is_believed_grows_with_the_text_and_the_choices() -> None:
    most = len(REPLY) + MOST_HIDDEN_TOKENS
    assert meter(Stated(200, most), PROMPT, [REPLY]).output_tokens == most
    assert meter(Stated(200, most + 1), PROMPT, [REPLY]).estimated_tokens > 0
    assert meter(Stated(200, most + 1), PROMPT, [REPLY, ""]).output_tokens == most + 1


@pytest.mark.parametrize("row", [" " * 5_000, "=" * 5_000, "\n" * 900 + "a" * 900, "é" * 4_000])
def test_a_row_of_one_character_may_be_few_tokens(row: str) -> None:
    assert meter(Stated(40, 40), row, [row]).estimated_tokens == 0


def test_more_text_is_believed_to_be_more_tokens_in_other_languages() -> None:
    assert estimate_tokens("дом") > estimate_tokens("dom")
    assert estimate_tokens("東京都渋谷区") in range(3, 8)
    assert estimate_tokens("") == 0


@given(st.lists(texts, max_size=6))
def test_a_text_weighs_what_its_pieces_weigh(pieces: list[str]) -> None:
    whole = "".join(pieces)
    assert weigh(whole) == sum(map(weigh, pieces))
    assert tokens_of(weigh(whole)) == estimate_tokens(whole)


def test_choices_nobody_asked_for_and_reasoning_are_estimated_too() -> None:
    usage = meter(Stated(), PROMPT, [REPLY] * 3, reasoning=REPLY)
    assert usage.output_tokens == 4 * estimate_tokens(REPLY)


@pytest.mark.parametrize("samples", [2, 5, 20])
def test_of_several_samples_a_figure_is_believed_only_where_it_can_cover_them_all(samples: int) -> None:
    one, replies = estimate_tokens(REPLY), [REPLY] * samples
    all_of_them = estimate_tokens("".join(replies))
    of_the_first = meter(Stated(200, one), PROMPT, replies)
    assert of_the_first.input_tokens == 200
    assert of_the_first.output_tokens == of_the_first.estimated_tokens == all_of_them
    for stated in (all_of_them, int(all_of_them * 0.7), all_of_them * 3):
        assert meter(Stated(200, stated), PROMPT, replies) == Usage(input_tokens=200, output_tokens=stated)


@pytest.mark.parametrize(
    ("said", "booked"),
    [
        (None, 0.001), (0.0009, 0.0009), (0.00002, 0.00002), (0.05, 0.05),
        (0, 0.001), (0.000001, 0.001), (5.0, 0.001), (-1, 0.001), ("0.1", 0.001), (True, 0.001), (float("nan"), 0.001),
    ],
)  # fmt: skip
def test_a_stated_cost_is_believed_near_the_list_price_only(said: Any, booked: float) -> None:
    usage = meter(Stated(200, 200, None, said), PROMPT, [REPLY], price=price)
    assert usage.usd == pytest.approx(booked)
    assert usage.estimated_tokens == 0


def test_without_a_list_price_a_stated_cost_that_can_be_one_is_taken() -> None:
    assert meter(Stated(200, 200, None, 0.25), PROMPT, [REPLY]).usd == 0.25
    assert meter(Stated(None, None, None, 0.25), PROMPT, [REPLY]).usd == 0.25
    assert meter(Stated(200, 200), PROMPT, [REPLY]).usd is None


@given(st.integers(0, 1_000_000), st.integers(0, 1_000_000), texts, texts)
def test_a_program_s_own_model_is_believed_in_all_that_can_be(
    taken: int, made: int, prompt: str, reply: str
) -> None:
    usage = Usage(calls=1, input_tokens=taken, output_tokens=made, usd=0.5)
    told = check_usage(usage, prompt, reply)
    assert told == (usage if taken or made else Usage(
        input_tokens=estimate_tokens(prompt), output_tokens=estimate_tokens(reply),
        estimated_tokens=estimate_tokens(prompt) + estimate_tokens(reply), usd=0.5,
    ))  # fmt: skip


@pytest.mark.parametrize("bad", [-1, -(10**9), 10**12, "many", None, 1.5])
def test_impossible_figures_of_a_program_s_own_model_are_replaced(bad: Any) -> None:
    told = check_usage(Usage(input_tokens=bad, output_tokens=30), PROMPT, REPLY)
    assert told.input_tokens == estimate_tokens(PROMPT)
    assert told.estimated_tokens > 0

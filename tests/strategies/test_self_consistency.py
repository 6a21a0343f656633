"""Self-consistency: votes, early stops, samples of any strategy."""

import random
from collections import Counter
from itertools import count, cycle
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.blocks.answers import MARKED
from reasonry.blocks.drafts import Draft
from reasonry.core.bodies import Conclusion
from reasonry.core.effects import Ask, Effect, RunStrategy, Verify
from reasonry.core.events import Event, Failed, Stopped, Verified
from reasonry.core.machine import Pending, begin
from reasonry.strategies import STRATEGIES
from reasonry.strategies.self_consistency import CONFIDENCE, REASON, SELF_CONSISTENCY, SYSTEM, Options, State

from ..playing import advance
from .walking import Walked, in_order, reply, walk

FULL = {"stop": "full"}


def sample(answer: Any, reasoning: str = "because") -> dict:
    return {"reasoning": reasoning, "answer": answer}


def votes(walked: Walked) -> list[tuple[str, int]]:
    return [(vote["answer"], vote["count"]) for vote in walked.conclusion.document["votes"]]


def test_a_window_is_asked_side_by_side_as_draws_of_one_question() -> None:
    step = begin(SELF_CONSISTENCY, "p", Options(samples=12, window=5))
    asks = [one.effect for one in step.effects if isinstance(one.effect, Ask)]
    assert [ask.sample for ask in asks] == [0, 1, 2, 3, 4]
    assert len({(ask.prompt, ask.system, ask.temperature) for ask in asks}) == 1
    assert {one.round for one in step.effects} == {1}


def test_samples_come_from_any_other_strategy() -> None:
    options = {"over": "react", "over_options": {"max_steps": 3}, "samples": 3, "stop": "full"}
    walked = walk(SELF_CONSISTENCY, "p", lambda _: reply({"thought": "t", "answer": "A"}), options)
    assert votes(walked) == [("A", 3)]
    assert {one.id for one in walked.performed} == {"e1/e1", "e2/e1", "e3/e1"}
    assert {one.round for one in walked.performed} == {1}


def test_chain_of_thought_is_one_call_unless_it_is_given_options() -> None:
    def effect(options: Options) -> Effect:
        return begin(SELF_CONSISTENCY, "p", options, strategies=STRATEGIES).snapshot.pending[0].effect

    assert isinstance(effect(Options(samples=1)), Ask)
    run = effect(Options(samples=1, over="chain-of-thought", over_options={"max_repairs": 0}))
    assert run == RunStrategy("chain_of_thought", "p", {"max_repairs": 0}, 0, "sample-1")


def test_each_different_answer_is_verified_once() -> None:
    def answer(one: Pending):
        return Verified("unknown") if isinstance(one.effect, Verify) else reply(sample("A"))

    walked = walk(SELF_CONSISTENCY, "p", answer, {"verify": True, "samples": 20, "stop": "exact"})
    assert sum(isinstance(one.effect, Verify) for one in walked.performed) == 1


def test_an_answer_proved_right_ends_the_run_at_once() -> None:
    def answer(one: Pending):
        if isinstance(one.effect, Verify):
            return Verified("right", answer="C!") if one.effect.path == ("C",) else Verified("unknown")
        assert isinstance(one.effect, Ask)
        return reply(sample("AABBC"[one.effect.sample]))

    walked = walk(SELF_CONSISTENCY, "p", answer, {"verify": True, "samples": 40, "window": 5})
    assert walked.conclusion.answer == "C!"
    assert walked.conclusion.document["samples_used"] == 5
    assert walked.conclusion.document["confidence"] == 1.0


@given(st.lists(st.sampled_from("AB"), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_a_stop_in_the_open_window_counts_every_answer_that_has_come_in(
    answers: list[str], order: random.Random
) -> None:
    step = begin(SELF_CONSISTENCY, "p", Options(samples=13, stop="full"))
    came = sorted(order.sample(range(len(step.effects)), len(answers)))
    given_ = [(step.effects[place], answer) for place, answer in zip(came, answers, strict=True)]
    for one, answer in order.sample(given_, len(given_)):
        step = advance(SELF_CONSISTENCY, step.snapshot, one.id, reply(sample(answer)))
    waiting = step.snapshot
    for reason in ("max_calls", "cancelled"):
        ended = advance(SELF_CONSISTENCY, waiting, None, Stopped(reason)).snapshot
        assert ended.conclusion is not None
        assert ended.state == waiting.state
        places = {one: [at for at, answer in enumerate(answers) if answer == one] for one in "AB"}
        leader = max("AB", key=lambda one: (len(places[one]), -max(places[one], default=99)))
        assert ended.conclusion.answer == leader
        document = ended.conclusion.document
        assert (document["samples_used"], document["samples_failed"]) == (len(answers), 0)
        assert sum(vote["count"] for vote in document["votes"]) == len(answers)


def test_a_path_that_is_cut_off_has_no_vote_but_its_best_is_given_where_there_is_none() -> None:
    options = Options(over="self_consistency", over_options={"samples": 3, "window": 3}, samples=2, window=2)
    step = begin(SELF_CONSISTENCY, "p", options, strategies=STRATEGIES)

    def stopped() -> Conclusion:
        ended = advance(SELF_CONSISTENCY, step.snapshot, None, Stopped("max_calls"), strategies=STRATEGIES)
        assert ended.snapshot.conclusion is not None
        return ended.snapshot.conclusion

    assert stopped().answer is None
    for effect_id, answer, best, used in [
        ("e1/e1", "A", "A", 0),
        ("e2/e1", "B", "A", 0),
        ("e2/e2", "B", "A", 0),
        ("e2/e3", "B", "B", 1),
    ]:
        event = reply(sample(answer))
        step = advance(SELF_CONSISTENCY, step.snapshot, effect_id, event, strategies=STRATEGIES)
        assert (stopped().answer, stopped().document["samples_used"]) == (best, used)


@pytest.mark.parametrize("over", ["chain_of_thought", "react"])
def test_where_all_samples_failed_the_code_of_the_last_says_why(over: str) -> None:
    options = {"samples": 2, "over": over}
    down = Failed("script_exhausted", "nothing is left")
    walked = walk(SELF_CONSISTENCY, "p", lambda _: down, options)
    assert (walked.conclusion.reason, walked.snapshot.error) == ("all_samples_failed", "script_exhausted")
    assert walked.conclusion.detail == "none of 2 drafts has an answer; the last: nothing is left"


def test_a_sample_without_a_readable_answer_is_asked_for_once_more_and_then_drawn_anew() -> None:
    unmarked = ("Some five.", "As I said.")
    walked = walk(SELF_CONSISTENCY, "p", in_order(*unmarked, sample("A")), {"samples": 1})
    assert walked.conclusion.answer == "A"
    assert [(ask.sample, len(ask.turns)) for ask in walked.asks] == [(0, 0), (0, 1), (1, 0)]
    assert len({(ask.question, ask.system) for ask in walked.asks}) == 1
    assert walked.conclusion.document["samples_failed"] == 1


@given(st.integers(1, 40))
def test_samples_without_readable_answers_are_drawn_anew_up_to_a_limit(samples: int) -> None:
    walked = walk(SELF_CONSISTENCY, "p", lambda _: reply("{{{["), {"samples": samples})
    assert walked.conclusion.reason == "all_samples_failed"
    assert len({ask.sample for ask in walked.asks}) == samples + max(2, samples // 2)
    assert len(walked.asks) == 2 * len({ask.sample for ask in walked.asks})


def test_a_settled_vote_asks_for_nothing_more_though_samples_were_unreadable() -> None:
    replies = in_order(*[sample("A")] * 3, "{{{[", "{{{[", sample("A"))
    walked = walk(SELF_CONSISTENCY, "p", replies)
    assert (walked.conclusion.answer, len(walked.asks)) == ("A", 6)
    assert [one.effect.sample for one in walked.performed] == [0, 1, 2, 3, 3, 4]


def drafts(answers: list[str]) -> tuple[Draft, ...]:
    return tuple(Draft(number, answer) for number, answer in enumerate(answers, 1))


@given(st.lists(st.sampled_from("AAABC"), min_size=60, max_size=60), st.sampled_from(["beta", "exact"]))
def test_a_window_is_the_least_number_that_could_settle_the_vote(answers: list[str], stop: Any) -> None:
    options = Options(samples=40, stop=stop)
    rounds: Counter[int] = Counter()

    def answer(one: Pending):
        assert isinstance(one.effect, Ask)
        rounds[one.round] += 1
        return reply(sample(answers[one.effect.sample]))

    walk(SELF_CONSISTENCY, "p", answer, {"samples": 40, "stop": stop})
    drawn = 0
    for width in rounds.values():
        so_far = State(problem="p", options=options, drafts=drafts(answers[:drawn]))
        leader = so_far.votes[0].answer if so_far.votes else "A"
        for number in range(1, width + 1):
            more = drafts([*answers[:drawn], *[leader] * number])
            later = State(problem="p", options=options, drafts=more)
            assert (later.width == 0) == (number == width)
        drawn += width


def test_the_answer_is_asked_for_in_a_mark_and_a_mark_that_only_quotes_the_question_is_none() -> None:
    """The example of arXiv:2201.11903, figure 1."""
    text = (
        "The cafeteria had 23 apples originally. They used 20 to make lunch. So they had 23 - 20 = 3. They bought 6 "
        "more apples, so they have 3 + 6 = 9."
    )
    walked = walk(SELF_CONSISTENCY, "p", lambda _: reply(f"{text}\n\n<answer>9</answer>"), {"samples": 1})
    assert (walked.conclusion.answer, walked.thoughts[0].text) == ("9", text)
    put = walked.asks[0].spelled_out()
    assert (put.system, put.prompt, put.form) == (SYSTEM, f"Problem: p\n\n{MARKED}\n\n{REASON}", None)
    assert walked.asks[0].spelled_out(reasons=True).prompt == f"Problem: p\n\n{MARKED}"
    for echo in ("Answer: …", "<answer>…</answer>"):
        echoed = walk(SELF_CONSISTENCY, "p", in_order(*[echo] * 6), {"samples": 1})
        assert echoed.conclusion.reason == "all_samples_failed"


def test_forty_questions_take_at_most_21_samples_and_5_rounds_at_equal_accuracy() -> None:
    used: list[int] = []
    rounds: list[int] = []
    right: Counter[str] = Counter()
    for question in range(40):
        for stop in ("beta", "full"):
            chance = (0.9, 0.7, 0.5, 0.35)[question % 4]

            def answer(one: Pending, chance: float = chance, question: int = question):
                assert isinstance(one.effect, Ask)
                rng = random.Random(f"{question} {one.effect.sample}")
                return reply(sample("right" if rng.random() < chance else f"wrong {rng.randint(1, 4)}"))

            walked = walk(SELF_CONSISTENCY, "p", answer, {"samples": 40, "stop": stop, "group": False})
            right[stop] += walked.conclusion.answer == "right"
            if stop == "beta":
                used.append(walked.conclusion.document["samples_used"])
                rounds.append(walked.snapshot.rounds)
    assert sum(used) / 40 <= 21
    assert sum(rounds) / 40 <= 5
    assert right["beta"] >= right["full"]


def test_a_vote_is_weighed_by_the_confidence_its_path_states() -> None:
    paths = (
        "so\n<answer>13</answer> <confidence>20</confidence>",
        "so\n<answer>13</answer>\n<confidence>10 %</confidence>",
        "so\nAnswer: 18\n<confidence> 99 </confidence>",
    )
    walked = walk(
        SELF_CONSISTENCY, "How many?", in_order(*paths), {"samples": 3, "weigh": True, "stop": "full"}
    )
    assert walked.conclusion.answer == "18"
    assert [vote["answer"] for vote in walked.conclusion.document["votes"]] == ["18", "13"]
    assert sum(vote["weight"] for vote in walked.conclusion.document["votes"]) == pytest.approx(1, abs=1e-3)
    assert walked.asks[0].mark == MARKED + CONFIDENCE


def test_a_judge_groups_free_answers_and_the_group_votes_as_one() -> None:
    answers = ("Answer: by rail", "Answer: on foot", "Answer: with the train")
    bad, good = {"groups": [[1, 3]]}, {"groups": [[1, 3], [2]]}
    walked = walk(
        SELF_CONSISTENCY,
        "How does one get there?",
        in_order(*answers, bad, good),
        FULL | {"samples": 3},
    )
    assert votes(walked) == [("by rail", 2), ("on foot", 1)]
    assert walked.conclusion.answer == "by rail"
    assert walked.asks[-1].by == "judge"


def arriving(options: dict[str, Any], *arrivals: tuple[int, str]) -> Any:
    """Return the run after samples, by their places, have arrived in this order."""
    step = begin(SELF_CONSISTENCY, "How many?", msgspec.convert(options, Options), strategies=STRATEGIES)
    ids = [waiting.id for waiting in step.snapshot.pending]
    for place, answer in arrivals:
        assert step.snapshot.status == "active"
        step = advance(
            SELF_CONSISTENCY, step.snapshot, ids[place], reply(f"Answer: {answer}"), strategies=STRATEGIES
        )
    return step


def test_all_samples_are_drawn_at_once_and_the_rest_is_cancelled_when_the_vote_is_decided() -> None:
    step = arriving({"samples": 5, "at_once": True, "stop": "exact"}, (4, "18"), (0, "18"), (2, "18"))
    assert step.snapshot.status == "done"
    assert len(step.cancelled) == 2
    assert step.snapshot.conclusion.document["samples_saved"] == 2


def test_the_first_so_many_vote_and_a_tie_goes_to_the_shortest() -> None:
    step = arriving({"samples": 5, "first": 2, "group": False}, (3, "18 dollars and a bit"), (1, "13"))
    assert step.snapshot.conclusion.answer == "13"
    assert len(step.cancelled) == 3


PLANETS = "Which planet is the largest?\nA) Mars\nB) Jupiter\nC) Venus"
ROWS: list[tuple[str, list[str], int]] = [
    (PLANETS, ["B", "B) Jupiter", "The answer is Jupiter", "B. Jupiter", "(B)", "Option B"], 1),
    (PLANETS, ["Jupiter", "B", "b) jupiter", "(B) Jupiter"], 0),
    (
        "Is 91 prime?",
        ["No", "No, 91 = 7 × 13.", "91 is not prime.", "It is not a prime number.", "no (7·13)"],
        1,
    ),
    ("When?", ["20 July 1969", "July 20, 1969", "1969-07-20", "20.07.1969"], 0),
    (
        "Who wrote it?",
        ["George Eliot", "Mary Ann Evans (George Eliot)", "It was written by George Eliot."],
        1,
    ),
    ("How much is it?", ["€47.50", "47,50 €", "47,5 Euro", "47 euros 50"], 1),
    ("Which share?", ["3/8", "37.5%", "3 out of 8", "3/8 (37.5 %)"], 1),
]


@pytest.mark.parametrize(("problem", "answers", "questions"), ROWS)
def test_answers_that_agree_take_at_most_six_samples_and_one_grouping_question(
    problem: str, answers: list[str], questions: int
) -> None:
    said = cycle(answers)

    def answer(one: Pending) -> Event:
        assert isinstance(one.effect, Ask)
        if one.effect.facts["kind"] == "group":
            return reply({"groups": [list(range(1, one.effect.facts["count"] + 1))]})
        return reply(sample(next(said)))

    walked = walk(SELF_CONSISTENCY, problem, answer)
    samples = walked.conclusion.document["samples_used"]
    assert samples <= 6
    assert len([ask for ask in walked.asks if ask.facts["kind"] == "group"]) == questions
    assert walked.conclusion.detail == f"{samples} of {samples} samples agree; {samples} of 20 samples drawn"


def test_numbers_that_differ_are_never_grouped_and_a_lost_grouping_changes_nothing() -> None:
    numbers = walk(SELF_CONSISTENCY, "p", in_order(*[sample(f"{at}") for at in range(6)]), {"samples": 6})
    assert numbers.conclusion.detail == "no two samples agree; 6 of 6 samples drawn"
    assert numbers.conclusion.document["diagnostics"]["warnings"] == ["no two samples agree"]
    places = count()

    def answer(one: Pending) -> Event:
        assert isinstance(one.effect, Ask)
        is_group = one.effect.facts["kind"] == "group"
        return (
            Failed("provider_timeout", "no reply") if is_group else reply(sample("ab"[next(places) % 2] * 2))
        )

    words = walk(SELF_CONSISTENCY, "p", answer, {"samples": 6})
    assert words.conclusion.detail == "3 of 5 samples agree; 5 of 6 samples drawn"
    assert len([ask for ask in words.asks if ask.facts["kind"] == "group"]) == 1


def test_samples_that_failed_are_counted_and_one_reply_is_one_models_answer() -> None:
    lost = Failed("provider_timeout", "no reply")
    walked = walk(SELF_CONSISTENCY, "p", in_order(sample("42"), lost, lost), FULL | {"samples": 3})
    assert walked.conclusion.detail == (
        "1 of 3 samples replied: this is one model's answer; "
        "3 of 3 samples drawn, 2 without an answer that could be read"
    )
    assert walked.conclusion.document["samples_failed"] == 2


def test_the_answer_is_in_its_first_voters_words() -> None:
    drawn = cycle(["__init__", "`__init__`", "main"])
    walked = walk(SELF_CONSISTENCY, "p", lambda _: reply(sample(next(drawn))), {"samples": 6, **FULL})
    assert (walked.conclusion.answer, votes(walked)) == ("__init__", [("__init__", 4), ("main", 2)])

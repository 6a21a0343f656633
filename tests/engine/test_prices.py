"""A limit on dollars needs a price: refused at the start where none is known, held where the user names one."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasonry
from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.app.runs import coach_start, coach_take_over
from reasonry.compare.comparison import Comparison
from reasonry.compare.grading import Item
from reasonry.compare.problem_set import ProblemSet
from reasonry.core.budget import Budget
from reasonry.core.events import Usage
from reasonry.engine.prices import Price, Prices, fix_prices
from reasonry.errors import UsageError
from reasonry.models.openai_compatible import OpenAICompatibleModel
from reasonry.models.scripted import ScriptedModel
from reasonry.surfaces.present import exit_code
from tests.servers import ModelServer

from .crashing import ALL
from .playing import CountingModel
from .running import order_and_solve, request_of

pytestmark = pytest.mark.anyio

UNKNOWN = OpenAICompatibleModel("http://127.0.0.1:9/v1", "llama")
SOLD = OpenAICompatibleModel("http://127.0.0.1:9/v1", "gpt-5-mini")
FREE = ScriptedModel.of({"stage": "*", "reply": "4"})

amounts = st.decimals(0, 999_999, places=6).map(float)


@given(amounts, amounts, st.text(min_size=1, max_size=20).filter(lambda name: name.strip() == name))
def test_a_price_is_written_as_it_is_read(taken: float, made: float, model: str) -> None:
    price = Price(taken, made)
    assert Prices.read([str(price)]).named == {"": price}
    assert Prices.read([f"{model}={price}"]).named == {model: price}
    assert price(2_000_000, 500_000, 0) == pytest.approx(2 * taken + made / 2)


@pytest.mark.parametrize(
    "bad", ["", "1", "1/", "/1", "-1/2", "1/nan", "1/2/3", "1e3/2", "a/b", "1,5/2", "=1/2", 3]
)
def test_anything_else_is_no_price_and_a_price_is_named_once(bad: Any) -> None:
    for specs, why in (([bad], "a price is IN/OUT"), (["1/2", "3/4", bad], "named twice")):
        with pytest.raises(UsageError, match=why) as caught:
            Prices.read(specs)
        assert caught.value.details["option"] == "price"


def test_a_model_s_own_price_comes_before_that_of_all_others() -> None:
    prices = Prices.read(["1/2", f"{UNKNOWN.name}=3/4"])
    assert (prices.of(UNKNOWN), prices.of(SOLD)) == (Price(3, 4), Price(1, 2))
    assert fix_prices([Prices(), prices], [UNKNOWN]) == (f"{UNKNOWN.name}=3/4",)


def order(
    budget: Budget, environ: dict[str, str] | None = None, options: Any = None, **participants: Any
) -> Any:
    app, strategy = App("memory", strategies=ALL, environ=environ or {}), "analysis" if options else "loop"
    terms = {"options": options or {}, "participants": Participants(**participants)}
    return app.order(request_of("2 + 2?", strategy, budget=budget, **terms))


DEAR = Budget(usd=0.5)


@pytest.mark.parametrize(
    "participants",
    [
        {"model": UNKNOWN},
        {"model": "openai-compatible:http://127.0.0.1:9/v1#llama"},
        {"model": "ollama:llama"},
        {"model": SOLD, "judge_model": UNKNOWN},
        {"model": SOLD, "draft_model": UNKNOWN},
        {"model": UNKNOWN, "judge_model": SOLD, "price": f"{SOLD.name}=1/2"},
    ],
)
def test_a_limit_on_dollars_without_a_price_is_refused(participants: dict[str, Any], tmp_path: Path) -> None:
    record = tmp_path / "answers.jsonl"
    for options, budget in (({}, DEAR), ({"cost_limit": 0.5}, Budget())):
        with pytest.raises(UsageError, match=r"--price.*or use max_calls") as caught:
            order(budget, options=options, record=str(record), **participants)
        error = caught.value
        assert (error.code, exit_code(error.code)) == ("price_unknown", 2)
        assert error.details["option"] == ("cost_limit" if options else "max_usd")
        assert len(error.details["models"]) == 1
    assert not record.exists()
    order(Budget(tokens=100, calls=3), **participants)


@pytest.mark.parametrize(
    ("environ", "participants"),
    [
        ({}, {"model": UNKNOWN, "price": "0.1/0.4"}),
        ({}, {"model": UNKNOWN, "price": ["0/0"]}),
        ({}, {"model": UNKNOWN, "judge_model": SOLD, "price": f"{UNKNOWN.name}=1/2"}),
        ({"REASONRY_PRICE": "0.1/0.4"}, {"model": UNKNOWN}),
        ({"REASONRY_PRICE": f"another=9/9, {UNKNOWN.name}=1/2"}, {"model": UNKNOWN}),
        ({}, {"model": SOLD}),
        ({}, {"model": FREE}),
        ({}, {"model": CountingModel()}),
    ],
)
def test_with_a_price_it_is_taken(environ: dict[str, str], participants: dict[str, Any]) -> None:
    order(DEAR, environ, **participants)
    order(Budget(), environ, {"cost_limit": 0.5}, **participants)


@pytest.mark.parametrize(
    ("budget", "cost_limit", "expected"),
    [
        (None, 0.5, Budget(usd=0.5)),
        (Budget(calls=9), 0.5, Budget(calls=9, usd=0.5)),
        (Budget(usd=0.2, seconds=9), 0.5, Budget(usd=0.2, seconds=9)),
        (Budget(usd=0.7), 0.5, Budget(usd=0.5)),
        (None, None, Budget(calls=30)),
    ],
)
def test_the_lowest_limit_on_dollars_is_that_of_the_run(
    budget: Budget | None, cost_limit: float | None, expected: Budget
) -> None:
    app, inside = App("memory", environ={}), {"cost_limit": cost_limit}
    for strategy, options in (
        ("analysis", inside),
        ("best_of_n", {"over": "analysis", "over_options": inside}),
    ):
        named: dict[str, Any] = {"strategy": strategy, "options": options, "budget": budget}
        request = RunRequest(problem="2 + 2?", participants=Participants(model=FREE), **named)
        assert app.order(request)[0].budget == expected


def test_the_limit_of_a_strategy_inside_another_needs_a_price_too() -> None:
    app = App("memory", environ={})
    options = {"over": "analysis", "over_options": {"cost_limit": 1.0}}
    with pytest.raises(UsageError, match="cost_limit needs the price of"):
        app.order(request_of("2 + 2?", "self_consistency", options=options, model=UNKNOWN))


async def test_the_price_a_user_names_is_what_is_booked_and_what_the_limit_goes_by() -> None:
    with ModelServer(replies=("four words of text",) * 9) as server:
        async with App("memory", strategies=ALL) as app:
            participants = Participants(model=server.model, price="1000/2000")
            result = await order_and_solve(
                app, "count", "loop", options={"steps": 9}, budget=Budget(usd=0.03), participants=participants
            )
            usage = result.usage
            assert usage.usd == pytest.approx((1000 * usage.input_tokens + 2000 * usage.output_tokens) / 1e6)
            assert (result.termination.reason, result.usage.calls) == ("max_usd", 3)
            later = await app.resume(result.run_id, budget=Budget(usd=0.05))
        assert later.usage.calls == 5, "the price is remembered"
        assert later.usage.usd == pytest.approx(usage.usd / 3 * 5)


async def test_a_run_that_goes_on_with_a_model_of_no_price_is_refused_and_left_as_it_is() -> None:
    with ModelServer(replies=("x",) * 9) as server:
        async with App("memory", strategies=ALL) as app:
            participants, budget = Participants(model=server.model, price="0/0"), Budget(usd=1, calls=2)
            result = await order_and_solve(
                app, "count", "loop", options={"steps": 9}, budget=budget, participants=participants
            )
            lines = await app.store.lines(result.run_id)
            with pytest.raises(UsageError, match=r"needs the price of .*llama"):
                await app.resume(result.run_id, Participants(model=UNKNOWN))
            source = await app.engine.recorded_run(result.run_id)
            with pytest.raises(UsageError, match="max_usd needs the price of"):
                await app.order_fork(source, Participants(model=UNKNOWN), {}, DEAR)
            assert await app.store.lines(result.run_id) == lines
            assert len(await app.store.runs()) == 1


async def test_a_coached_run_takes_no_limit_on_dollars() -> None:
    async with App("memory", environ={"REASONRY_PRICE": "1/2"}) as app:
        for budget, options in ((DEAR, {}), (Budget(), {"cost_limit": 1.0})):
            with pytest.raises(UsageError, match="caller answers this run's questions") as caught:
                await coach_start(app, request_of("2 + 2?", "analysis", options=options, budget=budget))
            assert caught.value.code == "price_unknown"
        assert await app.store.runs() == []
        started = await coach_start(app, request_of("2 + 2?", "analysis", budget=Budget(calls=3)))
        with pytest.raises(UsageError, match="caller answers this run's questions"):
            await coach_take_over(app, started["run_id"], Participants(), DEAR)


@pytest.mark.parametrize(("terms", "budget"), [({"total_usd": 1.0}, None), ({}, DEAR)])
async def test_a_comparison_takes_no_limit_on_dollars_without_a_price(
    terms: dict[str, Any], budget: Budget | None
) -> None:
    unknown, priced = (
        RunRequest(budget=budget, participants=Participants(model=UNKNOWN, price=price))
        for price in ((), "1/2")
    )
    problems = ProblemSet("sums", [Item("one", "1 + 1?", "2")])
    unjudged = RunRequest(
        participants=Participants(model=SOLD, judge_model=UNKNOWN, price=f"{SOLD.name}=1/2"), budget=budget
    )
    async with App("memory") as app:
        with pytest.raises(UsageError, match=r"needs the price of .*llama"):
            Comparison(app, problems, ["self_consistency"], unjudged, **terms, judge="model")
        with pytest.raises(UsageError, match="needs the price") as caught:
            Comparison(app, problems, ["self_consistency"], unknown, **terms)
        assert caught.value.code == "price_unknown"
        assert await app.store.runs() == []
        Comparison(app, problems, ["self_consistency"], priced, **terms)


async def test_a_price_alone_runs_no_comparison_anew() -> None:
    problems = ProblemSet("sums", [Item("one", "1 + 1?", "2")])
    async with App("memory") as app:
        keys = [
            [job.key for job in Comparison(app, problems, ["self_consistency"], request).jobs]
            for participants in (Participants(model=SOLD), Participants(model=SOLD, price="1/2"))
            for budget in (None, DEAR)
            for request in [RunRequest(budget=budget, participants=participants)]
        ]
    assert keys[0] == keys[2]
    assert keys[1] != keys[3]


async def test_answers_of_a_program_s_own_model_that_state_no_dollars_are_told_under_a_limit_on_them() -> (
    None
):
    async with App("memory", strategies=ALL) as app:
        for usd, warned in ((None, True), (0.01, False)):
            model = CountingModel(usage=Usage(output_tokens=5, usd=usd))
            result = await order_and_solve(
                app, "count", "loop", options={"steps": 3}, budget=DEAR, model=model
            )
            assert any("does not count 3 answers" in one for one in result.warnings) == warned


async def test_python_takes_a_price() -> None:
    with ModelServer(replies=({"reasoning": "", "answer": "4"},) * 3) as server:
        arguments: dict[str, Any] = {"strategy": "self_consistency", "model": server.model, "store": "memory"}
        with pytest.raises(UsageError, match="price"):
            await reasonry.solve("2 + 2?", budget=DEAR, **arguments)
        assert server.stats()["requests"] == 0
        result = await reasonry.solve("2 + 2?", budget=DEAR, price="1/2", options={"samples": 1}, **arguments)
    assert result.usage.usd is not None
    assert result.usage.usd > 0

"""A cascade: a cheap model answers, the next one only where its answer does not stand, and each step is said."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from reasonry import Budget, solve
from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest, make_order
from reasonry.app.rights import ListedRights
from reasonry.core.effects import Ask
from reasonry.errors import ModelError, UsageError

from .walking import Mind

pytestmark = pytest.mark.anyio

QUESTION = "Which tree is it?"


class Named(Mind):
    """A model that gives its answers in turn, rates as it is told, and counts what it was asked."""

    def __init__(self, name: str, *answers: str, rating: Any = 9) -> None:
        super().__init__()
        self.name, self.answers, self.rating = name, answers, rating
        self.drawn, self.judged = 0, list[str]()

    def reply(self, ask: Ask) -> Any:
        if ask.facts["kind"] == "judge":
            self.judged.append(ask.text)
            return {"reason": "traced", "ratings": {"A": self.rating}}
        self.drawn += 1
        if not self.answers:
            raise ModelError("the line is dead")
        return f"worked out\n\n<answer>{self.answers[(self.drawn - 1) % len(self.answers)]}</answer>"


async def descend(
    monkeypatch: pytest.MonkeyPatch,
    *models: Named,
    rating: Any = 9,
    given: Mapping[str, Any] | None = None,
    **options: Any,
) -> tuple[Any, Named]:
    by_name = {model.name: model for model in models}
    monkeypatch.setattr("reasonry.models.choose.open_model", lambda spec, *_, **__: by_name[spec])
    judge = Named("judge", rating=rating)
    named = [model.name for model in models]
    options = {"models": named, **options}
    result = await solve(
        QUESTION, strategy="cascade", model=judge, store="memory", options=options, **(given or {})
    )
    return result, judge


def drawn(models: Iterable[Named]) -> list[int]:
    return [model.drawn for model in models]


async def test_where_the_first_answer_stands_no_other_model_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [Named("small", "birch"), Named("large", "cedar")]
    result, judge = await descend(monkeypatch, *models)
    assert (result.answer, result.usage.calls, drawn(models)) == ("birch", 2, [1, 0])
    assert (result.details["share_up"], result.details["doubts"]) == (0.0, [])
    assert result.details["models"] == ["small"]
    assert result.termination.detail == "0 of 1 steps up"
    (prompt,) = judge.judged
    assert "small" not in prompt
    assert "rate it from 1" in prompt


@pytest.mark.parametrize(
    ("rating", "doubt"),
    [
        (5, "the judge rates the answer 5 of 10"),
        ("unsure", "the judge gave no rating that could be read"),
    ],
)
async def test_where_the_judge_doubts_or_is_undecided_the_next_model_answers(
    monkeypatch: pytest.MonkeyPatch, rating: Any, doubt: str
) -> None:
    models = [Named("small", "birch"), Named("large", "cedar")]
    result, _ = await descend(monkeypatch, *models, rating=rating)
    assert (result.answer, drawn(models)) == ("cedar", [1, 1])
    assert result.details["doubts"] == [doubt]
    assert result.details["models"] == ["small", "large"]
    assert result.details["share_up"] == 1.0
    assert result.termination.detail == f"1 of 1 steps up: {doubt}"
    assert result.why is not None
    assert f"the answer of model small did not stand: {doubt}" in result.why.text


async def test_a_verifier_decides_before_any_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_cedar(problem: str, path: list[str]) -> bool:
        return path[-1] == "cedar"

    models = [Named("small", "birch"), Named("middle", "cedar"), Named("large", "oak")]
    result, judge = await descend(monkeypatch, *models, given={"verifier": is_cedar})
    assert (result.outcome, result.answer, drawn(models)) == ("solved", "cedar", [1, 1, 0])
    assert (judge.judged, result.details["share_up"]) == ([], 0.5)
    wrong = [Named("small", "birch"), Named("large", "oak")]
    result, _ = await descend(monkeypatch, *wrong, given={"verifier": is_cedar})
    assert (result.outcome, result.answer) == ("unsolved", None)
    assert result.termination.reason == "verification_failed"


@pytest.mark.parametrize(("agreement", "asked"), [(1.0, [3, 3]), (0.6, [3, 0])])
async def test_where_the_votes_disagree_the_next_model_answers(
    monkeypatch: pytest.MonkeyPatch, agreement: float, asked: list[int]
) -> None:
    models = [Named("small", "birch", "oak", "birch"), Named("large", "cedar")]
    result, judge = await descend(monkeypatch, *models, samples=3, agreement=agreement)
    assert (drawn(models), judge.judged) == (asked, [])
    assert result.answer == ("cedar" if asked[1] else "birch")
    assert result.details["doubts"] == (["2 of 3 samples agree"] if asked[1] else [])


async def test_a_model_that_fails_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = await descend(monkeypatch, Named("small"), Named("large", "cedar"))
    assert (result.answer, result.details["share_up"]) == ("cedar", 1.0)
    assert "the line is dead" in result.details["doubts"][0]
    result, _ = await descend(monkeypatch, Named("small", "birch"), Named("large"), rating=3)
    assert result.answer == "birch"


async def test_all_models_share_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [Named("small", "birch"), Named("large", "cedar")]
    for calls in (1, 2):
        result, _ = await descend(monkeypatch, *models, rating=2, given={"budget": Budget(calls=calls)})
        assert result.usage.calls <= calls
        assert result.answer == "birch"


@pytest.mark.parametrize("models", [[], ["offline"], ["offline", "offline"], ["a", "b", "a"]])
async def test_one_model_none_or_one_twice_is_refused(
    monkeypatch: pytest.MonkeyPatch, models: list[str]
) -> None:
    monkeypatch.setattr("reasonry.models.choose.open_model", lambda spec, *_, **__: Named(spec, "birch"))
    options = {"models": models} if models else {}
    with pytest.raises(UsageError, match="cascade needs two models or more, each once") as refused:
        await solve(QUESTION, strategy="cascade", model=Named("judge"), options=options, store="memory")
    assert refused.value.details["option"] == "models"


async def test_a_request_names_listed_models_alone_and_each_once_under_all_its_names() -> None:
    listed = {"REASONRY_MODELS": "small=ollama:s,large=ollama:l,same=ollama:s"}
    async with App("memory", environ=listed) as app:
        rights = ListedRights(app.pool)
        for models, expected in (
            (["small", "large"], None),
            (["small", "ollama:x"], "has listed .*: offline, small, large"),
            (["small", "same"], "each once"),
        ):
            request = RunRequest(
                problem=QUESTION,
                strategy="cascade",
                options={"models": models},
                participants=Participants(model="ollama:s"),
            )
            if expected:
                with pytest.raises(UsageError, match=expected):
                    make_order(request, app.strategies, app.pool, rights)
            else:
                order, _ = make_order(request, app.strategies, app.pool, rights)
                assert order.participants.seats == ("ollama:s", "ollama:l")


async def test_without_another_model_the_first_of_the_cascade_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, Named] = {}

    def open_named(spec: str, *_: Any, **__: Any) -> Named:
        return made.setdefault(spec, Named(spec, "birch"))

    monkeypatch.setattr("reasonry.models.choose.open_model", open_named)
    async with App("memory", environ={"REASONRY_PROBE": "0", "OLLAMA_HOST": "http://127.0.0.1:9"}) as app:
        request = RunRequest(problem=QUESTION, strategy="cascade", options={"models": ["small", "large"]})
        result = await app.solve(*app.order(request))
    assert (result.answer, len(made["small"].judged), made["large"].drawn) == ("birch", 1, 0)

"""Compositions: a strategy over another, as it is written, on every surface that takes a strategy's name."""

from typing import Any

import pytest

from reasonry import solve
from reasonry.app.composition import read_composition, split_outside
from reasonry.errors import UsageError
from reasonry.models.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("written", "name", "inside", "options"),
    [
        ("react", "react", None, {}),
        (" Tree of thoughts ", "Tree of thoughts", None, {}),
        ("best_of_n()", "best_of_n", None, {}),
        ("best_of_n(react, n=5)", "best_of_n", "react", {"n": "5"}),
        ("best_of_n(n=5)", "best_of_n", None, {"n": "5"}),
        ('a(b(c, x=1), y=[1, 2], z="k, (")', "a", "b(c, x=1)", {"y": "[1, 2]", "z": '"k, ("'}),
    ],
)
def test_a_name_with_a_strategy_inside_and_options(
    written: str, name: str, inside: str | None, options: dict[str, str]
) -> None:
    read = read_composition(written)
    assert (read.name, read.inside, dict(read.options)) == (name, inside, options)
    assert read_composition(read.spell(read.name)) == read


@pytest.mark.parametrize(
    "written", ["a(b", "a(b))", "a(b, c)", "a(x=1, x=2)", "(b)", "a(b,,)", "a(b]x", 'a("b)']
)
def test_what_does_not_hold_together_is_refused(written: str) -> None:
    with pytest.raises(UsageError) as error:
        read_composition(written)
    assert error.value.details["option"] == "strategy"


def test_a_list_of_compositions_is_split_between_them() -> None:
    assert split_outside("auto,a(b, n=2),c") == ["auto", "a(b, n=2)", "c"]


def draft(answer: str) -> dict[str, Any]:
    return {"stage": "*", "reply": {"steps": ["counted"], "answer": answer}}


async def test_a_composition_is_one_run_with_one_budget() -> None:
    result = await solve(
        "How many?",
        strategy="self_consistency(chain_of_thought(style=draft), samples=2, stop=full)",
        model=ScriptedModel.of(draft("4"), draft("4")),
        store="memory",
    )
    assert (result.answer, result.usage.calls) == ("4", 2)


async def test_an_option_named_twice_or_an_inner_strategy_where_none_fits_is_refused() -> None:
    model = ScriptedModel.of()
    for strategy, options, why in (
        ("self_consistency(react, samples=2)", {"samples": 3}, "named twice"),
        ("react(react)", {}, "takes no inner strategy"),
        ("self_consistency(reakt)", {}, "there is no strategy 'reakt'"),
        ("self_consistency(react(tree=1))", {}, "react has no option 'tree'"),
        ("self_consistency(" * 7 + "react" + ")" * 7, {}, "at most 5"),
    ):
        with pytest.raises(UsageError, match=why):
            await solve("How many?", strategy=strategy, options=options, model=model, store="memory")


async def test_tools_and_the_verifier_reach_the_strategy_inside() -> None:
    def look_up(name: str) -> str:
        """Look a name up."""
        return f"{name} has 4"

    turn = {
        "stage": "*",
        "reply": {"thought": "look", "actions": [{"tool": "look_up", "arguments": {"name": "x"}}]},
    }
    end = {"stage": "*", "reply": {"thought": "seen", "answer": "4"}}
    result = await solve(
        "How many?",
        strategy="best_of_n(react, n=1)",
        model=ScriptedModel.of(turn, end),
        tools=[look_up],
        verifier=lambda problem, path: path[-1] == "4",
        store="memory",
    )
    assert (result.answer, result.outcome) == ("4", "solved")

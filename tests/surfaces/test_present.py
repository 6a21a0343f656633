"""How thoughts are shown in a shell."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.blocks.plan import STATUSES, PlanStep, format_plan, plan_data
from reasonry.surfaces.present import thought_lines

from .test_cli import Shell

SUB = (PlanStep("tens", "Done", "30"), PlanStep("ones", "Verification Needed", mark="carry?"))
PLAN = (PlanStep("Add", "Pending", sub_steps=SUB), PlanStep("Conclusion", "Pending"))
SHOWN = [
    "  - [Pending] Add",
    "    - [Done] tens: 30",
    "    - [Verification Needed] ones (carry?)",
    "  - [Pending] Conclusion",
]
TOLD = ["Thought 1 · think: Set up.", *SHOWN, "Thought 2 · think: Evaluation: Right. It is 42."]


def thinking(plan: tuple[PlanStep, ...], text: str = "Set up.") -> tuple[str, dict[str, Any]]:
    return f"{text}\n\nPlan:\n{format_plan(plan)}", {"planning": plan_data(plan)}


def test_a_thought_with_a_plan_is_an_indented_list() -> None:
    assert thought_lines(*thinking(PLAN), 160) == ["Set up.", *SHOWN]


@pytest.mark.parametrize(
    "data", [{}, {"planning": None}, {"planning": 7}, {"planning": [{"step": 1}]}, {"other": 1}]
)
def test_a_thought_without_a_plan_is_one_line(data: dict[str, Any]) -> None:
    assert thought_lines("Two\nlines, \x1b[31mred", data, 160) == ["Two lines, \\u001b[31mred"]


steps = st.builds(PlanStep, st.text(min_size=1), st.sampled_from(STATUSES), st.none() | st.text())
nested = st.recursive(
    steps,
    lambda inner: st.builds(
        PlanStep, st.text(min_size=1), st.just("Pending"), sub_steps=st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=10,
)


@given(st.lists(nested, max_size=4).map(tuple), st.integers(20, 200))
def test_every_step_has_a_line_of_its_own_that_does_nothing_to_a_terminal(plan, width: int) -> None:
    def count(some) -> int:
        return sum(1 + count(one.sub_steps or ()) for one in some)

    lines = thought_lines(*thinking(plan), width)
    assert len(lines) == 1 + count(plan)
    assert all(len(line) <= width and line.isprintable() for line in lines if line.isascii())
    assert all(not set(line) & set("\n\r\x1b\u202e") for line in lines)


@pytest.fixture
def script(tmp_path: Path) -> str:
    done = [{**step, "status": "Done", "result": "42"} for step in plan_data(PLAN)]
    done[0]["sub_steps"] = [{**step, "status": "Done", "result": "12"} for step in plan_data(SUB)]
    first = {"current_thinking": "Set up.", "planning": plan_data(PLAN), "next_thought_needed": True}
    last = {"current_thinking": "It is 42.", "planning": done, "next_thought_needed": False}
    replies = (first, {"evaluation": "Right.", **last})
    return Shell(tmp_path).script(*({"stage": "think", "reply": reply} for reply in replies))


def test_solve_and_runs_show_print_the_plan_of_each_thought(tmp_path: Path, script: str) -> None:
    shell = Shell(tmp_path)
    solve = ("solve", "17 + 25?", "--strategy", "planned_thinking", "--model", script)
    solved = shell.run(*solve)
    assert "\n".join(TOLD) in solved.stderr
    shown = shell.run("runs", "show", "last")
    recorded = shell.json("runs", "show", "last")["thoughts"][0]
    assert recorded["text"].endswith(format_plan(PLAN))
    plan = "".join(f"  {line}\n" for line in format_plan(PLAN).splitlines())
    whole = f"Thought 1 · think\n  Set up.\n\n  Plan:\n{plan}"
    assert whole in shown.stdout
    assert "Path\n  problem_reception → think ×2 → conclude → final_response\n" in shown.stdout
    in_full = shell.run(*solve, "--full")
    assert f"{whole}Thought 2 · think" in in_full.stderr
    assert in_full.stdout.splitlines() == [solved.stdout.strip()]


def test_the_live_view_shows_the_plan_of_each_thought_above_what_is_spent(
    script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import reasonry
    from reasonry.surfaces.cli.watch import Live

    live = Live()
    reasonry.solve_sync("17 + 25?", strategy="planned_thinking", model=script, store="memory", observer=live)
    shown = capsys.readouterr().err.splitlines()
    assert shown[0].startswith("planned_thinking · model scripted:")
    assert shown[1:7] == TOLD


LONG = " ".join(f"Step {number} of the work is written out in words." for number in range(1, 9))


def shown_while(
    strategy: str, *script: dict[str, Any], capsys: pytest.CaptureFixture[str], **options: Any
) -> str:
    """Return the notes of a run, as a shell shows them while it works."""
    import reasonry
    from reasonry.models.scripted import ScriptedModel
    from reasonry.surfaces.cli.watch import Lines

    model = ScriptedModel.of(*script)
    reasonry.solve_sync(
        "17 + 25?", strategy=strategy, model=model, store="memory", observer=Lines(), options=options
    )
    return capsys.readouterr().err


def test_a_thought_is_shown_whole_where_thoughts_are_made_one_at_a_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = f"{LONG}\n\n{LONG}"
    thought = {"current_thinking": text, "planning": plan_data(PLAN), "next_thought_needed": True}
    done = tuple(PlanStep(step.description, "Done", "42") for step in PLAN)
    last = {"evaluation": "Right.", "current_thinking": "42", "planning": plan_data(done)}
    replies = [thought, {**last, "next_thought_needed": False}]
    shown = shown_while(
        "planned_thinking", *({"stage": "think", "reply": reply} for reply in replies), capsys=capsys
    )
    assert f"Thought 1 · think\n  {LONG}\n\n  {LONG}\n\n  Plan:\n" in shown
    assert "Thought 2 · think: Evaluation: Right. 42\n" in shown
    assert "…" not in shown.split("\n", 1)[1]


def test_thoughts_side_by_side_are_shown_by_their_beginnings(capsys: pytest.CaptureFixture[str]) -> None:
    thoughts = [f"{name}: {LONG}" for name in ("One", "Two")]
    tree = shown_while(
        "tree_of_thoughts",
        {"stage": "approach_exploration", "reply": {"thoughts": thoughts}},
        {"stage": "branch_evaluation", "reply": {"scores": {"1": 0.9, "2": 0.1}}},
        {"stage": "continuation_decision", "reply": {"reason": "so", "answer": "42"}},
        capsys=capsys,
        max_depth=1,
    )
    draft = {"stage": "reasoning_path_execution", "reply": {"reasoning": LONG, "answer": "42"}}
    samples = shown_while("self_consistency", draft, draft, capsys=capsys, samples=3)
    for shown in (tree, samples):
        assert LONG[:120] in shown
        assert LONG not in shown

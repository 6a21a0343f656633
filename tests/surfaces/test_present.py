"""How thoughts are shown in a shell."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.blocks.plan import STATUSES, PlanStep, format_plan, plan_data
from reasonry.surfaces.present import thought_lines
from tests.forked import forking_python

SUB = (PlanStep("tens", "Done", "30"), PlanStep("ones", "Verification Needed", mark="carry?"))
PLAN = (PlanStep("Add", "Pending", sub_steps=SUB), PlanStep("Conclusion", "Pending"))
SHOWN = [
    "  - [Pending] Add",
    "    - [Done] tens: 30",
    "    - [Verification Needed] ones (carry?)",
    "  - [Pending] Conclusion",
]


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
    replies = [
        {"current_thinking": "Set up.", "planning": plan_data(PLAN), "next_thought_needed": True},
        {
            "evaluation": "Right.",
            "current_thinking": "It is 42.",
            "planning": done,
            "next_thought_needed": False,
        },
    ]
    path = tmp_path / "plan.jsonl"
    path.write_text("".join(json.dumps({"stage": "think", "reply": one}) + "\n" for one in replies), "utf-8")
    return f"scripted:{path}"


def test_solve_and_runs_show_print_the_plan_of_each_thought(tmp_path: Path, script: str) -> None:
    def shell(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [forking_python(), "-m", "reasonry", *arguments, "--store", str(tmp_path / "runs.db")]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    solved = shell("solve", "17 + 25?", "--strategy", "planned_thinking", "--model", script)
    told = ["Thought 1 · think: Set up.", *SHOWN, "Thought 2 · think: Evaluation: Right. It is 42."]
    assert "\n".join(told) in solved.stderr
    run_id = json.loads(shell("runs", "list", "--json").stdout)["runs"][0]["run_id"]
    shown = shell("runs", "show", run_id)
    plan_text = format_plan(PLAN).splitlines()
    whole = [
        "Thought 1 · think",
        "  Set up.",
        "",
        "  Plan:",
        *(f"  {line}" for line in plan_text),
        "Thought 2 · think",
    ]
    assert "\n".join(whole[:-1]) in shown.stdout
    assert "Path\n  problem_reception → think ×2 → conclude → final_response\n" in shown.stdout
    in_full = shell("solve", "17 + 25?", "--strategy", "planned_thinking", "--model", script, "--full")
    assert "\n".join(whole) in in_full.stderr
    assert in_full.stdout.splitlines() == [solved.stdout.strip()]
    recorded = json.loads(shell("runs", "show", run_id, "--json").stdout)["thoughts"][0]
    assert recorded["text"].endswith(format_plan(PLAN))


def test_the_live_view_shows_the_plan_of_each_thought_above_what_is_spent(
    script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import reasonry
    from reasonry.surfaces.cli.watch import Live

    live = Live()
    reasonry.solve_sync("17 + 25?", strategy="planned_thinking", model=script, store="memory", observer=live)
    shown = capsys.readouterr().err.splitlines()
    assert shown[0].startswith("planned_thinking · model scripted:")
    assert shown[1:7] == [
        "Thought 1 · think: Set up.",
        *SHOWN,
        "Thought 2 · think: Evaluation: Right. It is 42.",
    ]
    assert live.latest == ""

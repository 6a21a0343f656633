"""Built-in tools of the strategies that act: programs, and the documents of the user."""

from pathlib import Path

import pytest

from reasonry import solve
from reasonry.models.scripted import ScriptedModel
from reasonry.tools.catalog import built_in

pytestmark = pytest.mark.anyio


@pytest.fixture
def document(tmp_path: Path) -> str:
    path = tmp_path / "birds.md"
    path.write_text("# Birds\n\nThe emperor penguin grows to 122 cm.\n", "utf-8")
    return str(path)


async def test_react_runs_programs_and_searches_documents(document: str) -> None:
    actions = [
        {"tool": "py_executor", "arguments": {"code": "6 * 7"}},
        {"tool": "search_documents", "arguments": {"query": "emperor penguin"}},
    ]
    model = ScriptedModel.of(
        {"stage": "initial_reasoning", "reply": {"thought": "Both.", "actions": actions}},
        {"stage": "reasoning_update", "reply": "Known.\n\n<answer>122 cm</answer>"},
    )
    result = await solve("How tall?", strategy="react", model=model, context=[document], store="memory")
    assert (result.answer, result.details["tool_calls"]) == ("122 cm", 2)


async def test_rewoo_plans_with_programs_and_documents(document: str) -> None:
    calls = [
        {"id": "#E1", "plan": "Find its height.", "tool": "search_documents", "input": "emperor penguin"},
        {"id": "#E2", "plan": "Compute.", "tool": "py_executor", "input": "6 * 7"},
    ]
    model = ScriptedModel.of(
        {"stage": "planning_phase", "reply": {"calls": calls}},
        {"stage": "solving_phase", "reply": "#E1 says it.\n\n<answer>122 cm</answer>"},
    )
    result = await solve("How tall?", strategy="rewoo", model=model, context=[document], store="memory")
    assert result.answer == "122 cm"
    assert "122 cm" in str(result.details["evidence"]["#E1"])
    assert "42" in str(result.details["evidence"]["#E2"])


async def test_self_ask_looks_its_questions_up_in_the_documents(document: str) -> None:
    model = ScriptedModel.of(
        {
            "stage": "problem_decomposition",
            "reply": {"thought": "t", "subQuestion": "emperor penguin size", "answer": None},
        },
        {"stage": "answer_integration", "reply": {"thought": "t", "subQuestion": None, "answer": "122 cm"}},
    )
    result = await solve("How tall?", strategy="self_ask", model=model, context=[document], store="memory")
    assert result.answer == "122 cm"
    assert "122 cm" in result.details["sub_questions"][0]["answer"]


async def test_a_strategy_gets_what_it_names(document: str) -> None:
    names = ["py_executor", "check_claim", "search_documents"]
    executor, claims, search = built_in(names, documents=[document])
    assert (await executor.call({"code": "6 * 7"}))["value"] == 42
    assert claims.name == "check_claim"
    assert "122 cm" in str(await search.call({"query": "penguin"}))
    search.close()  # pyright: ignore[reportAttributeAccessIssue]
    assert built_in([]) == []
    assert built_in(["search_documents"]) == []

"""The page of the five designs: every name of theirs is in it, and every line of it runs."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from reasonry.surfaces import cli

PAGE = (Path(__file__).parent / "designs.md").read_text("utf-8")
SECTIONS = {part.split("\n", 1)[0]: part for part in PAGE.split("\n## ")[1:]}
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (?P<there>.+) \| (?P<here>.+) \| `(?P<line>[^`]+)` \|$", re.MULTILINE)

NAMES = {
    "The flow engine": """
        StageManager getNextStages canTransitionTo transitionTo currentStage stageHistory strategyStages
        stageTransitions stageDescriptions strategy-stages-mapping.json SequentialThinkingServer processThought
        branches branchFromThought branchId thoughtNumber totalThoughts needsMoreThoughts isRevision revisesThought
        linear problem_reception initial_thought_planning thought_generation thought_evaluation thought_revision
        continuation_decision thought_adjustment branch_creation hypothesis_generation hypothesis_verification
        solution_finalization final_response step_decomposition sequential_reasoning solution_formulation
        answer_verification initial_reasoning action_planning action_execution observation_reception reasoning_update
        evaluation_checkpoint planning_phase tool_call_specification working_phase evidence_collection solving_phase
        scratchpad_initialization iterative_calculation state_tracking result_extraction problem_decomposition
        sub_question_formulation sub_question_answering answer_integration completion_check multiple_path_sampling
        reasoning_path_execution answer_collection consistency_analysis majority_selection abstraction
        principle_identification approach_selection specific_application step_by_step_solution solution_verification
        approach_exploration branch_development branch_evaluation branch_selection path_justification
        Sequential Chain ReAct ReWOO Scratchpad Self-Ask Self-Consistency Step-Back Tree
    """,
    "The chain-of-thought node": """
        ChainOfThoughtNode call_llm format_plan format_plan_for_prompt shared["problem"] shared["thoughts"]
        shared["current_thought_number"] shared["solution"] thought_number current_thinking planning
        next_thought_needed description status result mark sub_steps Pending Done Verification continue end
        prep exec post YAML assert
    """,
    "The analysis pipeline": """
        Complexity Generation Evaluation Selection Execution Iteration Synthesis Focused straightforward moderate
        complex highly_complex dimensions challenges dependencies strategy resource_name task_query logic_kernel
        py_executor candidate_plans evaluation.evaluations overall_score PASSTHROUGH_TOOLS ACCEPTED REJECTED history
        continue_iterations quality_summary decision_rationale recommendations_for_next_iteration max_iterations
        min_iterations enforce_iterations execution_retry_limit findings answer title headline caption
        focused_answer_type number yes/no true/false good/bad high/low accepted/rejected yes/maybe/no
        good/neutral/bad high/medium/low none cost_limit
    """,
    "The session tool": """
        createSequentialThinkingTool sequentialThinking.execute thought nextThoughtNeeded thoughtNumber totalThoughts
        sessionId isRevision revisesThought branchFromThought branchId needsMoreThoughts clearSession thoughtHistory
        thoughtHistoryLength branches summary Session ThoughtEntry timestamp createdAt thoughts SESSION_TTL_MS
        clearAllSessions getSession getAllSessions createZai ZAI_API_KEY glm-4.7 maxSteps XState continueThinking
        server.registerTool CallToolResult description parameters
    """,
    "The tree-of-thoughts machine": """
        new/1 update/3 to_map/1 from_map/1 find_best_leaf/1 find_leaves/1 get_children/2 get_node/2
        get_path_to_node/2 parse_thoughts/1 parse_scores/2 default_generation_prompt/0 default_evaluation_prompt/0
        generate_call_id/0 generate_node_id/0 before_transition/3 :start :thoughts_generated :thoughts_evaluated
        :llm_result :llm_partial :generate_thoughts :evaluate_thoughts :call_llm_stream :request_error
        :idle :generating :evaluating :expanding :completed :error :success :threshold :max_depth :max_nodes
        :max_duration :converged :bfs :dfs :best_first beam_width branching_factor convergence_window current_call_id
        current_node_id early_success_threshold frontier max_depth max_duration_ms max_nodes max_parse_retries
        min_depth min_score_improvement nodes parse_retries parser_errors parser_mode pending_scores
        pending_thoughts recent_best_scores result root_id solution_path started_at status streaming_text
        termination_reason top_k traversal_strategy usage id parent_id content score children depth
        input_tokens output_tokens total_tokens
    """,
}
"""The names of each design, as it has them."""


def rows(section: str) -> list[re.Match[str]]:
    return list(ROW.finditer(SECTIONS[section]))


def table_lines(section: str) -> list[str]:
    lines = [line for line in SECTIONS[section].splitlines() if line.startswith("| ")]
    return [line for line in lines if not line.startswith("| there ")]


def test_each_design_has_a_section() -> None:
    assert set(SECTIONS) == set(NAMES)


@pytest.mark.parametrize("section", NAMES)
def test_every_row_names_a_place_and_a_line(section: str) -> None:
    assert len(rows(section)) == len(table_lines(section)) > 10


@pytest.mark.parametrize("section", NAMES)
def test_every_name_of_a_design_is_in_its_table(section: str) -> None:
    cells = "\n".join(f"{row['there']} {row['here']}" for row in rows(section))
    missing = [
        name
        for name in NAMES[section].split()
        if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", cells)
    ]
    assert not missing


@pytest.mark.parametrize("section", NAMES)
def test_the_python_lines_of_a_section_run(section: str) -> None:
    known: dict[str, Any] = {}
    for name, part in SECTIONS.items():
        for block in BLOCK.findall(part):
            exec(compile(block, f"designs.md, {name}", "exec"), known)
        if name == section:
            break
    lines = [row["line"].replace(r"\|", "|") for row in rows(section)]
    try:
        for line in lines:
            if not line.startswith("reasonry "):
                _run_line(line, known)
    finally:
        known["runner"].close()


def _run_line(line: str, known: dict[str, Any]) -> None:
    try:
        shown = eval(compile(line, f"designs.md: {line}", "eval"), known)
    except SyntaxError:
        exec(compile(line, f"designs.md: {line}", "exec"), known)
    else:
        assert shown is not None or "clear_" in line, f"{line} shows nothing"


COMMANDS = sorted({row["line"] for section in NAMES for row in rows(section) if " " in row["line"]})


@pytest.mark.parametrize("line", [line for line in COMMANDS if line.startswith("reasonry ")])
def test_the_commands_run(
    line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REASONRY_STORE", str(tmp_path / "store.db"))
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    assert cli.run(shlex.split(line)[1:]) == 0
    told = capsys.readouterr()
    assert told.out or told.err

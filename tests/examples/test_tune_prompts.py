"""The example that tunes prompts: GEPA keeps a prompt that `compare` finds better."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from reasonry.compare.datasets import DATASETS
from tests.servers import ChatRequest, ModelServer

EXAMPLE = Path(__file__).parents[2] / "examples" / "tune_prompts.py"


def test_a_prompt_that_does_better_is_kept(tmp_path: Path) -> None:
    pytest.importorskip("gepa", reason="gepa is not installed")
    right = {item.problem: item.expected for item in DATASETS["arithmetic"].items(20)}

    def reply(request: ChatRequest) -> Any:
        asked = [answer for problem, answer in right.items() if problem in request.prompt]
        if len(asked) != 1:
            return {"reasoning": "so", "answer": "```\nCount on your fingers.\n```"}
        answer = asked[0] if "on your fingers" in request.prompt else "0"
        return {"stepBackQuestion": "How?", "generalPrinciple": "So.", "steps": ["So."], "answer": answer}

    spec = importlib.util.spec_from_file_location("tune_prompts", EXAMPLE)
    assert spec
    assert spec.loader
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    with ModelServer(reply=reply) as server:
        best = example.tune("arithmetic", server.model, 60, str(tmp_path / "store.db"))
    assert best.val_aggregate_scores[0] == 0.0
    assert max(best.val_aggregate_scores) == 1.0
    assert "Count on your fingers." in best.best_candidate.values()

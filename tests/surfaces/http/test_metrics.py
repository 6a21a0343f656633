"""What an operator sees: calls by provider and model, runs by outcome, deaths, and the queries of the docs."""

import re
import time
from pathlib import Path

import pytest

from reasonry.engine.policy import Policy
from reasonry.surfaces.http.metrics import COUNTS, Metrics
from tests.servers import Fault, ModelServer, Player

from .serving import serve_in_thread

PUZZLE = "Use 4, 9, 10 and 13 to make 24"
PAGE = Path(__file__).parents[3] / "docs" / "many-machines.md"


def samples(text: str) -> dict[str, float]:
    """Return the samples of a text of Prometheus, by their names and labels."""
    lines = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def test_calls_and_runs_are_counted_by_provider_model_and_outcome() -> None:
    fault = Fault(kind="server_error", retry_after="0", first=1)
    with (
        ModelServer(reply=Player(), faults=(fault,)) as model,
        serve_in_thread("memory", environ={"REASONRY_MODELS": f"small={model.model}"}) as serving,
    ):
        client = serving.client()
        body = {"problem": PUZZLE, "strategy": "tree_of_thoughts", "model": "small"}
        result = client.post("/api/runs", json=body).json()
        run_id = result["run_id"]
        while (run := client.get(f"/api/runs/{run_id}").json())["status"] == "active":
            time.sleep(0.02)
        found = samples(client.get("/metrics").text)
        address = model.url.partition("//")[2].partition("/")[0]
        assert address not in client.get("/metrics").text
    name = model.model.rpartition("#")[2]
    labels = f'model="{name}",provider="openai-compatible"'
    usage = run["usage"]
    assert found[f"reasonry_calls_total{{{labels}}}"] == usage["calls"] == model.stats()["requests"]
    tokens = {kind: found[f'reasonry_tokens_total{{kind="{kind}",{labels}}}'] for kind in ("input", "output")}
    assert tokens == {"input": usage["input_tokens"], "output": usage["output_tokens"]}
    for count in ("call_errors", "retries"):
        assert found[f'reasonry_{count}_total{{code="provider_error",{labels}}}'] == 1
    assert found[f'reasonry_runs_total{{outcome="{run["outcome"]}"}}'] == 1
    assert found[f'reasonry_run_seconds_count{{outcome="{run["outcome"]}"}}'] == 1
    assert found["reasonry_runs_driven"] == 0
    assert found["reasonry_loop_lag_seconds"] >= 0


def test_the_queries_and_the_table_of_the_docs_name_what_there_is() -> None:
    with serve_in_thread("memory") as serving:
        text = serving.client().get("/metrics").text
    there = set(re.findall(r"^# HELP (\S+)", text, re.MULTILINE))
    page = PAGE.read_text("utf-8")
    (queries,) = re.findall(r"```promql\n(.*?)```", page, re.DOTALL)
    assert len(queries.splitlines()) == 5
    assert set(re.findall(r"reasonry_\w+", queries)) <= there
    assert set(re.findall(r"`(reasonry_\w+)`", page)) <= there
    assert {f"reasonry_{name}_total" for name in COUNTS} <= set(re.findall(r"`(reasonry_\w+)`", page))
    labels = {label for _, names in COUNTS.values() for label in names}
    assert set(re.findall(r"(?:by \(|\{)(\w+)", queries)) <= labels


def test_dollars_and_unlabelled_counts_are_kept_and_nothing_is_without_a_listener() -> None:
    policy, metrics = Policy(), Metrics()
    policy.meter.add("deaths")
    policy.meter.listener = metrics
    policy.meter.add("deaths")
    policy.meter.add("lost_leases", 2)
    policy.meter.add("dollars", 0.25, provider="openai", model="gpt-5-mini")
    found = samples(metrics.text()[0].decode())
    assert found["reasonry_deaths_total"] == 1
    assert found["reasonry_lost_leases_total"] == 2
    assert found['reasonry_dollars_total{model="gpt-5-mini",provider="openai"}'] == pytest.approx(0.25)

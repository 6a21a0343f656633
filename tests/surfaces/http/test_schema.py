"""The schema is true: whatever it allows is answered as it says, by every route."""

import re
import tomllib
from pathlib import Path
from typing import Any

import httpx2
from hypothesis import Phase, given, settings

from ..contract.uses import UNKNOWN
from .serving import TOKENS, Serving
from .test_runs import started
from .test_sessions_api import begin

EXAMPLES = 2
"""Of each operation; `schemathesis run --max-examples 1000 URL/api/openapi.json` takes longer and finds more."""


REFUSED_AT_TIMES = {
    "start_run": "only the server knows its strategies, their options, and the parts that its operator listed",
    "resume_run": "as start_run",
    "list_runs": "as start_run",
    "list_sessions": "as start_run",
    "fork_run": "as start_run, and which questions the run had",
    "answer_questions": "as start_run",
    "search_thoughts": "a cursor is one that a page of the list brought",
    "read_session": "as search_thoughts",
    "begin_session": "a thought goes where its strategy's table leads, and refers to thoughts that are there",
    "add_thought": "as begin_session",
    "import_session": "each thought of an import is walked by the rules of its strategy",
    "create_chat_completion": "a JSON schema in a request must be one that an answer can be held to",
    "create_response": "as create_chat_completion",
}
"""The operations that may answer 400 where their schema allows a request, each with what no schema says."""


def test_every_operation_answers_as_the_schema_says(serving: Serving) -> None:
    # Here, so that one process of the tests loads them, and not each that collects.
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    negative = schemathesis.GenerationMode.NEGATIVE
    conformance = [
        checks.content_type_conformance,
        checks.response_schema_conformance,
        checks.status_code_conformance,
        not_a_server_error,
    ]
    taking = [*conformance, checks.positive_data_acceptance]
    schema = schemathesis.openapi.from_url(f"{serving.url}/api/openapi.json")
    # Streams that last are tried by the tests of runs.
    for found in schema.exclude(path_regex=r"/events$").get_all_operations():
        operation = found.ok()

        @settings(max_examples=EXAMPLES, phases=[Phase.generate], derandomize=True)
        @given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            is_refused = case.operation.definition.raw["operationId"] in REFUSED_AT_TIMES
            case.call_and_validate(checks=conformance if is_refused else taking)

        ask()
        if operation.body:

            @settings(max_examples=1, phases=[Phase.generate], derandomize=True)
            @given(case=operation.as_strategy(generation_mode=negative))
            def ask_awry(case: Any) -> None:
                case.call_and_validate(checks=[*conformance, checks.negative_data_rejection])

            ask_awry()


def test_the_command_expects_the_same() -> None:
    config = tomllib.loads(Path(__file__).with_name("schemathesis.toml").read_text("utf-8"))
    assert config["operations"][1]["include-operation-id"] == [*REFUSED_AT_TIMES]


def test_the_schema_is_also_a_page_that_loads_nothing(serving: Serving) -> None:
    found = serving.client().get("/docs")
    assert found.headers["content-type"].startswith("text/html")
    assert "<h2>POST /api/runs</h2>" in found.text
    assert not re.search("<(?:script|style|link|img|iframe)", found.text)
    links = set(re.findall('href="([^"]*)"', found.text))
    assert links
    assert all(f'id="{link[1:]}"' in found.text for link in links)


def operations(schema: Any) -> list[tuple[str, str, Any]]:
    return [
        (path, method, operation)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]


def test_every_operation_says_what_it_is_and_how_it_fails(serving: Serving) -> None:
    schema = serving.client().get("/api/openapi.json").json()
    assert schema["openapi"].startswith("3.1")
    names = [operation["operationId"] for _, _, operation in operations(schema)]
    assert len(set(names)) == len(names)
    for path, method, operation in operations(schema):
        assert operation["summary"], path
        assert operation["tags"], path
        assert "422" not in operation["responses"]
        assert {"400", "401", "403", "421", "429", "503"} <= operation["responses"].keys()
        assert "{" not in path or "404" in operation["responses"], path
        assert (
            method not in ("post", "put", "patch")
            or path.endswith(("/cancel", "/pause"))
            or "requestBody" in operation
        ), path


def test_a06_no_operation_answers_without_a_token_or_with_what_is_anothers(guarded: Serving) -> None:
    ana, ben, nobody = guarded.client(TOKENS["ana"]), guarded.client(TOKENS["ben"]), guarded.client()
    session, run = begin(ana, "mine"), started(ana)["run_id"]
    schema = ana.get("/api/openapi.json").json()
    tried = 0
    for path, method, _ in operations(schema):
        if path == "/healthz":
            continue
        names = re.findall(r"{(\w+)}", path)
        assert nobody.request(method, re.sub(r"{\w+}", "x", path)).status_code == 401, path
        own = {"run_id": run, "session_id": session}
        if not any(name in own for name in names):
            continue
        tried += 1
        seen = [answer(ben, method, path, own), answer(ben, method, path, dict.fromkeys(own, UNKNOWN))]
        assert seen[0] == seen[1], path
        assert 400 <= seen[0][0] < 500, (path, seen[0])
    assert tried > 15
    assert ana.get(f"/api/runs/{run}").status_code == 200
    assert ana.get(f"/api/sessions/{session}").status_code == 200


def answer(client: httpx2.Client, method: str, path: str, ids: dict[str, str]) -> tuple[int, str]:
    """Return what is answered, without the ids."""
    response = client.request(method, path.format(**ids), json={} if method in ("post", "patch") else None)
    text = re.sub(r'"request_id":"[^"]*"', "", response.text)
    for named in ids.values():
        text = text.replace(named, "ID")
    return response.status_code, text

"""Clients that are generated of the schema: compiled, and used."""

import importlib
import json
import shutil
import subprocess
import sys
from compileall import compile_dir
from pathlib import Path
from typing import Any

import pytest

from .serving import Serving

CLIENT = Path(__file__).parent / "client"
PACKAGES = CLIENT / "node_modules"


@pytest.fixture
def schema(serving: Serving, tmp_path: Path) -> Path:
    """The schema in a file."""
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(serving.client().get("/api/openapi.json").json()), "utf-8")
    return file


def test_a_python_client_is_generated_compiled_and_used(
    serving: Serving, schema: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openapi_python_client")
    (schema.parent / "config.yaml").write_text("post_hooks: []\n", "utf-8")
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"]
    named = ["--path", str(schema), "--output-path", "generated", "--config", "config.yaml"]
    done = subprocess.run([*command, *named], cwd=schema.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "arning" not in done.stdout + done.stderr
    assert compile_dir(schema.parent / "generated", quiet=1)
    monkeypatch.syspath_prepend(schema.parent)

    def of_generated(module: str) -> Any:
        return importlib.import_module(f"generated.{module}")

    models, client = of_generated("models"), of_generated("client").Client(serving.url)
    client.set_httpx_client(serving.client())
    body = models.StartRun(
        problem="What is 17 + 25?", strategy="chain_of_thought", mode=models.StartRunMode.COACHED
    )
    run = of_generated("api.runs.start_run").sync(client=client, body=body)
    assert type(run) is models.Run
    (question,) = run.questions
    assert type(question) is models.Question
    found = of_generated("api.runs.list_runs").sync(client=client, limit=1).runs[0]
    assert (type(found), found.run_id, found.outcome) == (models.RunHead, run.run_id, "waiting")
    refused = of_generated("api.runs.read_run").sync("none", client=client)
    assert (type(refused), refused.error.code) == (models.Error, "not_found")


@pytest.mark.skipif(not PACKAGES.is_dir(), reason="npm install --prefix tests/surfaces/http/client")
def test_a_typescript_client_is_generated_compiled_and_used(serving: Serving, schema: Path) -> None:
    folder, node = schema.parent, shutil.which("node") or "node"
    (folder / "node_modules").symlink_to(PACKAGES, target_is_directory=True)
    for name in ("package.json", "tsconfig.json", "use.ts"):
        shutil.copy(CLIENT / name, folder / name)

    def run(program: str, *words: str) -> str:
        file = [str(PACKAGES / program)] if program else []
        done = subprocess.run([node, *file, *words], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    named = [schema.name, "-o", "schema.d.ts", "--default-non-nullable=false"]
    run("openapi-typescript/bin/cli.js", *named)
    run("typescript/bin/tsc", "-p", ".")
    assert run("", "use.js", serving.url).split() == ["42", "answered", "1", "not_found"]


def test_every_operation_has_a_named_reply(serving: Serving) -> None:
    paths = serving.client().get("/api/openapi.json").json()["paths"]
    unnamed = [
        operation["operationId"]
        for methods in paths.values()
        for operation in methods.values()
        for status, reply in operation["responses"].items()
        for media_type, content in reply.get("content", {}).items()
        if media_type == "application/json" and "$ref" not in content["schema"] and status < "500"
    ]
    assert unnamed == []

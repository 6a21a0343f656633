"""Comparisons over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.compare.comparison import Comparison
from reasonry.compare.problem_set import open_dataset

from .serving import eventually, serve_in_thread


def test_a_problem_is_run_again_with_the_tool_of_its_data_set(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")

    async def compare() -> dict[str, Any]:
        async with App(store) as app:
            problems = open_dataset("facts:1")
            working = RunRequest(participants=Participants(model="offline", tools=problems.tools))
            return (await Comparison(app, problems, ["react"], working).run()).document()

    document = asyncio.run(compare())
    path, item = f"/api/comparisons/{document['id']}", document["items"][0]["id"]
    with serve_in_thread(store) as server:
        client = server.client()
        assert client.post(f"{path}/again", json={"item": "nix"}).status_code == 404
        assert client.post(f"{path}/again", json={"item": item, "times": 2}).status_code == 201
        # The offline model refuses the question; what matters is that each run is driven to its end.
        failed = ["failed", "failed"]
        assert eventually(lambda: [one["status"] for one in client.get(path).json()["repeats"]] == failed)

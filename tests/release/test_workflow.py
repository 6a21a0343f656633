"""The plugin's workflow answers a coached run: each question goes to a fresh agent, side by side."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

from ..releasing import ROOT
from ..surfaces.mcp.raw import Raw

WORKFLOW = ROOT / "plugins" / "reasonry" / "workflows" / "answer-coached-questions.js"
CLIENT = """
const waiting = {}
let count = 0
require("readline").createInterface({input: process.stdin}).on("line", (line) => {
  const [id, value] = JSON.parse(line)
  waiting[id](value)
})
const tell = (message) => process.stdout.write(JSON.stringify(message) + "\\n")
const agent = (prompt, options) => new Promise((resolve) => {
  waiting[++count] = resolve
  tell({id: count, prompt, options})
})
const parallel = (thunks) => Promise.all(thunks.map((thunk) => thunk()))
const args = JSON.parse(process.argv[1])
const script = %s
new Function("agent", "parallel", "args", `return (async () => {${script}\\n})()`)(agent, parallel, args)
  .then((result) => { tell({result}); process.exit() })
"""


def script() -> str:
    """Return the workflow as its client runs it: `meta` is read apart, and the rest is the body of a function."""
    head, _, body = WORKFLOW.read_text("utf-8").partition("\n}\n")
    assert head.startswith("export const meta = {\n")
    return body


class Client:
    """What runs a workflow: Python plays its agents."""

    def __init__(self, arguments: Any) -> None:
        node = shutil.which("node")
        if node is None:
            pytest.skip("needs node")
        command = [node, "-e", CLIENT % json.dumps(script()), "--", json.dumps(arguments)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def reply(self, request: dict[str, Any], value: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([request["id"], value]) + "\n")
        self.process.stdin.flush()


def state_of(raw: Raw, request: dict[str, Any]) -> dict[str, Any]:
    """Make the call that the agent is told to make."""
    assert request["options"]["label"].startswith("coach ")
    reply = raw.call("coach", **json.loads(request["prompt"].rpartition("\n\n")[2]))
    return {"shared": {}, "questions": [], **reply}


def test_samples_go_to_agents_side_by_side_and_the_vote_ends_the_run() -> None:
    problem = {"action": "start", "problem": "What is 17 + 25?", "strategy": "self_consistency"}
    with Client(problem) as client, Raw() as raw:
        client.reply(first := client.read(), state_of(raw, first))
        samples = [client.read() for _ in range(4)]  # None is answered before all are asked.
        assert len({sample["prompt"] for sample in samples}) == 1
        assert "17 + 25" in samples[0]["prompt"]
        assert "[#" not in samples[0]["prompt"]
        for sample in samples:
            client.reply(sample, {"answer": "42"})
        client.reply(last := client.read(), state_of(raw, last))
        ended = client.read()["result"]
    assert (ended["status"], ended["result"]["answer"]) == ("done", "42")


def test_a_text_alone_is_refuted_and_an_agent_that_was_stopped_is_left_out() -> None:
    with Client(claim := "Counting five tables of a 2 TB database takes 20 s.") as client, Raw() as raw:
        client.reply(first := client.read(), state_of(raw, first))
        selection = client.read()
        assert selection["options"]["schema"]["properties"]["answer"]["type"] == "object"
        client.reply(selection, {"answer": {"claims": [{"claim": claim, "thought": None}]}})
        client.reply(second := client.read(), state_of(raw, second))
        reader = client.read()
        assert "verdict" in reader["options"]["schema"]["properties"]["answer"]["properties"]
        client.reply(reader, None)
        assert "resume" in client.read()["result"]["status"]

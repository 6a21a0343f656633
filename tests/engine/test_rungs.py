"""Each rung of the repair ladder that a reply took is in the record of the run."""

from typing import Any

import pytest
from msgspec import Struct

from reasonry.app.app import App
from reasonry.core.bodies import Body, Conclusion, go, replies
from reasonry.core.effects import Ask
from reasonry.core.strategy import Stage, Strategy
from reasonry.strategies import STRATEGIES
from tests.servers import Fault, ModelServer

from .running import order_and_solve, trace_of

pytestmark = pytest.mark.anyio


class Pick(Struct, frozen=True):
    choice: str
    reason: str


class State(Struct, frozen=True):
    problem: str
    options: Struct
    choice: str = ""


def pick(s: State) -> Body:
    (reply,) = yield from replies(s, Pick, Ask(s.problem))
    return go(State(s.problem, s.options, reply.choice), "final_response")


PICK = Strategy(
    name="pick",
    title="Pick",
    source="a test",
    summary="Asks for data.",
    state=State,
    conclude=lambda s: Conclusion(s.choice or None),
    stages=(Stage("picking", ("final_response",), body=pick, reply=Pick), Stage("final_response")),
)
DATA = '{"choice": "7", "reason": "It is odd."}'


async def recorded(server: ModelServer) -> list[dict[str, Any]]:
    """Solve something and return its questions as the trace shows them."""
    async with App("memory", strategies={**STRATEGIES, "pick": PICK}) as app:
        result = await order_and_solve(app, "?", PICK, model=server.model)
        trace = await trace_of(app.engine, result.run_id)
    assert result.status == "done"
    # A request that is refused for its rate is no call.
    tried = [
        tried for one in trace["questions"] for tried in one["tried"] if not tried.startswith("rate_limited")
    ]
    assert len(trace["questions"]) + len(tried) == result.usage.calls
    return trace["questions"]


@pytest.mark.parametrize("kind", ["rate_limit", "server_error", "reset", "invalid_body", "no_json_schema"])
async def test_what_came_of_the_requests_before_is_told(kind: Any) -> None:
    with ModelServer(reply=lambda _: DATA, faults=[Fault(kind=kind, first=1)]) as server:
        (question,) = await recorded(server)
    (tried,) = question["tried"]
    assert tried.startswith("rate_limited: " if kind == "rate_limit" else "provider_error: ")
    assert question["reply"]


@pytest.mark.parametrize(
    ("reply", "read"),
    [
        (DATA, "native"),
        (DATA.replace("choice", "Choice"), "json"),
        (f"Here it is:\n```json\n{DATA}\n```", "fenced"),
        (f"I think {DATA} will do.", "embedded"),
        ("{'choice': '7', 'reason': 'odd',}", "repaired"),
    ],
)
async def test_how_a_reply_came_to_be_read_is_told(reply: str, read: str) -> None:
    with ModelServer(reply=lambda _: reply) as server:
        (question,) = await recorded(server)
    assert question["read"] == read


async def test_a_reply_that_could_not_be_read_says_why_and_the_next_question_stands_beside_it() -> None:
    replies = iter(["no idea", DATA])
    with ModelServer(reply=lambda _: next(replies)) as server:
        first, second = await recorded(server)
    assert first["read"].startswith("unreadable: ")
    assert (second["read"], second["reply"]) == ("native", DATA)

"""Streaming: whoever watches sees the pieces; what is recorded is the whole."""

from collections import defaultdict
from typing import Any

import pytest

from reasonry.app.app import App
from reasonry.core.budget import Budget
from reasonry.engine.observer import Observer
from reasonry.engine.policy import Policy
from tests.servers import Fault, ModelServer, Player

from .crashing import ALL
from .running import order_and_solve, trace_of

pytestmark = pytest.mark.anyio

TEXT = "One after the other come the words of this answer, and none of them is lost."


class Listening(Observer):
    wants_text = True

    def __init__(self) -> None:
        self.pieces: defaultdict[str, list[str]] = defaultdict(list)
        self.retried: list[str] = []

    def text(self, effect_id: str, piece: str) -> None:
        self.pieces[effect_id].append(piece)

    def retrying(self, effect_id: str, reason: str, delay_s: float) -> None:
        self.retried.append(effect_id)
        self.pieces[effect_id].clear()


async def watched(
    server: ModelServer,
    observer: Observer,
    strategy: str,
    *,
    policy: Policy | None = None,
    budget: Budget | None = None,
    **options: object,
) -> dict[str, Any]:
    async with App("memory", policy or Policy(backoff_s=0.001), strategies=ALL) as app:
        problem = "Use 4, 9, 10 and 13 to make 24"
        result = await order_and_solve(
            app, problem, ALL[strategy], observer=observer, options=options, budget=budget, model=server.model
        )
        return await trace_of(app.engine, result.run_id)


async def test_the_pieces_arrive_side_by_side_under_their_own_ids_and_the_record_has_the_whole() -> None:
    observer = Listening()
    with ModelServer(reply=Player(), chunk_words=1, chunk_ms=1) as server:
        trace = await watched(server, observer, "tree_of_thoughts", expand_width=2, traversal_strategy="bfs")
        assert all(body["stream"] for body in server.bodies)
    assert trace["usage"]["output_tokens"] > 0
    assert all(len(pieces) > 5 for pieces in observer.pieces.values())
    questions = trace["questions"]
    assert isinstance(questions, list)
    assert {one["id"]: one["reply"] for one in questions} == {
        name: "".join(pieces) for name, pieces in observer.pieces.items()
    }


async def test_a_reply_that_breaks_off_is_heard_again_and_recorded_once() -> None:
    observer = Listening()
    with ModelServer(replies=(TEXT,) * 2, faults=(Fault(kind="broken_stream", first=1),)) as server:
        trace = await watched(server, observer, "loop", steps=1)
    assert observer.retried == ["e1"]
    assert trace["answer"] == TEXT
    assert "".join(observer.pieces["e1"]) == TEXT


async def test_nobody_who_wants_text_means_no_stream() -> None:
    with ModelServer(replies=(TEXT,)) as server:
        await watched(server, Observer(), "loop", steps=1)
        assert not any(body.get("stream") for body in server.bodies)

"""Runs and sessions of all kinds for the tests of the page, made by brains that stand where a model would."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import reasonry
from reasonry.app.app import App
from reasonry.stores import open_store
from reasonry.strategies import STRATEGIES
from reasonry.surfaces.web.page import PageDocument
from reasonry.surfaces.web.run_page import run_page
from reasonry.surfaces.web.session_page import session_page
from tests.servers import ChatRequest, ModelServer

PUZZLE = "Use each of 4, 9, 10 and 13 once, with + - * / and parentheses, to make 24."
PRICE = "0.25/2"
T = TypeVar("T")


def elsewhere(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in another thread: in this one the browser's loop runs."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def page_in(text: str) -> Any:
    """Return the document that a page holds."""
    return json.loads(text.partition('id="page-data">')[2].partition("</script>")[0])


async def page_of(app: App, run_id: str) -> PageDocument:
    """Return the page of a run of a store."""
    row = await app.store.run(run_id)
    ended = None if row.status == "active" else row.updated_at_ms
    return run_page(await app.engine.record(run_id), STRATEGIES.get(row.strategy), ended)


async def solved(store: str, problem: str, **arguments: Any) -> PageDocument:
    """Solve a problem, and return the page of the run."""
    found = open_store(store)
    result = await reasonry.solve(problem, store=found, **arguments)
    async with App(found) as app:
        return await page_of(app, result.run_id)


def voter(request: ChatRequest) -> Any:
    """Answer an arithmetic question rightly in most samples."""
    chance = random.Random(request.number * 100 + request.sample)
    eggs = chance.choices([18, 26, 9], [6, 2, 1])[0]
    if chance.random() < 0.1:
        return "I am not sure that I can say."
    return f"Janet has 16 eggs, eats 3 and bakes with 4, so 9 are left. Each is 2 dollars. <answer>{eggs}</answer>"


def grower(width: int = 8) -> Any:
    """Propose and value without end."""

    def reply(request: ChatRequest) -> Any:
        wanted = set((request.form or {}).get("properties", {}))
        chance = random.Random(request.prompt)
        if "scores" in wanted:
            count = request.prompt.count("\n", request.prompt.index("Candidates for")) - 1
            return {"scores": {str(n): round(chance.uniform(0.05, 0.95), 2) for n in range(1, count + 1)}}
        if not wanted:
            return "It follows. <answer>A harbour with a tide gate.</answer>"
        words = ["gate", "basin", "quay", "crane", "dredge", "sluice", "berth", "pier", "mole", "dock"]
        return {
            "thoughts": [
                f"Option {n}: move the {chance.choice(words)} to the {chance.choice(words)} and look at the "
                f"{chance.choice(words)} ({chance.randrange(10_000)})."
                for n in range(1, width + 1)
            ]
        }

    return reply


@contextmanager
def serving(reply: Any, **behaviour: Any) -> Iterator[str]:
    """Serve a brain; yields what `--model` takes."""
    with ModelServer(reply=reply, **behaviour) as server:
        yield server.model


SESSION: list[Mapping[str, Any]] = [
    {"thought": "The nightly build takes 41 minutes; a year ago it took 12. Where does the time go?"},
    {"thought": "Guess: the test suite has grown 2.3 times, which would explain 27 minutes."},
    {"thought": "Look at the timings instead: tests take 14 minutes, but 'restore cache' takes 19."},
    {"thought": "The growth of the suite explains 5 minutes at most.", "revises": 2},
    {
        "thought": "Why is restoring slow? The cache key has the date in it, so it never hits.",
        "from": 3,
        "branch": "cache key",
    },
    {
        "thought": "Or the archive is big: it holds the environments of all branches.",
        "from": 3,
        "branch": "size",
    },
    {"thought": "The log says 'hit', so the key is fine.", "branch": "cache key", "score": 0.1},
    {"thought": "It is 6.1 GB; unpacking that takes 18 minutes.", "branch": "size", "score": 0.9},
    {"thought": "So the cache is too big: prune it to the main branch.", "merge": "size"},
    {"thought": "Prune the cache to the main branch's environment: about 23 minutes.", "next": False},
]


async def a_session(store: str) -> PageDocument:
    """Record a session with branches, a revision and a merge, and return its page."""
    async with App(store) as app:
        sessions, session_id = app.sessions(), ""
        for number, step in enumerate(SESSION, 1):
            call = {
                "thought": step["thought"],
                "thought_number": number,
                "total_thoughts": len(SESSION),
                "next_thought_needed": step.get("next", True),
                "session_id": session_id or None,
                "revises_thought": step.get("revises"),
                "branch_from_thought": step.get("from"),
                "branch_id": step.get("branch"),
                "merge_branch": step.get("merge"),
                "score": step.get("score"),
            }
            if "score" in step:
                call["data"] = {"score": call["score"]}
            del call["score"]
            reply = await sessions.think({name: value for name, value in call.items() if value is not None})
            session_id = reply["session_id"]
        return session_page(await sessions.export({"session_id": session_id, "format": "json"}), None)

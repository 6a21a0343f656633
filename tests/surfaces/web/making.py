"""Runs and sessions of all kinds for the tests of the page, made by brains that stand where a model would."""

import asyncio
import json
import random
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import reasonry
from reasonry.app.app import App
from reasonry.stores import open_store
from reasonry.surfaces.web.find_page import find_page
from reasonry.surfaces.web.page import EVERYTHING, PageDocument
from tests.servers import ChatRequest

PUZZLE = "Use each of 4, 9, 10 and 13 once, with + - * / and parentheses, to make 24."
T = TypeVar("T")


def elsewhere(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in another thread: in this one the browser's loop runs."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def page_in(text: str) -> Any:
    """Return the document that a page holds."""
    return json.loads(text.partition('id="page-data">')[2].partition("</script>")[0])


async def solved(store: str, problem: str, **arguments: Any) -> PageDocument:
    """Solve a problem, and return the page of the run."""
    found = open_store(store)
    result = await reasonry.solve(problem, store=found, **arguments)
    async with App(found) as app:
        return await find_page(app, result.run_id, EVERYTHING)


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


SESSION: list[Mapping[str, Any]] = [
    {"thought": "The nightly build takes 41 minutes; a year ago it took 12. Where does the time go?"},
    {"thought": "Guess: the test suite has grown 2.3 times, which would explain 27 minutes."},
    {"thought": "Look at the timings instead: tests take 14 minutes, but 'restore cache' takes 19."},
    {"thought": "The growth of the suite explains 5 minutes at most.", "revises_thought": 2},
    {
        "thought": "Why is restoring slow? The cache key has the date in it, so it never hits.",
        "branch_from_thought": 3,
        "branch_id": "cache key",
    },
    {
        "thought": "Or the archive is big: it holds the environments of all branches.",
        "branch_from_thought": 3,
        "branch_id": "size",
    },
    {"thought": "The log says 'hit', so the key is fine.", "branch_id": "cache key", "data": {"score": 0.1}},
    {"thought": "It is 6.1 GB; unpacking takes 18 minutes.", "branch_id": "size", "data": {"score": 0.9}},
    {"thought": "So the cache is too big: prune it to the main branch.", "merge_branch": "size"},
    {"thought": "Prune the cache to the main branch's environment: about 23 minutes."},
]


async def a_session(store: str) -> PageDocument:
    """Record a session with branches, a revision and a merge, and return its page."""
    async with App(store) as app:
        total, named = len(SESSION), dict[str, str]()
        for number, step in enumerate(SESSION, 1):
            call = {"thought_number": number, "total_thoughts": total, "next_thought_needed": number < total}
            reply = await app.sessions().think({**call, **step, **named})
            named = {"session_id": reply["session_id"]}
        return await find_page(app, named["session_id"], EVERYTHING)

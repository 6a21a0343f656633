"""What is done on each surface before a case of the contract, and what its store has then."""

import asyncio
import json
import re
from typing import Any

import apsw

from reasonry.app.app import App
from reasonry.app.runs import heads

from .surface import Document, Given, Reply, Surface

PUZZLE = "Use 4, 9, 10 and 13 to make 24"
SUM = "What is 17 + 25?"
UNKNOWN = "01a00000-0000-7000-8000-000000000000"
SOLVED: Given = {"problem": PUZZLE, "strategy": "tree_of_thoughts"}
COACHED: Given = {"problem": SUM, "strategy": "chain_of_thought"}
THOUGHT: Given = {
    "thought": "how many herons",
    "thought_number": 1,
    "total_thoughts": 2,
    "next_thought_needed": True,
}
ANSWER = {"reasoning": "17 + 25 = 42", "answer": "42"}
NAMES = ("cli", "mcp", "http", "python")
AGENTS = ("cli", "mcp", "http")
"""The surfaces that show runs and sessions."""
OPERATORS = ("cli", "http")
"""Those that have all uses but those of agents."""
TYPED = ("mcp", "http", "python")
"""Those whose arguments have types."""
CALLERS = ("mcp", "http")
"""Those that name nothing but what the operator listed."""


# -- what a store has


OF_A_STORE = frozenset(
    {
        "run_id",
        "session_id",
        "forked_from",
        "from_session",
        "requested_session_id",
        "duration_ms",
        "created_at",
        "updated_at",
        "used_at",
        "at",
    }
)
"""Members that differ from store to store: ids and times; those that end so are instants."""
OF_A_TEXT = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b\d{4}-\d\d-\d\dT[\d:.]+Z")
"""Ids and instants in a text."""


def in_snake_case(name: str) -> str:
    """Return the name of a member or an argument as all surfaces but the drop-in tool spell it."""
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)


def alike(value: Any) -> Any:
    """Return what is the same in every store."""
    match value:
        case dict():
            return {
                name: [budget for _, budget in part] if name == "budgets" else alike(part)
                for name, part in ((in_snake_case(name), part) for name, part in value.items())
                if not (name in OF_A_STORE or name.endswith("at_ms"))
            }
        case list() | tuple():
            return [alike(part) for part in value]
        case str():
            return OF_A_TEXT.sub("…", value)
        case _:
            return value


def look(surface: Surface, run_id: str) -> Document:
    """Return the record of a run as the store of a surface has it."""

    async def read() -> Document:
        async with App(surface.store, environ={}) as app:
            record = (await app.engine.record(run_id)).document()
            return {**record, **(await heads(app.store, [await app.store.run(run_id)]))[0], **record}

    return json.loads(json.dumps(asyncio.run(read())))


class Contents:
    """All that the store of a surface has, read again only after something was written into it."""

    def __init__(self, surface: Surface) -> None:
        self.store = surface.store
        self.found = asyncio.run(self._read())
        # By the library of the server in this process: a second one would drop its locks.
        self.file = apsw.Connection(self.store)
        self.version = self.file.pragma("data_version")

    def read(self) -> list[Any]:
        """Return it, down to the last line of each journal."""
        version = self.file.pragma("data_version")
        if version != self.version:
            self.found, self.version = asyncio.run(self._read()), version
        return self.found

    async def _read(self) -> list[Any]:
        async with App(self.store, environ={}) as app:
            runs = [
                [row, await app.engine.last_line(row.run_id)] for row in await app.store.runs(limit=1_000)
            ]
            return [runs, await app.store.sessions(limit=1_000)]


# -- what is done before


def begun(surface: Surface, *uses: tuple[str, Given]) -> Reply:
    """Do what comes before a use; return the last reply. `run` and `session` of each are those of the one before."""
    reply = Reply("", {})
    for use, given in uses:
        reply = surface.call(use, placed(given, reply))
        assert not reply.code, (surface.name, use, reply)
    return reply


def placed(given: Given, before: Reply) -> Given:
    """Return arguments with the ids of the reply before in place of `$`."""
    ids = {"run": "run_id", "session": "session_id"}
    return {name: getattr(before, ids[name]) if value == "$" else value for name, value in given.items()}


SECOND: Given = {**THOUGHT, "session": "$", "thought_number": 2}
ACTING = ("think", {**THOUGHT, "strategy": "react", "stage": "initial_reasoning"})
START, SOLVE, THINK = ("start", COACHED), ("solve", SOLVED), ("think", THOUGHT)
CANCELLED = (START, ("cancel", {"run": "$"}))
CUT_VOTE = (
    ("start", {**COACHED, "strategy": "self_consistency"}),
    ("answer", {"run": "$", "answers": {"e1": ANSWER}}),
    ("cancel", {"run": "$"}),
)
ANSWERED = (START, ("answer", {"run": "$", "answers": {"e1": ANSWER}}))
STOPPED = ("solve", {**SOLVED, "problem": "Use 1, 5, 5 and 5 to make 24", "budget": {"calls": 1}})
HERONS = "There are 40 herons."
REFUTED = (
    ("think", {**THOUGHT, "thought": HERONS}),
    ("refute", {"session": "$", "claims": [HERONS]}),
    *(
        ("answer", {"run": "$", "answers": answers})
        for answers in (
            {"e1": {"quote": HERONS, "reason": "nobody counted", "verdict": "unsure"}},
            {
                f"e{place}": {"quote": HERONS, "reason": "nobody counted", "verdict": "fails"}
                for place in (2, 3)
            },
        )
    ),
)
VAIN: Given = {**SOLVED, "problem": "Use 1, 1, 1 and 1 to make 24"}
VOTED = (
    ("start", {"problem": "6 * 7", "strategy": "self_consistency", "options": {"samples": 3}}),
    ("answer", {"run": "$", "answers": {"e1": "42", "e2": 42}}),
)
MORE: Given = {"budget": {"calls": 50}}
PUZZLED = ("think", {**THOUGHT, "thought": PUZZLE})

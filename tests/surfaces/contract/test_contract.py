"""The contract of the surfaces: the same use has the same record, and the same code, on each of them.

Rule 1: a use leaves the same record in the store, whatever the surface.
Rule 2: what a surface shows of a run stands in the record under the same name, or in `BESIDE`.
Rule 3: what is refused is refused with the same code everywhere, and changes nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import apsw
import pytest

from reasonry.app.run_head import RunHead
from reasonry.app.wiring import App

from .cli import CommandLine
from .http import Api
from .mcp import Tools
from .python import Package
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
ANSWER = {"steps": ["17 + 25 = 42"], "answer": "42"}
NAMES = ("cli", "mcp", "http", "python")
AGENTS = ("cli", "mcp", "http")
"""The surfaces that show runs and sessions."""
OPERATORS = ("cli", "http")
"""Those on which the models work on a run that is there already."""


@pytest.fixture(scope="module")
def surfaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Surface]]:
    """The surfaces, each over a store of its own."""
    folder = tmp_path_factory.mktemp("contract")
    tools, api = Tools(folder), Api(folder)
    yield {each.name: each for each in (CommandLine(folder), tools, api, Package(folder))}
    tools.close()
    api.close()


@pytest.fixture(scope="module")
def stores(surfaces: dict[str, Surface]) -> dict[str, Contents]:
    """What the store of each surface has."""
    return {name: Contents(surface) for name, surface in surfaces.items()}


# -- what a store has


OF_A_STORE = frozenset(
    {
        "run_id",
        "session_id",
        "forked_from",
        "from_session",
        "duration_ms",
        "created_at",
        "updated_at",
        "used_at",
        "at",
    }
)
"""Members that differ from store to store: ids and times; those that end so are instants."""


def alike(value: Any) -> Any:
    """Return what is the same in every store."""
    match value:
        case dict():
            return {
                name: [budget for _, budget in part] if name == "budgets" else alike(part)
                for name, part in value.items()
                if not (name in OF_A_STORE or name.endswith("at_ms"))
            }
        case list() | tuple():
            return [alike(part) for part in value]
        case _:
            return value


def look(surface: Surface, run_id: str) -> Document:
    """Return the record of a run as the store of a surface has it."""

    async def read() -> Document:
        async with App(surface.store, environ={}) as app:
            record = (await app.engine.record(run_id)).document()
            return {**record, **(await app.heads([await app.store.run(run_id)]))[0], **record}

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
        reply = surface.call(use, _placed(given, reply))
        assert not reply.code, (surface.name, use, reply)
    return reply


def _placed(given: Given, before: Reply) -> Given:
    """Return arguments with the ids of the reply before in place of `$`."""
    ids = {"run": "run_id", "session": "session_id"}
    return {name: getattr(before, ids[name]) if value == "$" else value for name, value in given.items()}


START, SOLVE, THINK = ("start", COACHED), ("solve", SOLVED), ("think", THOUGHT)
CANCELLED = (START, ("cancel", {"run": "$"}))
ANSWERED = (START, ("answer", {"run": "$", "answers": {"e1": ANSWER}}))
STOPPED = ("solve", {**SOLVED, "problem": "Use 1, 5, 5 and 5 to make 24", "budget": {"calls": 1}})


# -- rule 1: the same record


class Leaves(NamedTuple):
    """Uses, one after the other, and the outcome of the run that the last is about."""

    name: str
    uses: tuple[tuple[str, Given], ...]
    outcome: str | None
    on: tuple[str, ...] = NAMES


HERONS = "There are 40 herons."
REFUTED = (
    ("think", {**THOUGHT, "thought": HERONS}),
    ("refute", {"session": "$", "claims": [HERONS]}),
    (
        "answer",
        {
            "run": "$",
            "answers": {
                f"e{place}": {"quote": HERONS, "reason": "nobody counted", "verdict": verdict}
                for place, verdict in enumerate(("unsure", "fails", "fails"), 1)
            },
        },
    ),
)
VAIN: Given = {**SOLVED, "problem": "Use 1, 1, 1 and 1 to make 24"}
VOTED = (
    ("start", {"problem": "6 * 7", "strategy": "self_consistency", "options": {"samples": 3}}),
    ("answer", {"run": "$", "answers": {"e1": "42", "e2": 42}}),
)
MORE: Given = {"run": "$", "budget": {"calls": 50}}
PUZZLED = ("think", {**THOUGHT, "thought": PUZZLE})

RECORDS = [
    Leaves("a puzzle is solved", (SOLVE,), "solved"),
    Leaves("options are named", (("solve", {**SOLVED, "options": {"max_depth": 3}}),), "solved"),
    Leaves("a verifier is named", (("solve", {**SOLVED, "verifier": "arithmetic:24"}),), "solved"),
    Leaves("auto chooses", (("solve", {"problem": PUZZLE}),), "solved"),
    Leaves("a limit stops it", (STOPPED,), "stopped"),
    Leaves("it is searched in vain", (("solve", VAIN),), "unsolved"),
    Leaves("its caller is asked", (START,), "waiting"),
    Leaves("its caller has answered", ANSWERED, "answered"),
    Leaves("its caller has given several answers", VOTED, "answered"),
    Leaves("it is cancelled", CANCELLED, "stopped"),
    Leaves("it is resumed", (*CANCELLED, ("resume", {"run": "$", "coached": True})), "waiting"),
    Leaves("it is resumed with more", (STOPPED, ("resume", MORE)), "solved", OPERATORS),
    Leaves("it is taken over", (STOPPED, ("resume", {**MORE, "coached": True})), "waiting"),
    Leaves("it is forked", (SOLVE, ("fork", {"run": "$", "at": 1})), "solved", OPERATORS),
    Leaves(
        "its caller forks it",
        (*ANSWERED, ("fork", {"run": "$", "at": 0, "coached": True})),
        "waiting",
        AGENTS,
    ),
    Leaves(
        "its limits are changed",
        (START, ("limit", {"run": "$", "budget": {"calls": 7}})),
        "waiting",
        OPERATORS,
    ),
    Leaves(
        "a session is solved",
        (PUZZLED, ("solve", {"session": "$", "strategy": "tree_of_thoughts"})),
        "solved",
    ),
    Leaves(
        "arithmetic refutes a claim", (("refute", {"problem": SUM, "claims": ["17 + 25 = 43"]}),), "answered"
    ),
    Leaves("other eyes are asked", (("refute", {"claims": [HERONS]}),), "waiting"),
    Leaves("other eyes look at a plan", (("refute", {"problem": HERONS}),), "waiting"),
    Leaves("other eyes look at a session", (REFUTED[0], ("refute", {"session": "$"})), "waiting"),
    Leaves("other eyes refute a session's claim", REFUTED, "answered"),
    Leaves("it begins with a session", (THINK, ("start", {"session": "$", "strategy": "linear"})), "waiting"),
]


@pytest.mark.parametrize("case", RECORDS, ids=lambda case: case.name)
def test_the_same_uses_leave_the_same_record(surfaces: dict[str, Surface], case: Leaves) -> None:
    records = dict[str, Any]()
    for name in case.on:
        surface = surfaces[name]
        reply = begun(surface, *case.uses)
        record = look(surface, reply.run_id)
        assert record["outcome"] == case.outcome, name
        assert_shown(reply.document, record)
        records[name] = alike(record)
    first, *others = records
    for name in others:
        assert records[name] == records[first], name


# -- rule 2: the same names

BESIDE = frozenset(
    {
        "note",
        "progress",
        "result",
        "questions",
        "shared",
        "position",
        "notices",
        "from_session",
        "budget",
        "paused",
    }
)
"""What replies have besides the record: the words to a caller, and where a run stands at the moment."""


def assert_shown(shown: Document, record: Document) -> None:
    """Check that what is shown of a run is what its record says, under its names; a coached run's is in `result`."""
    shown = {**shown, **shown.get("result", {})}
    for name in shown.keys() - BESIDE - {"tree", "samples"}:
        assert json.loads(json.dumps(shown[name])) == record[name], name


@pytest.mark.parametrize(
    "uses", [(SOLVE,), ANSWERED, CANCELLED, (STOPPED,)], ids=["solved", "answered", "cancelled", "stopped"]
)
def test_lists_show_the_head_of_a_run(surfaces: dict[str, Surface], uses: Any) -> None:
    shown = dict[str, Any]()
    for name in ("cli", "mcp", "http"):
        run_id = begun(surfaces[name], *uses).run_id
        rows = surfaces[name].call("list", {"limit": 50}).document["runs"]
        (row,) = [row for row in rows if row["run_id"] == run_id]
        record = look(surfaces[name], run_id)
        for member, value in row.items():
            assert member in RunHead.__annotations__ or member in ("created_at", "updated_at"), (name, member)
            if member not in ("created_at", "updated_at", "termination", "usage", "resumable"):
                assert value == record[member], (name, member)
        shown[name] = alike(row)
    assert shown["cli"] == shown["http"]
    assert {member: shown["cli"][member] for member in shown["mcp"] if member != "termination"} == {
        member: value for member, value in shown["mcp"].items() if member != "termination"
    }


@pytest.mark.parametrize("name", ["cli", "mcp", "http"])
def test_a_run_is_shown_as_its_record(surfaces: dict[str, Surface], name: str) -> None:
    surface = surfaces[name]
    run_id = begun(surface, SOLVE).run_id
    shown = surface.call("show", {"run": run_id}).document
    record = look(surface, run_id)
    of_agents = {"created_at", "path", "thoughts", "questions", "next_cursor", "shared", "options"}
    assert_shown(
        {member: value for member, value in shown.items() if name != "mcp" or member not in of_agents}, record
    )


@pytest.mark.parametrize("name", ["cli", "http"])
def test_a_replay_is_the_run_again(
    surfaces: dict[str, Surface], stores: dict[str, Contents], name: str
) -> None:
    run_id = begun(surfaces[name], SOLVE).run_id
    before = stores[name].read()
    shown = surfaces[name].call("replay", {"run": run_id}).document
    assert shown["replay"]["identical"] is True
    assert stores[name].read() == before


def test_a_run_that_is_deleted_is_gone_with_its_session(surfaces: dict[str, Surface]) -> None:
    for name in OPERATORS:
        run = begun(surfaces[name], *ANSWERED)
        deleted = surfaces[name].call("delete", {"run": run.run_id})
        assert deleted.document == {"run_id": run.run_id, "session_id": deleted.session_id, "deleted": True}
        for use, given in (("show", {"run": run.run_id}), ("session", {"session": deleted.session_id})):
            assert surfaces[name].call(use, given).code == "not_found"


# -- rule 3: the same code, and nothing changed


class Refused(NamedTuple):
    """A use that is refused, after others, its code, and a word that its error has."""

    name: str
    use: str
    given: Given
    code: str = "invalid_request"
    after: tuple[tuple[str, Given], ...] = ()
    on: tuple[str, ...] = NAMES
    named: str = ""


def new_runs(
    name: str, given: Given, code: str = "invalid_request", on: tuple[str, ...] = NAMES, named: str = ""
) -> list[Refused]:
    """Return what is refused of a new run, whoever answers its questions."""
    return [
        Refused(
            f"{use}: {name}",
            use,
            {"problem": PUZZLE, "strategy": "tree_of_thoughts", **given},
            code,
            (),
            on,
            named,
        )
        for use in ("solve", "start")
    ]


def of_no_run(use: str, on: tuple[str, ...], **given: Any) -> Refused:
    """Return what is refused of a run that is not there."""
    return Refused(f"{use}: no such run", use, {"run": UNKNOWN, **given}, "not_found", on=on)


def of_no_session(use: str, on: tuple[str, ...], **given: Any) -> Refused:
    """Return what is refused of a session that is not there."""
    return Refused(f"{use}: no such session", use, {"session": UNKNOWN, **given}, "not_found", on=on)


RUN: Given = {"run": "$"}
TO_CALLER: Given = {"run": "$", "at": 0, "coached": True}
TOOL = {"strategy": "react", "options": {"tools": [{"name": "sh"}]}}
PRICED = {"model": "openai-compatible:http://127.0.0.1:9/v1#m", "budget": {"usd": 1.0}}
ACTING = ("think", {**THOUGHT, "strategy": "react", "stage": "initial_reasoning"})
AWRY: Given = {**THOUGHT, "session": "$", "thought_number": 2, "stage": "observation_reception"}
ODD = {"thoughtHistory": [{"thought": 1, "branchId": [1]}], "branches": {}}
BAD, NOT_THERE, CONFLICT = "invalid_request", "not_found", "conflict"

REFUSED = [
    Refused("solve: nothing", "solve", {"strategy": "linear"}, named="problem is missing"),
    Refused("start: nothing", "start", {"strategy": "linear"}, named="problem"),
    Refused("refute: nothing", "refute", {}, on=("http", "python"), named="problem"),
    Refused(
        "refute: an empty plan", "refute", {"problem": ""}, on=("cli", "http", "python"), named="problem"
    ),
    of_no_session("refute", NAMES),
    *new_runs("no problem", {"problem": ""}),
    *new_runs("a problem with NUL", {"problem": "make\0me"}, on=("mcp", "http", "python"), named="NUL"),
    *new_runs("a problem of blanks", {"problem": "  "}),
    *new_runs("no such strategy", {"strategy": "tree"}, named="tree_of_thoughts"),
    *new_runs("no such option", {"options": {"depth": 3}}, named="branching_factor"),
    *new_runs("an option out of its range", {"options": {"max_depth": 0}}, named="max_depth"),
    *new_runs("an option of another type", {"options": {"max_depth": "deep"}}, named="max_depth"),
    *new_runs(
        "an option that is none of its choices", {"options": {"traversal_strategy": "up"}}, named="best_first"
    ),
    *new_runs("no calls", {"budget": {"calls": 0}}, named="calls"),
    *new_runs("a negative limit", {"budget": {"seconds": -1}}, named="seconds"),
    *new_runs("a gift of dollars", {"budget": {"usd": -1}}, named="usd"),
    *new_runs("no such verifier", {"verifier": "json:schema"}, named="arithmetic"),
    *new_runs("a tool brought along in options", TOOL, named="sh"),
    *new_runs("no such session", {"session": UNKNOWN}, NOT_THERE),
    Refused(
        "solve: dollars without a price", "solve", {**SOLVED, **PRICED}, "price_unknown", on=("cli", "python")
    ),
    Refused("solve: no such model", "solve", {**SOLVED, "model": "gpt"}),
    Refused("solve: no verifier", "solve", {**SOLVED, "problem": SUM, "options": {"verify": True}}),
    Refused("start: no verifier", "start", {**SOLVED, "options": {"verify": True}}),
    of_no_run("status", AGENTS),
    of_no_run("show", AGENTS),
    of_no_run("cancel", NAMES),
    of_no_run("answer", NAMES, answers={"e1": "x"}),
    of_no_run("resume", NAMES, coached=True),
    of_no_run("resume", OPERATORS),
    of_no_run("fork", AGENTS, at=0, coached=True),
    of_no_run("fork", OPERATORS, at=0),
    of_no_run("replay", OPERATORS),
    of_no_run("pause", OPERATORS),
    of_no_run("limit", OPERATORS, budget={"calls": 3}),
    of_no_run("delete", OPERATORS),
    Refused("answer: not asked", "answer", {**RUN, "answers": {"e9": "x"}}, CONFLICT, (START,), AGENTS),
    Refused("answer: again", "answer", {**RUN, "answers": {"e1": "x"}}, CONFLICT, ANSWERED),
    Refused(
        "answer: unreadable",
        "answer",
        {**RUN, "answers": {"e1": "I do not know."}},
        "answer_refused",
        (START,),
        AGENTS,
    ),
    Refused("cancel: has ended", "cancel", RUN, CONFLICT, ANSWERED),
    Refused("cancel: was cancelled", "cancel", RUN, CONFLICT, CANCELLED, AGENTS),
    Refused("pause: waits for its caller", "pause", RUN, CONFLICT, (START,), OPERATORS),
    Refused("limit: has ended", "limit", {**RUN, "budget": {"calls": 9}}, CONFLICT, (SOLVE,), OPERATORS),
    Refused("limit: no calls", "limit", {**RUN, "budget": {"calls": 0}}, BAD, (START,), OPERATORS),
    Refused("delete: has not ended", "delete", RUN, CONFLICT, (START,), OPERATORS),
    Refused("fork: beyond the end", "fork", {**RUN, "at": 99}, CONFLICT, (SOLVE,), OPERATORS),
    Refused("fork: beyond the end, coached", "fork", {**TO_CALLER, "at": 99}, CONFLICT, (START,), AGENTS),
    Refused("fork: bad option", "fork", {**RUN, "at": 0, "options": {"depth": 3}}, BAD, (SOLVE,), OPERATORS),
    Refused(
        "fork: bad option, coached", "fork", {**TO_CALLER, "options": {"depth": 3}}, BAD, (START,), AGENTS
    ),
    Refused("resume: no calls", "resume", {**RUN, "budget": {"calls": 0}, "coached": True}, BAD, CANCELLED),
    Refused(
        "list: no such status",
        "list",
        {"status": "over"},
        on=OPERATORS,
        named="status must be one of: active, done, failed, cancelled; not 'over'",
    ),
    Refused(
        "list: no such outcome",
        "list",
        {"outcome": "done"},
        on=OPERATORS,
        named="outcome must be one of: solved, answered, stopped, unsolved, error, waiting; not 'done'",
    ),
    Refused("list: a page of none", "list", {"limit": 0}, on=OPERATORS, named="limit"),
    Refused("strategy: no such strategy", "strategy", {"strategy": "tree"}, on=("cli",)),
    Refused("strategy: at no address", "strategy", {"strategy": "tree"}, NOT_THERE, on=("http",)),
    Refused("think: number 0", "think", {**THOUGHT, "thought_number": 0}),
    Refused("think: no such strategy", "think", {**THOUGHT, "strategy": "tree"}),
    Refused("think: no such stage", "think", {**THOUGHT, "strategy": "react", "stage": "nowhere"}),
    Refused("think: an illegal stage", "think", AWRY, after=(ACTING,)),
    Refused("think: revises nothing", "think", {**THOUGHT, "thought_number": 2, "revises_thought": 7}),
    Refused("think: branches from nothing", "think", {**THOUGHT, "branch_from_thought": 7, "branch_id": "b"}),
    of_no_session("session", AGENTS),
    of_no_session("export", NAMES),
    of_no_session("forget", AGENTS),
    of_no_session("pin", AGENTS),
    Refused("search: nothing", "search", {"query": ""}, on=AGENTS),
    Refused("search: a page of none", "search", {"query": "x", "limit": 0}, on=AGENTS),
    Refused("sessions: no such status", "sessions", {"status": "over"}, on=AGENTS),
    Refused("import: no session", "import", {"content": ODD}, on=OPERATORS),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_what_is_refused_has_the_same_code_and_changes_nothing(
    surfaces: dict[str, Surface], stores: dict[str, Contents], case: Refused
) -> None:
    codes, errors = dict[str, str](), dict[str, Any]()
    for name in case.on:
        surface = surfaces[name]
        given = _placed(case.given, begun(surface, *case.after))
        before = stores[name].read()
        reply = surface.call(case.use, given)
        assert stores[name].read() == before, name
        codes[name], errors[name] = reply.code, reply.document.get("error", {})
    assert codes == dict.fromkeys(case.on, case.code), errors
    for error in errors.values():
        assert error["message"]
        assert case.named in json.dumps(error)


@pytest.mark.parametrize("name", AGENTS)
def test_beside_an_answer_that_is_refused_the_others_are_taken(
    surfaces: dict[str, Surface], name: str
) -> None:
    run_id = begun(surfaces[name], VOTED[0]).run_id
    reply = surfaces[name].call("answer", {"run": run_id, "answers": {"e1": 42, "e2": "I do not know."}})
    assert reply.code == "answer_refused"
    assert [one["id"] for one in reply.document["error"]["refused"]] == ["e2"]
    for shown in (reply.document, surfaces[name].call("status", {"run": run_id}).document):
        assert [one["id"] for one in shown.get("run", shown)["questions"]] == ["e2"]


# -- sessions


SESSIONS = [
    ("session", {"session": "$"}, AGENTS),
    ("export", {"session": "$"}, NAMES),
    ("search", {"query": "HERONS", "limit": 1}, AGENTS),
    ("sessions", {"limit": 1}, AGENTS),
    ("pin", {"session": "$"}, AGENTS),
    ("forget", {"session": "$"}, AGENTS),
]


@pytest.mark.parametrize(("use", "given", "on"), SESSIONS, ids=[use for use, *_ in SESSIONS])
def test_what_is_done_with_a_session_is_replied_to_alike(
    surfaces: dict[str, Surface], use: str, given: Given, on: tuple[str, ...]
) -> None:
    second = {
        **THOUGHT,
        "session": "$",
        "thought": "seven",
        "thought_number": 2,
        "next_thought_needed": False,
    }
    replies = dict[str, Any]()
    for name in on:
        # With another session each list continues, whichever tests ran before.
        begun(surfaces[name], REFUTED[0])
        session = begun(surfaces[name], THINK, ("think", second))
        reply = surfaces[name].call(use, _placed(given, session))
        assert not reply.code, reply
        shown = alike(reply.document)
        replies[name] = {**shown, "next_cursor": bool(shown.get("next_cursor"))}
    first, *others = on
    for name in others:
        assert replies[name] == replies[first], name


def test_a_session_that_is_taken_out_is_taken_in(surfaces: dict[str, Surface]) -> None:
    told = list[Any]()
    for name in OPERATORS:
        session = begun(surfaces[name], THINK)
        content = surfaces[name].call("export", {"session": session.session_id}).document
        imported = surfaces[name].call("import", {"content": content})
        assert imported.session_id != session.session_id
        again = surfaces[name].call("export", {"session": imported.session_id}).document
        assert alike(again) == alike(content)
        told.append(alike({**imported.document, "notices": []}))
    assert told[0] == told[1]

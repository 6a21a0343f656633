"""The contract of the surfaces: the same use has the same record on each of them.

Rule 1: a use leaves the same record in the store, whatever the surface.
Rule 2: what a surface shows of a run stands in the record under the same name, or in `BESIDE`.
Rule 3, in `test_refused`: what is refused is refused with the same code everywhere, and changes nothing.
Rule 4, in `test_lists`: the same filter shows the same rows in the same order.
"""

import json
from typing import Any, NamedTuple

import pytest

from reasonry.app.run_head import RunHead

from .surface import Document, Given, Surface
from .uses import (
    ACTING,
    AGENTS,
    ANSWER,
    ANSWERED,
    CANCELLED,
    CUT_VOTE,
    HERONS,
    MORE,
    NAMES,
    OPERATORS,
    PUZZLE,
    PUZZLED,
    REFUTED,
    SECOND,
    SOLVE,
    SOLVED,
    START,
    STOPPED,
    SUM,
    THINK,
    VAIN,
    VOTED,
    Contents,
    alike,
    begun,
    look,
    placed,
)

# -- rule 1: the same record


class Leaves(NamedTuple):
    """Uses, one after the other, and the outcome of the run that the last is about."""

    name: str
    uses: tuple[tuple[str, Given], ...]
    outcome: str | None
    on: tuple[str, ...] = NAMES


CALLERS_OF_ONE = ("cli", "mcp", "python")
"""Those on which the only question is answered without its id."""


def then(use: str, **given: Any) -> tuple[str, Given]:
    """Return a use of the run before."""
    return use, {"run": "$", **given}


HANDED = (STOPPED, then("resume", **MORE, coached=True), then("resume", model="offline"))

RECORDS = [
    Leaves("a puzzle is solved", (SOLVE,), "solved"),
    Leaves("options are named", (("solve", {**SOLVED, "options": {"max_depth": 3}}),), "solved"),
    Leaves("a verifier is named", (("solve", {**SOLVED, "verifier": "arithmetic:24"}),), "solved"),
    Leaves("auto chooses", (("solve", {"problem": PUZZLE}),), "solved"),
    Leaves("a limit stops it", (STOPPED,), "stopped"),
    Leaves("it is searched in vain", (("solve", VAIN),), "unsolved"),
    Leaves("its caller is asked", (START,), "waiting"),
    Leaves("its caller has answered", ANSWERED, "answered"),
    Leaves("the only answer", (START, then("answer", answers=ANSWER)), "answered", CALLERS_OF_ONE),
    Leaves("a list of one answer", (START, then("answer", answers=[ANSWER])), "answered", CALLERS_OF_ONE),
    Leaves("its caller has given several answers", VOTED, "answered"),
    Leaves("it is cancelled", CANCELLED, "stopped"),
    Leaves("it is resumed", (*CANCELLED, then("resume", coached=True)), "waiting"),
    Leaves("it is resumed with more", (STOPPED, then("resume", **MORE)), "solved", AGENTS),
    Leaves("it is taken over", (STOPPED, then("resume", **MORE, coached=True)), "waiting"),
    Leaves("a model takes it over", (("start", SOLVED), then("resume", model="offline")), "answered", AGENTS),
    Leaves("it is handed over and back", HANDED, "solved", AGENTS),
    Leaves("it has ended and is resumed", (*ANSWERED, then("resume", coached=True)), "answered"),
    Leaves("its end stays", (SOLVE, then("resume", **MORE)), "solved", AGENTS),
    Leaves(
        "a vain end stays", (("solve", VAIN), then("resume", **MORE, model="offline")), "unsolved", AGENTS
    ),
    Leaves("it is forked", (SOLVE, then("fork", at=1)), "solved", OPERATORS),
    Leaves("its caller forks it", (*ANSWERED, then("fork", at=0, coached=True)), "waiting", AGENTS),
    Leaves("its limits are changed", (START, then("limit", budget={"calls": 7})), "waiting", OPERATORS),
    Leaves("of a session", (PUZZLED, ("solve", {"session": "$", "strategy": "tree_of_thoughts"})), "solved"),
    Leaves("arithmetic refutes", (("refute", {"problem": SUM, "claims": ["17 + 25 = 43"]}),), "answered"),
    Leaves("other eyes are asked", (("refute", {"claims": [HERONS]}),), "waiting"),
    Leaves("other eyes look at a long claim", (("refute", {"claims": [HERONS * 20]}),), "waiting"),
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


@pytest.mark.parametrize(
    "given",
    [SOLVED, {**SOLVED, "options": {"max_depth": 3}}, {**SOLVED, "verifier": "arithmetic:24"}, STOPPED[1]],
    ids=str,
)
def test_a_run_that_is_begun_another_way_leaves_the_same_record(
    surfaces: dict[str, Surface], given: Given
) -> None:
    wanted = alike(look(surfaces["cli"], surfaces["cli"].call("solve", given).run_id))
    for name, use in (("cli", "submit"), ("http", "chat"), ("http", "respond"), ("python", "stream")):
        # A line of a file says nothing of limits and verifiers.
        if use != "submit" or given.keys() <= {"problem", "strategy", "options"}:
            run_id = begun(surfaces[name], (use, given)).run_id
            assert alike(look(surfaces[name], run_id)) == wanted, use


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
    "uses",
    [(SOLVE,), ANSWERED, CANCELLED, CUT_VOTE, (STOPPED,)],
    ids=["solved", "answered", "cancelled", "cancelled with votes", "stopped"],
)
def test_lists_show_the_head_of_a_run(surfaces: dict[str, Surface], uses: Any) -> None:
    shown = dict[str, Any]()
    for name in ("cli", "mcp", "http"):
        run_id = begun(surfaces[name], *uses).run_id
        rows = surfaces[name].call("list", {"limit": 50}).document["runs"]
        (row,) = [row for row in rows if row["run_id"] == run_id]
        record = look(surfaces[name], run_id)
        if uses is CUT_VOTE:
            assert record["best_answer"] == ANSWER["answer"], name
        for member, value in row.items():
            assert member in RunHead.__annotations__, (name, member)
            if member not in ("termination", "usage", "resumable"):
                assert value == record[member], (name, member)
        shown[name] = alike(row)
    assert shown["cli"] == shown["http"] == shown["mcp"]


@pytest.mark.parametrize("name", ["cli", "mcp", "http"])
def test_a_run_is_shown_as_its_record(surfaces: dict[str, Surface], name: str) -> None:
    surface = surfaces[name]
    run_id = begun(surface, SOLVE).run_id
    shown = surface.call("show", {"run": run_id}).document
    record = look(surface, run_id)
    of_agents = {"created_at", "path", "thoughts", "questions", "next_cursor"}
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


@pytest.mark.parametrize("use", ["strategies", "strategy"])
def test_strategies_are_shown_under_the_same_names(surfaces: dict[str, Surface], use: str) -> None:
    given = {"strategy": "tot"} if use == "strategy" else {}
    cli, http = (surfaces[name].call(use, given).document for name in OPERATORS)
    for row, shown in zip(cli.get(use, [cli]), http.get(use, [http]), strict=True):
        assert row.items() <= shown.items()


def test_two_runs_differ_alike(surfaces: dict[str, Surface]) -> None:
    told = list[Any]()
    for name in OPERATORS:
        run = begun(surfaces[name], SOLVE)
        fork = surfaces[name].call("fork", {"run": run.run_id, "at": 1, "options": {"branching_factor": 2}})
        told.append(alike(surfaces[name].call("diff", {"a": run.run_id, "b": fork.run_id}).document))
        told[-1]["spend"] = [row for row in told[-1]["spend"] if row["name"] != "seconds"]
        assert [term["name"] for term in told[-1]["terms"]] == ["options.branching_factor"]
    assert told[0] == told[1]


@pytest.mark.parametrize(("kind", "use", "status"), [("run", SOLVE, "done"), ("session", THINK, "active")])
def test_a_page_is_of_the_run_or_the_session_that_is_named(
    surfaces: dict[str, Surface], kind: str, use: tuple[str, Given], status: str
) -> None:
    for name in AGENTS:
        about = begun(surfaces[name], use)
        named = about.run_id if kind == "run" else about.session_id
        page = surfaces[name].call("page", {kind: named}).document
        shown = {member: page.get(member, status) for member in ("kind", "id", "status")}
        assert shown == {"kind": kind, "id": named, "status": status}
        assert name == "cli" or page["answer"] == about.document.get("answer")


def test_a_comparison_is_shown_as_it_was_printed(surfaces: dict[str, Surface]) -> None:
    cli, api = surfaces["cli"], surfaces["http"]
    asked = {"content": {"problem": PUZZLE, "answer": "24"}, "store": api.store}
    printed = cli.call("compare", asked).document
    shown = api.call("comparison", {"comparison": printed["id"]}).document
    # How much the command itself has spent, only its document says.
    whole = {**printed, "running": [], "spent": shown["spent"]}
    assert alike(shown) == alike(whole)


def test_a_run_that_is_deleted_is_gone_with_its_session(surfaces: dict[str, Surface]) -> None:
    for name in OPERATORS:
        run = begun(surfaces[name], *ANSWERED)
        deleted = surfaces[name].call("delete", {"run": run.run_id})
        assert deleted.document == {"run_id": run.run_id, "session_id": deleted.session_id, "deleted": True}
        for use, given in (("show", {"run": run.run_id}), ("session", {"session": deleted.session_id})):
            assert surfaces[name].call(use, given).code == "not_found"


# -- sessions


TWO = (THINK, ("think", {**SECOND, "thought": "seven", "next_thought_needed": False}))
ENDS: Given = {**SECOND, "next_thought_needed": False}
BRANCHES: Given = {**SECOND, "branch_from_thought": 1, "branch_id": "b"}
ACTS: Given = {**SECOND, "stage": "action_planning", "data": {"action": "count"}}

SESSIONS = [
    ("session", {"session": "$"}, TWO, AGENTS),
    ("export", {"session": "$"}, TWO, NAMES),
    ("export", {"session": "$", "format": "markdown"}, TWO, AGENTS),
    ("search", {"query": "HERONS", "limit": 1}, TWO, AGENTS),
    ("sessions", {"limit": 1}, TWO, AGENTS),
    ("pin", {"session": "$"}, TWO, AGENTS),
    ("unpin", {"session": "$"}, (*TWO, ("pin", {"session": "$"})), AGENTS),
    ("forget", {"session": "$"}, TWO, AGENTS),
    ("think", ENDS, (THINK,), NAMES),
    ("think", BRANCHES, (("think", {**ACTING[1], "thought": "aside"}),), NAMES),
    ("think", ACTS, (ACTING,), ("mcp", "http", "python")),
    # Of a run.
    ("session", {"session": "$"}, ANSWERED, OPERATORS),
    ("export", {"session": "$"}, ANSWERED, ("cli", "http", "python")),
]


@pytest.mark.parametrize(
    ("use", "given", "after", "on"), SESSIONS, ids=[f"{use} {at}" for at, (use, *_) in enumerate(SESSIONS)]
)
def test_what_is_done_with_a_session_is_replied_to_alike(
    surfaces: dict[str, Surface], use: str, given: Given, after: Any, on: tuple[str, ...]
) -> None:
    replies = dict[str, Any]()
    for name in on:
        # With another session each list continues, whichever tests ran before.
        begun(surfaces[name], REFUTED[0])
        session = begun(surfaces[name], *after)
        reply = surfaces[name].call(use, placed(given, session))
        assert not reply.code, reply
        shown = alike(reply.document)
        notices = [notice["reason"] for notice in shown.pop("notices", [])]
        if after is ANSWERED:
            assert reply.document.get("run_id", session.run_id) == session.run_id
            assert not notices
            assert reply.session_id == session.session_id
        if "text" in shown:
            # Its head has the id and the times of the session.
            shown["text"] = shown["text"].partition("\n## ")[2]
        # The words to an agent that is about to end name a command or a tool.
        shown.pop("before_you_end", None)
        replies[name] = {**shown, "next_cursor": bool(shown.get("next_cursor"))}
    first, *others = on
    for name in others:
        assert replies[name] == replies[first], name


def test_a_session_that_is_deleted_is_gone(surfaces: dict[str, Surface]) -> None:
    for name, surface in surfaces.items():
        session = {"session": begun(surface, THINK).session_id}
        assert surface.call("forget", session).document["deleted"] is True
        assert surface.call("export", session).code == "not_found", name


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

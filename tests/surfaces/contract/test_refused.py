"""Rule 3 of the contract of the surfaces: what is refused has the same code everywhere, and changes nothing."""

import json
import re
from typing import Any, NamedTuple

import pytest

from .surface import Document, Given, Surface
from .uses import (
    ACTING,
    AGENTS,
    ANSWERED,
    CALLERS,
    CANCELLED,
    NAMES,
    OPERATORS,
    SECOND,
    SOLVE,
    SOLVED,
    START,
    SUM,
    THINK,
    THOUGHT,
    TYPED,
    UNKNOWN,
    VOTED,
    Contents,
    begun,
    in_snake_case,
    placed,
)


class Refused(NamedTuple):
    """A use that is refused, after others, its code, a word that its error has, and the argument that it names."""

    name: str
    use: str
    given: Given
    code: str = "invalid_request"
    after: tuple[tuple[str, Given], ...] = ()
    on: tuple[str, ...] = NAMES
    named: str = ""
    field: str = ""


def new_runs(name: str, given: Given, code: str = "invalid_request", **more: Any) -> list[Refused]:
    """Return what is refused of a new run, whoever answers its questions."""
    uses = ("solve", "start")
    return [Refused(f"{use}: {name}", use, {**SOLVED, **given}, code, **more) for use in uses]


def thoughts(name: str, given: Given, code: str = "invalid_request", **more: Any) -> Refused:
    """Return what is refused of a first thought."""
    return Refused(f"think: {name}", "think", {**THOUGHT, **given}, code, **more)


def without(given: Given, name: str) -> Given:
    """Return arguments without one of them."""
    return {other: value for other, value in given.items() if other != name}


def field_of(error: Document) -> str:
    """Return the argument that an error names, in the spelling of the contract; empty: none."""
    name = error.get("field") or error.get("option") or ""
    name = error["limit"] if name == "budget" and "limit" in error else name
    name = in_snake_case(name).partition("[")[0]
    name = {"session": "session_id"}.get(name, name).removesuffix("_ms")
    return name.removeprefix("budget.").removeprefix("max_")


def of_no_run(use: str, on: tuple[str, ...], **given: Any) -> Refused:
    """Return what is refused of a run that is not there."""
    return Refused(f"{use}: no such run", use, {"run": UNKNOWN, **given}, "not_found", on=on)


def of_no_session(use: str, on: tuple[str, ...], **given: Any) -> Refused:
    """Return what is refused of a session that is not there."""
    return Refused(f"{use}: no such session", use, {"session": UNKNOWN, **given}, "not_found", on=on)


RUN: Given = {"run": "$"}
TO_CALLER: Given = {"run": "$", "at": 0, "coached": True}
ARMED = {"tools": [{"name": "sh"}]}
TOOL = {"strategy": "react", "options": ARMED}
PRICED = {"model": "openai-compatible:http://127.0.0.1:9/v1#m", "budget": {"usd": 1.0}}
AWRY: Given = {**SECOND, "stage": "observation_reception"}
ODD = {"thoughtHistory": [{"thought": 1, "branchId": [1]}], "branches": {}}
BAD, NOT_THERE, CONFLICT, TOO_LARGE = "invalid_request", "not_found", "conflict", "payload_too_large"
LONG, LONG_NAME = "x" * 100_001, "x" * 10_000
FILE = "json-schema:/etc/passwd"
ADDRESS = "openai-compatible:http://127.0.0.1:9/v1#m"

REFUSED = [
    Refused("solve: nothing", "solve", {"strategy": "linear"}, named="problem is missing"),
    Refused("start: nothing", "start", {"strategy": "linear"}, named="problem"),
    Refused(
        "refute: nothing", "refute", {}, on=("cli", "mcp", "http"), named="what to refute", field="problem"
    ),
    Refused("refute: neither a run nor a new one", "refute", {}, on=("python",), named="problem"),
    Refused(
        "refute: an empty plan", "refute", {"problem": ""}, on=("cli", "http", "python"), named="problem"
    ),
    of_no_session("refute", NAMES),
    Refused("refute: too many claims", "refute", {"claims": ["x"] * 201}, field="claims"),
    Refused("refute: a long claim", "refute", {"problem": SUM, "claims": [LONG]}, field="claims"),
    *new_runs("no problem", {"problem": ""}, field="problem"),
    *new_runs("a problem that is a number", {"problem": 5}, on=TYPED, field="problem"),
    *new_runs("a problem with NUL", {"problem": "make\0me"}, on=("mcp", "http", "python"), named="NUL"),
    *new_runs("a problem of blanks", {"problem": "  "}, field="problem"),
    *new_runs("a problem over the bound", {"problem": LONG}, TOO_LARGE, field="problem"),
    *new_runs("a strategy of a long name", {"strategy": LONG_NAME}, field="strategy"),
    *new_runs("a verifier of a long name", {"verifier": LONG_NAME}, field="verifier"),
    *new_runs("a session of a long name", {"session": LONG_NAME}, NOT_THERE),
    *new_runs("a session that is a number", {"session": 5}, on=TYPED, field="session_id"),
    *new_runs("an option of a long name", {"options": {LONG_NAME: 1}}, named="branching_factor"),
    *new_runs("an option over the bound", {"options": {"max_depth": LONG}}, named="max_depth"),
    *new_runs("calls beyond any number", {"budget": {"calls": 2**53}}, field="calls"),
    *new_runs("dollars beyond any number", {"budget": {"usd": 10**400}}, field="usd"),
    *new_runs("a problem with half a character", {"problem": "\ud800"}, on=("cli", "mcp", "python")),
    *new_runs("a strategy that is a list", {"strategy": ["react"]}, on=TYPED, field="strategy"),
    *new_runs("options that are a list", {"options": [1]}, on=TYPED, field="options"),
    *new_runs("a verifier that is a number", {"verifier": 5}, on=TYPED, field="verifier"),
    *new_runs("bytes for a verifier", {"verifier": b"arithmetic:24"}, on=("python",), field="verifier"),
    *new_runs("too many documents", {"documents": ["x"] * 101}, on=CALLERS, field="documents"),
    *new_runs("tools that are a number", {"tools": 5}, on=TYPED, field="tools"),
    *new_runs("a tool that is a number", {"tools": [5]}, on=TYPED, field="tools"),
    *new_runs("a budget of nothing", {"budget": 0}, on=("http", "python"), field="budget"),
    *new_runs("calls that are true", {"budget": {"calls": True}}, on=TYPED, field="calls"),
    *new_runs("calls that are text", {"budget": {"calls": "many"}}, named="calls", field="calls"),
    *new_runs("half a call", {"budget": {"calls": 1.5}}, named="calls", field="calls"),
    *new_runs("no number of dollars", {"budget": {"usd": float("nan")}}, on=("cli", "python"), named="usd"),
    *new_runs(
        "an endless target", {"verifier": "arithmetic:1e999999999"}, named="arithmetic", field="verifier"
    ),
    *new_runs("a verifier by its file", {"verifier": FILE}, on=CALLERS, named="REASONRY_VERIFIERS"),
    *new_runs("a tool by its file", {"tools": ["/tmp/x.py:x"]}, on=CALLERS, field="tools"),
    *new_runs("a document by its file", {"documents": ["/etc/passwd"]}, on=CALLERS, field="documents"),
    *new_runs("a file of context", {"context": ["/etc/passwd"]}, on=CALLERS, field="context"),
    *new_runs("a server of tools", {"mcp": ["sh -c id"]}, on=CALLERS, field="mcp"),
    *new_runs("a file to record in", {"record": "/tmp/x"}, on=CALLERS, field="record"),
    *new_runs("a model by its address", {"model": ADDRESS}, on=CALLERS, field="model"),
    *new_runs("a judge by its address", {"judge_model": "http://x"}, on=CALLERS, field="judge_model"),
    Refused("solve: a model that is a number", "solve", {**SOLVED, "model": 5}, on=TYPED, field="model"),
    Refused("start: a model", "start", {**SOLVED, "model": "offline"}, on=("cli", "mcp"), named="model"),
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
    of_no_run("page", AGENTS),
    of_no_session("page", AGENTS),
    Refused("diff: no such run", "diff", {"a": UNKNOWN, "b": LONG_NAME}, NOT_THERE, on=OPERATORS),
    Refused("diff: a long name", "diff", {"a": LONG_NAME, "b": UNKNOWN}, NOT_THERE, on=OPERATORS),
    of_no_run("cancel", NAMES),
    of_no_run("answer", NAMES, answers={"e1": "x"}),
    of_no_run("resume", NAMES, coached=True),
    of_no_run("resume", AGENTS),
    of_no_run("fork", AGENTS, at=0, coached=True),
    of_no_run("fork", OPERATORS, at=0),
    of_no_run("replay", OPERATORS),
    of_no_run("pause", OPERATORS),
    of_no_run("limit", OPERATORS, budget={"calls": 3}),
    of_no_run("delete", OPERATORS),
    *(
        Refused(f"answer: {name}", "answer", {**RUN, "answers": answers}, code, (after,), AGENTS, field=field)
        for name, answers, code, after, field in (
            ("not asked", {"e9": "x"}, CONFLICT, START, ""),
            ("unreadable", {"e1": "It is hard.\nI do not know."}, "answer_refused", START, ""),
            ("no shape", 5, BAD, VOTED[0], "answers"),
            ("none", [{"id": "e1"}], BAD, VOTED[0], "answers"),
        )
    ),
    Refused("answer: again", "answer", {**RUN, "answers": {"e1": "x"}}, CONFLICT, ANSWERED),
    Refused("cancel: has ended", "cancel", RUN, CONFLICT, ANSWERED),
    Refused("cancel: was cancelled", "cancel", RUN, CONFLICT, CANCELLED, AGENTS),
    Refused("pause: waits for its caller", "pause", RUN, CONFLICT, (START,), OPERATORS),
    Refused("limit: has ended", "limit", {**RUN, "budget": {"calls": 9}}, CONFLICT, (SOLVE,), OPERATORS),
    Refused("limit: no calls", "limit", {**RUN, "budget": {"calls": 0}}, BAD, (START,), OPERATORS),
    Refused("delete: has not ended", "delete", RUN, CONFLICT, (START,), OPERATORS),
    Refused("fork: beyond the end", "fork", {**RUN, "at": 99}, CONFLICT, (SOLVE,), OPERATORS, field="at"),
    Refused("fork: nowhere", "fork", {**RUN, "coached": True}, BAD, (START,), CALLERS, field="at"),
    *(
        Refused(f"fork: {name}", "fork", {**TO_CALLER, **given}, code, (START,), on, field=field)
        for name, given, code, on, field in (
            ("beyond the end, coached", {"at": 99}, CONFLICT, AGENTS, "at"),
            ("before the start", {"at": -1}, BAD, AGENTS, "at"),
            ("at no number", {"at": "x"}, BAD, AGENTS, "at"),
            ("a list of options", {"options": [1]}, BAD, CALLERS, "options"),
            ("a bad option", {"options": {"depth": 3}}, BAD, AGENTS, ""),
            ("a tool by its file", {"tools": ["x.py"]}, BAD, CALLERS, "tools"),
            ("a tool in options", {"options": ARMED}, BAD, AGENTS, "tools"),
            ("no such verifier", {"verifier": "/x"}, BAD, AGENTS, "verifier"),
        )
    ),
    *(
        Refused(f"fork, driven: {name}", "fork", {**RUN, "at": 0, **given}, code, (SOLVE,), on, field=field)
        for name, given, code, on, field in (
            ("before the start", {"at": -1}, BAD, OPERATORS, "at"),
            ("a bad option", {"options": {"depth": 3}}, BAD, OPERATORS, ""),
            ("a model by its address", {"model": ADDRESS}, BAD, ("http",), "model"),
            ("words over the bound", {"prompt": "x" * 400_001}, TOO_LARGE, ("http",), "prompt"),
            ("other words for a number", {"prompt": "x"}, BAD, ("http",), "prompt"),
            ("no words", {"at": "e1", "prompt": " "}, BAD, ("http",), "prompt"),
            ("words with NUL", {"at": "e1", "prompt": "a\0b"}, BAD, ("http",), "prompt"),
        )
    ),
    Refused("resume: by nobody", "resume", RUN, BAD, (START,), ("cli",), "give --coach", "model"),
    Refused(
        "resume: a number", "resume", {**RUN, "coached": True, "budget": 5}, BAD, (START,), ("http", "python")
    ),
    Refused("resume: no calls", "resume", {**RUN, "budget": {"calls": 0}, "coached": True}, BAD, CANCELLED),
    *(
        Refused(f"list: no such {name}", "list", {name: value}, on=OPERATORS, named=said)
        for name, value, said in (
            ("status", "over", "status must be one of: active, done, failed, cancelled; not 'over'"),
            ("outcome", "done", "one of: solved, answered, stopped, unsolved, error, waiting; not 'done'"),
        )
    ),
    Refused("list: a page too long", "list", {"limit": 501}, on=AGENTS, named="limit", field="limit"),
    Refused("list: a page of none", "list", {"limit": 0}, on=AGENTS, named="limit", field="limit"),
    Refused("strategy: no such strategy", "strategy", {"strategy": "tree"}, on=("cli",)),
    Refused("strategy: at no address", "strategy", {"strategy": "tree"}, NOT_THERE, on=("http",)),
    Refused("think: number 0", "think", {**THOUGHT, "thought_number": 0}),
    Refused("think: no such strategy", "think", {**THOUGHT, "strategy": "tree"}),
    Refused("think: no such stage", "think", {**THOUGHT, "strategy": "react", "stage": "nowhere"}),
    Refused("think: an illegal stage", "think", AWRY, after=(ACTING,)),
    thoughts("revises nothing", {"thought_number": 2, "revises_thought": 7}, field="revises_thought"),
    thoughts("branches from nothing", {"branch_from_thought": 7}, field="branch_from_thought"),
    thoughts("merges nothing", {"merge_branch": "b"}, field="merge_branch"),
    thoughts("an argument there is not", {"thought_numbr": 2}, on=("http",), field="thought_numbr"),
    thoughts("a number as a text", {"thought_number": "2"}, on=("http",), field="thought_number"),
    thoughts("a number in letters", {"thought_number": "abc"}, field="thought_number"),
    thoughts("half a number", {"thought_number": 1.5}, field="thought_number"),
    thoughts("a list of numbers", {"thought_number": [2]}, on=TYPED, field="thought_number"),
    thoughts("fewer than none", {"total_thoughts": -1}, field="total_thoughts"),
    thoughts(
        "neither true nor false", {"next_thought_needed": "done"}, on=TYPED, field="next_thought_needed"
    ),
    thoughts("true for a text", {"thought": True}, on=TYPED, field="thought"),
    thoughts("a list of data", {"data": ["x"]}, on=TYPED, field="data"),
    thoughts("a long thought", {"thought": LONG}, TOO_LARGE, field="thought"),
    thoughts("a long name of a branch", {"branch_id": "x" * 201}, TOO_LARGE, field="branch_id"),
    *(
        Refused(f"think: without {name}", "think", without(THOUGHT, name), on=TYPED, field=name)
        for name in THOUGHT
    ),
    *(
        Refused(f"think: {name}", "think", {**SECOND, **given}, BAD, (ACTING,), field=field)
        for name, given, field in (
            ("another strategy", {"strategy": "rewoo"}, "strategy"),
            ("without a field", {"stage": "action_planning"}, "data.action"),
        )
    ),
    Refused("think: in a run that is under way", "think", {**THOUGHT, "session": "$"}, CONFLICT, (START,)),
    of_no_session("session", AGENTS),
    of_no_session("export", NAMES),
    of_no_session("forget", AGENTS),
    of_no_session("pin", AGENTS),
    of_no_session("unpin", AGENTS),
    *(
        Refused(f"{use}: {kind}", use, {of: name}, NOT_THERE, on=on)
        for of, uses in (("session", "session export forget pin"), ("run", "status show page cancel"))
        for use in uses.split()
        for kind, name, on in (
            ("a path", "../x", ("cli", "mcp")),
            ("a name with NUL", "a\0b", ("cli", "mcp")),
            ("a long name", LONG_NAME, AGENTS),
        )
    ),
    Refused(
        "export: as PDF", "export", {"session": "$", "format": "pdf"}, BAD, (THINK,), AGENTS, "", "format"
    ),
    Refused("sessions: a page of none", "sessions", {"limit": 0}, on=AGENTS, field="limit"),
    Refused("sessions: a page too long", "sessions", {"limit": 501}, on=AGENTS, field="limit"),
    *(
        Refused(f"{use}: {name}", use, given, code, on=on, named=named, field=field)
        for use in ("list", "sessions")
        for name, given, code, on, named, field in (
            ("no such page", {"cursor": "x"}, NOT_THERE, AGENTS, "", ""),
            ("a page of a long name", {"cursor": LONG_NAME}, NOT_THERE, AGENTS, "", ""),
            ("no such strategy", {"strategy": "tree"}, BAD, OPERATORS, "tree_of_thoughts", "strategy"),
            ("a strategy of a long name", {"strategy": LONG_NAME}, BAD, OPERATORS, "", "strategy"),
            ("no instant", {"since_ms": "yesterday"}, BAD, OPERATORS, "since", "since"),
            ("half an instant", {"until_ms": "12 h"}, BAD, OPERATORS, "until", "until"),
        )
    ),
    Refused("search: no such page", "search", {"query": "x", "cursor": "-1"}, on=AGENTS, field="cursor"),
    Refused("search: a long text", "search", {"query": LONG}, TOO_LARGE, on=("cli", "mcp"), field="query"),
    Refused("search: nothing", "search", {"query": ""}, on=AGENTS),
    Refused("search: a page of none", "search", {"query": "x", "limit": 0}, on=AGENTS),
    Refused("sessions: no such status", "sessions", {"status": "over"}, on=AGENTS, field="status"),
    Refused("sessions: a long status", "sessions", {"status": LONG_NAME}, on=AGENTS, field="status"),
    Refused("import: a list", "import", {"content": []}, on=OPERATORS),
    Refused("import: no session", "import", {"content": ODD}, on=OPERATORS),
    Refused("import: a number of thoughts", "import", {"content": {"thoughts": 5}}, on=OPERATORS),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_what_is_refused_has_the_same_code_and_changes_nothing(
    surfaces: dict[str, Surface], stores: dict[str, Contents], case: Refused
) -> None:
    codes, errors = dict[str, str](), dict[str, Any]()
    for name in case.on:
        surface = surfaces[name]
        given = placed(case.given, begun(surface, *case.after))
        before = stores[name].read()
        reply = surface.call(case.use, given)
        assert stores[name].read() == before, name
        codes[name], errors[name] = reply.code, reply.document.get("error", {})
    assert codes == dict.fromkeys(case.on, case.code), errors
    for name, error in errors.items():
        assert error["message"]
        assert len(json.dumps(error)) < 4_000
        assert error["retryable"] is False
        # The words are of the surface: no options of a command, no spelling of the drop-in tool.
        assert name in ("cli", "python") or not re.search(r"--[a-z]", error["message"]), name
        assert name != "http" or not re.search(r"\b[a-z]+[A-Z]|the tool `", error["message"])
        assert case.named in json.dumps(error)
        # A command whose options are of the wrong form is told so in words.
        assert field_of(error) == case.field or not case.field or (name == "cli" and not field_of(error))
    assert len({field_of(error) for error in errors.values()} - {""}) <= 1


@pytest.mark.parametrize("name", AGENTS)
def test_beside_an_answer_that_is_refused_the_others_are_taken(
    surfaces: dict[str, Surface], name: str
) -> None:
    run_id = begun(surfaces[name], VOTED[0]).run_id
    reply = surfaces[name].call(
        "answer", {"run": run_id, "answers": {"e1": 42, "e2": "It is hard.\nI do not know."}}
    )
    assert reply.code == "answer_refused"
    assert [one["id"] for one in reply.document["error"]["refused"]] == ["e2"]
    for shown in (reply.document, surfaces[name].call("status", {"run": run_id}).document):
        assert [one["id"] for one in shown.get("run", shown)["questions"]] == ["e2"]

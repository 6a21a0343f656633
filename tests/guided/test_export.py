"""Taking sessions out, as JSON and Markdown, and taking them in again."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reasonry.errors import TooLargeError, UsageError
from reasonry.guided.lines import decode_head

from .desk import Desk, desk

pytestmark = pytest.mark.anyio


async def thought_through(at: Desk) -> str:
    """Leave a session with everything in it that a session can have."""
    begun = await at.think(1, "Plan <script>alert(1)</script>\n# not a heading", strategy="react")
    sid = begun["session_id"]
    await at.think(2, "Where from?", session_id=sid, stage="initial_reasoning", data={"missing": ["a", "b"]})
    await at.think(3, "Look it up", session_id=sid, stage="action_planning", data={"action": "search"})
    await at.think(3, 'Or "guess" `it`', session_id=sid, branch_from_thought=2, branch_id="] --> x")
    await at.think(4, "Wrong.", session_id=sid, is_revision=True, revises_thought=2, needs_more_thoughts=True)
    await at.think(4, "unnamed", session_id=sid, branch_from_thought=1)
    await at.think(5, "from the branch", session_id=sid, branch_id="inner")
    await at.think(6, "", session_id=sid, merge_branch="] --> x", next_thought_needed=False)
    return sid


async def test_an_export_imported_elsewhere_is_the_same_session(at: Desk, tmp_path: Path) -> None:
    sid = await thought_through(at)
    await at.sessions.pin({"session_id": sid})
    whole = await at.sessions.export({"session_id": sid, "format": "json"})
    async with desk("memory", tmp_path) as other:
        imported = await other.sessions.import_(json.dumps(whole))
        assert (imported["session_id"], imported["notices"]) == (sid, [])
        assert await other.sessions.export({"session_id": sid}) == whole
        here, there = await at.store.session(sid), await other.store.session(sid)
        # Nobody was told the guidance of a stage there.
        assert decode_head(there) == replace(decode_head(here), guided=(), asked=False)
        go_on = {"session_id": sid, "stage": "action_execution"}
        assert (await other.think(7, **go_on))["stage"] == "action_execution"


async def test_an_export_imported_beside_itself_is_a_copy_under_a_new_id(at: Desk) -> None:
    sid = await thought_through(at)
    whole = await at.sessions.export({"session_id": sid})
    imported = await at.sessions.import_(whole)
    assert imported["session_id"] != sid
    assert imported["notices"][0]["reason"] == "exists"
    copy = await at.sessions.export({"session_id": imported["session_id"]})
    assert {**copy, "session_id": sid} == whole


async def test_an_empty_session_goes_out_and_in(at: Desk) -> None:
    sid = (await at.think(1))["session_id"]
    whole = await at.sessions.export({"session_id": sid})
    imported = await at.sessions.import_({**whole, "thoughts": []})
    assert imported["thought_history_length"] == 0
    assert (await at.think(1, session_id=imported["session_id"]))["thought_history_length"] == 1


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("version",), 2, "version 2"),
        (("strategy",), "no_such", "no strategy"),
        (("thoughts",), "x", "list of objects"),
        (("thoughts",), [1], "list of objects"),
        (("thoughts", 1, "stage"), "final_response", "thought 2 of the session: Invalid transition"),
        (("thoughts", 1, "stage"), "nowhere", "Invalid transition"),
        (("thoughts", 4, "revises_thought"), 77, "thought 5 of the session: There is no thought 77"),
        (("thoughts", 3, "branch_from_thought"), 77, "thought 4 of the session: There is no thought 77"),
        (("thoughts", 7, "merge_branch"), "zzz", "no branch 'zzz'"),
        (("thoughts", 0, "thought"), 3, "thought must be text"),
        (("thoughts", 0, "thought"), "\ud800", "lone surrogate"),
        (("thoughts", 0, "thought_number"), -1, "at least 1"),
        (("thoughts", 0, "data"), [], "data must be an object"),
        (("kind",), "else", "This is no session"),
    ],
)
async def test_a_damaged_export_is_refused_and_says_where(
    at: Desk, path: tuple[Any, ...], value: Any, said: str
) -> None:
    whole = await at.sessions.export({"session_id": await thought_through(at)})
    part: Any = whole
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    before = await at.everything()
    with pytest.raises(UsageError, match=re.escape(said)):
        await at.sessions.import_(whole)
    assert await at.everything() == before


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "3", b"\xff", '{"a": 1}', "[" * 100_000])
async def test_what_is_no_session_is_refused(at: Desk, content: Any) -> None:
    with pytest.raises(UsageError, match="This is no session"):
        await at.sessions.import_(content)


async def test_an_import_keeps_to_the_limits(tmp_path: Path) -> None:
    async with desk("memory", tmp_path) as at:
        whole = await at.sessions.export({"session_id": await thought_through(at)})
    for limit in ({"max_thoughts": 7}, {"max_branches": 2}, {"max_thought_chars": 20}):
        async with desk("memory", tmp_path, **limit) as small:
            with pytest.raises(TooLargeError):
                await small.sessions.import_(whole)
            assert await small.store.sessions() == []


# -- Markdown


async def test_markdown_shows_every_thought_in_its_line_and_opens_no_tag(at: Desk) -> None:
    exported = await at.sessions.export({"session_id": await thought_through(at), "format": "markdown"})
    text = exported["text"]
    assert exported["format"] == "markdown"
    assert text.index("## Main line") < text.index("## Branch \\] --\\> x (from thought 2)")
    assert text.index("## Branch branch-1 (from thought 1)") < text.index("## Branch inner (from thought 4)")
    assert "### Thought 4/5 (`action_planning`, revises thought 2)" in text
    assert "takes in branch" in text
    assert "- action: search" in text
    assert "> # not a heading" in text
    assert not re.search(r"(?<!\\)<script", text)
    assert text.count("### Thought") == 8

"""The page of a session: whatever was thought, on whichever lines, in whatever order."""

import asyncio
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from reasonry.app.app import App
from reasonry.errors import ReasonryError
from reasonry.surfaces.web.find_page import find_page
from reasonry.text import escape_unseen

from . import making
from .laws import check_page

NAMES = st.sampled_from(["a", "b", "", "__proto__", "</script>", "main", "\u202e"])
NUMBERS = st.integers(1, 6)


class SessionMachine(RuleBasedStateMachine):
    """A thinker who branches, revises and merges as they like; what is refused changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.app = App("memory")
        self.sessions = self.app.sessions()
        self.session_id = ""
        self.texts: list[str] = []
        self.taken: list[object] = []
        self.ids: set[str] = set()

    def teardown(self) -> None:
        self.loop.run_until_complete(self.app.close())
        self.loop.close()

    @rule(
        text=st.text(min_size=1, max_size=20),
        number=NUMBERS,
        more=st.booleans(),
        options=st.fixed_dictionaries(
            {},
            optional={
                "branch_id": NAMES,
                "branch_from_thought": NUMBERS,
                "revises_thought": NUMBERS,
                "merge_branch": NAMES,
            },
        ),
    )
    def think(self, text: str, number: int, more: bool, options: dict[str, Any]) -> None:
        call = {"thought": text, "thought_number": number, "total_thoughts": 6, "next_thought_needed": more}
        named = {"session_id": self.session_id} if self.session_id else {}
        try:
            reply = self.loop.run_until_complete(self.sessions.think({**call, **options, **named}))
        except ReasonryError:
            return
        self.session_id = reply["session_id"]
        # A call that comes again is where it was, whatever came between; an empty name is none.
        said = call | {name: value for name, value in options.items() if value != ""}
        if said not in self.taken:
            self.texts.append(text)
            self.taken.append(said)

    @invariant()
    def the_page_has_every_thought_on_its_line(self) -> None:
        if not self.texts:
            return
        page = self.loop.run_until_complete(find_page(self.app, self.session_id))
        check_page(page)
        assert [node.text for node in page.nodes[1:]] == [escape_unseen(text) for text in self.texts]
        ids = {node.id for node in page.nodes}
        assert self.ids <= ids
        self.ids = ids


SessionMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)
TestSessions = SessionMachine.TestCase


@pytest.mark.anyio
async def test_branches_a_revision_and_a_merge_are_where_they_were_thought() -> None:
    page = await making.a_session("memory")
    check_page(page)
    by_id = {node.id: node for node in page.nodes}
    assert {node.branch for node in page.nodes} == {"", "cache key", "size"}
    assert (by_id["t5"].parent, by_id["t6"].parent) == ("t3", "t3")
    assert by_id["t4"].revises == "t2"
    assert by_id["t9"].merges == ["t8"]
    assert (by_id["t7"].score, by_id["t8"].score, by_id["t9"].score) == (0.1, 0.9, None)
    assert (by_id["t10"].state, by_id["t8"].state, by_id["t7"].state) == ("answer", "on_path", "expanded")


@pytest.mark.anyio
async def test_a_branch_named_like_the_root_is_merged_only_where_a_thought_says_so() -> None:
    call = {"thought": "A step.", "total_thoughts": 3, "next_thought_needed": True}
    async with App("memory") as app:
        sessions = app.sessions()
        first = await sessions.think({**call, "thought_number": 1})
        named = {**call, "session_id": first["session_id"], "branch_from_thought": 1}
        await sessions.think({**named, "thought_number": 2, "branch_id": "root"})
        await sessions.think({**named, "thought_number": 3, "branch_id": "other"})
        page = await find_page(app, "last")
    assert [node.merges for node in page.nodes] == [[], [], [], []]

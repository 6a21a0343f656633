"""Session files that nobody exported: each is imported or refused as a wrong use, and a refused one changes nothing."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonry.errors import UsageError
from reasonry.guided.export import KIND, VERSION
from reasonry.guided.sessions import Sessions
from reasonry.stores.sqlite import MemoryStore
from reasonry.strategies import STRATEGIES

pytestmark = pytest.mark.anyio

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from([1, 2, 3, 10**400, "", "a", "b", "react", "\ud800", "__proto__", "action_planning"])
    | st.sampled_from(["2025-07-26T00:14:02Z", "0001-01-01T00:00:00+23:59", "9999-99-99T99:99:99"])
)
KEYS = st.text(max_size=3) | st.sampled_from(["score", "action", "thought", "a"])
VALUES = SCALARS | st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=5,
)
OF_FILES = ("thoughts", "strategy", "purpose", "sessionId", "pinned", "created_at", "kind", "version")
OF_THOUGHTS = (
    "thought", "thoughtNumber", "totalThoughts", "nextThoughtNeeded", "isRevision", "revisesThought", "revises_seq",
    "branchFromThought", "branch_from_seq", "branchId", "mergeBranch", "needsMoreThoughts", "stage", "stages",
    "data", "score", "at",
)  # fmt: skip
CHANGES = st.lists(
    st.tuples(st.none(), st.sampled_from(OF_FILES), VALUES)
    | st.tuples(st.integers(0, 3), st.sampled_from(OF_THOUGHTS), VALUES),
    min_size=1,
    max_size=4,
)
"""Members of the file, or of a thought, that get another value."""


def make_file(changes: list[tuple[int | None, str, Any]]) -> dict[str, Any]:
    thoughts: list[dict[str, Any]] = [{"thought": "a", "thoughtNumber": number} for number in (1, 2, 3, 4)]
    thoughts[2] |= {"branchId": "a", "branchFromThought": 1}
    file: dict[str, Any] = {"kind": KIND, "version": VERSION, "thoughts": thoughts}
    for place, name, value in changes:
        if place is None:
            file[name] = value
        else:
            thoughts[place][name] = value
    return file


async def check_import(file: Mapping[str, Any] | str) -> None:
    sessions = Sessions(store := MemoryStore(), STRATEGIES)
    try:
        imported = await sessions.import_(file)
    except UsageError:
        assert await store.sessions() == []
    else:
        exported = await sessions.export({"sessionId": imported["session_id"]})
        assert len(exported["thoughts"]) == imported["thought_history_length"]


@settings(max_examples=150, deadline=None)
@given(changes=CHANGES)
async def test_an_odd_file_is_imported_or_refused_and_then_changes_nothing(changes: Any) -> None:
    await check_import(make_file(changes))


DEEP = "[" * 900 + "]" * 900


@pytest.mark.parametrize(
    "file",
    [
        '{"kind": "reasonry.session", "version": 1, "thoughts": [{"thought": {"a": 1}, "branchId": [1]}]}',
        f'{{"kind": "reasonry.session", "version": 1, "thoughts": [], "purpose": {DEEP}, "strategy": {DEEP}}}',
        f'{{"kind": "reasonry.session", "version": 1, "thoughts": [{{"branchId": {DEEP}, "at": {DEEP}}}]}}',
        '{"kind": "reasonry.session", "version": 1, "thoughts": [{"thought": "a", "thoughtNumber": 1, "data": '
        f'{{"score": 1{"0" * 400}}}}}]}}',
    ],
    ids=["lists", "deep file", "deep thought", "large score"],
)
async def test_these_are_imported_or_refused_and_then_change_nothing(file: str) -> None:
    await check_import(file)

"""What every store promises, whatever it is made of."""

import asyncio
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reasonry.errors import ConflictError, NotFoundError, StoreError, UsageError
from reasonry.records import (
    Line,
    SessionChange,
    SessionRow,
    SessionView,
    Store,
    Sweep,
    ThoughtRow,
    Use,
)

from .samples import found, line, run_row, session_row, texts, think, thoughts

pytestmark = pytest.mark.anyio

STRANGE = [
    "",
    "\x00",
    "a\x00b\x00",
    "../../etc/passwd",
    "'; DROP TABLE run; --",
    '"double"',
    "%_\\",
    "__proto__",
    "né 漢字 \U0001f600 \u202e\ufeff",
    "\ufffe\uffff\x1b[2J\r\n",
    "x" * 10_000,
]


async def a_run(store: Store, run_id: str = "r", count: int = 1) -> None:
    await store.create_run(run_row(run_id), [line(seq) for seq in range(1, count + 1)])


class TestRuns:
    async def test_a_run_is_read_on_from_its_latest_checkpoint(self, store: Store) -> None:
        await a_run(store, count=5)
        lines = await store.lines("r")
        assert await store.tail("r") == (None, lines)
        for seq in (2, 5, 3):
            checkpoint = Line(seq, b"state %d" % seq, lines[seq - 1].digest)
            await store.save_checkpoint("r", checkpoint)
            assert await store.tail("r") == (checkpoint, lines[seq:])
        await store.delete_run("r")
        with pytest.raises(NotFoundError):
            await store.tail("r")
        await a_run(store, count=1)
        assert (await store.tail("r"))[0] is None

    async def test_a_run_is_read_back_as_it_was_written(self, store: Store) -> None:
        row = run_row("r", status="done", reason="solved", answer="10 - 4", updated_at_ms=2**53)
        written = [line(1, b""), line(2, bytes(range(256)) * 100), line(3, b"{}" * 5_000)]
        await store.create_run(row, written)
        assert await store.run("r") == row
        assert await store.rows(["x", "r"]) == [row]
        assert await store.lines("r") == written

    async def test_a_run_and_its_session_are_written_together_or_not_at_all(self, store: Store) -> None:
        await store.create_run(run_row("r"), [line(1)], session_row("s", run_id="r"))
        assert (await store.session("s")).run_id == "r"
        with pytest.raises(ConflictError):
            await store.create_run(run_row("q"), [line(1)], session_row("s", run_id="q"))
        with pytest.raises(NotFoundError):
            await store.run("q")
        assert (await store.session("s")).run_id == "r"

    async def test_lines_are_appended_in_order_with_the_new_row_or_the_row_alone(self, store: Store) -> None:
        await a_run(store)
        await store.append("r", [line(2), line(3)])
        await store.append("r", [line(4)], run_row("r", status="done", answer="24"))
        assert [one.seq for one in await store.lines("r")] == [1, 2, 3, 4]
        assert (await store.run("r")).answer == "24"
        await store.append("r", [], run_row("r", status="cancelled"))
        assert (await store.run("r")).status == "cancelled"

    async def test_a_line_that_is_there_is_a_conflict_and_nothing_of_the_call_is_written(
        self, store: Store
    ) -> None:
        await a_run(store, count=2)
        with pytest.raises(ConflictError) as caught:
            await store.append("r", [line(3), line(2, b"other")], run_row("r", status="done"))
        assert caught.value.details == {"run_id": "r", "line": 2}
        assert await store.lines("r") == [line(1), line(2)]
        assert (await store.run("r")).status == "active"

    async def test_a_second_run_of_one_id_is_a_conflict_and_the_first_stays(self, store: Store) -> None:
        await a_run(store)
        with pytest.raises(ConflictError):
            await store.create_run(run_row("r", problem="other"), [line(1), line(2)])
        assert (await store.run("r")).problem == "4 9 10 13"
        assert len(await store.lines("r")) == 1

    async def test_what_is_not_there_is_not_found(self, store: Store) -> None:
        await a_run(store)
        for missing in (
            store.run("x"),
            store.lines("x"),
            store.append("x", [line(1)]),
            store.delete_run("x"),
            store.runs(before="x"),
        ):
            with pytest.raises(NotFoundError, match="'x'"):
                await missing
        assert [row.run_id for row in await store.runs()] == ["r"]

    async def test_runs_are_listed_newest_first_page_by_page(self, store: Store) -> None:
        for number in range(7):
            await store.create_run(
                run_row(f"r{number}", status="done" if number % 2 else "active"), [line(1)]
            )
        pages, before = list[list[str]](), None
        while page := await store.runs(limit=3, before=before):
            pages.append([row.run_id for row in page])
            before = page[-1].run_id
        assert pages == [["r6", "r5", "r4"], ["r3", "r2", "r1"], ["r0"]]
        assert [row.run_id for row in await store.runs(status="done", before="r5")] == ["r3", "r1"]
        assert await store.runs(status="failed") == []

    async def test_a_deleted_run_is_gone_and_its_id_is_free(self, store: Store) -> None:
        await a_run(store, "a", 3)
        await a_run(store, "b", 3)
        await store.delete_run("a")
        with pytest.raises(NotFoundError):
            await store.lines("a")
        assert len(await store.lines("b")) == 3
        await a_run(store, "a")
        assert await store.lines("a") == [line(1)]

    async def test_one_that_fails_takes_nothing_of_the_others_with_it(self, store: Store) -> None:
        await a_run(store)
        calls = [store.append("r", [line(seq)]) for seq in (2, 2, 3, 1, 4)]
        results = await asyncio.gather(*calls, store.append("none", [line(1)]), return_exceptions=True)
        kinds = [type(result) for result in results]
        none = type(None)
        assert kinds == [none, ConflictError, none, ConflictError, none, NotFoundError]
        assert [one.seq for one in await store.lines("r")] == [1, 2, 3, 4]

    @pytest.mark.parametrize("text", STRANGE)
    async def test_any_text_is_an_id_and_comes_back_as_it_is(self, store: Store, text: str) -> None:
        row = run_row(text, problem=text, answer=text, model=text)
        await store.create_run(row, [line(1, text.encode())])
        await store.append(text, [line(2)])
        assert await store.run(text) == row
        assert [one.body for one in await store.lines(text)] == [text.encode(), line(2).body]
        async with store.drive(text):
            pass
        await store.delete_run(text)


class TestDriving:
    async def test_a_run_is_driven_by_one_at_a_time(self, store: Store) -> None:
        await a_run(store, "r")
        await a_run(store, "other")
        async with store.drive("r"), store.drive("other"):
            with pytest.raises(ConflictError, match="another task of this process") as caught:
                async with store.drive("r"):
                    pytest.fail("driven twice")
            assert caught.value.details["pid"] == os.getpid()
        async with store.drive("r"):
            pass

    async def test_a_right_is_given_back_when_its_holder_fails(self, store: Store) -> None:
        await a_run(store)
        with pytest.raises(RuntimeError, match="boom"):
            async with store.drive("r"):
                raise RuntimeError("boom")
        async with store.drive("r"):
            pass

    async def test_a_run_that_is_not_there_is_not_driven(self, store: Store) -> None:
        with pytest.raises(NotFoundError):
            async with store.drive("r"):
                pytest.fail("driven")
        await a_run(store)
        async with store.drive("r"):
            await store.delete_run("r")
        with pytest.raises(NotFoundError):
            async with store.drive("r"):
                pytest.fail("driven")


class TestSessions:
    async def test_a_session_is_read_back_as_it_was_written(self, store: Store) -> None:
        row = SessionRow("s", "react", 1, 2, "archived", True, 7, "why", "r", b'{"x":1}')
        thought = ThoughtRow(7, 3, "text", "branch", b'{"stage":"act"}')
        value = await store.change("s", lambda view: SessionChange(row=row, thought=thought, value=view.row))
        assert value is None
        assert await store.session("s") == row
        assert await store.thoughts("s") == [thought]

    async def test_decide_sees_the_session_as_it_stands(self, store: Store) -> None:
        for number in range(1, 6):
            await think(store, "s", f"thought {number}", number=number * 10)
        await think(store, "other", "elsewhere", number=77)

        def look(view: SessionView) -> SessionChange:
            assert view.row is not None
            latest = [thought.text for thought in view.latest(2)]
            numbers = [number for number in (1, 10, 50, 60, 77, -1, 0, 2**70) if view.with_number(number)]
            return SessionChange(
                value=(view.row.thoughts, latest, numbers, len(view.latest(99)), view.latest(0))
            )

        seen = await store.change("s", look)
        assert seen == (5, ["thought 4", "thought 5"], [10, 50], 5, [])
        assert len(await texts(store, "s")) == 5

    async def test_the_latest_thoughts_are_searched_for_a_text(self, store: Store) -> None:
        for number, text in enumerate(["a", "b", "a\x00", "b", "c"], 1):
            await think(store, "s", text, number=number * 10)
        await think(store, "other", "z", number=77)
        asked = [("a", 5), ("a", 4), ("b", 5), ("b", 3), ("a\x00", 3), ("z", 5), ("c", 0), ("c", 99)]
        found = await store.change(
            "s", lambda view: SessionChange(value=[view.find_text(text, count) for text, count in asked])
        )
        assert found == [10, None, 20, 40, 30, None, None, 50]

    async def test_thoughts_are_found_by_numbers_that_repeat_or_are_out_of_order(self, store: Store) -> None:
        numbers = [1, 2, 2, 3, 9, 4, -5, 2]
        for number in numbers:
            await think(store, "s", "x", number=number)
        known = await store.change(
            "s",
            lambda view: SessionChange(
                value={n: [thought.seq for thought in view.with_number(n)] for n in range(-9, 12)}
            ),
        )
        assert {n: seqs for n, seqs in known.items() if seqs} == {
            n: [seq for seq, number in enumerate(numbers, 1) if number == n] for n in set(numbers)
        }

    async def test_an_absent_session_is_seen_as_absent(self, store: Store) -> None:
        seen = await store.change(
            "s", lambda view: SessionChange(value=(view.row, view.latest(5), view.with_number(1)))
        )
        assert seen == (None, [], [])
        with pytest.raises(NotFoundError):
            await store.session("s")

    async def test_what_decide_raises_reaches_the_caller_and_nothing_is_written(self, store: Store) -> None:
        await think(store, "s", "first")

        def refuse(view: SessionView) -> SessionChange:
            raise UsageError("no", option="stage")

        with pytest.raises(UsageError, match="no") as caught:
            await store.change("s", refuse)
        assert caught.value.details == {"option": "stage"}
        with pytest.raises(ZeroDivisionError):
            await store.change("s", lambda view: SessionChange(value=1 // 0))
        assert (await store.session("s")).thoughts == 1
        assert await texts(store, "s") == ["first"]

    async def test_writers_on_one_session_are_serialised(self, store: Store) -> None:
        seqs = await asyncio.gather(*(think(store, "s", f"t{number}") for number in range(100)))
        assert sorted(seqs) == list(range(1, 101))
        assert sorted(await texts(store, "s")) == sorted(f"t{number}" for number in range(100))

    async def test_a_change_may_begin_another_session_or_add_a_thought_alone(self, store: Store) -> None:
        await think(store, "old", "one")
        await store.change(
            "old", lambda view: SessionChange(row=session_row("new"), thought=ThoughtRow(1, 1, "two"))
        )
        await store.change("new", lambda view: SessionChange(thought=ThoughtRow(2, 2, "three")))
        assert await texts(store, "old") == ["one"]
        assert await texts(store, "new") == ["two", "three"]

    async def test_a_change_may_delete_and_begin_anew(self, store: Store) -> None:
        await think(store, "old", "one")
        change = SessionChange(delete=True, row=session_row("new"), thought=ThoughtRow(1, 1, "two"))
        await store.change("old", lambda view: change)
        with pytest.raises(NotFoundError):
            await store.session("old")
        assert await texts(store, "new") == ["two"]
        again = SessionChange(delete=True, row=session_row("new"), thought=ThoughtRow(1, 1, "three"))
        await store.change("new", lambda view: again)
        assert await texts(store, "new") == ["three"]
        await store.change("new", lambda view: SessionChange(delete=True))
        assert await store.sessions() == []

    @pytest.mark.parametrize("kept_as", ["old", "old, kept"])
    async def test_a_change_may_archive_and_begin_anew(self, store: Store, kept_as: str) -> None:
        for text in ("one", "two", "three"):
            await think(store, "old", text)
        used = (await store.session("old")).used_at_ms
        begun = "new" if kept_as == "old" else "old"
        row, thought = session_row(begun), ThoughtRow(1, 1, "four")
        await store.change("old", lambda view: SessionChange(row=row, thought=thought, archive_as=kept_as))
        kept = await store.session(kept_as)
        assert (kept.status, kept.thoughts, kept.used_at_ms) == ("archived", 3, used)
        assert await texts(store, kept_as) == ["one", "two", "three"]
        assert await texts(store, begun) == ["four"]
        await think(store, kept_as, "five")
        assert (await store.session(kept_as)).status == "active"
        assert await texts(store, kept_as) == ["one", "two", "three", "five"]
        assert all([finding.state == "whole" async for finding in store.whole.verify()])

    async def test_a_change_may_be_of_another_session_that_it_looked_at(self, store: Store) -> None:
        await think(store, "a", "one")
        await think(store, "b", "two", number=7)

        def decide(view: SessionView) -> SessionChange:
            other, none = view.other("b"), view.other("c")
            assert (other.row is None, none.row is None) == (False, True)
            assert [len(each.with_number(7)) for each in (other, view, none)] == [1, 0, 0]
            assert [thought.text for thought in other.latest(9)] == ["two"]
            return SessionChange(session_row("b", thoughts=2), ThoughtRow(2, 8, "three"), instead="b")

        await store.change("a", decide)
        assert [await texts(store, name) for name in "ab"] == [["one"], ["two", "three"]]
        assert [(await store.session(name)).thoughts for name in "ab"] == [1, 2]
        gone = SessionChange(session_row("c"), instead="c")
        with pytest.raises(NotFoundError):
            await store.change("a", lambda view: gone)

    async def test_ids_are_found_by_how_they_begin(self, store: Store) -> None:
        for name in ("ab", "abc", "abd", "ac", "b", "ab\U0001f600", "a%b"):
            await store.import_session(session_row(name), [])
            await store.create_run(run_row(name), [])
        for ids in (store.session_ids, store.run_ids):
            assert await ids("ab") == ["ab", "abc", "abd", "ab\U0001f600"]
            assert await ids("ab", 2) == ["ab", "abc"]
            assert await ids("abc") == ["abc"]
            assert await ids("%") == []

    async def test_a_change_that_collides_changes_nothing(self, store: Store) -> None:
        await think(store, "a", "one")
        await think(store, "b", "two")
        seq_taken = SessionChange(row=session_row("a", purpose="new"), thought=ThoughtRow(1, 1, "again"))
        id_taken = SessionChange(delete=True, row=session_row("b", purpose="new"))
        homeless = SessionChange(thought=ThoughtRow(1, 1, "where"))
        for session_id, change, error in (
            ("a", seq_taken, ConflictError),
            ("a", id_taken, ConflictError),
            ("none", homeless, UsageError),
            ("a", SessionChange(delete=True, thought=ThoughtRow(2, 2, "where")), UsageError),
            ("a", SessionChange(archive_as="b", row=session_row("a", purpose="new")), ConflictError),
            ("a", SessionChange(row=session_row("b", purpose="new"), instead="c"), NotFoundError),
        ):
            with pytest.raises(error):
                await store.change(session_id, lambda view, change=change: change)
        assert [await texts(store, name) for name in "ab"] == [["one"], ["two"]]
        assert [(await store.session(name)).purpose for name in "ab"] == ["", ""]

    async def test_sessions_are_listed_last_used_first_page_by_page(self, store: Store) -> None:
        for number, used in enumerate([5, 9, 7, 9, 1]):
            status = "archived" if number == 2 else "active"
            await store.import_session(session_row(f"s{number}", used_at_ms=used, status=status), [])
        order, before = list[str](), None
        while page := await store.sessions(limit=2, before=before):
            order += [row.session_id for row in page]
            before = page[-1].session_id
        assert order == ["s3", "s1", "s2", "s0", "s4"]
        active = await store.sessions(status="active", before="s1")
        assert [row.session_id for row in active] == ["s0", "s4"]
        with pytest.raises(NotFoundError):
            await store.sessions(before="none")

    async def test_thoughts_are_chosen_by_number_branch_and_page(self, store: Store) -> None:
        branches = [None, None, "b", "b", None, "c", "b"]
        rows = [
            ThoughtRow(seq, number, f"t{seq}", branch)
            for seq, (number, branch) in enumerate(zip([1, 2, 2, 3, 3, 4, 4], branches, strict=True), start=1)
        ]
        await store.import_session(session_row("s"), rows)
        await store.import_session(session_row("z"), thoughts("zz"))

        async def seqs(**choice: Any) -> list[int]:
            return [thought.seq for thought in await store.thoughts("s", **choice)]

        assert await seqs() == [1, 2, 3, 4, 5, 6, 7]
        assert await seqs(first=2, last=3) == [2, 3, 4, 5]
        assert await seqs(branch="b") == [3, 4, 7]
        assert await seqs(branch="") == [1, 2, 5]
        assert await seqs(branch="none") == []
        assert await seqs(after_seq=4, limit=2) == [5, 6]
        assert await seqs(branch="b", after_seq=3, first=4) == [7]
        assert await seqs(after_seq=2**60) == []
        assert await seqs(first=-(2**70), last=2**70, after_seq=-1) == [1, 2, 3, 4, 5, 6, 7]
        with pytest.raises(NotFoundError):
            await store.thoughts("none")

    async def test_import_writes_all_or_nothing(self, store: Store) -> None:
        await store.import_session(session_row("s"), thoughts("a", "b"))
        with pytest.raises(ConflictError):
            await store.import_session(session_row("s"), thoughts("c"))
        with pytest.raises(ConflictError):
            await store.import_session(session_row("t"), [*thoughts("a"), *thoughts("b")])
        assert await texts(store, "s") == ["a", "b"]
        assert [row.session_id for row in await store.sessions()] == ["s"]

    async def test_delete_forgets_a_session_and_its_thoughts(self, store: Store) -> None:
        await think(store, "a", "one")
        await think(store, "b", "two")
        await store.delete_session("a")
        with pytest.raises(NotFoundError):
            await store.delete_session("a")
        assert await store.search_thoughts("one") == []
        await think(store, "a", "three")
        assert await texts(store, "a") == ["three"]

    async def test_unused_sessions_expire_but_never_pinned_ones(self, store: Store) -> None:
        for name, used, pinned in (("old", 10, False), ("pinned", 10, True), ("new", 20, False)):
            await store.import_session(session_row(name, used_at_ms=used, pinned=pinned), thoughts(name))
        await store.sweep_sessions(Sweep(now_ms=25, ttl_ms=10, retention_ms=None, delete=False))
        assert [(await store.session(name)).status for name in ("old", "pinned", "new")] == [
            "archived", "active", "active",
        ]  # fmt: skip
        assert await texts(store, "old") == ["old"]
        await store.sweep_sessions(Sweep(now_ms=10**12, ttl_ms=10**13, retention_ms=None, delete=False))
        assert (await store.session("old")).status == "archived"
        await store.sweep_sessions(Sweep(now_ms=25, ttl_ms=100, retention_ms=15, delete=False))
        assert (await store.session("old")).status == "archived"
        await store.sweep_sessions(Sweep(now_ms=26, ttl_ms=100, retention_ms=15, delete=False))
        assert {row.session_id for row in await store.sessions()} == {"pinned", "new"}
        await store.sweep_sessions(Sweep(now_ms=31, ttl_ms=10, retention_ms=None, delete=True))
        assert [row.session_id for row in await store.sessions()] == ["pinned"]
        assert found(await store.search_thoughts("")) == [("pinned", 1)]

    @pytest.mark.parametrize("delete", [False, True])
    async def test_a_session_with_a_time_to_live_of_its_own_expires_by_it(
        self, store: Store, delete: bool
    ) -> None:
        for name, ttl_ms in (("long", 100), ("none", None), ("short", 1)):
            await store.import_session(session_row(name, used_at_ms=10, ttl_ms=ttl_ms), thoughts(name))
        assert [(await store.session(name)).ttl_ms for name in ("long", "none", "short")] == [100, None, 1]
        left = []
        for now_ms in (11, 12, 20, 21, 110, 111):
            await store.sweep_sessions(Sweep(now_ms, ttl_ms=10, retention_ms=None, delete=delete))
            left.append(sorted(row.session_id for row in await store.sessions(status="active")))
        assert left == [["long", "none", "short"], *[["long", "none"]] * 2, *[["long"]] * 2, []]
        assert len(await store.sessions()) == (0 if delete else 3)


class TestSearch:
    @pytest.mark.parametrize(
        ("query", "text"),
        [
            ("alpha(beta", "see ALPHA(Beta) there"),
            ("100%", "at 100% of"),
            ("a_b", "A_B"),
            ("'\"\\", "quotes '\"\\ here"),
            ("\U0001f600", "smile \U0001f600!"),
            ("STRASSE", "die straße"),
            ("ΣΊΣΥΦΟΣ", "σίσυφος"),
            ("ÉCOLE", "l'école"),
            ("b\x00c", "a b\x00C d"),
            ("", "anything"),
            ("[a-z]*", "glob [A-Z]* glob"),
            ("NEAR(a b) OR *", "near(a b) or *"),
        ],
    )
    async def test_any_string_is_found_whatever_its_case(self, store: Store, query: str, text: str) -> None:
        await store.import_session(session_row("s"), thoughts(text))
        await store.import_session(session_row("t"), thoughts("XaXb", "\x00b"))
        matches = await store.search_thoughts(query)
        assert ("s", 1) in found(matches)
        assert query == "" or len(matches) == 1
        assert matches[0][2].text == text

    async def test_matches_are_paged_and_kept_to_a_session(self, store: Store) -> None:
        for name in "abc":
            await store.import_session(session_row(name), thoughts("yes", "no", "Yes", "YES"))
        everywhere, after = list[tuple[str, int]](), 0
        while page := await store.search_thoughts("yes", after=after, limit=2):
            assert len(page) <= 2
            everywhere += found(page)
            after = page[-1][0]
        assert everywhere == [(name, seq) for name in "abc" for seq in (1, 3, 4)]
        first = await store.search_thoughts("yes", session_id="b", limit=2)
        rest = await store.search_thoughts("yes", session_id="b", after=first[-1][0])
        assert found(first) + found(rest) == [("b", 1), ("b", 3), ("b", 4)]
        assert await store.search_thoughts("yes", after=2**63) == []
        with pytest.raises(NotFoundError):
            await store.search_thoughts("yes", session_id="none")

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(text=st.text(max_size=40), data=st.data())
    async def test_every_piece_of_a_text_finds_it(self, store: Store, text: str, data: st.DataObject) -> None:
        start = data.draw(st.integers(0, len(text)))
        piece = text[start : data.draw(st.integers(start, len(text)))]
        seq = await think(store, "s", text)
        assert ("s", seq) in found(await store.search_thoughts(piece, session_id="s", limit=10_000))
        assert (await store.thoughts("s", after_seq=seq - 1))[0].text == text


class TestSessionsOfRuns:
    async def of_a_run(self, store: Store, name: str, **fields: Any) -> None:
        row = session_row(f"s{name}", run_id=f"r{name}", **fields)
        await store.create_run(run_row(f"r{name}", session_id=f"s{name}"), [line(1)], row)

    async def test_their_use_is_written_with_the_lines_or_not_at_all(self, store: Store) -> None:
        await self.of_a_run(store, "1", status="archived", purpose="p", pinned=True)
        await self.of_a_run(store, "2")
        before = await store.session("s1")
        with pytest.raises(ConflictError):
            await store.append("r1", [line(1)], None, Use(9, 9_000))
        with pytest.raises(UsageError):
            await store.append("r1", [line(2)], None, Use(2**64, 9_000))
        await store.append("r1", [line(2)])
        assert await store.session("s1") == before
        await store.append("r1", [line(3)], run_row("r1", session_id="s1", status="done"), Use(2, 5_000))
        assert await store.session("s1") == session_row(
            "s1", run_id="r1", purpose="p", pinned=True, thoughts=2, used_at_ms=5_000, status="active"
        )
        assert await store.session("s2") == session_row("s2", run_id="r2")

    async def test_a_session_that_the_run_does_not_write_is_not_touched(self, store: Store) -> None:
        await store.import_session(session_row("mine"), thoughts("a"))
        await store.create_run(run_row("r", session_id="mine"), [line(1)])
        await store.append("r", [line(2)], None, Use(7, 9_000))
        assert await store.session("mine") == session_row("mine")
        await store.delete_session("mine")
        await store.append("r", [line(3)], None, Use(8, 9_000))

    async def test_their_thoughts_are_written_once_with_the_lines(self, store: Store) -> None:
        one, two, three = thoughts("x", "X", "xx")
        row = session_row("s1", run_id="r1", thoughts=1)
        await store.create_run(run_row("r1", session_id="s1"), [line(1)], row, thoughts=[one])
        await store.import_session(session_row("guided"), thoughts("x", "y"))
        await store.append("r1", [line(2)], None, Use(2, 5_000, (one, two)))
        await store.append("r1", [line(3)], None, Use(3, 6_000, (three,)))
        with pytest.raises(ConflictError):
            await store.append("r1", [line(3)], None, Use(4, 7_000, (replace(three, seq=4),)))
        assert await store.thoughts("s1") == [one, two, three]
        assert found(await store.search_thoughts("x")) == [("s1", 1), ("s1", 2), ("s1", 3), ("guided", 1)]


class TestBadInput:
    async def test_lone_surrogates_are_refused_and_nothing_changes(self, store: Store) -> None:
        bad = "a\ud800"
        await a_run(store)
        await think(store, "s", "one")
        calls = [
            store.create_run(run_row("q", problem=bad), [line(1)]),
            store.append("r", [line(2)], run_row("r", answer=bad)),
            store.run(bad),
            store.lines(bad),
            store.delete_run(bad),
            store.runs(before=bad),
            think(store, "s", bad),
            think(store, bad, "x"),
            store.session(bad),
            store.thoughts(bad),
            store.search_thoughts(bad),
            store.import_session(session_row("t"), thoughts(bad)),
            store.import_session(session_row(bad), []),
            store.delete_session(bad),
        ]
        for call in calls:
            with pytest.raises(UsageError, match="surrogate"):
                await call
        with pytest.raises(UsageError, match="surrogate"):
            await store.drive(bad).__aenter__()
        assert [row.run_id for row in await store.runs()] == ["r"]
        assert await store.lines("r") == [line(1)]
        assert await texts(store, "s") == ["one"]

    async def test_numbers_out_of_range_are_refused(self, store: Store) -> None:
        await a_run(store)
        calls = [
            store.append("r", [line(0)]),
            store.append("r", [Line(2**24, b"", b"")]),
            store.append("r", [], run_row("r", updated_at_ms=2**64)),
            store.runs(limit=0),
            store.sessions(limit=-1),
            think(store, "s", "x", number=2**63),
            think(store, "s", "x", seq=0),
        ]
        for call in calls:
            with pytest.raises(UsageError):
                await call
        with pytest.raises(ConflictError):
            await store.append("r", [line(2), line(2)])
        assert len(await store.lines("r")) == 1
        assert await store.runs(limit=2**80) != []

    async def test_a_closed_store_says_so(self, store: Store) -> None:
        await a_run(store)
        await store.close()
        await store.close()
        for call in (
            store.run("r"),
            store.append("r", [line(2)]),
            store.change("s", lambda view: SessionChange()),
        ):
            with pytest.raises(StoreError, match="closed"):
                await call


async def test_a_call_that_is_cancelled_leaves_the_store_in_order(store: Store) -> None:
    await a_run(store)
    tasks = [asyncio.create_task(store.append("r", [line(seq)])) for seq in range(2, 200)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    kept = {one.seq for one in await store.lines("r")}
    assert kept >= {2 + index for index, task in enumerate(tasks) if not task.cancelled()}
    await store.append("r", [line(200)])

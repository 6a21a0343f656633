"""An agent that makes every mistake agents make: nothing it thinks is lost, and hardly a call is refused.

Each mistake is made in one session over the real server, in this order. A refused call has to be sent again, so only
what could mean several things is refused; the error then says enough to put the call right at once.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from .raw import Raw

MAX_REFUSALS = 6
MISSING: Any = object()
FILLED = ("isRevision", "revisesThought", "branchFromThought", "branchId", "needsMoreThoughts", "sessionId")
FILLED_TOO = ("clearSession", "strategy", "stage", "data", "mergeBranch", "history")
ALL = (*FILLED, *FILLED_TOO)


class Mistake(NamedTuple):
    """A call that is not quite as it should be.

    Args:
        change: What differs from a plain thought, by the number of the thought and the session it belongs to.
        notice: The reason of the notice that the reply has; None: it has none about the call.
        refused: What the error says, where the call is refused.
        mended: What the agent then sends instead.
    """

    what: str
    change: Callable[[int, str], dict[str, Any]]
    notice: str | None = None
    refused: str | None = None
    mended: dict[str, Any] | None = None


def change(**arguments: Any) -> Callable[[int, str], dict[str, Any]]:
    return lambda number, session: arguments


FREE = [
    Mistake(
        "snake_case",
        lambda number, _: {
            "thoughtNumber": MISSING,
            "totalThoughts": MISSING,
            "nextThoughtNeeded": MISSING,
            "thought_number": number,
            "total_thoughts": 60,
            "next_thought_needed": True,
        },
    ),
    Mistake("a number as text", lambda number, _: {"thoughtNumber": str(number), "totalThoughts": "60"}),
    Mistake("a number as a fraction of the total", lambda number, _: {"thoughtNumber": f"{number}/60"}),
    Mistake("a number in words", lambda number, _: {"thoughtNumber": f"Thought {number} of 60"}),
    Mistake("a float", lambda number, _: {"thoughtNumber": float(number), "totalThoughts": "60.0"}),
    Mistake("true as text", change(nextThoughtNeeded="True")),
    Mistake("yes for true", change(nextThoughtNeeded="yes")),
    Mistake("1 for true", change(nextThoughtNeeded=1)),
    Mistake("null for all that is not used", change(**dict.fromkeys(ALL))),
    Mistake("the empty text for all that is not used", change(**dict.fromkeys(ALL, ""))),
    Mistake("false for all that is not used", change(**dict.fromkeys(ALL, False))),
    Mistake("0 for no thought", change(revisesThought=0, branchFromThought=0, isRevision=False)),
    Mistake("words for nothing", change(sessionId="none", strategy="null", stage="undefined", data="None")),
    Mistake("a list for no data", change(data=[])),
    Mistake("a total below the number", change(totalThoughts=1)),
    Mistake("a thought that is a number", change(thought=42)),
    Mistake("an empty thought", change(thought=""), notice="empty_thought"),
    Mistake("an argument there is not", change(mood=0.9), notice="unknown_argument"),
    Mistake("how sure it is", change(confidence="90%", evidence="Assumed")),
    Mistake("a word that is no evidence", change(evidence="guess")),
    Mistake("a misspelled argument", change(isRevison=True), notice="unknown_argument"),
    Mistake("a revision in words", change(isRevision="true", revisesThought="thought 2")),
    Mistake("a revision of nothing in particular", change(isRevision=True)),
    Mistake("a revision that is not called one", change(revises_thought=2)),
    Mistake(
        "a revision of a thought there is not", change(revisesThought=777), refused="There is no thought 777"
    ),
    Mistake("a number left out", lambda number, _: {"thoughtNumber": number + 5}, notice="number_gap"),
    Mistake("a number twice", lambda number, _: {"thoughtNumber": number - 1}),
    Mistake("data as text", change(data='{"note": "as text"}')),
    Mistake("data as Python writes it", change(data="{'note': True}")),
    Mistake("a field beside data", change(hypothesis="It is the cache.")),
    Mistake("a branch named by a number", change(branchFromThought="3", branchId=2)),
    Mistake("a merge by number", change(mergeBranch=2)),
    Mistake("a merge of no branch", change(mergeBranch="B9"), refused="There is no branch 'B9'"),
    Mistake("a branch without its origin", change(branch_id="side")),
    Mistake("more thoughts wanted, as text", change(needsMoreThoughts="true")),
    Mistake("history as text", change(history="2")),
    Mistake("false as text", change(clearSession="false")),
    Mistake("an id with a line end", lambda _, session: {"sessionId": f" {session}\n"}),
    Mistake(
        "two arguments missing",
        change(thoughtNumber=MISSING, totalThoughts=MISSING, step=3),
        refused="thought number and total thoughts are missing",
    ),
    Mistake("a thought without end", change(thought="x" * 60_000), refused="the limit is 50,000"),
    Mistake("a stage in words", change(stage="Thought Evaluation", sound="yes")),
    Mistake("an end in words", change(nextThoughtNeeded="no")),
    Mistake("a correction after the end", change(revisesThought=3, isRevision="yes")),
]

TREE = [
    Mistake("a strategy in the singular", change(strategy="tree-of-thought")),
    Mistake("a stage in words", change(stage="Approach Exploration", approaches="hash; sort")),
    Mistake("a stage with dashes", change(stage="branch-creation", branchId="A")),
    Mistake("a stage in camel case with an arrow", change(stage="→ branchDevelopment", branchId="A")),
    Mistake(
        "a path as text", change(stage="branch_development -> branchEvaluation", branchId="A", score=0.6)
    ),
    Mistake("a score as text beside data", change(stage="BranchEvaluation", branchId="A", score="0.7")),
    Mistake("a score in per cent", change(stage="branch_evaluation", branchId="A", data={"Score": "70%"})),
    Mistake("data as JSON", change(stage="branch_evaluation", branchId="A", data='{"score": "7/10"}')),
    Mistake("a score in words", change(stage="branch_evaluation", branchId="A", score="8 out of 10")),
    Mistake(
        "a score without its scale",
        change(stage="branch_evaluation", branchId="A", score=7),
        refused="data.score must be at most 1",
        mended={"stage": "branch_evaluation", "branchId": "A", "score": 0.7},
    ),
    Mistake(
        "a stage that is misspelled",
        change(stage="branch_selecton"),
        refused="branch_selection",
        mended={"stage": "branch_selection", "selected": "A"},
    ),
    Mistake("the strategy once more", change(strategy="Tree of Thoughts")),
    Mistake("a path as text", change(stage='["Continuation Decision", "solution-formulation"]')),
]

SESSIONS: list[tuple[str, dict[str, Any]]] = [
    ("an action in capitals", {"action": "LIST", "status": "All"}),
    ("null for all that is not used", {"action": "list", "cursor": None, "limit": None, "sessionId": None}),
    ("snake_case", {"action": "get", "session_id": "{session}"}),
    ("numbers as text", {"action": "get", "from": "1", "to": "3", "limit": "10"}),
    ("an argument there is not", {"action": "get", "verbose": True}),
    ("a format in capitals", {"action": "export", "format": "Markdown"}),
]


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[Raw]:
    with Raw(tmp_path / "sloppy.db", DISABLE_THOUGHT_LOGGING="true") as server:
        yield server


class Agent:
    """Thinks on, whatever comes back, and remembers what it thought and what was refused."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        self.refusals: list[str] = []
        self.thoughts: list[tuple[str, str]] = []
        self.session = ""
        self.number = 1

    def think(self, mistake: Mistake) -> None:
        wrong = mistake.change(self.number, self.session)
        reply = self._send(mistake.what, wrong)
        if mistake.refused is None:
            assert "error" not in reply, (mistake.what, reply)
        else:
            assert mistake.refused in reply["error"]["message"], mistake.what
            self.refusals.append(mistake.what)
            wrong = mistake.mended or {}
            reply = self._send(mistake.what, wrong)
            assert "error" not in reply, (mistake.what, reply)
        reasons = [notice["reason"] for notice in reply.get("notices", [])]
        assert mistake.notice is None or mistake.notice in reasons, (mistake.what, reply)
        self.session, self.number = reply["sessionId"], reply["thoughtNumber"] + 1

    def _send(self, what: str, wrong: dict[str, Any]) -> dict[str, Any]:
        plain = {"thoughtNumber": self.number, "totalThoughts": 60, "nextThoughtNeeded": True}
        sent = {"thought": f"{what}, {len(self.thoughts)}", **plain, **wrong}
        reply = self.raw.call(
            "sequentialthinking", **{name: value for name, value in sent.items() if value is not MISSING}
        )
        if "error" not in reply:
            self.thoughts.append((reply["sessionId"], str(sent["thought"])))
        return reply


def test_a_sloppy_session_of_60_mistakes_loses_no_thought_and_is_refused_at_most_6_times(raw: Raw) -> None:
    assert len(FREE) + len(TREE) + len(SESSIONS) >= 60
    agent = Agent(raw)
    for mistake in FREE:
        agent.think(mistake)
    first = agent.session
    assert {session for session, _ in agent.thoughts} == {first}
    agent.number = 1
    for mistake in TREE:
        agent.think(mistake)
    assert agent.session != first
    for what, arguments in SESSIONS:
        document = raw.call(
            "sessions",
            **{name: agent.session if value == "{session}" else value for name, value in arguments.items()},
        )
        if "error" in document:
            agent.refusals.append(f"sessions: {what}")
    assert len(agent.refusals) <= MAX_REFUSALS, agent.refusals
    for session in (first, agent.session):
        kept = raw.call("sessions", action="get", sessionId=session, limit=500)["thoughts"]
        assert [thought["thought"] for thought in kept] == [
            text for id, text in agent.thoughts if id == session
        ]


def test_main_is_the_main_line_alone_and_an_empty_branch_is_left_out(raw: Raw) -> None:
    raw.think(1)
    raw.think(2, branchId="b")
    for branch, count in (("main", 1), ("", 2), (None, 2), ("no such", 0)):
        assert len(raw.call("sessions", action="get", branchId=branch)["thoughts"]) == count


def test_an_argument_that_is_none_is_refused_only_where_something_would_change(raw: Raw) -> None:
    raw.think(1)
    for action in ("delete", "pin", "resume"):
        refused = raw.call("sessions", action=action, pinnd=False)["error"]
        assert "Did you mean pinned?" in refused["message"]
    shown = raw.call("sessions", action="get", pinnd=False)
    assert (len(shown["thoughts"]), shown["notices"][0]["reason"]) == (1, "unknown_argument")

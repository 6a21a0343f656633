"""The page document: a run or a session as data that a page draws, alike in a file and live.

Every text is masked and inert. Ids are stable: a run that is looked at again later has the same ids for what was there.
Times below the top are run time: milliseconds since the beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct, field

from ...core.text import inert
from ...records import OutcomeName

FORMAT = 1


class PageCost(Struct, frozen=True):
    """What was spent; `usd` is None where no price is known."""

    calls: int = 0
    tokens: int = 0
    usd: float | None = None

    def __add__(self, other: PageCost) -> PageCost:
        known = [usd for usd in (self.usd, other.usd) if usd is not None]
        return PageCost(self.calls + other.calls, self.tokens + other.tokens, sum(known) if known else None)


class PageReason(Struct, frozen=True):
    """PageReason a node was dropped, or a question failed: for programs, and for people."""

    code: str
    text: str


class PageField(Struct, frozen=True):
    """One value that a thought carries."""

    name: str
    value: str


NodeState = Literal["open", "expanded", "on_path", "answer", "dropped"]


class PageNode(Struct, kw_only=True):
    """One box of the page. The first node is the root; parents stand before their children."""

    id: str
    parent: str | None
    kind: str
    label: str
    text: str = ""
    stage: str = ""
    branch: str = ""
    round: int | None = None
    score: float | None = None
    score_text: str = ""
    state: NodeState = "expanded"
    why: PageReason | None = None
    begun_at_ms: int | None = None
    ended_at_ms: int | None = None
    number: int | None = None
    revises: str | None = None
    merges: list[str] = field(default_factory=list[str])
    fields: list[PageField] = field(default_factory=list[PageField])
    cost: PageCost = PageCost()
    subtree_cost: PageCost = PageCost()
    questions: list[str] = field(default_factory=list[str])
    calls: list[str] = field(default_factory=list[str])
    reused: bool = False
    """Whether all that was asked for it, and came to it, was taken over from the run that this one is a fork of."""


class PageQuestion(Struct, kw_only=True):
    """A question and its answer; `prompt` is a place in `PageDocument.prompts`."""

    id: str
    node: str
    stage: str
    round: int | None
    sample: int
    asked_at_ms: int | None
    answered_at_ms: int | None
    prompt: int
    reply: str | None
    status: Literal["open", "answered", "unusable", "failed", "cancelled"]
    error: PageReason | None
    model: str
    cost: PageCost
    read: str
    tries: list[str]
    reused: bool = False
    """Whether the answer was taken over from the run that this one is a fork of; it cost nothing here."""
    reworded: bool = False
    """Whether the fork asks something else here than the strategy does."""


class PageCall(Struct, kw_only=True):
    """A tool call or a verdict."""

    id: str
    node: str
    kind: Literal["tool", "verifier"]
    name: str
    stage: str
    text: str
    result: str | None
    error: PageReason | None
    begun_at_ms: int | None
    ended_at_ms: int | None
    reused: bool = False
    """As in `PageQuestion`."""


class PageNote(Struct, kw_only=True):
    """A thought that is no node of its own."""

    id: str
    node: str
    stage: str
    text: str
    score: float | None = None


class PageSpend(Struct, kw_only=True):
    """One kind of spending against its limit."""

    name: str
    used: float | None
    limit: float | None
    on_dropped: float | None = None


class PageLimit(Struct, kw_only=True):
    """A limit that was set while the run was at work; None: it was lifted."""

    at_ms: int
    name: str
    limit: float | None


class PageRound(Struct, kw_only=True):
    """Questions that waited for the same answers, and so went out side by side."""

    number: int
    begun_at_ms: int | None
    ended_at_ms: int | None
    questions: list[str]


class PageVote(Struct, kw_only=True):
    """An answer, and the nodes that gave it."""

    answer: str
    count: int
    nodes: list[str]
    leads: bool


class PageStop(Struct, kw_only=True):
    """When enough votes were in: samples that were counted, and those that were not needed any more."""

    at_ms: int
    counted: int
    spared: int
    confidence: float | None


class PagePath(Struct, kw_only=True):
    """What had to wait for one another: how long a run takes at best, however much is asked side by side."""

    ms: int
    effects: list[str]
    """The slowest of each round, in order: ids of questions and calls."""


class PageBranch(Struct, kw_only=True):
    """A line of a session; the main line has no name."""

    name: str
    parent: str | None
    start: str | None = field(default=None, name="from")
    nodes: int = 0
    merged: bool = False


class PageStage(Struct, frozen=True):
    """A stage of the strategy."""

    name: str
    description: str


class PageTable(Struct, frozen=True):
    """The strategy's stages and edges; empty where there is none."""

    stages: list[PageStage] = []
    edges: list[tuple[str, str]] = []


class PageStep(Struct):
    """A stage that was walked, and how often in a row."""

    stage: str
    times: int


class PageBlock(Struct, omit_defaults=True):
    """A part of what came of it, in words."""

    kind: Literal["heading", "prose", "bullets", "table"]
    text: str = ""
    level: int = 0
    items: list[str] = []
    heads: list[str] = []
    rows: list[list[str]] = []
    chosen: int | None = None


class PageCuts(Struct):
    """What was left out: how many texts were cut, by how many characters in all, and entries of each list."""

    texts: int = 0
    characters: int = 0
    nodes: int = 0
    questions: int = 0
    calls: int = 0
    notes: int = 0


class PageDocument(Struct, kw_only=True):
    """The document."""

    format: int = FORMAT
    kind: Literal["run", "session"]
    id: str
    session_id: str
    title: str
    problem: str
    strategy: str = ""
    strategy_title: str = ""
    mode: Literal["driven", "coached", "guided"]
    model: str = ""
    status: str
    outcome: OutcomeName | None = None
    stage: str = ""
    reason: str = ""
    detail: str = ""
    code: str | None = None
    answer: str | None = None
    best_answer: str | None = None
    warnings: list[str] = field(default_factory=list[str])
    begun_at_ms: int
    ended_at_ms: int | None
    duration_ms: int
    table: PageTable = PageTable()
    path: list[PageStep] = field(default_factory=list[PageStep])
    spend: list[PageSpend] = field(default_factory=list[PageSpend])
    limits: list[PageLimit] = field(default_factory=list[PageLimit])
    votes: list[PageVote] = field(default_factory=list[PageVote])
    early_stop: PageStop | None = None
    rounds: list[PageRound] = field(default_factory=list[PageRound])
    critical_path: PagePath | None = None
    nodes: list[PageNode] = field(default_factory=list[PageNode])
    questions: list[PageQuestion] = field(default_factory=list[PageQuestion])
    calls: list[PageCall] = field(default_factory=list[PageCall])
    notes: list[PageNote] = field(default_factory=list[PageNote])
    texts: list[str] = field(default_factory=list[str])
    prompts: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Each is a line more than an earlier one (-1: than none): its place, and the line's place in `texts`."""
    outline: list[PageBlock] = field(default_factory=list[PageBlock])
    branches: list[PageBranch] = field(default_factory=list[PageBranch])
    cuts: PageCuts = field(default_factory=PageCuts)
    forked_from: str | None = None
    forked_at: int | None = None
    """How many answers it took over."""
    reused: PageCost | None = None
    """What those had taken; it counts nowhere else."""
    paused: bool = False
    position: int = 0
    """Of a live page: where in the run's journal its events go on."""


@lru_cache(maxsize=256)
def _plain_cached(text: str) -> str:
    return inert(text)


def plain(text: str) -> str:
    """Return a text as a page shows it: with characters that act unseen spelled out."""
    return _plain_cached(text) if len(text) < 200 else inert(text)


def plain_or_none(text: str | None) -> str | None:
    """Return a text as a page shows it, if there is one."""
    return None if text is None else plain(text)


class PromptLines:
    """Keeps the lines of prompts, each once, and prompts as what they add to one that begins alike."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.prompts: list[tuple[int, int]] = []
        self._places: dict[str, int] = {}
        self._known: dict[tuple[int, int], int] = {}

    def add(self, prompt: str) -> int:
        """Return the place of a prompt in `prompts`."""
        here = -1
        for line in plain(prompt).split("\n"):
            place = self._places.setdefault(line, len(self._places))
            if place == len(self.texts):
                self.texts.append(line)
            key = here, place
            here = self._known.setdefault(key, len(self._known))
            if here == len(self.prompts):
                self.prompts.append(key)
        return here

    @staticmethod
    def whole(page: PageDocument, prompt: int) -> str:
        """Return a prompt of a page as one text."""
        lines: list[str] = []
        while prompt >= 0:
            prompt, line = page.prompts[prompt]
            lines.append(page.texts[line])
        return "\n".join(reversed(lines))


def sum_costs(nodes: Iterable[PageNode]) -> None:
    """Set what each node took with everything below it."""
    listed = list(nodes)
    by_id = {node.id: node for node in listed}
    for node in listed:
        node.subtree_cost = node.cost
    for node in reversed(listed):
        if node.parent is not None:
            above = by_id[node.parent]
            above.subtree_cost += node.subtree_cost


def cost_of_dropped(nodes: Iterable[PageNode]) -> PageCost:
    """Return what was spent on dropped nodes and below them."""
    total, dropped = PageCost(), set[str]()
    for node in nodes:
        if node.state == "dropped" or node.parent in dropped:
            dropped.add(node.id)
            total += node.cost
    return total


def data_fields(data: dict[str, Any], shown: Iterable[str] = ()) -> Iterator[PageField]:
    """Yield the values of a thought as text.

    Args:
        shown: Names of those that are shown otherwise.
    """
    hidden = {*shown}
    for name, value in data.items():
        if name not in hidden and value not in (None, "", [], {}):
            yield PageField(plain(str(name)), plain(_value_text(value)))


def _value_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return "\n".join(map(str, value))
    if isinstance(value, dict):
        return "\n".join(f"{name}: {_value_text(item)}" for name, item in value.items())
    return "\n".join(map(_value_text, value)) if isinstance(value, list) else str(value)

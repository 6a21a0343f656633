"""The page document: the data of a run or a session, for a page in a file and for a live page of a server.

Members from the run's record keep their names. The document adds the nodes of the run, with their questions, calls and
costs. In every text, secret keys are masked and control characters are escaped. A node has the same id in all
views of a run. The times of nodes, questions and calls are milliseconds since the beginning of the run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct, field, structs

from ...blocks.why import Why
from ...records import Outcome
from ...system.masking import map_texts
from ...text import escape_unseen
from ..run_report import Block


class PageCost(Struct, frozen=True):
    """The cost of a part of a run. `usd` is None if the price is unknown."""

    calls: int = 0
    tokens: int = 0
    usd: float | None = None

    def __add__(self, other: PageCost) -> PageCost:
        known = [usd for usd in (self.usd, other.usd) if usd is not None]
        return PageCost(self.calls + other.calls, self.tokens + other.tokens, sum(known) if known else None)


class PageReason(Struct, frozen=True):
    """The reason for a dropped node or a failed question: a code and a text."""

    code: str
    text: str = ""


NodeState = Literal["open", "expanded", "on_path", "answer", "dropped"]


class PageNode(Struct, kw_only=True):
    """One box of the page. In a list of nodes, the first node is the root, and each parent precedes its children."""

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
    revises: str | None = None
    merges: list[str] = field(default_factory=list[str])
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    origin: str = ""
    """The id of the question or call that produced the node."""
    cost: PageCost = PageCost()


class PageEffect(Struct, kw_only=True):
    """A question or a call that the run made for a node."""

    id: str
    node: str
    stage: str
    begun_at_ms: int | None
    ended_at_ms: int | None
    error: PageReason | None
    reused: bool = False
    """Whether the answer was copied from the run that this run was forked from. A copied answer costs nothing."""


class PageQuestion(PageEffect, kw_only=True):
    """A question and its answer. `prompt` lists the question's paragraphs as positions in `PageDocument.texts`."""

    round: int | None
    sample: int
    prompt: list[int]
    reply: str | None
    status: Literal["open", "answered", "unusable", "failed", "cancelled"]
    model: str
    cost: PageCost
    read: str
    tried: list[str]
    reworded: bool = False
    """Whether the user replaced the text of this question when the run was forked."""


class PageCall(PageEffect, kw_only=True):
    """A call of a tool or a verifier, and its result."""

    kind: Literal["tool", "verifier"]
    name: str
    text: str
    result: str | None


class PageNote(Struct, kw_only=True):
    """A thought without a node of its own."""

    id: str
    node: str
    stage: str
    text: str
    score: float | None = None
    origin: str = ""
    """The id of the question or call that produced the thought."""


class PageVote(Struct, kw_only=True):
    """An answer, its number of votes, and the nodes that voted for it."""

    answer: str
    count: int
    nodes: list[str]
    leads: bool


class PageWhy(Why, frozen=True, kw_only=True):
    """The reason for the result, with the node of each thought that the reason names."""

    nodes: list[str]


class PageCuts(Struct):
    """The omissions on a page: how many texts were shortened, and how many entries of each list were left out."""

    texts: int = 0
    nodes: int = 0
    questions: int = 0
    calls: int = 0
    notes: int = 0


class DrawnCounts(Struct, kw_only=True):
    """How many samples were drawn, how many were not needed, and how certain the vote is."""

    samples_used: int = 0
    samples_saved: int = 0
    confidence: float | None = None


class PageDocument(DrawnCounts, kw_only=True):
    """The data of a page. Members that come from the record are described in `engine.record` and `engine.result`."""

    kind: Literal["run", "session"]
    id: str
    title: str
    problem: str
    strategy: str = ""
    strategy_title: str = ""
    mode: Literal["driven", "coached", "guided"]
    model: str = ""
    status: str
    outcome: Outcome | None = None
    stage: str = ""
    termination: dict[str, Any] = field(default_factory=dict[str, Any])
    answer: str | None = None
    answer_is_code: bool = False
    best_answer: str | None = None
    why: PageWhy | None = None
    warnings: list[str] = field(default_factory=list[str])
    created_at_ms: int
    ended_at_ms: int | None
    duration_ms: int
    table: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    """The stages of the strategy, each with its next stages. If there is no strategy, the list is empty."""
    path: list[str] = field(default_factory=list[str])
    """The stages of the run, in order."""
    used: dict[str, float | None] = field(default_factory=dict[str, float | None])
    """How much the run has used of each quantity that a budget can limit, or None if the use is unknown."""
    cost_of_dropped: PageCost = PageCost()
    budget: dict[str, Any] = field(default_factory=dict[str, Any])
    votes: list[PageVote] = field(default_factory=list[PageVote])
    nodes: list[PageNode] = field(default_factory=list[PageNode])
    questions: list[PageQuestion] = field(default_factory=list[PageQuestion])
    calls: list[PageCall] = field(default_factory=list[PageCall])
    notes: list[PageNote] = field(default_factory=list[PageNote])
    texts: list[str] = field(default_factory=list[str])
    """The paragraphs of all prompts, each stored only once, since prompts share most of their paragraphs."""
    outline: list[Block] = field(default_factory=list[Block])
    cuts: PageCuts = field(default_factory=PageCuts)
    forked_from: str | None = None
    reused: PageCost | None = None
    """The cost of the answers that were copied from the original run of a fork. No other cost includes this cost."""
    paused: bool = False
    position: int = 0
    """For a live page: the journal position up to which the page is complete. New events follow this position."""


def cost_of_dropped(nodes: Iterable[PageNode]) -> PageCost:
    """Return the cost of dropped nodes and of the nodes below them."""
    total, dropped = PageCost(), set[str]()
    for node in nodes:
        if node.state == "dropped" or node.parent in dropped:
            dropped.add(node.id)
            total += node.cost
    return total


def mark_path(nodes: Mapping[str, PageNode], last: str, end: NodeState) -> None:
    """Mark the nodes between the root and the node `last` as `on_path`, then set the state of `last` to `end`."""
    waiting = [last]
    while waiting:
        node = nodes[waiting.pop()]
        if node.parent is not None and node.state != "on_path":
            node.state = "on_path"
            waiting += [node.parent, *node.merges]
    nodes[last].state = end


# -- texts with escaped control characters, and the maximum size of a page


class PageBounds(Struct, frozen=True):
    """The maximum size of a page."""

    text_chars: int = 20_000
    """The maximum number of characters in a single text."""
    all_chars: int = 12_000_000
    """The maximum number of characters in all texts together. The longest texts are shortened first."""
    nodes: int = 5_000
    entries: int = 10_000
    """The maximum length of the list of questions, of the list of calls, and of the list of notes."""


DEFAULT_BOUNDS = PageBounds()
EVERYTHING = PageBounds(*[sys.maxsize] * 4)
_LEAST_CHARS = 60
"""Texts up to this length, such as ids, names and fixed words, are never shortened."""


def finish_page(page: PageDocument, bounds: PageBounds) -> PageDocument:
    """Shorten a page to fit `bounds`, and escape its control characters. The page's `cuts` counts the omissions."""
    if len(page.nodes) > bounds.nodes:
        _keep_nodes(page, bounds.nodes)
    for name in ("questions", "calls", "notes"):
        entries: list[Any] = getattr(page, name)
        over = max(0, len(entries) - bounds.entries)
        setattr(page.cuts, name, over)
        del entries[bounds.entries // 2 : bounds.entries // 2 + over]  # keep the first and the last entries
    if page.cuts.questions:
        used = {place for question in page.questions for place in question.prompt}
        page.texts = [text if place in used else "" for place, text in enumerate(page.texts)]
    lengths = list[int]()

    def plain(text: str) -> str:
        text = escape_unseen(text)
        lengths.append(len(text))
        return text

    def shorten(text: str) -> str:
        over = len(text) - limit
        if over <= 0 or len(text) <= _LEAST_CHARS:
            return text
        cuts.texts += 1
        return f"{text[:limit]}… [{over:,} characters left out]"

    cuts, plain_page = page.cuts, map_texts(msgspec.to_builtins(page), plain)
    limit = bounds.text_chars
    while limit > _LEAST_CHARS and sum(min(length, limit) for length in lengths) > bounds.all_chars:
        limit = max(limit // 2, _LEAST_CHARS)
    if max(lengths) > limit:
        plain_page = map_texts(plain_page, shorten)
    return structs.replace(msgspec.convert(plain_page, PageDocument), cuts=cuts)


def _keep_nodes(page: PageDocument, limit: int) -> None:
    """Reduce the nodes of a page to `limit`. Nodes on the path are kept first, then the oldest nodes."""
    path = [node for node in page.nodes if node.state in ("answer", "on_path")]
    kept = {page.nodes[0].id}
    for node in (*path, *page.nodes):
        if len(kept) < limit and node.parent in kept:
            kept.add(node.id)
    homes: dict[str | None, str] = {None: page.nodes[0].id}
    for node in page.nodes:
        homes[node.id] = node.id if node.id in kept else homes[node.parent]
    page.cuts.nodes = len(page.nodes) - len(kept)
    page.nodes = [node for node in page.nodes if node.id in kept]
    for entry in (*page.questions, *page.calls, *page.notes):
        entry.node = homes[entry.node]

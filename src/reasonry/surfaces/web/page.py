"""The page document: a run or a session as data for the page, in a file and live alike.

Members of the run's record keep their names here. The nodes are added, with their questions, calls and costs. Every
text is masked and inert. Ids are stable between views of the same run. Times below the top level are milliseconds since
the beginning of the run.
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
from ...text import inert
from ..run_report import Block


class PageCost(Struct, frozen=True):
    """The usage; `usd` is null if the price is unknown."""

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
    revises: str | None = None
    merges: list[str] = field(default_factory=list[str])
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    origin: str = ""
    """The question or call that produced the node."""
    cost: PageCost = PageCost()


class PageEffect(Struct, kw_only=True):
    """A request made for a node."""

    id: str
    node: str
    stage: str
    begun_at_ms: int | None
    ended_at_ms: int | None
    error: PageReason | None
    reused: bool = False
    """Whether the answer was copied from the forked run. It cost nothing here."""


class PageQuestion(PageEffect, kw_only=True):
    """A question and its answer. `prompt` lists its paragraphs as positions in `PageDocument.texts`."""

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
    """Whether the fork changed the strategy's question."""


class PageCall(PageEffect, kw_only=True):
    """A tool call or a verdict."""

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
    """As in `PageNode`."""


class PageVote(Struct, kw_only=True):
    """An answer, and the nodes that gave it."""

    answer: str
    count: int
    nodes: list[str]
    leads: bool


class PageWhy(Why, frozen=True, kw_only=True):
    """The reason for the result, with the node of each of its thoughts."""

    nodes: list[str]


class PageCuts(Struct):
    """Omissions: the number of shortened texts, and the omitted entries of each list."""

    texts: int = 0
    nodes: int = 0
    questions: int = 0
    calls: int = 0
    notes: int = 0


class DrawnCounts(Struct, kw_only=True):
    """The samples drawn, the samples saved by an early majority, and the certainty of the vote."""

    samples_used: int = 0
    samples_saved: int = 0
    confidence: float | None = None


class PageDocument(DrawnCounts, kw_only=True):
    """The document. Members of the record are described there."""

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
    """The strategy's stages, each with its next stages; empty without a strategy."""
    path: list[str] = field(default_factory=list[str])
    """The stages of the run, in order."""
    used: dict[str, float | None] = field(default_factory=dict[str, float | None])
    """The use of each limit of the budget, or None if unknown."""
    cost_of_dropped: PageCost = PageCost()
    budget: dict[str, Any] = field(default_factory=dict[str, Any])
    votes: list[PageVote] = field(default_factory=list[PageVote])
    nodes: list[PageNode] = field(default_factory=list[PageNode])
    questions: list[PageQuestion] = field(default_factory=list[PageQuestion])
    calls: list[PageCall] = field(default_factory=list[PageCall])
    notes: list[PageNote] = field(default_factory=list[PageNote])
    texts: list[str] = field(default_factory=list[str])
    """The paragraphs of prompts without repetitions: prompts share most of them."""
    outline: list[Block] = field(default_factory=list[Block])
    cuts: PageCuts = field(default_factory=PageCuts)
    forked_from: str | None = None
    reused: PageCost | None = None
    """The cost of answers copied from the forked run, which counts nowhere else."""
    paused: bool = False
    position: int = 0
    """For a live page: the position in the run's journal at which its events continue."""


def cost_of_dropped(nodes: Iterable[PageNode]) -> PageCost:
    """Return the cost of dropped nodes and of the nodes below them."""
    total, dropped = PageCost(), set[str]()
    for node in nodes:
        if node.state == "dropped" or node.parent in dropped:
            dropped.add(node.id)
            total += node.cost
    return total


def mark_path(nodes: Mapping[str, PageNode], last: str, end: NodeState) -> None:
    """Mark the path from the root to a node, with merged nodes, and the node itself as the end."""
    waiting: list[str | None] = [last]
    while waiting:
        node = nodes.get(waiting.pop() or "")
        if node is not None and node.parent is not None and node.state != "on_path":
            node.state = "on_path"
            waiting += [node.parent, *node.merges]
    nodes[last].state = end


# -- texts that are fit to be shown, and how large a page may be


class PageBounds(Struct, frozen=True):
    """The bounds of a page."""

    text_chars: int = 20_000
    """The limit for a single text."""
    all_chars: int = 12_000_000
    """The limit for all texts together. The longest texts are shortened first."""
    nodes: int = 5_000
    entries: int = 10_000
    """The limit for each of the lists of questions, calls and notes."""


DEFAULT_BOUNDS = PageBounds()
EVERYTHING = PageBounds(*[sys.maxsize] * 4)
_LEAST_CHARS = 60
"""Texts up to this length are never shortened; neither are ids, names and fixed words."""


def finish_page(page: PageDocument, bounds: PageBounds) -> PageDocument:
    """Make every text inert and cut the page to its bounds, lists first. `cuts` counts the omissions."""
    if len(page.nodes) > bounds.nodes:
        _keep_nodes(page, bounds.nodes)
    for name in ("questions", "calls", "notes"):
        entries: list[Any] = getattr(page, name)
        over = max(0, len(entries) - bounds.entries)
        setattr(page.cuts, name, over)
        del entries[bounds.entries // 2 : bounds.entries // 2 + over]  # the first and the last stay
    if page.cuts.questions:
        used = {place for question in page.questions for place in question.prompt}
        page.texts = [text if place in used else "" for place, text in enumerate(page.texts)]
    lengths = list[int]()

    def plain(text: str) -> str:
        text = inert(text)
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
    if lengths and max(lengths) > limit:
        plain_page = map_texts(plain_page, shorten)
    return structs.replace(msgspec.convert(plain_page, PageDocument), cuts=cuts)


def _keep_nodes(page: PageDocument, limit: int) -> None:
    """Keep the nodes of the page's path and the oldest others, so that each keeps its parent."""
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

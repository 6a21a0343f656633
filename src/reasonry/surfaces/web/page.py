"""The page document: a run or a session as data that a page draws, alike in a file and live.

Every text is masked and inert. Ids are stable: a run that is looked at again later has the same ids for what was there.
Times below the top are run time: milliseconds since the beginning.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Literal, TypeVar

from msgspec import Struct, field, structs

from ...core.text import inert
from ...records import Outcome
from ..run_report import Block

T = TypeVar("T")

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
    """Why a node was dropped, or a question failed: for programs, and for people."""

    code: str
    text: str = ""


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
    revises: str | None = None
    merges: list[str] = field(default_factory=list[str])
    fields: list[PageField] = field(default_factory=list[PageField])
    cost: PageCost = PageCost()
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
    outcome: Outcome | None = None
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
    critical_path: PagePath | None = None
    nodes: list[PageNode] = field(default_factory=list[PageNode])
    questions: list[PageQuestion] = field(default_factory=list[PageQuestion])
    calls: list[PageCall] = field(default_factory=list[PageCall])
    notes: list[PageNote] = field(default_factory=list[PageNote])
    texts: list[str] = field(default_factory=list[str])
    prompts: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Each is a line more than an earlier one (-1: than none): its place, and the line's place in `texts`."""
    outline: list[Block] = field(default_factory=list[Block])
    cuts: PageCuts = field(default_factory=PageCuts)
    forked_from: str | None = None
    reused: PageCost | None = None
    """What the answers that it took over had taken; it counts nowhere else."""
    paused: bool = False
    position: int = 0
    """Of a live page: where in the run's journal its events continue."""


_inert = lru_cache(maxsize=256)(inert)


def plain(text: str) -> str:
    """Return a text as a page shows it: with characters that act unseen spelled out."""
    return _inert(text) if len(text) < 200 else inert(text)


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


def cost_of_dropped(nodes: Iterable[PageNode]) -> PageCost:
    """Return what was spent on dropped nodes and below them."""
    total, dropped = PageCost(), set[str]()
    for node in nodes:
        if node.state == "dropped" or node.parent in dropped:
            dropped.add(node.id)
            total += node.cost
    return total


def walked_steps(stages: Iterable[str]) -> list[PageStep]:
    """Return the stages that were walked, each with how often in a row."""
    return [PageStep(plain(name), len([*same])) for name, same in itertools.groupby(filter(None, stages))]


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


# -- how large a page may be


class PageBounds(Struct, frozen=True):
    """What a page may hold; None: all of it."""

    text_chars: int | None = 20_000
    """Of one text."""
    all_chars: int | None = 12_000_000
    """Of all texts together; where they are more, the longest are cut first."""
    nodes: int | None = 5_000
    entries: int | None = 10_000
    """Of each of the lists of questions, calls and notes."""


DEFAULT_BOUNDS = PageBounds()
EVERYTHING = PageBounds(text_chars=None, all_chars=None, nodes=None, entries=None)
_LEAST_CHARS = 80
_TEXTS = frozenset(
    (
        "title",
        "problem",
        "detail",
        "answer",
        "best_answer",
        "warnings",
        "texts",
        "text",
        "score_text",
        "name",
        "value",
    )
) | frozenset(("reply", "result", "tries", "items", "rows"))
"""Members that hold texts of any length."""


def bound_page(page: PageDocument, bounds: PageBounds = DEFAULT_BOUNDS) -> PageDocument:
    """Return a page cut to its bounds, the lists first; `cuts` says what was left out."""
    page = _with_nodes(page, bounds.nodes)
    for name in ("questions", "calls", "notes"):
        entries: list[Any] = getattr(page, name)
        kept = _both_ends(entries, bounds.entries)
        setattr(page.cuts, name, len(entries) - len(kept))
        setattr(page, name, kept)
    if page.cuts.questions:
        lines = PromptLines()
        for question in page.questions:
            question.prompt = lines.add(PromptLines.whole(page, question.prompt))
        page.texts, page.prompts = lines.texts, lines.prompts
    limit = _chars_of_one(page, bounds)

    def shorten(text: str) -> str:
        over = len(text) - limit
        if over <= 0:
            return text
        page.cuts.texts += 1
        page.cuts.characters += over
        return f"{text[:limit]}… [{over:,} characters left out]"

    return structs.replace(change_texts(page, shorten), cuts=page.cuts)


def change_texts(part: T, change: Callable[[str], str], *, is_text: bool = False) -> T:
    """Return a part of a page with each of its texts changed; names and ids stay."""
    changed: Any = part
    match part:
        case str() if is_text:
            changed = change(part)
        case list() | tuple():
            changed = type(part)(change_texts(each, change, is_text=is_text) for each in part)
        case Struct():
            members = {name: getattr(part, name) for name in part.__struct_fields__}
            changed = structs.replace(
                part,
                **{
                    name: change_texts(value, change, is_text=name in _TEXTS)
                    for name, value in members.items()
                    if isinstance(value, str | list | tuple | Struct)
                },
            )
        case _:
            pass
    return changed


def _both_ends(entries: list[T], limit: int | None) -> list[T]:
    """Return the first and the last of a list, in their order."""
    if limit is None or len(entries) <= limit:
        return entries
    return [*entries[: limit // 2], *entries[len(entries) - (limit - limit // 2) :]]


def _with_nodes(page: PageDocument, limit: int | None) -> PageDocument:
    """Return the page with the nodes of its path and the oldest others, so that each keeps its parent."""
    if limit is None or len(page.nodes) <= limit:
        return page
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
    return page


def _chars_of_one(page: PageDocument, bounds: PageBounds) -> int:
    """Return how long a text may be, so that one keeps its bound and all together keep theirs."""
    lengths = list[int]()

    def note(text: str) -> str:
        lengths.append(len(text))
        return text

    change_texts(page, note)
    limit = sys.maxsize if bounds.text_chars is None else bounds.text_chars
    left = sys.maxsize if bounds.all_chars is None else bounds.all_chars
    for place, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - place)
        if length > share:
            return min(limit, max(share, _LEAST_CHARS))
        left -= length
    return limit

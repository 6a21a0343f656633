"""How large a page may be: texts and lists are cut past a bound, and the page says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from .page import PageDocument, PageField, PageReason

T = TypeVar("T")


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


def bound_page(page: PageDocument, bounds: PageBounds = DEFAULT_BOUNDS) -> PageDocument:
    """Return a page cut to its bounds, the lists first; `cuts` says what was left out. The page itself is changed."""
    _cut_nodes(page, bounds.nodes)
    for name in ("questions", "calls", "notes"):
        entries: list[Any] = getattr(page, name)
        kept = _both_ends(entries, bounds.entries)
        setattr(page.cuts, name, len(entries) - len(kept))
        setattr(page, name, kept)
    left = {entry.id for entry in (*page.questions, *page.calls)}
    if page.cuts.questions or page.cuts.calls:
        for node in page.nodes:
            node.questions = [name for name in node.questions if name in left]
            node.calls = [name for name in node.calls if name in left]
        for each in page.rounds:
            each.questions = [name for name in each.questions if name in left]
        page.rounds = [each for each in page.rounds if each.questions]
        if page.critical_path is not None:
            page.critical_path.effects = [name for name in page.critical_path.effects if name in left]
        _drop_unused_prompts(page)
    limit = _limit(page, bounds)
    if limit is not None:
        _change_texts(page, lambda text: _cut(page, text, limit))
    return page


def _both_ends(entries: list[T], limit: int | None) -> list[T]:
    """Return the first and the last of a list, in their order."""
    if limit is None or len(entries) <= limit:
        return entries
    return [*entries[: limit // 2], *entries[len(entries) - (limit - limit // 2) :]]


def _cut_nodes(page: PageDocument, limit: int | None) -> None:
    """Keep the nodes of the path and the oldest others, so that each keeps its parent."""
    if limit is None or len(page.nodes) <= limit:
        return
    parents = {node.id: node.parent for node in page.nodes}
    kept = _names_to_keep(page, limit)
    page.cuts.nodes = len(page.nodes) - len(kept)
    page.nodes = [node for node in page.nodes if node.id in kept]
    homes: dict[str, str] = {}
    for name, parent in parents.items():
        homes[name] = name if name in kept else homes[parent or page.nodes[0].id]
    for entry in (*page.questions, *page.calls, *page.notes):
        entry.node = homes[entry.node]
    for node in page.nodes:
        node.merges = [name for name in node.merges if name in kept]
        node.revises = node.revises if node.revises in kept else None
    for vote in page.votes:
        vote.nodes = [name for name in vote.nodes if name in kept]
    for branch in page.branches:
        branch.start = branch.start if branch.start in kept else None


def _names_to_keep(page: PageDocument, limit: int) -> set[str]:
    """Return the ids of the root, of the path as far as there is room, and of the oldest others."""
    path = [node.id for node in page.nodes if node.state in ("answer", "on_path")]
    oldest = [node.id for node in page.nodes]
    kept = {oldest[0]}
    by_id = {node.id: node for node in page.nodes}
    for name in (*path, *oldest):
        if len(kept) >= limit:
            break
        if by_id[name].parent in kept:
            kept.add(name)
    return kept


def _drop_unused_prompts(page: PageDocument) -> None:
    """Leave only those lines of prompts that a question still has."""
    used: set[int] = set()
    for question in page.questions:
        here = question.prompt
        while here >= 0 and here not in used:
            used.add(here)
            here = page.prompts[here][0]
    places: dict[int, int] = {-1: -1}
    texts: dict[int, int] = {}
    prompts: list[tuple[int, int]] = []
    for place, (before, line) in enumerate(page.prompts):
        if place in used:
            places[place] = len(prompts)
            prompts.append((places[before], texts.setdefault(line, len(texts))))
    page.texts, page.prompts = [page.texts[line] for line in texts], prompts
    for question in page.questions:
        question.prompt = places[question.prompt]


def _limit(page: PageDocument, bounds: PageBounds) -> int | None:
    """Return how long a text may be, so that one keeps its bound and all together keep theirs."""
    limit = bounds.text_chars
    if bounds.all_chars is None:
        return limit
    lengths = sorted(map(len, _texts(page)))
    left, longest = bounds.all_chars, lengths[-1] if lengths else 0
    for place, length in enumerate(lengths):
        share = left // (len(lengths) - place)
        if length > share:
            longest = max(share, _LEAST_CHARS)
            break
        left -= length
    return longest if limit is None else min(limit, longest)


def _texts(page: PageDocument) -> Iterator[str]:
    found: list[str] = []

    def note(text: str) -> str:
        found.append(text)
        return text

    _change_texts(page, note)
    yield from found


def _cut(page: PageDocument, text: str, limit: int) -> str:
    over = len(text) - limit
    if over <= 0:
        return text
    page.cuts.texts += 1
    page.cuts.characters += over
    return f"{text[:limit]}… [{over:,} characters left out]"


_OPTIONAL = ("answer", "best_answer", "reply", "result")
_PLAIN = ("title", "problem", "detail", "text", "score_text", "name")


def _change_texts(page: PageDocument, change: Callable[[str], str]) -> None:
    """Change every text of any length."""
    _change(page, change)
    page.texts = [*map(change, page.texts)]
    page.warnings = [*map(change, page.warnings)]
    for node in page.nodes:
        _change(node, change)
        node.fields = [PageField(field.name, change(field.value)) for field in node.fields]
        node.why = _change_reason(node.why, change)
    for entry in (*page.questions, *page.calls):
        _change(entry, change)
        entry.error = _change_reason(entry.error, change)
    for question in page.questions:
        question.tries = [*map(change, question.tries)]
    for note in page.notes:
        _change(note, change)
    for vote in page.votes:
        vote.answer = change(vote.answer)
    for block in page.outline:
        _change(block, change)
        block.items = [*map(change, block.items)]
        block.rows = [[*map(change, row)] for row in block.rows]


def _change(part: Any, change: Callable[[str], str]) -> None:
    for name in _names(type(part)):
        text = getattr(part, name)
        if text is not None:
            setattr(part, name, change(text))


def _names(kind: Any) -> Sequence[str]:
    return [name for name in (*_PLAIN, *_OPTIONAL) if name in kind.__struct_fields__]


def _change_reason(why: PageReason | None, change: Callable[[str], str]) -> PageReason | None:
    return None if why is None else PageReason(why.code, change(why.text))

"""What holds of every page document, whatever it shows."""

import math
from collections.abc import Iterable

import msgspec

from reasonry.surfaces.web.page import PageCost, PageDocument


def check_page(page: PageDocument) -> None:
    """Check that the document is a tree, that every reference leads somewhere, and that costs add up."""
    again = msgspec.json.decode(msgspec.json.encode(page), type=PageDocument)
    assert msgspec.to_builtins(again) == msgspec.to_builtins(page)
    _check_tree(page)
    _check_references(page)
    _check_costs(page)
    for node in page.nodes:
        assert (node.state == "dropped") == (node.why is not None), node
        assert node.why is None or (node.why.code and node.why.text), node
    assert sum(node.state == "answer" for node in page.nodes) <= 1


def _check_tree(page: PageDocument) -> None:
    known = set[str]()
    for node in page.nodes:
        assert node.id not in known
        assert (node.parent is None) == (not known)
        assert node.parent is None or node.parent in known
        known.add(node.id)
    labels = [node.label for node in page.nodes if node.kind == "thought"]
    # In a session, it is whoever thinks that numbers the thoughts.
    assert page.kind == "session" or len(labels) == len({*labels}), labels


def _check_references(page: PageDocument) -> None:
    nodes = {node.id: node for node in page.nodes}
    for entries in (page.questions, page.calls):
        ids = [entry.id for entry in entries]
        assert len(ids) == len(set(ids))
        assert all(entry.node in nodes for entry in entries)
    assert all(note.node in nodes for note in page.notes)
    assert all(
        _are_in(nodes, (*node.merges, *([node.revises] if node.revises else ()))) for node in page.nodes
    )
    assert all(_are_in(nodes, vote.nodes) for vote in page.votes)
    assert all(0 <= place < len(page.texts) for question in page.questions for place in question.prompt)


def _are_in(nodes: Iterable[str], names: Iterable[str]) -> bool:
    return {*names} <= {*nodes}


def _check_costs(page: PageDocument) -> None:
    own = sum((node.cost for node in page.nodes), PageCost())
    used, dropped = page.used, page.cost_of_dropped
    if page.kind == "run":
        assert (own.calls, own.tokens) == (used["calls"], used["tokens"])
        assert math.isclose(own.usd or 0.0, used["usd"] or 0.0, abs_tol=1e-9)
    for name in ("calls", "tokens", "usd"):
        assert 0 <= (getattr(dropped, name) or 0) <= (used.get(name) or 0.0) + 1e-9

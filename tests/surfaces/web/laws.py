"""What holds of every page document, whatever it shows."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from reasonry.surfaces.web.page import PageCost, PageDocument, PromptLines


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
    for name, entries in (("questions", page.questions), ("calls", page.calls)):
        ids = [entry.id for entry in entries]
        assert len(ids) == len(set(ids))
        listed = [entry for node in page.nodes for entry in getattr(node, name)]
        assert sorted(listed) == sorted(ids)
        assert all(entry.id in getattr(nodes[entry.node], name) for entry in entries)
    assert all(note.node in nodes for note in page.notes)
    assert all(
        _are_in(nodes, (*node.merges, *([node.revises] if node.revises else ()))) for node in page.nodes
    )
    assert all(_are_in(nodes, vote.nodes) for vote in page.votes)
    assert all(branch.start is None or branch.start in nodes for branch in page.branches)
    assert all(before < place for place, (before, _) in enumerate(page.prompts))
    assert all(0 <= line < len(page.texts) for _, line in page.prompts)
    assert all(-1 <= question.prompt < len(page.prompts) for question in page.questions)
    in_rounds = [name for each in page.rounds for name in each.questions]
    assert sorted(in_rounds) == sorted(
        question.id for question in page.questions if question.round is not None
    )
    for each in (*page.questions, *page.calls):
        PromptLines.whole(page, getattr(each, "prompt", -1))


def _are_in(nodes: Iterable[str], names: Iterable[str]) -> bool:
    return {*names} <= {*nodes}


def _check_costs(page: PageDocument) -> None:
    own = sum((node.cost for node in page.nodes), PageCost())
    whole = page.nodes[0].subtree_cost
    used = {spend.name: spend.used for spend in page.spend}
    if page.kind == "run":
        assert (whole.calls, whole.tokens) == (own.calls, own.tokens) == (used["calls"], used["tokens"])
        assert math.isclose(whole.usd or 0.0, used["usd"] or 0.0, abs_tol=1e-9)
    below: dict[str, PageCost] = {}
    for node in reversed(page.nodes):
        assert node.subtree_cost.calls == node.cost.calls + below.get(node.id, PageCost()).calls
        if node.parent is not None:
            below[node.parent] = below.get(node.parent, PageCost()) + node.subtree_cost
    for spend in page.spend:
        assert spend.on_dropped is None or 0 <= spend.on_dropped <= (spend.used or 0.0) + 1e-9

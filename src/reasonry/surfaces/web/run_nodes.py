"""Builds the nodes of a run's page from the run's result document or from its thoughts.

The module does not depend on the strategy. It builds nodes from each part of the result document that has one of the
shapes below, and ignores all other parts. Members after `|` are optional.

    tree        {"nodes": {ID: {"id", "content" | "parent_id", "score", "children", "status", "why", "dropped"}}}
    best        | {"path_ids": [ID, …]}, the path to the answer in the tree
    drafts      [{"id" | "answer", "vote", "dropped", "improves", "inside"}], also named `samples`; `vote` is an answer
                in votes: [{"answer", "count"}]; a draft that improves another draft has no vote of its own
    iterations  [{"id", "iteration" | "plans", "selected_plan", "decision", "complexity"}]
    plans       [{"id", "plan" | "tasks": [{"resource_name", "task_query"}], "overall_score", "reason"}]
    tasks       [{"id", "iteration" | "task_query", "status", "reason", "result", "attempts", "errors", …}]

`dropped` is {"code", "text"}. Nodes keep the ids of the document, since the `about` of an effect is the id of a node.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from ...guided.export import stages_of
from ...guided.transcripts import instant_ms
from ..present import count_of
from ..run_report import score_of
from .page import NodeState, PageNode, PageReason, PageVote

ROOT = "root"

Document = Mapping[str, Any]
T = TypeVar("T")


def read_part(read: Callable[[], T], default: T) -> T:
    """Call `read` to read a part of a result document. If the part is missing or malformed, return `default`."""
    try:
        return read()
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError, msgspec.ValidationError):
        return default


def _node(**members: Any) -> PageNode:
    """Return a node with these members. Raise `ValidationError` if a member has the wrong type."""
    return msgspec.convert(members, PageNode)


def first_nodes(document: Document, problem: str, abouts: Iterable[str]) -> dict[str, PageNode]:
    """Return the nodes in a result document by id, including the root. Each parent precedes its children.

    Args:
        abouts: The `about` of each effect of the run: the id of the node that the effect is about.
    """
    if tree := read_part(lambda: _tree_nodes(document), {}):
        return tree
    state: NodeState = "expanded" if document["answer"] is None else "on_path"
    root = PageNode(id=ROOT, parent=None, kind="problem", label="Problem", text=problem, state=state)
    nodes = {ROOT: root, **read_part(lambda: _draft_nodes(document, abouts), {})}
    for found in read_part(lambda: [_iteration_nodes(document, each) for each in document["iterations"]], []):
        added = {node.id: node for node in found}
        if len(added) == len(found) and nodes.keys().isdisjoint(added):
            nodes |= added
    return nodes


def is_active(document: Document) -> bool:
    """Whether a run has not ended."""
    return document["status"] == "active"


def _why_left_open(document: Document) -> PageReason:
    ending = document["termination"]
    reason = str(ending.get("reason", ""))
    is_limit = reason.startswith("max_") or (document["outcome"] == "stopped" and reason != "cancelled")
    codes = {"stopped": "cancelled", "error": "failed", "unsolved": "failed"}
    code = "limit" if is_limit else codes.get(document["outcome"], "not_selected")
    detail = ending.get("detail") or reason
    return PageReason(code, f"the run ended before it was taken further: {detail}")


# -- a tree


def _tree_nodes(document: Document) -> dict[str, PageNode]:
    """Return the nodes of a result document's tree, by id. Each parent precedes its children."""
    path = (document.get("best") or {}).get("path_ids") or ()
    siblings, nodes = Counter[str | None](), dict[str, PageNode]()
    for name, entry in document["tree"]["nodes"].items():
        parent, score = entry.get("parent_id"), entry.get("score")
        above = nodes[parent] if nodes else None
        siblings[parent] += 1
        # The label joins the places of the ancestors and the place of the node itself: `2.1`.
        place = f"{siblings[parent]}"
        label = "Problem" if above is None else place if above.parent is None else f"{above.label}.{place}"
        state, why = _tree_state(document, entry, path)
        nodes[entry["id"]] = _node(
            id=name,
            parent=parent,
            kind="problem" if above is None else "thought",
            label=label,
            text=entry["content"],
            score=score,
            score_text="" if score is None else f"{score:.2f}",
            state=state,
            why=why,
        )
    root = next(iter(nodes.values()), None)
    if root is None or root.parent is not None or any(name != node.id for name, node in nodes.items()):
        raise ValueError("this is no tree")
    return nodes


def _tree_state(document: Document, entry: Document, path: Sequence[str]) -> tuple[NodeState, Any]:
    if entry["id"] in path or entry.get("parent_id") is None:
        has_answer = document["answer"] is not None and not is_active(document)
        if has_answer and path and entry["id"] == path[-1]:
            return "answer", None
        return "on_path" if entry["id"] in path else "expanded", None
    if (dropped := entry.get("dropped")) is not None:
        return "dropped", dropped
    if entry.get("status") == "pruned":
        return "dropped", PageReason("refuted", str(entry.get("why") or "it is known to lead nowhere"))
    if is_active(document):
        return "expanded" if entry.get("children") else "open", None
    if entry.get("children"):
        return "dropped", PageReason("not_selected", "no path through it was chosen")
    return "dropped", _why_left_open(document)


# -- drafts


def _drafts_of(document: Document) -> Any:
    return document.get("drafts", document.get("samples"))


def _draft_nodes(document: Document, abouts: Iterable[str]) -> dict[str, PageNode]:
    leader = next((vote.answer for vote in votes_of(document) if vote.leads), None)
    known = {draft["id"]: draft for draft in _drafts_of(document) if draft["id"] != ROOT}
    nodes = dict[str, PageNode]()
    asked = (about.partition("/")[0] for about in abouts if about)
    for name in sorted(dict.fromkeys([*known, *asked]), key=_number):
        draft, kind = known.get(name, {}), name.partition("-")[0]
        answer = draft.get("answer")
        is_open = answer is None and draft.get("dropped") is None
        why = None if is_open and is_active(document) else _why_uncounted(draft, leader)
        node = nodes[name] = _node(
            id=name,
            parent=ROOT,
            kind=kind,
            label=f"{kind.capitalize()} {_number(name)}",
            state="dropped" if why else "open" if is_open else "on_path",
            why=why,
            score_text=answer or "",
        )
        if draft.get("inside"):
            nodes |= _nodes_inside(node, draft, is_open=is_open)
    return nodes


def _nodes_inside(above: PageNode, draft: Document, *, is_open: bool) -> dict[str, PageNode]:
    """Return the nodes of a draft's inner run as descendants of `above`, the node of the draft."""
    over = {"status": "done", "outcome": "answered", "termination": {"reason": "another path was chosen"}}
    over = {"status": "active"} if is_open else over
    inside = {**draft["inside"], **over, "answer": draft.get("answer")}
    root, *found = first_nodes(inside, "", ()).values()
    for node in found:
        node.parent = above.id if node.parent == root.id else f"{above.id}/{node.parent}"
        node.id, node.label = f"{above.id}/{node.id}", f"{above.label} · {node.label}"
        if node.state != "dropped":
            node.state, node.why = above.state, above.why
    return {node.id: node for node in found}


def _why_uncounted(draft: Document, leader: str | None) -> Any:
    """Return the reason why a draft does not support the leading answer. If the draft supports it, return None."""
    if not draft:
        return PageReason("cancelled", "the run did not wait for it to its end")
    if (dropped := draft.get("dropped")) is not None:
        return dropped
    if draft.get("vote") == leader:
        return None
    return PageReason("differs", f"it answered {draft.get('answer')}; {leader} leads")


def votes_of(document: Document) -> list[PageVote]:
    """Return the votes in a result document. Mark the vote for the run's answer, or else the first vote, as leading."""
    votes = read_part(lambda: {vote["answer"]: vote["count"] for vote in document["votes"]}, {})
    leader = document["answer"] if document["answer"] in votes else next(iter(votes), None)
    voters = [draft for draft in _drafts_of(document) or () if not draft.get("improves")]
    shown = [
        {
            "answer": answer,
            "count": count,
            "nodes": [draft["id"] for draft in voters if draft.get("vote") == answer],
            "leads": answer == leader,
        }
        for answer, count in votes.items()
    ]
    return msgspec.convert(shown, list[PageVote])


def _number(name: str) -> int:
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isdecimal() and len(digits) < 10 else 0


# -- iterations


def _iteration_nodes(document: Document, iteration: Document) -> list[PageNode]:
    is_open, above, number = is_active(document), iteration["id"], iteration["iteration"]
    plans, selected = iteration.get("plans") or (), iteration.get("selected_plan")
    tasks = read_part(lambda: [task for task in document["tasks"] if task["iteration"] == number], [])
    counts = (len(plans), "plan"), (len(tasks), "task")
    nodes = [
        _node(
            id=iteration["id"],
            parent=ROOT,
            kind="iteration",
            label=f"Iteration {number}",
            text=", ".join(count_of(count, name) for count, name in counts if count),
            state="open" if is_open else "on_path",
            data={name: iteration.get(name) for name in ("complexity", "decision")},
        )
    ]
    for plan in plans:
        is_selected = plan["plan"] == selected
        state = "on_path" if is_selected else "open" if selected is None and is_open else "dropped"
        nodes.append(_plan_node(iteration["id"], plan, state))
        above = plan["id"] if is_selected else above
    return [*nodes, *(_task_node(above, place, task, document) for place, task in enumerate(tasks, 1))]


def _plan_node(iteration: str, plan: Document, state: NodeState) -> PageNode:
    score = plan.get("overall_score")
    points, tasks = score_of(score), enumerate(plan.get("tasks") or (), 1)
    code, start = ("score", f"it scored {points}; ") if points else ("not_selected", "")
    return _node(
        id=plan["id"],
        parent=iteration,
        kind="plan",
        label=f"Plan {plan['plan']}",
        text="\n".join(f"{n}. {task.get('resource_name')}: {task.get('task_query')}" for n, task in tasks),
        score=score,
        score_text=points,
        state=state,
        why=PageReason(code, f"{start}another plan was carried out") if state == "dropped" else None,
        data={"reason": plan.get("reason", "")},
    )


_TASK_CODES = {"REJECTED": "rejected", "FAILED": "failed", "SKIPPED": "skipped"}
_TASK_DATA = ("resource_name", "reason", "result", "attempts", "errors")


def _task_node(parent: str, place: int, task: Document, document: Document) -> PageNode:
    status, reason = task.get("status", ""), task.get("reason")
    state, why = "on_path" if status == "ACCEPTED" else "open" if is_active(document) else "dropped", None
    if status in _TASK_CODES:
        state, why = "dropped", PageReason(_TASK_CODES[status], str(reason or status.lower()))
    elif state == "dropped":
        why = _why_left_open(document)
    return _node(
        id=task["id"],
        parent=parent,
        kind="task",
        label=f"Task {place}",
        text=task.get("task_query", ""),
        state=state,
        why=why,
        data={name: task.get(name) for name in _TASK_DATA},
    )


# -- thoughts


def add_thoughts(
    nodes: dict[str, PageNode], thoughts: Iterable[Document], begun_at_ms: int
) -> dict[str, str]:
    """Add a node to `nodes` for each thought. Return the id of the last node on each branch, by branch id."""
    root = next(iter(nodes))
    ends, numbers = {"": root}, dict[int, str]()

    def refers_to(thought: Document, seq: str, number: str) -> str | None:
        """Return the id of the node that a thought names in the member `seq` or, if `seq` is missing, in `number`."""
        named = f"t{thought[seq]}" if seq in thought else numbers.get(thought.get(number, 0))
        return named if named in nodes else None

    for thought in thoughts:
        name, branch, number = f"t{thought['seq']}", thought.get("branch_id") or "", thought["thought_number"]
        parent = ends.get(branch) or refers_to(thought, "branch_from_seq", "branch_from_thought") or ends[""]
        data, merge = thought.get("data") or {}, thought.get("merge_branch")
        merged = ends.get(merge) if merge else None
        score = thought.get("score", data.get("score"))
        score = score if isinstance(score, int | float) else None
        at, before = instant_ms(thought["at"], 0) - begun_at_ms if "at" in thought else None, nodes[parent]
        nodes[name] = PageNode(
            id=name,
            parent=parent,
            kind="thought",
            label=f"Thought {number}",
            text=thought["thought"],
            stage=" → ".join(stages_of(thought)),
            branch=branch,
            score=score,
            score_text="" if score is None else f"{round(score, 2):g}",
            begun_at_ms=at if before.ended_at_ms is None else before.ended_at_ms,
            ended_at_ms=None if at is None else max(at, 0),
            revises=refers_to(thought, "revises_seq", "revises_thought"),
            merges=[merged] if merged else [],
            data=data,
        )
        ends[branch] = numbers[number] = name
    return ends

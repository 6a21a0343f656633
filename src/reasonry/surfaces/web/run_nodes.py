"""The nodes of a run, from what its result document has: a tree, samples, iterations; else from its thoughts.

No strategy is named here: a document that has a `tree`, `samples` or `iterations` of the shapes below is drawn by them,
whoever wrote it; one of another shape is not. Ids are those of the document, so that what an effect says it is `about`
finds its node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ...core.bodies import Thought
from ..present import count_of
from ..run_report import plan_name, score_of
from .page import NodeState, PageNode, PageReason, PageVote, mark_path

ROOT = "root"

Shape = TypeVar("Shape")


class TreeEntry(Struct, frozen=True):
    """A node of `tree.nodes`."""

    id: str
    content: str
    parent_id: str | None = None
    score: float | None = None
    children: tuple[str, ...] = ()
    status: str = ""
    why: str = ""
    dropped: PageReason | None = None


class SampleEntry(Struct, frozen=True):
    """One of `samples`; `vote` is the answer in `votes` that it counts to."""

    id: str
    answer: str | None = None
    vote: str | None = None
    dropped: PageReason | None = None
    inside: dict[str, Any] = {}

    @property
    def is_open(self) -> bool:
        """Whether it is at work."""
        return self.answer is None and self.dropped is None


class VoteEntry(Struct, frozen=True):
    """One of `votes`."""

    answer: str
    count: int


class DrawnCounts(Struct, frozen=True):
    """How many samples were drawn, how many the votes had made needless, and how sure they are."""

    samples_used: int = 0
    samples_saved: int = 0
    confidence: float | None = None


class PlanTask(Struct, frozen=True):
    """A task as a plan has it."""

    resource_name: str = ""
    task_query: str = ""


class PlanEntry(Struct, frozen=True):
    """One of the `plans` of an iteration."""

    id: str
    number: int
    tasks: tuple[PlanTask, ...] = ()
    overall_score: float | None = None
    reason: str = ""


class IterationEntry(Struct, frozen=True):
    """One of `iterations`."""

    id: str
    iteration: int
    plans: tuple[PlanEntry, ...] = ()
    selected_plan: int | None = None
    decision: Any = None
    complexity: Any = None


class TaskEntry(Struct, frozen=True):
    """One of `tasks`."""

    id: str
    iteration: int
    query: str = ""
    status: str = ""
    reason: str = ""
    resource_name: str = ""
    result: Any = None
    attempts: int = 0
    errors: list[str] = []


def read_shape(value: Any, shape: type[Shape], *path: str) -> Shape | None:
    """Return the part of a result document that a path leads to, or None where it has another shape."""
    try:
        for name in path:
            value = value[name]
        return msgspec.convert(value, shape)
    except (KeyError, TypeError, msgspec.ValidationError, RecursionError):
        return None


def first_nodes(document: Mapping[str, Any], problem: str, abouts: Iterable[str]) -> dict[str, PageNode]:
    """Return the root and the nodes that the result document has, by id, parents first.

    Args:
        abouts: What the effects of the run say they are about.
    """
    tree = read_shape(document, dict[str, TreeEntry], "tree", "nodes")
    if tree is not None and _is_tree(tree):
        return _tree_nodes(document, tree)
    state: NodeState = "expanded" if document["answer"] is None else "on_path"
    root = PageNode(id=ROOT, parent=None, kind="problem", label="Problem", text=problem, state=state)
    nodes = {ROOT: root}
    samples = read_shape(document, list[SampleEntry], "samples")
    if samples is not None:
        _add_samples(nodes, document, samples, abouts)
    tasks = read_shape(document, list[TaskEntry], "tasks") or []
    for iteration in read_shape(document, list[IterationEntry], "iterations") or ():
        _add_iteration(nodes, document, iteration, tasks)
    return nodes


def is_active(document: Mapping[str, Any]) -> bool:
    """Whether a run is not over."""
    return document["status"] == "active"


def why_left_open(document: Mapping[str, Any]) -> PageReason:
    """Return why something that a run that is over left open was not taken further."""
    ending = document["termination"]
    reason = str(ending.get("reason", ""))
    is_limit = reason.startswith("max_") or (document["outcome"] == "stopped" and reason != "cancelled")
    codes = {"stopped": "cancelled", "error": "failed", "unsolved": "failed"}
    code = "limit" if is_limit else codes.get(document["outcome"], "not_selected")
    detail = ending.get("detail") or reason
    return PageReason(code, f"the run ended before it was taken further: {detail}")


# -- a tree


def _is_tree(tree: Mapping[str, TreeEntry]) -> bool:
    """Whether there is one root, and every parent stands before its children."""
    known = set[str]()
    for name, entry in tree.items():
        if entry.id != name or (entry.parent_id not in known if known else entry.parent_id is not None):
            return False
        known.add(name)
    return bool(known)


def _tree_nodes(document: Mapping[str, Any], tree: Mapping[str, TreeEntry]) -> dict[str, PageNode]:
    path = read_shape(document, tuple[str, ...], "best", "path_ids") or ()
    siblings = Counter[str | None]()
    nodes: dict[str, PageNode] = {}
    for name, entry in tree.items():
        siblings[entry.parent_id] += 1
        above = nodes.get(entry.parent_id or "")
        # After its place and those above it: `2.1`.
        place = f"{siblings[entry.parent_id]}"
        label = "Problem" if above is None else place if above.parent is None else f"{above.label}.{place}"
        state, why = _tree_state(document, entry, path)
        nodes[name] = PageNode(
            id=name,
            parent=entry.parent_id,
            kind="problem" if above is None else "thought",
            label=label,
            text=entry.content,
            score=entry.score,
            score_text="" if entry.score is None else f"{entry.score:.2f}",
            state=state,
            why=why,
        )
    return nodes


def _tree_state(
    document: Mapping[str, Any], entry: TreeEntry, path: Sequence[str]
) -> tuple[NodeState, PageReason | None]:
    if entry.id in path or entry.parent_id is None:
        has_answer = document["answer"] is not None and not is_active(document)
        if has_answer and path and entry.id == path[-1]:
            return "answer", None
        return "on_path" if entry.id in path else "expanded", None
    if entry.dropped is not None:
        return "dropped", entry.dropped
    if entry.status == "pruned":
        return "dropped", PageReason("refuted", entry.why or "it is known to lead nowhere")
    if is_active(document):
        return "expanded" if entry.children else "open", None
    if entry.children:
        return "dropped", PageReason("not_selected", "no path through it was chosen")
    return "dropped", why_left_open(document)


# -- samples


def _add_samples(
    nodes: dict[str, PageNode],
    document: Mapping[str, Any],
    samples: Sequence[SampleEntry],
    abouts: Iterable[str],
) -> None:
    leader = next((vote.answer for vote in votes_of(document) if vote.leads), None)
    known = {sample.id: sample for sample in samples if sample.id != ROOT}
    names = dict.fromkeys([*known, *(about.partition("/")[0] for about in abouts if about)])
    for name in sorted(names, key=_number):
        sample = known.get(name)
        is_open = sample is None or sample.is_open
        why = None if is_open and is_active(document) else _why_uncounted(sample, leader)
        state: NodeState = "dropped" if why else "open" if is_open else "on_path"
        answer = sample.answer or "" if sample else ""
        label = f"Sample {_number(name)}"
        nodes[name] = PageNode(
            id=name, parent=ROOT, kind="sample", label=label, state=state, why=why, score_text=answer
        )
        if sample is not None and sample.inside:
            nodes |= _nodes_inside(nodes[name], document, sample)


def _nodes_inside(sample: PageNode, document: Mapping[str, Any], entry: SampleEntry) -> dict[str, PageNode]:
    """Return the nodes of the run inside a sample, beneath it; none of them leads to an answer that it does not."""
    over = {"status": "done", "outcome": "answered", "termination": {"reason": "another path was chosen"}}
    over = {"status": "active"} if entry.is_open else over
    root, *found = first_nodes({**entry.inside, **over, "answer": entry.answer}, "", ()).values()
    for node in found:
        node.parent = sample.id if node.parent == root.id else f"{sample.id}/{node.parent}"
        node.id, node.label = f"{sample.id}/{node.id}", f"{sample.label} · {node.label}"
        if node.state != "dropped":
            node.state, node.why = sample.state, sample.why
    return {node.id: node for node in found}


def _why_uncounted(sample: SampleEntry | None, leader: str | None) -> PageReason | None:
    """Return why a sample of a run that is over does not count to the leader; None where it does."""
    if sample is None:
        return PageReason("cancelled", "it was not waited for any longer")
    if sample.dropped is not None:
        return sample.dropped
    if sample.vote == leader:
        return None
    return PageReason("differs", f"it answered {sample.answer}; {leader} leads")


def votes_of(document: Mapping[str, Any]) -> list[PageVote]:
    """Return the votes of a document; none where it has none. The answer that was given leads, else the first."""
    votes = read_shape(document, list[VoteEntry], "votes") or []
    samples = read_shape(document, list[SampleEntry], "samples") or []
    answers = [vote.answer for vote in votes]
    leader = document["answer"] if document["answer"] in answers else next(iter(answers), None)
    return [
        PageVote(
            answer=vote.answer,
            count=vote.count,
            nodes=[sample.id for sample in samples if sample.vote == vote.answer],
            leads=vote.answer == leader,
        )
        for vote in votes
    ]


def _number(name: str) -> int:
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isdecimal() and len(digits) < 10 else 0


# -- iterations


def _add_iteration(
    nodes: dict[str, PageNode],
    document: Mapping[str, Any],
    iteration: IterationEntry,
    tasks: Sequence[TaskEntry],
) -> None:
    is_open, above = is_active(document), iteration.id
    own = [task for task in tasks if task.iteration == iteration.iteration]
    counts = (len(iteration.plans), "plan"), (len(own), "task")
    parts = [
        PageNode(
            id=iteration.id,
            parent=ROOT,
            kind="iteration",
            label=f"Iteration {iteration.iteration}",
            text=", ".join(count_of(count, name) for count, name in counts if count),
            state="open" if is_open else "on_path",
            data={"complexity": iteration.complexity, "decision": iteration.decision},
        )
    ]
    for plan in iteration.plans:
        is_selected = plan.number == iteration.selected_plan
        waits = iteration.selected_plan is None and is_open
        parts.append(
            _plan_node(iteration.id, plan, "on_path" if is_selected else "open" if waits else "dropped")
        )
        above = plan.id if is_selected else above
    parts += [_task_node(above, place, task, document) for place, task in enumerate(own, 1)]
    found = {node.id: node for node in parts}
    if len(found) == len(parts) and nodes.keys().isdisjoint(found):
        nodes |= found


def _plan_node(iteration: str, plan: PlanEntry, state: NodeState) -> PageNode:
    points = score_of(plan.overall_score)
    lines = (f"{place}. {task.resource_name}: {task.task_query}" for place, task in enumerate(plan.tasks, 1))
    code, start = ("score", f"it scored {points}; ") if points else ("not_selected", "")
    return PageNode(
        id=plan.id,
        parent=iteration,
        kind="plan",
        label=plan_name(plan.number),
        text="\n".join(lines),
        score=plan.overall_score,
        score_text=points,
        state=state,
        why=PageReason(code, f"{start}another plan was carried out") if state == "dropped" else None,
        data={"reason": plan.reason},
    )


_TASK_CODES = {"REJECTED": "rejected", "FAILED": "failed", "SKIPPED": "skipped"}


def _task_node(parent: str, place: int, task: TaskEntry, document: Mapping[str, Any]) -> PageNode:
    state: NodeState = (
        "on_path" if task.status == "ACCEPTED" else "open" if is_active(document) else "dropped"
    )
    why = None if state != "dropped" else why_left_open(document)
    if task.status in _TASK_CODES:
        state, why = "dropped", PageReason(_TASK_CODES[task.status], task.reason or task.status.lower())
    return PageNode(
        id=task.id,
        parent=parent,
        kind="task",
        label=f"Task {place}",
        text=task.query,
        state=state,
        why=why,
        data={
            name: getattr(task, name) for name in ("resource_name", "reason", "result", "attempts", "errors")
        },
    )


# -- thoughts


def add_thoughts(
    nodes: dict[str, PageNode], thoughts: Sequence[Thought], document: Mapping[str, Any]
) -> list[str]:
    """Add a node for each thought, on the line it continues; return their ids, in the order of the thoughts."""
    root = next(iter(nodes))
    ends: dict[str | None, str] = {None: root}
    names: list[str] = []
    for number, thought in enumerate(thoughts, 1):
        name = f"t{number}"
        above = ends.get(thought.branch) or ends.get(thought.leaves) or ends[None]
        nodes[name] = PageNode(
            id=name,
            parent=above,
            kind="thought",
            label=f"Thought {number}",
            text=thought.text,
            stage=thought.stage,
            branch=thought.branch or "",
            score=thought.score,
            score_text="" if thought.score is None else f"{thought.score:.2f}",
            revises=f"t{thought.revises}" if thought.revises and 0 < thought.revises < number else None,
            data=thought.data,
        )
        ends[thought.branch] = name
        names.append(name)
    if ends[None] != root:
        has_answer = document["answer"] is not None
        end: NodeState = "open" if is_active(document) else "answer" if has_answer else "on_path"
        mark_path({name: node for name, node in nodes.items() if name != root}, ends[None], end)
    return names

"""Graph of thoughts: split a list, sort the parts, merge them, and keep the best of several tries at each node.

Besta et al. 2023, "Graph of Thoughts: Solving Elaborate Problems with Large Language Models", arXiv:2308.09687; its
sorting task.

Algorithm, for a list X, with k tries a node:

    X_1, …, X_n = split(X)                                      splitting       no call
    S_i = argmin_j errors(y_j), y_j ~ p(y | sort X_i)           sorting         all parts side by side
    M = argmin_j errors(y_j), y_j ~ p(y | merge S_i, S_{i+1})   merging         pair by pair, until one is left
    M' = argmin_j errors(y_j), y_j ~ p(y | correct M)           improvement     while there are errors

*Differs from the paper*: tries are asked side by side; a correction that is worse than what it corrects is dropped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from itertools import pairwise
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from reasonry.ext import (
    Ask,
    Body,
    Conclusion,
    Move,
    Request,
    Stage,
    Strategy,
    Thought,
    fail,
    go,
    request,
    stay,
)

SORT = "Sort this list in ascending order, with every number as often as it is there."
MERGE = "Merge these two sorted lists into one sorted list, with every number as often as it is in both."
CORRECT = "The second list is to be the first, sorted. Correct it: order its numbers, and add those that are missing."
FORM = '{"numbers": [1, 2, …]}'

Numbers = tuple[int, ...]


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of graph of thoughts."""

    part: Annotated[int, Meta(ge=2, le=64, description="Numbers of a part.")] = 16
    tries: Annotated[int, Meta(ge=1, le=20, description="Tries at a part, a merge or a correction.")] = 3
    corrections: Annotated[int, Meta(ge=0, le=10, description="Rounds of corrections at most.")] = 2


class Sorted(Struct, frozen=True):
    """A list."""

    numbers: Annotated[Numbers, Meta(description="The whole list, in order.")]


class Node(Struct, frozen=True):
    """A node of the graph: the numbers it is made of, and the best try at sorting them."""

    source: Numbers
    best: Numbers = ()

    @property
    def errors(self) -> int:
        """Numbers too many or too few, and neighbors in the wrong order."""
        wanted, there = Counter(self.source), Counter(self.best)
        return ((wanted - there) + (there - wanted)).total() + sum(a > b for a, b in pairwise(self.best))


class State(Struct, frozen=True, omit_defaults=True):
    """The nodes of the level that is worked on."""

    problem: str
    options: Options
    nodes: tuple[Node, ...] = ()
    corrected: int = 0


def split(s: State) -> Move:
    """Split X into X_1, …, X_n."""
    numbers = tuple(map(int, re.findall(r"-?\d+", s.problem)))
    if len(numbers) < 2:
        return fail(s, "error", "the problem holds no list of whole numbers")
    parts = [numbers[start : start + s.options.part] for start in range(0, len(numbers), s.options.part)]
    return go(replace(s, nodes=tuple(map(Node, parts))), "sorting", Thought(f"{len(parts)} parts"))


def sort(s: State) -> Body:
    """S_i = argmin_j errors(y_j), all parts side by side."""
    nodes = yield from best_of(s, s.nodes, [f"{SORT}\n{list(node.source)}" for node in s.nodes])
    return go(replace(s, nodes=nodes), "merging", list_nodes(nodes))


def merge(s: State) -> Body:
    """M = argmin_j errors(y_j), pair by pair; stay until one list is left."""
    if len(s.nodes) == 1:
        return go(s, "improvement")
    pairs = list(zip(s.nodes[::2], s.nodes[1::2], strict=False))
    tasks = [f"{MERGE}\n{list(one.best)}\n{list(two.best)}" for one, two in pairs]
    merged = yield from best_of(s, [Node(one.source + two.source) for one, two in pairs], tasks)
    nodes = (*merged, *s.nodes[2 * len(pairs) :])
    return stay(replace(s, nodes=nodes), list_nodes(nodes))


def improve(s: State) -> Body:
    """M' = argmin_j errors(y_j), M among them; stay while there are errors and corrections left."""
    (node,) = s.nodes
    if not node.errors or s.corrected >= s.options.corrections:
        return go(s, "final_response")
    nodes = yield from best_of(s, s.nodes, [f"{CORRECT}\n{list(node.source)}\n{list(node.best)}"])
    return stay(replace(s, nodes=nodes, corrected=s.corrected + 1), list_nodes(nodes))


def best_of(
    s: State, nodes: Sequence[Node], tasks: Sequence[str]
) -> Generator[Request, Any, tuple[Node, ...]]:
    """Have each task tried several times, side by side; return each node with the try that has the fewest errors."""
    tries = range(s.options.tries)
    asks = [Ask(f"{task}\n{FORM}", sample=sample, about=f"part-{place}")
            for place, task in enumerate(tasks, 1) for sample in tries]  # fmt: skip
    replies = yield from request(s, *asks, give_failures=True)
    values = [getattr(reply, "value", None) for reply in replies]
    found = [value.numbers if isinstance(value, Sorted) else () for value in values]
    return tuple(
        min((node, *(replace(node, best=each) for each in found[place * len(tries) :][: len(tries)])),
            key=lambda node: node.errors)
        for place, node in enumerate(nodes)
    )  # fmt: skip


def list_nodes(nodes: Sequence[Node]) -> Thought:
    """Return the thought that shows the lists, with their errors."""
    return Thought("\n".join(f"{list(node.best)} ({node.errors} errors)" for node in nodes))


def conclude(s: State) -> Conclusion:
    """Return the list, once there is one."""
    if len(s.nodes) != 1 or not s.nodes[0].best:
        return Conclusion()
    return Conclusion(", ".join(map(str, s.nodes[0].best)), document={"errors": s.nodes[0].errors})


def _asking(
    name: str, to: str, description: str, body: Callable[[State], Body], *, repeats: bool
) -> Stage[State]:
    example = {"numbers": [1, 2, 3]}
    return Stage(
        name, (to,), description=description, body=body, repeats=repeats, reply=Sorted, example=example
    )


GRAPH_OF_THOUGHTS = Strategy(
    name="graph_of_thoughts",
    title="Graph of Thoughts",
    source="arXiv:2308.09687",
    summary="Sorts a list of whole numbers in parts and merges them: the task of the paper.",
    options=Options,
    state=State,
    conclude=conclude,
    stages=(
        Stage("problem_reception", ("splitting",), description="Take the list in."),
        Stage("splitting", ("sorting",), description="Split the list into parts.", body=split),
        _asking("sorting", "merging", "Sort each part.", sort, repeats=False),
        _asking("merging", "improvement", "Merge the parts, pair by pair.", merge, repeats=True),
        _asking("improvement", "final_response", "Correct what is wrong.", improve, repeats=True),
        Stage("final_response", description="The sorted list."),
    ),
)

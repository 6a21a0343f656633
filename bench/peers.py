"""The same work by other frameworks, where they have a way to do it; `uv sync --group bench` brings them.

LangGraph has no strategies ready made: its rows are graphs written as its documentation writes them, over the bare
client of these measurements, so that only the framework is measured. DSPy's voting is its own `majority` over `n=40`,
by its own client, which (3.4) asks for the completions one after another. DSPy has neither ReWOO nor tree of thoughts.
"""

import importlib.util
import operator
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypedDict

from brains import MOST_SAMPLES, question
from wire import Wire

from reasonry.reading.vote import tally

HAS_LANGGRAPH = importlib.util.find_spec("langgraph") is not None
HAS_DSPY = importlib.util.find_spec("dspy") is not None


def langgraph_votes(wire: Wire) -> Callable[[int], Awaitable[Any]]:
    """Return a graph that draws 40 samples side by side with `Send` and votes."""
    from langgraph.graph import END, START, StateGraph
    from langgraph.types import Send

    class State(TypedDict):
        number: int
        answers: Annotated[list[str], operator.add]

    async def sample(state: State) -> dict[str, Any]:
        return {"answers": [(await wire.ask(question(state["number"]), "answer"))["answer"]]}

    graph = StateGraph(State)
    graph.add_node("sample", sample)
    graph.add_node("vote", lambda state: {})
    graph.add_conditional_edges(
        START, lambda state: [Send("sample", {"number": state["number"]})] * MOST_SAMPLES, ["sample"]
    )
    graph.add_edge("sample", "vote")
    graph.add_edge("vote", END)
    compiled = graph.compile()

    async def run(number: int) -> Any:
        start = time.perf_counter()
        state = await compiled.ainvoke({"number": number, "answers": []})
        return tally(state["answers"])[0].answer, MOST_SAMPLES, 1, time.perf_counter() - start

    return run


def dspy_votes(url: str) -> Callable[[int], Awaitable[Any]]:
    """Return DSPy's chain of thought with 40 completions, and its majority."""
    import dspy

    lm = dspy.LM("openai/test-model", api_base=url, api_key="none", cache=False, temperature=0.7)
    dspy.configure(lm=lm, adapter=dspy.JSONAdapter())
    predict = dspy.ChainOfThought("question -> answer", n=MOST_SAMPLES)

    async def run(number: int) -> Any:
        start = time.perf_counter()
        prediction = await predict.acall(question=question(number))
        answer = dspy.majority(prediction, field="answer").answer
        drawn = len(prediction.completions)
        return answer, drawn, drawn, time.perf_counter() - start

    return run


def langgraph_rewoo(wire: Wire, problem: str) -> Callable[[], Awaitable[str]]:
    """Return planner, tool loop and solver as a graph, a tool a turn."""
    from langgraph.graph import END, START, StateGraph

    class State(TypedDict):
        plan: list[dict[str, str]]
        found: dict[str, str]
        answer: str

    async def plan(state: State) -> dict[str, Any]:
        return {"plan": (await wire.ask(problem, "calls"))["calls"], "found": {}}

    async def tool(state: State) -> dict[str, Any]:
        step = state["plan"][len(state["found"])]
        text = step["input"]
        for name, result in state["found"].items():
            text = text.replace(name, result)
        return {"found": {**state["found"], step["id"]: (await wire.ask(text, "result"))["result"]}}

    async def solve(state: State) -> dict[str, Any]:
        return {
            "answer": (await wire.ask("\n".join([problem, *state["found"].values()]), "answer"))["answer"]
        }

    graph = StateGraph(State)
    for name, node in (("plan", plan), ("tool", tool), ("solve", solve)):
        graph.add_node(name, node)
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "tool")
    graph.add_conditional_edges(
        "tool",
        lambda state: "tool" if len(state["found"]) < len(state["plan"]) else "solve",
        ["tool", "solve"],
    )
    graph.add_edge("solve", END)
    compiled = graph.compile()

    async def run() -> str:
        return (await compiled.ainvoke({"plan": [], "found": {}, "answer": ""}))["answer"]

    return run


class Search(TypedDict):
    """What the graph of a search knows."""

    problem: str
    beam: list[list[str]]
    level: int
    proposed: Annotated[list[Any], operator.add]
    votes: Annotated[list[Any], operator.add]
    answer: str


def langgraph_game24(  # noqa: C901, a graph is its nodes
    wire: Wire, problem: Callable[[tuple[int, ...]], str], breadth: int, width: int, samples: int, depth: int
) -> Callable[[tuple[int, ...]], Awaitable[Any]]:
    """Return tree of thoughts as a graph: propose for each node of the beam, value with each sample, keep the best."""
    from langgraph.graph import END, START, StateGraph
    from langgraph.types import Send

    def steps(state: Any, path: list[str]) -> str:
        return "\n".join([state["problem"], *path])

    async def propose(state: Any) -> dict[str, Any]:
        reply = await wire.ask(f"{steps(state, state['path'])}\nNext steps?", "thoughts")
        return {"proposed": [(state["level"], state["path"], reply["thoughts"][:width])]}

    async def value(state: Any) -> dict[str, Any]:
        shown = "\n".join(f"{at}. {one}" for at, one in enumerate(state["thoughts"], 1))
        reply = await wire.ask(f"{steps(state, state['path'])}\nValue:\n{shown}", "scores")
        return {"votes": [(state["level"], [*state["path"], one], reply["scores"][str(at)])
                          for at, one in enumerate(state["thoughts"], 1)]}  # fmt: skip

    def keep(state: Search) -> dict[str, Any]:
        sums: dict[tuple[str, ...], float] = {}
        for level, path, score in state["votes"]:
            if level == state["level"]:
                sums[tuple(path)] = sums.get(tuple(path), 0.0) + score
        best = sorted(sums, key=lambda path: -sums[path])[:breadth]
        return {"beam": [list(path) for path in best], "level": state["level"] + 1}

    async def formulate(state: Search) -> dict[str, Any]:
        return {"answer": (await wire.ask(f"{steps(state, state['beam'][0])}\nAnswer?", "answer"))["answer"]}

    def proposals(state: Search) -> Any:
        shared = {"problem": state["problem"], "level": state["level"]}
        return [Send("propose", {**shared, "path": path}) for path in state["beam"]]

    def valuations(state: Search) -> Any:
        shared = {"problem": state["problem"], "level": state["level"]}
        fresh = [one for one in state["proposed"] if one[0] == state["level"]]
        return [
            Send("value", {**shared, "path": p, "thoughts": t}) for _, p, t in fresh for _ in range(samples)
        ]

    graph = StateGraph(Search)
    nodes = {
        "propose": propose,
        "gather": lambda state: {},
        "value": value,
        "keep": keep,
        "formulate": formulate,
    }
    for name, node in nodes.items():
        graph.add_node(name, node)
    graph.add_conditional_edges(START, proposals, ["propose"])
    graph.add_edge("propose", "gather")
    graph.add_conditional_edges("gather", valuations, ["value"])
    graph.add_edge("value", "keep")
    graph.add_conditional_edges(
        "keep",
        lambda state: proposals(state) if state["level"] < depth else "formulate",
        ["propose", "formulate"],
    )
    graph.add_edge("formulate", END)
    compiled = graph.compile()
    calls = 1 + samples + (depth - 1) * breadth * (1 + samples) + 1

    async def run(numbers: tuple[int, ...]) -> Any:
        start = time.perf_counter()
        state = await compiled.ainvoke(
            {"problem": problem(numbers), "beam": [[]], "level": 0, "proposed": [], "votes": [], "answer": ""}
        )
        return state["answer"], calls, 2 * depth + 1, time.perf_counter() - start

    return run

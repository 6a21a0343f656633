"""A LangGraph node that solves a problem and streams its thoughts.

pip install reasonry langgraph
python examples/langgraph_node.py
"""
# LangGraph need not be installed where this file is checked.
# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
from typing import TypedDict

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph

import reasonry
from reasonry.ext import EndEvent, ThoughtEvent


class State(TypedDict, total=False):
    """What the graph carries."""

    problem: str
    answer: str | None


async def think(state: State) -> State:
    """Solve the problem; each thought goes to whoever streams the graph."""
    write, answer = get_stream_writer(), None
    async for event in reasonry.stream(state.get("problem"), model="offline", store="memory"):
        match event:
            case ThoughtEvent(thought=thought):
                write({"thought": thought.text})
            case EndEvent(result=result):
                answer = result.answer
            case _:
                pass
    return {"answer": answer}


async def main() -> None:
    """Stream the thoughts, then the answer."""
    graph = (
        StateGraph(State).add_node("think", think).add_edge(START, "think").add_edge("think", END).compile()
    )
    problem: State = {"problem": "Use 4, 9, 10 and 13 to make 24"}
    async for mode, part in graph.astream(problem, stream_mode=["custom", "updates"]):
        print(mode, part)


asyncio.run(main())

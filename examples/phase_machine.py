"""A plan agent as a state machine: analyse the code, research, design; each phase with its limit of steps.

    python examples/phase_machine.py

The machine owns the session: every phase thinks on in it, and what it is called is in the machine's context.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from agent_loop import Generated, ScriptedBrain, generate_text

import reasonry

MACHINE = {"analyze_code": "research", "research": "design", "design": "plan_complete"}
"""The phase that follows each phase; the last is final."""

SCRIPTS = {
    "analyze_code": ["Sessions are kept in a dictionary of the process."],
    "research": ["Others keep them in SQLite.", "One writer is enough for us."],
    "design": ["A table of sessions.", "A table of thoughts.", "Both are written in one transaction."],
}


@dataclass
class Context:
    """What the machine knows."""

    phase: str = "analyze_code"
    session_id: str | None = None
    thoughts: int = 0


async def run_phase(context: Context) -> Generated:
    """Let the agent think in one phase, with as many steps as the phase has."""
    script = SCRIPTS[context.phase]
    brain = ScriptedBrain(*script, answer=f"{context.phase} done", first=context.thoughts + 1)
    tool = reasonry.thinking_tool(context.session_id, store="memory")
    messages = [{"role": "user", "content": f"Plan durable sessions: {context.phase}"}]
    # Each thought is a step and so is the answer: a single shot has the thought alone.
    return await generate_text(
        brain, {tool.name: tool}, messages, max_steps=reasonry.loop_limit(context.phase)
    )


async def main() -> None:
    """Go through the phases and show what was thought."""
    context = Context()
    while context.phase != "plan_complete":
        generated = await run_phase(context)
        context.session_id = generated.session_id or context.session_id
        context.thoughts = generated.tool_results[-1]["thoughtHistoryLength"]
        steps, limit = len(generated.tool_results), reasonry.loop_limit(context.phase)
        print(f"{context.phase}: {steps} thoughts, at most {limit} steps")
        context.phase = MACHINE[context.phase]
    assert context.session_id is not None
    session = await reasonry.get_session(context.session_id, store="memory")
    assert session is not None
    print(f"{context.phase}: one session with {len(session['thoughts'])} thoughts")


if __name__ == "__main__":
    asyncio.run(main())

"""The loop that the examples of agents share: a brain thinks with tools until it answers, or has had its steps.

`ScriptedBrain` stands where a model would: it says what it was given, so that the examples run without a key.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]
Tool = Callable[..., Awaitable[dict[str, Any]]]


@dataclass
class Generated:
    """What came of a loop: the text, and the results of the tools on the way."""

    text: str
    tool_results: list[dict[str, Any]] = field(default_factory=list)

    @property
    def session_id(self) -> str | None:
        """The session that the tool thought in last."""
        return self.tool_results[-1]["sessionId"] if self.tool_results else None


class ScriptedBrain:
    """Plays a model: hands in its thoughts one by one, with the session id that the last result had, then answers.

    Args:
        thoughts: What it thinks.
        answer: What it says then.
        first: The number of its first thought.
    """

    def __init__(self, *thoughts: str, answer: str, first: int = 1) -> None:
        self.thoughts = list(thoughts)
        self.answer = answer
        self.first = first

    async def __call__(self, messages: list[Message]) -> Message:
        """Return a message: text, or the call of a tool with its arguments."""
        results = [message["content"] for message in messages if message["role"] == "tool"]
        number = self.first + sum(message["role"] == "tool" for message in messages)
        if number - self.first >= len(self.thoughts):
            return {"role": "assistant", "content": self.answer}
        call = {
            "thought": self.thoughts[number - self.first],
            "thoughtNumber": number,
            "totalThoughts": self.first + len(self.thoughts) - 1,
            "nextThoughtNeeded": number - self.first + 1 < len(self.thoughts),
            "sessionId": results[-1]["sessionId"] if results else None,
        }
        return {"role": "assistant", "tool": "sequentialthinking", "arguments": call}


async def generate_text(
    brain: Callable[[list[Message]], Awaitable[Message]],
    tools: Mapping[str, Tool],
    messages: list[Message],
    max_steps: int,
) -> Generated:
    """Run an agent's loop: each step is a text, which ends it, or the call of a tool."""
    generated = Generated("")
    conversation = list(messages)
    for _ in range(max_steps):
        message = await brain(conversation)
        if "tool" not in message:
            generated.text = message["content"]
            return generated
        result = await tools[message["tool"]](**message["arguments"])
        generated.tool_results.append(result)
        conversation += [message, {"role": "tool", "content": result}]
    return generated

"""What a loopback model server says: from a queue, by function, or data that fits the form of the reply."""

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from ..filling import fill
from .behaviour import Behaviour


class ChatRequest(Struct, frozen=True):
    """A request for a completion, opened up for whoever makes the reply.

    Args:
        prompt: All user messages, joined: the question, then the objections to replies.
        system: All system messages, joined.
        form: JSON schema of the wanted reply, if the request has one.
        number: Which request this is, counted from 1 in the order of arrival.
        sample: Which of the request's `n` samples, from 0.
        body: The whole request.
    """

    prompt: str
    system: str
    form: dict[str, Any] | None
    number: int
    sample: int
    body: dict[str, Any]


Reply = Callable[[ChatRequest], Any]
"""Makes a reply: text, or data that is sent as JSON, or None to leave it to the next in line."""


class Brain:
    """Decides what is said: the queue first, then the caller's function, last the form itself."""

    def __init__(self, behaviour: Behaviour, reply: Reply | None) -> None:
        self._queue = list(behaviour.replies)
        self._reply = reply

    def say(self, request: ChatRequest) -> str:
        """Return the reply's text."""
        found = self._queue.pop(0) if self._queue else None
        if found is None and self._reply is not None:
            found = self._reply(request)
        if found is None:
            found = by_form(request)
        return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def open_request(body: Mapping[str, Any], number: int, sample: int) -> ChatRequest:
    """Open up a chat completion request. Parts that are not as they should be count as absent."""
    messages = [one for one in _as_list(body.get("messages")) if isinstance(one, dict)]
    users = [text_of(one.get("content")) for one in messages if one.get("role") == "user"]
    systems = [text_of(one.get("content")) for one in messages if one.get("role") in ("system", "developer")]
    wanted = body.get("response_format")
    schema = wanted.get("json_schema") if isinstance(wanted, dict) else None
    form = schema.get("schema") if isinstance(schema, dict) else None
    return ChatRequest(
        prompt="\n\n".join(users),
        system="\n".join(systems),
        form=form if isinstance(form, dict) else None,
        number=number,
        sample=sample,
        body=dict(body),
    )


def text_of(content: Any) -> str:
    """Return a message's text, whether it came as a string or in parts."""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in _as_list(content) if isinstance(part, dict))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def by_form(request: ChatRequest) -> Any:
    """Return data that fits the request's form, or a sentence where it has none, with the answer marked as it asks."""
    chance = random.Random(f"{request.system}\0{request.prompt}\0{request.sample}")
    if request.form is None:
        answer = f"{chance.randrange(100)}"
        return f"The answer is {f'<answer>{answer}</answer>' if '<answer>' in request.prompt else answer}."
    return fill(request.form, chance, whole=True)

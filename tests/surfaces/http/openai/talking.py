"""A server with a model behind it, and OpenAI's client before it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openai

from ....servers import ChatRequest, ModelServer
from ..serving import Serving, serve_in_thread

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "letters": {"type": "integer"}},
    "required": ["city", "letters"],
    "additionalProperties": False,
}
WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "Today's weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CHAT_TOOLS: Any = [{"type": "function", "function": WEATHER}]
RESPONSE_TOOLS: Any = [{"type": "function", **WEATHER}]
ASK: Any = [{"role": "user", "content": "Where is it warm?"}]


def reply(request: ChatRequest) -> Any:
    """Ask for the weather of two cities, then say how many are sunny; elsewhere answer `Oslo` after a step."""
    if "This answer has been found" in request.prompt:
        if '"call"' in request.prompt:
            return {"call": {"tool": "get_weather", "arguments": {"city": "Rome"}}}
        return {"city": "Oslo", "letters": 4}
    if request.body.get("tools"):
        if "Observation" in request.prompt:
            return {"thought": "Now I know.", "answer": f"sunny in {request.prompt.count('sunny')}"}
        cities = [{"tool": "get_weather", "arguments": {"city": city}} for city in ("Rome", "Oslo")]
        return {"thought": "I ask for both.", "actions": cities}
    if "at length" in request.prompt:
        return "I say more. <answer>It is Oslo, the capital by the fjord.</answer>"
    if "<answer>" in request.prompt:
        return "The north has a capital.\n\nIt is by a fjord.\n<answer>Oslo</answer>"
    return None


class Talk:
    """What a test needs to talk to a server.

    Attributes:
        model: The server of the model.
    """

    def __init__(self, model: ModelServer, serving: Serving) -> None:
        self.model, self.serving = model, serving
        self._clients: list[openai.OpenAI] = []

    def client(self, token: str = "none", **options: Any) -> openai.OpenAI:
        """Return OpenAI's client, which tries nothing again."""
        options = {"max_retries": 0, "timeout": 20, **options}
        # Without TLS no certificates are read: that takes longer than most requests.
        http = openai.DefaultHttpxClient(verify=False)
        client = openai.OpenAI(base_url=f"{self.serving.url}/v1", api_key=token, http_client=http, **options)
        self._clients.append(client)
        return client

    def close(self) -> None:
        """Close the clients."""
        for client in self._clients:
            client.close()

    @property
    def calls(self) -> int:
        """How many requests the model has had."""
        return self.model.stats()["requests"]


@contextmanager
def talking(model: ModelServer, store: str = "memory", **settings: Any) -> Iterator[Talk]:
    """Serve an app whose default model is the one of a model server, listed as `small`."""
    environ = {"REASONRY_MODELS": f"small={model.model}"}
    with serve_in_thread(store, environ=environ, **settings) as serving:
        talk = Talk(model, serving)
        try:
            yield talk
        finally:
            talk.close()

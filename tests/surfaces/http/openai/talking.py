"""A server with a model behind it, and OpenAI's client before it."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import openai
from pydantic import BaseModel

from ....servers import ChatRequest, ModelServer
from ..serving import Serving, serve_in_thread


class City(BaseModel):
    """A form of an answer."""

    city: str
    letters: int


WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "Today's weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CHAT_TOOLS: Any = [{"type": "function", "function": WEATHER}]
RESPONSE_TOOLS: Any = [{"type": "function", **WEATHER}]
SMALL = "chain_of_thought@small"
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


def outputs_of(response: Any) -> list[Any]:
    """Return a result for each call that a response asks for."""
    calls = [item.call_id for item in response.output if item.type == "function_call"]
    return [{"type": "function_call_output", "call_id": call, "output": "sunny"} for call in calls]


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

    @cached_property
    def usual(self) -> openai.OpenAI:
        """The client of most tests."""
        return self.client()

    @property
    def prompt(self) -> str:
        """The last message that the model has had."""
        return self.model.bodies[-1]["messages"][-1]["content"]

    def chat(
        self, model: str = SMALL, messages: Any = ASK, client: openai.OpenAI | None = None, **options: Any
    ) -> Any:
        """Return a completion, or its chunks."""
        return (client or self.usual).chat.completions.create(model=model, messages=messages, **options)

    def respond(self, asked: Any, model: str = SMALL, **options: Any) -> Any:
        """Return a response, or its events."""
        return self.usual.responses.create(model=model, input=asked, **options)

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

"""Clients of other projects against `reasonry serve` over a model on this machine: each row is `ok`, or says why not.

    uv run python bench/clients.py

A client that is not installed is passed over, and the row says so; `uv run --with` brings pydantic-ai-slim[openai],
langchain, langchain-openai and instructor. Nothing leaves this machine.
"""

import asyncio
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any
from urllib.request import urlopen

import loopback
from pydantic import BaseModel
from reasonry_server import reasonry

from tests.servers import ModelServer
from tests.surfaces.http.openai.talking import ASK, CHAT_TOOLS, RESPONSE_TOOLS, reply

assert loopback, "it lets the servers of the tests be found"

MODEL, ACTING = "chain_of_thought@small", "react@small"
ROWS: list[tuple[str, Callable[[str], object]]] = []


class City(BaseModel):
    """A structured answer."""

    city: str
    letters: int


def row(name: str) -> Callable[[Callable[[str], object]], None]:
    """Add a row to the table; its function takes the base URL and returns what is wrong, or nothing."""
    return lambda check: ROWS.append((name, check))


def is_oslo(found: Any) -> object:
    return None if found.model_dump() == {"city": "Oslo", "letters": 4} else found


def newest_run(url: str) -> Any:
    """Return the run that was begun last."""
    with urlopen(f"{url.removesuffix('/v1')}/api/runs?limit=1") as found:
        return json.load(found)["runs"][0]


def is_cancelled(url: str) -> object:
    """Return how the run that was begun last ends, unless it is cancelled."""
    for _ in range(100):
        if (status := newest_run(url)["status"]) != "active":
            return None if status == "cancelled" else status
        time.sleep(0.05)
    return "active"


def openai_client(url: str) -> Any:
    import openai

    return openai.OpenAI(base_url=url, api_key="none", max_retries=0)


@row("openai: stream, the link to the page first")
def _(url: str) -> object:
    chunks = openai_client(url).chat.completions.create(model=MODEL, messages=ASK, stream=True)
    thoughts = [getattr(chunk.choices[0].delta, "reasoning_content", None) for chunk in chunks]
    first = next(filter(None, thoughts), "")
    return None if "/#/runs/" in first else first


@row("openai: tools where the strategy calls none, tools that are no functions, unknown fields")
def _(url: str) -> object:
    tools: Any = [*CHAT_TOOLS, {"type": "web_search"}]
    extra = {"client_metadata": {}, "num_ctx": 4096}
    sent: Any = {"model": MODEL, "messages": ASK, "tools": tools, "extra_body": extra}
    completion = openai_client(url).chat.completions.create(**sent)
    return None if completion.choices[0].message.content == "Oslo" else completion


@row("openai: a forced tool, and `auto` with tools")
def _(url: str) -> object:
    for model, choice in ((MODEL, "required"), ("auto@small", "auto")):
        sent: Any = {"model": model, "messages": ASK, "tools": CHAT_TOOLS, "tool_choice": choice}
        completion = openai_client(url).chat.completions.create(**sent)
        if not completion.choices[0].message.tool_calls:
            return completion
    return None


@row("openai: a response in the background, retrieved and deleted")
def _(url: str) -> object:
    client = openai_client(url)
    found = client.responses.create(model=MODEL, input="Which capital?", background=True)
    while found.status in ("queued", "in_progress"):
        time.sleep(0.05)
        found = client.responses.retrieve(found.id)
    client.responses.delete(found.id)
    return None if found.output_text == "Oslo" else found


@row("openai: a stream that is closed ends its run")
def _(url: str) -> object:
    with openai_client(url).chat.completions.create(
        model="tree_of_thoughts@small", messages=ASK, stream=True
    ) as chunks:
        next(iter(chunks))
    return is_cancelled(url)


@row("openai: Responses as Codex sends them")
def _(url: str) -> object:
    tools: Any = [{"type": "namespace", "name": "fs", "tools": []}, *RESPONSE_TOOLS]
    sent: Any = {"include": ["reasoning.encrypted_content"], "store": False, "prompt_cache_key": "x"}
    found = openai_client(url).responses.create(model=ACTING, input="Where is it warm?", tools=tools, **sent)
    return None if found.status == "completed" else found


def pydantic_agent(url: str, name: str, kind: str, **options: Any) -> Any:
    from pydantic_ai import Agent
    from pydantic_ai.models import openai
    from pydantic_ai.providers.openai import OpenAIProvider

    model = getattr(openai, kind)(name, provider=OpenAIProvider(base_url=url, api_key="none"))
    return Agent(model, **options)


@row("pydantic-ai: output_type, its default way, over both APIs")
def _(url: str) -> object:
    kinds = ("OpenAIChatModel", "OpenAIResponsesModel")
    agents = [pydantic_agent(url, MODEL, kind, output_type=City) for kind in kinds]
    return next(filter(None, (is_oslo(agent.run_sync("Which city?").output) for agent in agents)), None)


@row("pydantic-ai: tools, and a second turn")
def _(url: str) -> object:
    agent = pydantic_agent(url, ACTING, "OpenAIChatModel")

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """Today's weather."""
        return f"sunny in {city}"

    first = agent.run_sync("Where is it warm?")
    second = agent.run_sync("And now?", message_history=first.all_messages())
    return None if "sunny" in first.output and "sunny" in second.output else (first, second)


@row("pydantic-ai: a task that is cancelled ends its run")
def _(url: str) -> object:
    agent = pydantic_agent(url, "tree_of_thoughts@small", "OpenAIChatModel")

    async def cancel_soon() -> None:
        before = newest_run(url)["run_id"]
        task = asyncio.create_task(agent.run("Where is it warm?"))
        while await asyncio.to_thread(lambda: newest_run(url)["run_id"]) == before:
            await asyncio.sleep(0.05)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(cancel_soon())
    return is_cancelled(url)


@row("LangChain: a stream that is closed ends its run")
def _(url: str) -> object:
    from langchain_openai import ChatOpenAI

    sent: Any = {"model": "tree_of_thoughts@small", "base_url": url, "api_key": "none", "max_retries": 0}
    pieces: Any = ChatOpenAI(**sent).stream("Where is it warm?")
    next(pieces)
    pieces.close()
    return is_cancelled(url)


@row("LangChain: with_structured_output, both methods; create_agent with response_format")
def _(url: str) -> object:
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model=MODEL, base_url=url, api_key="none", max_retries=0)  # pyright: ignore
    for method in ("json_schema", "function_calling"):
        if wrong := is_oslo(model.with_structured_output(City, method=method).invoke("Which city?")):
            return wrong
    agent: Any = create_agent(model, tools=[], response_format=City)
    return is_oslo(agent.invoke({"messages": [("user", "Which city?")]})["structured_response"])


@row("instructor: a stream of parts")
def _(url: str) -> object:
    import instructor

    client: Any = instructor.from_openai(openai_client(url)).chat.completions
    parts = list(client.create_partial(model=MODEL, messages=ASK, response_model=City))
    return is_oslo(parts[-1])


@row("instructor: TOOLS, its default, and JSON_SCHEMA")
def _(url: str) -> object:
    import instructor

    for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA):
        client = instructor.from_openai(openai_client(url), mode=mode)
        sent: Any = {"model": MODEL, "messages": ASK, "response_model": City, "max_retries": 0}
        if wrong := is_oslo(client.chat.completions.create(**sent)):
            return wrong
    return None


@row("instructor: a call that times out ends its run")
def _(url: str) -> object:
    import instructor

    client: Any = instructor.from_openai(openai_client(url).with_options(timeout=0.2)).chat.completions
    sent: Any = {"model": "tree_of_thoughts@small", "messages": ASK, "response_model": City}
    with contextlib.suppress(Exception):
        client.create(**sent, max_retries=0)
    return is_cancelled(url)


def main() -> int:
    """Try each client; return whether one of them failed."""
    failed = False
    with (
        ModelServer(reply=reply, latency_ms=50) as model,
        tempfile.TemporaryDirectory() as folder,
        reasonry(folder, "--models", f"small={model.model}") as server,
    ):
        for name, check in ROWS:
            try:
                said = check(f"http://127.0.0.1:{server.port}/v1")
            except ModuleNotFoundError as error:
                print(f"-     {name}: {error}", flush=True)
                continue
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
            failed = failed or said is not None
            print(f"ok    {name}" if said is None else f"FAIL  {name}: {said!r:.300}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

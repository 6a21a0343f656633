"""A bare client for the baselines of the measurements, and how far a measurement has got."""

import json
import sys
from typing import Any

import httpx2


class Wire:
    """Asks the loopback model server."""

    def __init__(self, url: str) -> None:
        self.client = httpx2.AsyncClient(base_url=url, timeout=60)

    async def ask(self, prompt: str, *fields: str, system: str = "") -> dict[str, Any]:
        """Return a reply with these fields."""
        form = {"type": "object", "properties": {name: {} for name in fields}, "required": list(fields)}
        messages = [{"role": "system", "content": system}] if system else []
        body = {
            "model": "test-model",
            "messages": [*messages, {"role": "user", "content": prompt}],
            "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": form}},
        }
        response = await self.client.post("chat/completions", json=body)
        response.raise_for_status()
        return json.loads(response.json()["choices"][0]["message"]["content"])

    async def close(self) -> None:
        await self.client.aclose()


def progress(name: str, done: int, wanted: int) -> None:
    """Say on standard error how far a row has got; on a terminal the line goes when the row is done."""
    if sys.stderr.isatty():
        text = f"\r{name}: {done}/{wanted}" if done < wanted else "\r" + " " * 70 + "\r"
        print(text, end="", file=sys.stderr, flush=True)
    elif done == wanted:
        print(f"{name}: {done}/{wanted}", file=sys.stderr, flush=True)

"""The functions of the package."""

import asyncio
from pathlib import Path
from typing import Any

import reasonry
from reasonry.errors import NotFoundError, ReasonryError
from reasonry.surfaces.python.streaming import EndEvent

from .surface import Document, Given, Reply


class Package:
    """Calls of `solve`, `coach` and `thinking_tool`."""

    name = "python"

    def __init__(self, folder: Path) -> None:
        self.store = str(folder / "python.db")

    def call(self, use: str, given: Given) -> Reply:
        """Call a function; an error has its code."""
        given = {name: value for name, value in given.items() if name != "coached"}
        try:
            if isinstance(given.get("budget"), dict):
                given["budget"] = reasonry.Budget(**given["budget"])
            return Reply("", asyncio.run(self._call(use, given)))
        except ReasonryError as error:
            return Reply(error.code, {"error": error.document()})

    async def _call(self, use: str, given: Given) -> Document:
        session, run = given.get("session"), {"run_id": given.pop("run", None)}
        match use:
            case "solve" | "stream":
                return await self._solved(use, {"model": "offline", "store": self.store, **given})
            case "forget":
                return {"deleted": await reasonry.clear_session(str(session), store=self.store)}
            case "start":
                return await self._coached(given)
            case "refute":
                claims = {"claims": given.pop("claims")} if "claims" in given else {}
                return await self._coached({**given, "strategy": use, "options": claims})
            case "resume":
                return await self._coached({**run, **given})
            case "answer" | "cancel":
                return await self._coached(run, use, *given.values())
            case "think":
                tool = reasonry.thinking_tool(store=self.store, history=0)
                named = {"sessionId" if name == "session" else name: value for name, value in given.items()}
                return await tool(**named)
            case "sessions":
                return {"sessions": await reasonry.list_sessions(store=self.store, **given)}
            case _:
                found = await reasonry.get_session(str(session), store=self.store)
                if found is None:
                    raise NotFoundError("no such session")
                return found

    async def _solved(self, use: str, given: Given) -> Document:
        if use == "solve":
            return (await reasonry.solve(**given)).document()
        *_, end = [event async for event in reasonry.stream(**given)]
        assert isinstance(end, EndEvent)
        return end.result.document()

    async def _coached(self, given: Given, then: str = "", *arguments: Any) -> Document:
        async with await reasonry.coach(store=self.store, **given) as coaching:
            return await getattr(coaching, then)(*arguments) if then else coaching.document

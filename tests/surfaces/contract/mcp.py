"""MCP over standard input and output."""

from pathlib import Path

from ..mcp.raw import Raw
from .surface import Given, Reply, reply_of

_CALLS = {
    "solve": ("solve", ""),
    "think": ("sequentialthinking", ""),
    **{
        action: ("coach", action)
        for action in ("start", "refute", "answer", "status", "cancel", "list", "resume", "fork")
    },
    "show": ("coach", "read"),
    "page": ("show", ""),
    "sessions": ("sessions", "list"),
    "session": ("sessions", "get"),
    "forget": ("sessions", "delete"),
    "unpin": ("sessions", "pin"),
    **{action: ("sessions", action) for action in ("search", "export", "pin")},
}
"""The tool of each use, and its action."""
_NAMES = {"session": "session_id", "run": "run_id"}


class Tools:
    """The tools of one server. An agent answers the questions of a run that it forks."""

    name = "mcp"

    def __init__(self, folder: Path) -> None:
        self.store = str(folder / "mcp.db")
        self._raw = Raw(self.store, REASONRY_MODEL="offline", DISABLE_THOUGHT_LOGGING="true")

    def close(self) -> None:
        """End the server."""
        self._raw.__exit__(None, None, None)

    def call(self, use: str, given: Given) -> Reply:
        """Call a tool."""
        tool, action = _CALLS[use]
        if use == "page":
            given = {"id": given.get("run") or given["session"]}
        if use == "unpin":
            given = {**given, "pinned": False}
        if use == "resume" and not given.get("coached"):
            # Driven by a model, by the tool that begins such runs.
            tool, action = "solve", ""
        arguments = {_NAMES.get(name, name): value for name, value in given.items() if name != "coached"}
        arguments |= {f"max_{name}": value for name, value in arguments.pop("budget", {}).items()}
        return reply_of(self._raw.call(tool, **arguments, **({"action": action} if action else {})))

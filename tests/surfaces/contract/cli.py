"""The command line."""

import json
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.in_process import call_command

from .surface import LIMITS, Given, Reply, reply_of

EXIT_CODES = {
    "invalid_request": 2,
    "payload_too_large": 2,
    "answer_refused": 2,
    "price_unknown": 2,
    "not_found": 3,
    "conflict": 5,
}
_THOUGHT = {
    "thought_number": "number",
    "total_thoughts": "total",
    "revises_thought": "revises",
    "branch_from_thought": "branch-from",
    "branch_id": "branch",
    "merge_branch": "merge-branch",
    "strategy": "strategy",
    "stage": "stage",
}
_TERMS = {name: name for name in ("strategy", "session", "model", "verifier", "at")}
_PAGE = {"limit": "limit", "cursor": "cursor"}
_FILTERS = {
    **{name: name for name in ("limit", "cursor", "status", "outcome", "strategy", "model")},
    "query": "search",
    "since_ms": "since",
    "until_ms": "until",
}
_OF_SEARCH = {**_PAGE, "session": "session"}
_OF_SESSION = {**_PAGE, "format": "format", "from": "from", "to": "to", "branch_id": "branch"}


def _options(given: Given, names: Mapping[str, str]) -> list[str]:
    return [f"--{option}={given[name]}" for name, option in names.items() if name in given]


def _filters(given: Given) -> list[str]:
    instants = {
        name: datetime.fromtimestamp(value / 1_000, UTC).isoformat()
        for name, value in given.items()
        if name.endswith("_ms") and isinstance(value, int)
    }
    return _options({**given, **instants}, _FILTERS)


def _terms(given: Given) -> list[str]:
    budget: dict[str, Any] = given.get("budget") or {}
    limits = [f"--max-{name}={budget[name]}" for name in LIMITS if name in budget]
    options = [f"--option={name}={json.dumps(value)}" for name, value in given.get("options", {}).items()]
    coached = ["--coach"] if given.get("coached") else []
    return [*limits, *options, *coached, *_options(given, _TERMS)]


def _new_run(*command: str) -> Callable[[Given], list[str]]:
    return lambda given: [*command, *([given["problem"]] if "problem" in given else []), *_terms(given)]


def _on_run(*command: str) -> Callable[[Given], list[str]]:
    return lambda given: [*command, given["run"], *_terms(given)]


def _on_session(command: str, *more: str) -> Callable[[Given], list[str]]:
    return lambda given: ["sessions", command, given["session"], *_options(given, _OF_SESSION), *more]


def _refute(given: Given) -> list[str]:
    return [*_new_run("coach", "refute")(given), *(f"--claim={claim}" for claim in given.get("claims", ()))]


def _think(given: Given) -> list[str]:
    place = f"--session={given['session']}" if "session" in given else "--new"
    more = [
        "--next" if given["next_thought_needed"] else "--done",
        *([f"--data={json.dumps(given['data'])}"] if "data" in given else []),
    ]
    return ["think", given["thought"], *more, place, *_options(given, _THOUGHT)]


_WORDS: dict[str, Callable[[Given], list[str]]] = {
    "solve": _new_run("solve"),
    "start": _new_run("coach", "start"),
    "refute": _refute,
    "answer": lambda given: ["coach", "answer", given["run"], json.dumps(given["answers"])],
    "status": _on_run("coach", "status"),
    "cancel": _on_run("runs", "cancel"),
    "show": _on_run("runs", "show"),
    "replay": _on_run("runs", "replay"),
    "pause": _on_run("runs", "pause"),
    "limit": _on_run("runs", "limit"),
    "delete": _on_run("runs", "delete", "--yes"),
    "resume": _on_run("runs", "resume"),
    "fork": _on_run("runs", "fork"),
    "list": lambda given: ["runs", "list", *_filters(given)],
    "diff": lambda given: ["runs", "diff", given["a"], given["b"]],
    "page": lambda given: [
        "open",
        given.get("run") or given["session"],
        "--no-browser",
        "--output=page.html",
    ],
    "submit": lambda given: ["submit", given["file"], "--results=results.jsonl"],
    "compare": lambda given: [
        "compare",
        given["file"],
        "--strategies=tot,linear",
        f"--store={given['store']}",
    ],
    "strategies": lambda given: ["strategies"],
    "strategy": lambda given: ["strategies", given["strategy"], "--diagram"],
    "think": _think,
    "sessions": lambda given: ["sessions", "list", *_filters(given)],
    "search": lambda given: ["sessions", "search", given["query"], *_options(given, _OF_SEARCH)],
    "import": lambda given: ["sessions", "import", given["file"]],
    "session": _on_session("show"),
    "export": _on_session("export"),
    "pin": _on_session("pin"),
    "unpin": _on_session("pin", "--off"),
    "forget": _on_session("delete", "--yes"),
}


class CommandLine:
    """Commands, called as their process calls them."""

    name = "cli"

    def __init__(self, folder: Path) -> None:
        self.store, self.folder = str(folder / "cli.db"), folder
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        self.environ = {**kept, "REASONRY_STORE": self.store, "REASONRY_MODEL": "offline"}

    def call(self, use: str, given: Given) -> Reply:
        """Run a command; its exit code is that of its error."""
        given = {**given, "content": given} if use == "submit" else given
        if "content" in given:
            file = self.folder / "import.json"
            file.write_text(json.dumps(given["content"]), "utf-8")
            given = {**given, "file": str(file)}
        words = [*_WORDS[use](given), "--json"]
        done = call_command(words, env=self.environ, cwd=self.folder)
        assert done.stdout, (words, done.stderr)
        reply = reply_of(json.loads(done.stdout))
        assert not reply.code or done.returncode == EXIT_CODES[reply.code], words
        return (
            reply_of(json.loads((self.folder / "results.jsonl").read_bytes())) if use == "submit" else reply
        )

"""`reasonry doctor`: what is installed, which store and which model would be taken, and why."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any

from ...app import App
from ...errors import ReasonryError
from .output import print_document, print_line
from .settings import Common, run_async, with_app


def doctor(problem: str = "Use 4, 9, 10 and 13 to make 24", /, *, common: Common = Common()) -> int:
    """Say what is installed, which store and which model would be taken, and why.

    Parameters
    ----------
    problem
        What a model would be chosen for.
    """
    document: dict[str, Any] = {
        "reasonry": metadata.version("reasonry"),
        "python": platform.python_version(),
        "store": _store(common),
        "model": _model(problem),
        "models": _models(),
        "sandboxes": _sandboxes(),
    }
    if common.json:
        print_document(document)
    else:
        _show(document)
    return 0 if document["store"]["ok"] else 6


def _store(common: Common) -> dict[str, Any]:
    async def work(app: App) -> dict[str, Any]:
        await app.store.runs(limit=1)
        return {"ok": True, "name": app.store.name, "durable": app.store.durable}

    try:
        return run_async(with_app(common.app(), work))
    except ReasonryError as error:
        return {"ok": False, "error": error.document()}


def _model(problem: str) -> dict[str, Any]:
    import os

    from ...models.choose import default_model

    try:
        spec, why = default_model(problem, os.environ)
    except ReasonryError as error:
        return {"ok": False, "error": error.document()}
    return {"ok": True, "name": spec, "why": why}


def _models() -> Any:
    from ...models.choose import describe_models

    return describe_models()


def _sandboxes() -> Any:
    from ...tools.sandbox import describe_sandboxes

    return run_async(describe_sandboxes())


def _show(document: dict[str, Any]) -> None:
    print_line(f"reasonry {document['reasonry']} on Python {document['python']}")
    store, model = document["store"], document["model"]
    if store["ok"]:
        print_line(f"store: {store['name']}" + ("" if store["durable"] else " (forgets everything at exit)"))
    else:
        print_line(f"store: NOT USABLE: {store['error']['message']}")
    if model["ok"]:
        print_line(f"model: {model['name']} ({model['why']})")
    else:
        print_line(f"model: NONE: {model['error']['message']}")
    for row in document["models"]:
        print_line("  " + "  ".join(f"{key}={value}" for key, value in row.items()))
    for row in document["sandboxes"]:
        print_line(f"sandbox {row['name']}: " + ("usable" if row["usable"] else row["reason"]))

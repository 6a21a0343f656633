"""Built-in tools, attached to strategies that request them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.toolcard import ANSWER
from ..engine.ports import Tool
from ..errors import SandboxError
from ..strategies import STRATEGIES
from ..strategies.analysis.state import BUILT_IN
from ..strategies.rewoo import LLM


def reserved_names() -> frozenset[str]:
    """Return the names of built-in tools and resources, which no server's tool may have."""
    resources = (name for strategy in STRATEGIES.values() for name in strategy.resources)
    return frozenset((*BUILT_IN, *resources, LLM.name, ANSWER))


def built_in(
    names: Sequence[str], *, documents: Sequence[str] = (), sandbox: str | None = None
) -> list[Tool]:
    """Return those of the tools that are available.

    Args:
        names: What a strategy can use.
        documents: Files of the user, for `search_documents`.
        sandbox: The sandbox of `py_executor`; None: the default one.

    Raises:
        UsageError: A document cannot be read, or there is no such sandbox.
        SandboxError: The sandbox that was asked for cannot be used here.
    """
    tools: list[Tool] = []
    if "py_executor" in names:
        tools.append(_executor(sandbox))
    if "check_claim" in names:
        from .logic_kernel import ClaimChecker, can_check

        tools += [ClaimChecker()] if can_check() else []
    if "search_documents" in names and documents:
        from .knowledge import DocumentSearch, Library

        tools.append(DocumentSearch(Library.open(documents)))
    return tools


class Unavailable:
    """Stands in for a tool that is unavailable: every call raises the reason.

    Args:
        why: What each call raises.
    """

    def __init__(self, name: str, description: str, parameters: Mapping[str, Any], why: SandboxError) -> None:
        self.name, self.description, self.parameters, self.why = name, description, parameters, why

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        """Raise the reason."""
        raise self.why


def _executor(sandbox: str | None) -> Tool:
    from .py_executor import DESCRIPTIONS, NAME, PyExecutor
    from .sandbox import open_sandbox

    try:
        return PyExecutor(open_sandbox(sandbox))
    except SandboxError as error:
        if sandbox is not None:
            raise
        return Unavailable(NAME, DESCRIPTIONS["monty"], PyExecutor.parameters, error)

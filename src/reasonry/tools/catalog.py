"""The catalog: the tools of one run, built in or named by the user, fixed when the run starts."""

import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ..blocks.toolcard import ANSWER, ToolCard, no_such_tool
from ..engine.ports import Tool
from ..errors import ToolError, UsageError
from ..strategies import STRATEGIES
from ..strategies.analysis.state import BUILT_IN
from ..strategies.rewoo import LLM
from ..system.plugins import has_extra, installed_plugins, split_plugin
from .python import PythonTool


class Catalog:
    """The tools of a run, by name. Each callable becomes a tool.

    Raises:
        UsageError: Two tools share a name, or an entry is neither a tool nor a callable.
    """

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]]) -> None:
        self.tools: dict[str, Tool] = {}
        for tool in map(as_tool, tools):
            if tool.name in self.tools:
                raise UsageError(f"two tools are named {tool.name!r}", option="tools", tool=tool.name)
            self.tools[tool.name] = tool

    def cards(self) -> tuple[ToolCard, ...]:
        """Return the cards of the tools, as strategies and models see them."""
        return tuple(
            ToolCard(tool.name, tool.description, dict(tool.parameters)) for tool in self.tools.values()
        )

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool and return JSON data, or raise ToolError with a message for the model."""
        tool = self.tools.get(name)
        if tool is None:
            raise ToolError(no_such_tool(self.cards(), name), choices=list(self.tools))
        return await tool.call(arguments)


class CallersTool:
    """A placeholder for a tool that only the caller can run. The engine leaves the tool's calls to the caller."""

    def __init__(self, card: ToolCard) -> None:
        self.card = card
        self.name, self.description, self.parameters = card.name, card.description, card.parameters

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        """Raise ToolError, because only the caller can run this tool."""
        raise ToolError(f"{self.name} is the caller's to call")


def callers_cards(tools: Iterable[Any]) -> tuple[ToolCard, ...]:
    """Return the tool cards of the caller's own tools."""
    return tuple(tool.card for tool in tools if isinstance(tool, CallersTool))


def as_tool(tool: Any) -> Tool:
    """Turn a callable into a tool, or raise UsageError. A tool is returned unchanged."""
    if all(hasattr(tool, name) for name in ("name", "description", "parameters", "call")):
        return tool
    if callable(tool):
        return PythonTool(tool)
    raise UsageError(f"{tool!r:.80} is neither a tool nor a callable", option="tools")


def load_tools(spec: str) -> list[Tool]:
    """Load tools from a Python file or an installed package, or raise UsageError.

    Args:
        spec: `FILE.py:NAME` or `FILE.py:NAME,NAME2` for functions, other callables or tools of that file, or
            `PACKAGE/NAME` for the tools of an installed package.
    """
    split = split_tools(spec)
    if split is None:
        return list(installed_plugins().load("tools", spec.strip(), read_tools))
    written, names = split
    path = Path(written).expanduser()
    if not path.is_file():
        raise UsageError(f"tools file not found: {written}", option="tools", file=written)
    module = _run_file(path)
    return [_tool_named(module, written, name) for name in names]


def read_tools(name: str, value: Any) -> tuple[Tool, ...]:
    """Read a package's tools (a tool, a callable, or a list of them), or raise UsageError."""
    return tuple(Catalog(value if isinstance(value, list | tuple) else [value]).tools.values())


def split_tools(spec: str) -> tuple[str, list[str]] | None:
    """Split `FILE.py:NAME,NAME2` into the file and the names, or raise UsageError. Return None for `PACKAGE/NAME`."""
    if ":" not in spec and not spec.strip().endswith(".py") and split_plugin(spec) is not None:
        return None
    written, colon, names = spec.rpartition(":")
    if not colon or not names.strip() or not written.endswith(".py"):
        message = f"tools are written FILE.py:NAME,NAME2 or PACKAGE/NAME, not {spec[:200]!r}"
        raise UsageError(message, option="tools")
    return written, [name.strip() for name in names.split(",") if name.strip()]


def _run_file(path: Path) -> ModuleType:
    name, folder = f"_reasonry_tools_{path.stem}", str(path.parent.resolve())
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    # Dataclasses look up their module by name, and a script expects to import its neighbor files.
    sys.modules[name] = module
    sys.path.insert(0, folder)
    try:
        found.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UsageError(
            f"{path} cannot be loaded: {type(error).__name__}: {error}", option="tools", file=str(path)
        ) from error
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
    return module


def _tool_named(module: ModuleType, written: str, name: str) -> Tool:
    known = vars(module)
    if name not in known:
        functions = (key for key, value in known.items() if callable(value) and not key.startswith("_"))
        own = [key for key in functions if getattr(known[key], "__module__", "") == module.__name__]
        message = f"{written} has no {name!r}; its functions: {', '.join(own) or 'none'}"
        raise UsageError(message, option="tools", choices=own)
    if not callable(known[name]) and not hasattr(known[name], "call"):
        raise UsageError(f"{name} in {written} is not callable", option="tools", file=written)
    return as_tool(known[name])


# -- built-in tools, attached to strategies that request them


def reserved_names() -> frozenset[str]:
    """Return the names of built-in tools and resources. No tool of an MCP server may have such a name."""
    resources = (name for strategy in STRATEGIES.values() for name in strategy.resources)
    return frozenset((*BUILT_IN, *resources, LLM.name, ANSWER))


def built_in(
    names: Sequence[str], *, documents: Sequence[str] = (), sandbox: str | None = None
) -> list[Tool]:
    """Return the built-in tools that are available.

    Args:
        names: The tools that a strategy can use.
        documents: Files of the user, for `search_documents`.
        sandbox: The sandbox of `py_executor`, by name. Defaults to `monty`.

    Raises:
        UsageError: A document cannot be read, or there is no such sandbox.
        SandboxError: The requested sandbox cannot be used here.
    """
    tools: list[Tool] = []
    if "py_executor" in names:
        from .sandbox import PyExecutor, open_sandbox

        tools.append(PyExecutor(open_sandbox(sandbox) if sandbox else None))
    if "check_claim" in names and has_extra("logic"):
        from .logic_kernel import ClaimChecker

        tools.append(ClaimChecker())
    if "search_documents" in names and documents:
        from .knowledge import Library

        tools.append(Library.open(documents))
    return tools

"""A Python callable as a tool: its signature is the form of the arguments, and its docstring is the description."""

import asyncio
import contextvars
import functools
import inspect
import re
import threading
import typing
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Annotated, Any, TypeVar

import msgspec

from ..blocks.data_types import read_as, read_other_type
from ..core.type_schema import inlined_schema
from ..engine.ports import NOT_FAILURES
from ..errors import ToolError, UsageError
from .results import fit_result

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z_][\w.\-]{0,63}")
_SECTION = re.compile(r"^(?:Args|Arguments|Parameters):\s*$((?:\n[ \t].*|\n)*)", re.MULTILINE)
_ARGUMENT = re.compile(r"^[ \t]{2,}\*{0,2}(\w+)[ \t]*(?:\([^)\n]*\))?:[ \t]*(\S.*)$", re.MULTILINE)
_MAX_MESSAGE = 2_000
_BOUNDS = ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length", "description")
"""Bounds that `Annotated` can set, under the names of Pydantic, annotated-types and msgspec."""


def tool_name(tool: Any) -> str:
    """Return the name of a tool or callable, or an empty text if it has none."""
    tool = _unbound(tool)
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", ""))


def parameters_of(form: type[msgspec.Struct]) -> Mapping[str, Any]:
    """Return the JSON schema of a tool's arguments."""
    schema = inlined_schema(form)
    return {key: schema[key] for key in ("type", "properties", "required") if key in schema}


def _unbound(function: Any) -> Any:
    """Return the function inside a `functools.partial`. Return any other function unchanged."""
    return function.func if isinstance(function, functools.partial) else function


class PythonTool:
    """A Python function as a tool. A coroutine function is awaited. Any other function runs in its own thread.

    A function that exceeds its time limit is abandoned in its thread.

    Args:
        function: A callable that accepts its parameters by name. The tool's name is the callable's attribute `name`, or
            else its own name. The tool's description is the first paragraph of the callable's docstring.

    Raises:
        UsageError: The function has a positional-only parameter, no usable name, or no readable signature.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = tool_name(function) or type(function).__name__
        if not _NAME.fullmatch(self.name):
            raise UsageError(f"{self.name!r} is no name for a tool; set its attribute `name`", tool=self.name)
        text = inspect.getdoc(_unbound(function)) or ""
        self.description = " ".join(text.partition("\n\n")[0].split())
        section = _SECTION.search(text)
        notes = {name: note.strip() for name, note in _ARGUMENT.findall(section[1] if section else "")}
        self.form = _form(self.name, function, notes)
        self.parameters = parameters_of(self.form)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        """Call the function and return its result as JSON data. Exceptions of the function become `ToolError`."""
        values = self._read(arguments)
        try:
            value = await call_anywhere(f"tool {self.name}", self.function, **values)
        except (ToolError, *NOT_FAILURES):
            raise
        except BaseException as error:
            # Catch SystemExit too, because a tool must not end the run.
            raise ToolError(f"{self.name} failed: {type(error).__name__}: {error}"[:_MAX_MESSAGE]) from error
        return fit_result(value)

    def _read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        fields = self.form.__struct_fields__
        unknown = [name for name in arguments if name not in fields]
        if unknown:
            legal = ", ".join(fields) or "none"
            raise ToolError(f"{self.name} has no argument {unknown[0][:60]!r}; its arguments: {legal}")
        try:
            read = read_as(self.form, dict(arguments))
        except ValueError as error:
            raise ToolError(f"{self.name}: {error}") from None
        return {name: getattr(read, name) for name in fields if name in arguments}


async def call_anywhere(name: str, function: Callable[..., Any], *values: Any, **named: Any) -> Any:
    """Call a function and return its result. Await a coroutine function. Run any other function in a thread."""
    called = getattr(function, "__call__", None)  # noqa: B004
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):
        return await function(*values, **named)
    value = await in_thread(name, function, *values, **named)
    return await value if inspect.isawaitable(value) else value


def _form(name: str, function: Callable[..., Any], notes: Mapping[str, str]) -> type[msgspec.Struct]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise UsageError(f"{name} has no signature that can be read", tool=name) from None
    hints = _hints(function)
    fields: list[Any] = []
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise UsageError(f"{name}: argument {parameter.name} cannot be given by name", tool=name)
        kind = _usable_type(hints.get(parameter.name, Any))
        if parameter.name in notes:
            kind = Annotated[kind, msgspec.Meta(description=notes[parameter.name])]
        # The function's own default is used; the form only needs to know that there is a default.
        default = () if parameter.default is parameter.empty else (_default(parameter.default),)
        fields.append((parameter.name, kind, *default))
    return msgspec.defstruct(name.replace(".", "_").replace("-", "_"), fields, kw_only=True)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    function = _unbound(function)
    target = function if inspect.isroutine(function) else getattr(type(function), "__call__", function)  # noqa: B004
    try:
        return typing.get_type_hints(target, include_extras=True)
    except Exception:
        # Annotations may hold anything; unreadable annotations count as none.
        return {}


def _usable_type(kind: Any) -> Any:
    kind, *notes = typing.get_args(kind) if typing.get_origin(kind) is Annotated else (kind,)
    texts = [note for note in notes if isinstance(note, str)]
    bounds: dict[str, Any] = {"description": texts[0]} if texts else {}
    metas = [note for note in notes if isinstance(note, msgspec.Meta)]
    others = [part for note in notes if note not in metas for part in (note, *getattr(note, "metadata", ()))]
    for note in others:
        bounds |= {name: value for name in _BOUNDS if (value := getattr(note, name, None)) is not None}
    noted = Annotated[(kind, *metas, msgspec.Meta(**bounds))]
    try:
        inlined_schema(noted)
        msgspec.json.Decoder(noted, dec_hook=read_other_type)
    except Exception:
        return Any
    return noted


def _default(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return msgspec.field(default_factory=lambda: value)


async def in_thread(name: str, function: Callable[..., T], *values: Any, **named: Any) -> T:
    """Run a function in a thread. Return its result or raise its exception.

    The thread is a daemon: unlike a thread of a pool, it cannot delay the end of the process. If the caller is
    cancelled, the thread is abandoned.
    """
    future, context = Future[T](), contextvars.copy_context()

    def work() -> None:
        future.set_running_or_notify_cancel()
        try:
            future.set_result(context.run(function, *values, **named))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return await asyncio.wrap_future(future)

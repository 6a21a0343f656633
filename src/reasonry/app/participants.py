"""The participants of a run (its models, verifier and tools), and the pool that opens them.

A user or a run's record names participants. The runs of a pool share named models. `close` stops the tool servers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ..core.options import nested_options
from ..core.strategy import Strategy
from ..engine.coach import CALLER, Caller
from ..engine.journal import Begun, ParticipantNames
from ..engine.policy import Performers
from ..engine.ports import Model, Verifier
from ..engine.prices import Prices, fix_prices
from ..errors import ToolError, UsageError
from ..strategies import STRATEGIES
from .allow_list import AllowList

T = TypeVar("T")


class Participants(Struct, frozen=True, kw_only=True):
    """The models, verifier and tools of a run. They are names from a user, or objects from a program.

    Args:
        model: The main model. None means the default model of the environment.
        draft_model: The model that proposes thoughts, which are valued afterwards.
        seats: A panel of models, from a strategy's option `models`.
        mcp: Tool servers, in the form of `--mcp`; see `PerformerPool.start_servers`.
        verifier_hides: Patterns of files that a `command:` verifier sees as empty in its sandbox.
        tools: Callables, objects with the protocol `Tool`, or texts in the form of `--tools`; see `PerformerPool.load`.
        context: Files of the user that a strategy may search.
        sandbox: The sandbox for a model's code. None means the default sandbox.
        record: The file that receives the model's answers, for a later run with the model `recorded:FILE`.
        price: Prices in the form of `--price`. They override the prices of providers and of the price list.
        opened_s: How many seconds of the run's time the start of its tool servers took.
        listed_tools: The names of the run's tools in the operator's list. A server reopens the tools by these names.
        listed_documents: The names of the run's documents in the operator's list. A server reopens them by these names.
    """

    model: str | Model | None = None
    judge_model: str | Model | None = None
    verifier: str | Verifier | Callable[..., Any] | None = None
    verifier_hides: tuple[str, ...] = ()
    tools: Sequence[Any] = ()
    draft_model: str | Model | None = None
    seats: tuple[str | Model, ...] = ()
    mcp: Sequence[str] = ()
    context: Sequence[str] = ()
    sandbox: str | None = None
    record: str | None = None
    price: str | Sequence[str] = ()
    opened_s: float = 0.0
    listed_tools: tuple[str, ...] = ()
    listed_documents: tuple[str, ...] = ()

    @property
    def prices(self) -> tuple[str, ...]:
        """The prices, each in the form of `--price`."""
        return (self.price,) if isinstance(self.price, str) else tuple(self.price)

    @property
    def tool_names(self) -> list[str]:
        """The name of each tool. A tool that has no name gets an empty text."""
        from ..tools.python import tool_name

        return [tool_name(tool) for tool in self.tools]

    def with_caller(self) -> Participants:
        """Return a copy in which the caller answers instead of the models."""
        return replace(self, model=Caller(), judge_model=None, draft_model=None, seats=())

    def check_tools(self, names: Sequence[str]) -> None:
        """Check that the participants have every tool in `names`, or raise UsageError."""
        missing = [name for name in names if name not in self.tool_names]
        if missing:
            message = f"the run needs the tools {', '.join(missing)}: name them with tools, mcp or context"
            raise UsageError(f"{message}, also when you resume or fork the run", tools=missing)

    def check_recorded_tools(self, begun: Begun) -> None:
        """Check that the tools in a run's record are present. The errors are as in `check_tools`."""
        nested = nested_options(begun.options)
        self.check_tools([card["name"] for options in nested for card in options.get("tools") or ()])


class PerformerPool:
    """Opens participants, shares them among runs where possible, and closes them at the end."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.model_why = ""
        """The reason why the default model was chosen, for display. Empty if the model was named."""
        self._shared: dict[str, Model] = {}
        self._built_in: dict[Any, list[Any]] = {}
        self._loaded: dict[str, Sequence[Any]] = {}
        self._resources = AsyncExitStack()
        self._opening = asyncio.Lock()

    async def close(self) -> None:
        """Close connections, files and tool servers."""
        await self._resources.aclose()
        self._shared.clear()

    async def run_in_thread(self, work: Callable[[], T]) -> T:
        """Call `work` in a thread, because it may read files. One call runs at a time."""
        async with self._opening:
            return await asyncio.to_thread(work)

    # -- opening

    def is_open(self, model: str | Model | None) -> bool:
        """Whether a model is already open. None means the model in `REASONRY_MODEL`."""
        return (
            not isinstance(model, str | None)
            or (model or self.environ.get("REASONRY_MODEL", "").strip()) in self._shared
        )

    def offered_model(self, problem: str) -> str | None:
        """Return the name of the default model, see `default_model`. None if no model is available."""
        from ..models.choose import default_model

        try:
            return default_model(problem, self.environ)[0]
        except UsageError:
            return None

    def open(self, participants: Participants, problem: str) -> Performers:
        """Open the models, the verifier and the tools of a run.

        Raises:
            UsageError: A name is invalid.
        """
        from ..tools.catalog import Catalog, callers_cards

        others = {"judge_model": participants.judge_model, "draft_model": participants.draft_model}
        models = {"model": self.record_answers(self._model(participants.model, problem), participants.record)}
        models |= {role: self._model(spec, problem) for role, spec in others.items() if spec is not None}
        seats = tuple(self._model(spec, problem) for spec in participants.seats)
        verifier = _open_verifier(participants, models["model"], problem, self.environ)
        own = callers_cards(participants.tools)
        prices = Prices.read(participants.prices), Prices.from_environ(self.environ)
        price = fix_prices(prices, [*models.values(), *seats])
        names = ParticipantNames(
            **{role: model.name for role, model in models.items()},
            seats=tuple(seat.name for seat in seats),
            verifier=verifier.name if verifier else None,
            verifier_hides=participants.verifier_hides,
            price=price,
            callers_tools=own,
            listed_tools=participants.listed_tools,
            listed_documents=participants.listed_documents,
        )
        return Performers(
            **models,
            seats=seats,
            verifier=verifier,
            tools=Catalog(participants.tools) if participants.tools else None,
            prices=Prices.read(price),
            opened_s=participants.opened_s,
            callers_tools=frozenset(card.name for card in own),
            names=names,
        )

    def _model(self, spec: str | Model | None, problem: str, keyed_by: Sequence[str] | None = None) -> Model:
        from ..models.choose import default_model, open_model
        from ..models.objects import as_model

        if spec is not None and not isinstance(spec, str):
            return as_model(spec)
        if spec == CALLER:
            way = "give --coach to answer them, or --model to have a model answer them"
            raise UsageError(f"this run's caller answers its questions: {way}", option="model")
        if spec is None:
            spec, self.model_why = default_model(problem, self.environ)
        if spec in self._shared:
            return self._shared[spec]
        model = open_model(spec, self.environ, keyed_by=keyed_by)
        self._resources.push_async_callback(model.close)
        # A model that tracks its position in a file belongs to one run.
        if not hasattr(model, "rewind"):
            self._shared[spec] = model
        return model

    def record_answers(self, model: Model, path: str | None) -> Model:
        """Wrap a model so that it records its answers in a file. If `path` is None, return the model itself."""
        if path is None:
            return model
        from ..models.scripted import Recorder

        recorder = Recorder(model, path)
        self._resources.push_async_callback(recorder.close)
        return recorder

    # -- adding tools

    def attach_built_in(
        self, participants: Participants, strategies: Sequence[Strategy[Any, Any]]
    ) -> Participants:
        """Add the built-in tools that the strategies of a composition use.

        Raises:
            UsageError: The participants have documents, but no strategy uses them.
        """
        wanted = dict.fromkeys(name for strategy in strategies for name in strategy.resources)
        if participants.context and "search_documents" not in wanted:
            readers = [each.name for each in STRATEGIES.values() if "search_documents" in each.resources]
            message = (
                f"{strategies[0].name} cannot read documents; these strategies can: {', '.join(readers)}"
            )
            raise UsageError(message, option="context", choices=readers)
        if not wanted:
            return participants
        from ..tools.catalog import built_in

        present = {getattr(tool, "name", None) for tool in participants.tools}
        names = [name for name in wanted if name not in present]
        key = (*names, tuple(participants.context), participants.sandbox)
        if key not in self._built_in:
            self._built_in[key] = built_in(
                names, documents=participants.context, sandbox=participants.sandbox
            )
            for tool in self._built_in[key]:
                self._resources.callback(getattr(tool, "close", lambda: None))
        return replace(participants, tools=[*participants.tools, *self._built_in[key]])

    def load(self, tool: Any) -> Sequence[Any]:
        """If `tool` is text, load tools from the named file or package. Otherwise, return `tool` as the only tool.

        Raises:
            UsageError: A tool cannot be loaded.
        """
        from ..tools.catalog import load_tools

        if not isinstance(tool, str):
            return (tool,)
        if tool not in self._loaded:
            self._loaded[tool] = load_tools(tool)
        return self._loaded[tool]

    async def start_servers(
        self, participants: Participants, left_s: float, *, shared: bool = False
    ) -> Participants:
        """Start the MCP servers, and add their tools to the participants. The servers run until the pool is closed.

        Args:
            left_s: The seconds that are left for the run. They limit the time to start the servers.
            shared: Whether several runs share the servers. If so, the start does not count against a run's time.

        Raises:
            UsageError: The name of a server is invalid.
            ToolError: A server does not answer. The code is `deadline_exceeded` if the run's time was up.
        """
        from ..tools.mcp_client import OPEN_TIMEOUT_S, mcp_tools

        began = time.monotonic()
        servers = mcp_tools(
            participants.mcp, taken=participants.tool_names, open_within_s=min(left_s, OPEN_TIMEOUT_S)
        )
        try:
            tools = await self._resources.enter_async_context(servers)
        except ToolError as error:
            if time.monotonic() < began + left_s:
                raise
            message = f"the time of the run was up before its tool servers were open: {error.message}"
            raise ToolError(message, code="deadline_exceeded", **error.details) from error
        opened_s = 0.0 if shared else time.monotonic() - began
        return replace(participants, tools=[*participants.tools, *tools], mcp=(), opened_s=opened_s)

    # -- reopening

    def add_listed(self, participants: Participants, recorded: ParticipantNames) -> Participants:
        """Add the operator's tools and documents from a run's record, unless `participants` has tools or documents."""
        names, documents = recorded.listed_tools, recorded.listed_documents
        if participants.tools or participants.context or not (names or documents):
            return participants
        listed = AllowList.from_environ(self.environ)
        tools = [tool for name in names if name in listed.tools for tool in self.load(listed.tools[name])]
        # If a document is missing, the run has no search tool, and `check_recorded_tools` refuses the run.
        context = listed.all_of("documents", documents) if listed.documents.keys() >= {*documents} else ()
        return replace(
            participants, tools=tools, context=context, listed_tools=names, listed_documents=documents
        )

    def reopen(
        self, participants: Participants, recorded: ParticipantNames, *, coached: bool = False
    ) -> Participants:
        """Add missing participants from a run's record. In a coached run, the caller replaces all models."""
        from ..tools.catalog import CallersTool
        from ..tools.verifiers import reopen_verifier

        hides = tuple(dict.fromkeys((*recorded.verifier_hides, *participants.verifier_hides)))
        verifier = participants.verifier or reopen_verifier(recorded.verifier, self.environ, hides)
        present = participants.tool_names
        own = [CallersTool(card) for card in recorded.callers_tools if card.name not in present]
        tools = [*participants.tools, *own]
        complete = replace(
            participants, verifier=verifier, verifier_hides=hides, tools=tools, mcp=(), record=None
        )
        if coached:
            return complete.with_caller()
        models = ("model", "judge_model", "draft_model")
        named = {role: getattr(participants, role) for role in models}
        specs = [spec for spec in named.values() if isinstance(spec, str)]
        names = {role: getattr(recorded, role) for role in models if not named[role]}
        reopened = {role: self._recorded_model(name, specs) for role, name in names.items()}
        seats = participants.seats or tuple(
            self._recorded_model(name, specs) or name for name in recorded.seats
        )
        price = participants.prices or recorded.price
        return replace(complete, price=price, seats=seats, **reopened)

    def _recorded_model(self, spec: str | None, named: Sequence[str]) -> Model | None:
        """Open a model from a run's record. A record alone cannot start a program or send `REASONRY_API_KEY`."""
        if not spec:
            return None
        settings = AllowList.from_environ(self.environ).models.values()
        return self._model(spec, "", (*settings, *named))


def _open_verifier(
    participants: Participants, model: Model, problem: str, environ: Mapping[str, str]
) -> Verifier | None:
    from ..tools.verifiers import as_verifier, exact_verifier, open_verifier

    spec = participants.verifier
    if isinstance(spec, str):
        return open_verifier(spec, environ, participants.verifier_hides)
    if spec is None:
        # The offline model computes its answers, so a computation can prove them.
        return exact_verifier(problem) if model.name == "offline" else None
    return as_verifier(spec)

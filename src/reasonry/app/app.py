"""The composition root: read the settings, and connect the parts of Reasonry."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from msgspec import structs

from ..core.budget import DEFAULT_CALLS, Budget
from ..core.options import with_preset
from ..core.problem import without_quoted
from ..core.registry import Registry, add_strategies, resolve
from ..core.strategy import Strategy
from ..engine.drive import drive_run
from ..engine.engine import Engine, RecordedRun
from ..engine.fork import Fork
from ..engine.journal import Begun
from ..engine.observer import Observer
from ..engine.open_run import OpenRun
from ..engine.policy import Performers, Policy, rewind
from ..engine.prices import check_priced
from ..engine.result import Result
from ..engine.run import Run
from ..errors import UsageError
from ..guided.session_settings import SessionSettings
from ..guided.sessions import Sessions
from ..records import JobOptions, Store, find_id
from ..system.masking import SECRETS
from .installed import installed_strategies
from .participants import Participants, PerformerPool
from .requests import RunRequest, check_offline, make_order, strategies_in
from .rights import ListedRights, Rights
from .run_thoughts import problem_after, tell_verdicts, thought_rows

if TYPE_CHECKING:
    from ..stores.row_store import RowStore


class App:
    """The parts of Reasonry, connected to one store, with the rights of a caller.

    Args:
        store_spec: A value of `--store`, or a store. Defaults to `REASONRY_STORE`, or else the user's data folder.
        environ: The environment variables. Defaults to the environment of this process.
        strategies: Strategies by canonical name. Defaults to the result of `installed_strategies`.
    """

    def __init__(
        self,
        store_spec: str | Store | None = None,
        policy: Policy | None = None,
        environ: Mapping[str, str] | None = None,
        strategies: Mapping[str, Strategy[Any, Any]] | None = None,
    ) -> None:
        self.environ = os.environ if environ is None else environ
        SECRETS.keep_environment(self.environ)
        self._owned = AsyncExitStack()
        """Closes the resources that this app has opened."""
        if store_spec is None or isinstance(store_spec, str):
            from ..stores import open_store

            store_spec = open_store(store_spec or self.environ.get("REASONRY_STORE") or None)
            self._owned.push_async_callback(store_spec.close)
        self.store = cast("RowStore", store_spec)
        """The store. A caller's own store may lack methods that only servers and operators need."""
        policy = policy or Policy()
        policy.rates.shared = getattr(self.store, "provider_limits", None)
        registry = installed_strategies() if strategies is None else strategies
        self.engine = _engine(self, registry, policy)
        self.pool = PerformerPool(self.environ)
        self.rights = Rights(self.pool)
        self._owned.push_async_callback(self.pool.close)
        self._is_one_owners = False

    def for_owner(self, owner: str) -> App:
        """Return a copy of this app for the runs and sessions of one owner. An empty name means the operator."""
        scoped = copy.copy(self)
        scoped.store = self.store.of_owner(owner)
        scoped.engine = _engine(scoped, self.strategies, self.engine.policy)
        scoped._owned, scoped._is_one_owners = AsyncExitStack(), True
        return scoped

    def for_agents(self) -> App:
        """Return a copy of this app with the rights of agents, who may name only parts that the operator listed.

        Raises:
            UsageError: A setting has an invalid entry.
        """
        listed = copy.copy(self)
        listed.rights, listed._owned = ListedRights(self.pool), AsyncExitStack()
        return listed

    async def close(self) -> None:
        """Close the pool and the store, unless another app or the caller owns them."""
        await self._owned.aclose()

    async def __aenter__(self) -> App:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def strategies(self) -> Registry:
        """The strategies by canonical name."""
        return self.engine.strategies

    def strategy(self, name: str) -> Strategy[Any, Any]:
        """Find a strategy by name or alias.

        Raises:
            UsageError: There is no such strategy; `choices` lists the names.
        """
        return resolve(name, self.strategies)

    async def run_id(self, text: str, own: Sequence[str] = ()) -> str:
        """Return the run id that a text stands for. The text is an id, the beginning of an id, or `last`.

        Args:
            own: The ids of the caller's runs, latest last. If there are none, `last` means the store's latest run.

        Raises:
            UsageError: Several ids begin with the text; `choices` lists them.
            NotFoundError: The text is `last`, and there is no run.
        """

        async def last() -> str | None:
            if own:
                return own[-1]
            rows = await self.store.runs(limit=1)
            return rows[0].run_id if rows else None

        return await find_id(text, "run", self.store.run_ids, last)

    def register(self, strategy: Strategy[Any, Any]) -> None:
        """Add a caller's own strategy to the registry, so that its runs can be read later."""
        if not isinstance(strategy, Strategy):  # pyright: ignore[reportUnnecessaryIsInstance]
            message = f"strategy must be a name or a Strategy, got {type(strategy).__name__}"
            raise UsageError(message, option="strategy")
        if self.strategies.get(strategy.name) is not strategy:
            self.engine.strategies = add_strategies(self.strategies, {strategy.name: strategy})

    def sessions(self, settings: SessionSettings | None = None) -> Sessions:
        """Return the guided sessions of the store. The settings default to the settings in the environment."""
        settings = settings or SessionSettings.from_environ(self.environ)
        where, chooses = "", not self._is_one_owners
        # The directory may have been deleted.
        with suppress(OSError):
            where = os.getcwd()
        return Sessions(self.store, self.strategies, settings, directory=where, chooses_ids=chooses)

    # -- requests

    async def receive(self, request: RunRequest) -> tuple[Begun, Performers]:
        """Complete a request, and turn it into an order. Nothing is written or paid for."""
        problem, session = await problem_after(request, self.sessions, self.strategies)
        with self.rights.fit_errors():
            participants = await self.equip(request.participants, request.budget)
            whole = structs.replace(request, problem=problem, session=session, participants=participants)
            names_files = participants.tools or participants.context or participants.verifier
            if not names_files and self.pool.is_open(participants.model):
                # No file is read, and a thread would take longer than the work.
                order, performers = self.order(whole)
            else:
                order, performers = await self.pool.run_in_thread(lambda: self.order(whole))
            check_offline(order)
            return order, performers

    def order(self, request: RunRequest) -> tuple[Begun, Performers]:
        """Turn a complete request with admitted participants into an order, see `make_order`."""
        if not isinstance(request.strategy, str):
            self.register(request.strategy)
        return make_order(request, self.strategies, self.pool, self.rights)

    async def order_fork(
        self,
        source: RecordedRun,
        participants: Participants,
        options: Mapping[str, Any],
        budget: Budget | None,
        *,
        coached: bool = False,
    ) -> tuple[Begun, Performers]:
        """Turn a fork of `source` into an order. Missing options, limits and participants come from `source`."""
        begun, limits = source.begun, budget or source.budget

        def order() -> tuple[Begun, Performers]:
            strategy = self.strategy(begun.strategy)
            complete = self._name_again(equipped, source, coached=coached)
            if "tools" not in options:
                complete.check_recorded_tools(begun)
            request = RunRequest(
                problem=begun.problem,
                session=begun.from_session,
                strategy=strategy,
                options={**begun.options, **with_preset(strategy, options)},
                budget=limits,
                participants=complete,
                form=begun.form,
                prompts=begun.prompts,
            )
            order, performers = self.order(request)
            return structs.replace(order, checks_form=begun.checks_form), performers

        with self.rights.fit_errors():
            equipped = await self.equip(participants, limits, source, coached=coached)
            return await self.pool.run_in_thread(order)

    async def equip(
        self,
        participants: Participants,
        budget: Budget | None = None,
        source: Run | RecordedRun | None = None,
        *,
        coached: bool = False,
        spent_s: float = 0.0,
        shared: bool = False,
    ) -> Participants:
        """Admit participants, load their tools, and start their MCP servers. The app closes the servers.

        Args:
            budget: The budget of the run. The start of the servers must fit into the seconds that the budget has left.
            source: See `Rights.admit`, which also explains `coached`.
            spent_s: How many seconds the run has already used.
            shared: Whether several runs share the servers. If so, the start does not count against a run's time.

        Raises:
            UsageError: The name of a tool or a server is invalid.
            ToolError: A server does not answer. The code is `deadline_exceeded` if the budget's time was up.
        """
        for name in ("tools", "mcp", "context"):
            named = getattr(participants, name)
            if isinstance(named, str) or not isinstance(named, Sequence):
                raise UsageError(f"{name} must be a list, got {type(named).__name__}", option=name)
        if not isinstance(budget, Budget | None):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"budget must be a Budget, got {type(budget).__name__}", option="budget")
        admitted = await self.rights.admit(participants, source, coached=coached)
        tools = [each for tool in admitted.tools for each in self.pool.load(tool)]
        participants = structs.replace(admitted, tools=tools)
        if not participants.mcp:
            return participants
        limit_s = math.inf if budget is None or budget.seconds is None else budget.seconds
        return await self.pool.start_servers(participants, max(0.0, limit_s - spent_s), shared=shared)

    # -- runs

    async def solve(
        self, order: Begun, performers: Performers, observer: Observer | None = None, fork: Fork | None = None
    ) -> Result:
        """Accept a run or a fork, and drive it to its end."""
        async with self.engine.begin(order, performers, fork) as opened:
            result = await drive_run(opened, performers, observer)
        performers.check_used(opened.run)
        return result

    async def resume(
        self,
        run_id: str,
        participants: Participants | None = None,
        budget: Budget | None = None,
        observer: Observer | None = None,
    ) -> Result:
        """Resume a run with its recorded participants, or with other participants."""
        async with self.engine.open(run_id) as opened:
            performers = await self.reopen(opened, participants, budget)
            return await drive_run(opened, performers, observer)

    async def reopen(
        self,
        opened: OpenRun,
        participants: Participants | None = None,
        budget: Budget | None = None,
        *,
        coached: bool = False,
        job: JobOptions | None = None,
    ) -> Performers:
        """Open the performers of a run, and resume the run if it was stopped.

        Args:
            budget: Defaults to the run's budget. A run that reached the default limit gets `DEFAULT_CALLS` more calls.
            coached: Whether the caller answers the questions from now on.
            job: See `OpenRun.reopen`.
        """
        run = opened.run
        conclusion, limits = run.snapshot.conclusion, (run.begun.budget, run.budget)
        # Whether the limit is the default limit, or was extended from the default limit by an earlier resume.
        is_default = limits == (Budget(calls=DEFAULT_CALLS), Budget(calls=run.budget.calls))
        if budget is None and is_default and conclusion is not None and conclusion.reason == "max_calls":
            budget = Budget(calls=run.usage.calls + DEFAULT_CALLS)
        performers = await self.open_recorded(run, participants, budget, coached=coached)
        names, limits = performers.names, budget or run.budget
        if coached:
            # The run keeps the prices of its earlier models, and its limits need no check.
            names = structs.replace(names, price=run.participants.price)
            limits = budget or Budget()
        if limits.usd is not None:
            check_priced("max_usd", performers.models, performers.prices)
        rewind(performers, run, run.participants)
        changed = None if names == run.participants else names
        await opened.reopen(budget, changed, job=job)
        return performers

    async def open_recorded(
        self, run: Run, named: Participants | None, budget: Budget | None = None, *, coached: bool
    ) -> Performers:
        """Open the participants in `named`, and the other participants from the run's record."""
        equipped = Participants()

        def open_all() -> Performers:
            complete = self._name_again(equipped, run, coached=coached)
            complete.check_recorded_tools(run.begun)
            return self.pool.open(complete, without_quoted(run.begun.problem))

        with self.rights.fit_errors():
            if named is not None:
                limits, spent_s = budget or run.budget, run.snapshot.at_ms / 1000
                equipped = await self.equip(named, limits, run, coached=coached, spent_s=spent_s)
            return await self.pool.run_in_thread(open_all)

    def _name_again(self, named: Participants, source: Run | RecordedRun, *, coached: bool) -> Participants:
        """Add the missing participants from a run's record to `named`. Also add the built-in tools."""
        listed = self.pool.add_listed(named, source.participants)
        reopened = self.pool.reopen(listed, source.participants, coached=coached)
        return self.pool.attach_built_in(reopened, strategies_in(source.begun, self.strategies))


def _engine(app: App, strategies: Registry, policy: Policy) -> Engine:
    return Engine(app.store, strategies, policy, thought_rows, partial(tell_verdicts, sessions=app.sessions))

"""The composition root: settings in, wired engine out. The one file that knows every folder."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from msgspec import structs

from .allow_list import SETTINGS, AllowList
from .core.budget import Budget, check_budget
from .core.options import read_options
from .core.problem import check_problem
from .core.strategy import Strategy, named
from .engine.coach import CALLER, Caller, Coach
from .engine.engine import Engine, OpenRun, Order
from .engine.journal import Begun, Crew, Folded
from .engine.named_prices import Prices, check_priced, dollar_limit, fix, kept
from .engine.observe import Observer
from .engine.policy import Performers, Policy, rewind
from .engine.ports import Model, Verifier
from .engine.result import Result
from .errors import ToolError, UsageError
from .guided.replies import rows_of_run
from .guided.sessions import Sessions
from .guided.settings import SessionSettings
from .masking import SECRETS
from .records import Store
from .strategies import STRATEGIES, resolve
from .strategies.choice import AUTO, choose_strategy

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Team:
    """Who and what works on a run; text where a user names it, an object where a program brings its own.

    Args:
        model: None: taken by what the environment offers.
        draft_model: Proposes thoughts that are valued afterwards.
        mcp: Servers whose tools are used, as `--mcp` takes them; see `App.equipped`.
        tools: Callables, or tools of the port.
        context: Files of the user that a strategy may search.
        sandbox: Where code that a model writes is run; None: the default one.
        record: A file that keeps the model's answers, for `recorded:FILE`.
        price: What the models cost, as `--price` takes it; whatever a provider or the price list says.
    """

    model: str | Model | None = None
    judge_model: str | Model | None = None
    verifier: str | Verifier | Callable[..., Any] | None = None
    tools: Sequence[Any] = ()
    draft_model: str | Model | None = None
    mcp: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    sandbox: str | None = None
    record: str | None = None
    price: str | Sequence[str] = ()
    opened_s: float = 0.0
    """Seconds of the run's time that went into opening its tool servers."""

    @property
    def prices(self) -> tuple[str, ...]:
        """The prices, as `--price` takes each."""
        return (self.price,) if isinstance(self.price, str) else tuple(self.price)


@dataclass
class App:
    """Everything wired together over one store.

    Args:
        store: What `--store` takes, or a store; None: `REASONRY_STORE`, else the user's data folder.
    """

    store_spec: str | Store | None = None
    policy: Policy = field(default_factory=Policy)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    strategies: Mapping[str, Strategy[Any, Any]] = field(default_factory=lambda: STRATEGIES)
    model_why: str = ""
    """Why the model of the last order was taken, for people."""

    def __post_init__(self) -> None:
        SECRETS.keep_environment(self.environ)
        self.store: Store = self._open_store()
        self.engine = Engine(self.store, self.strategies, self.policy)
        self._models: list[Model] = []
        self._opened = AsyncExitStack()
        self._working = asyncio.Lock()
        self._shared: dict[str, Model] = {}
        self._resources: dict[Any, list[Any]] = {}

    def _open_store(self) -> Store:
        from .stores import open_store

        spec = self.store_spec
        if spec is None or isinstance(spec, str):
            return open_store(spec or self.environ.get("REASONRY_STORE") or None)
        return spec

    async def close(self) -> None:
        """Give connections and files back."""
        await self._opened.aclose()
        for model in self._models:
            await model.close()
        self._models.clear()
        self._shared.clear()
        if self.store is not self.store_spec:
            await self.store.close()

    async def __aenter__(self) -> App:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- orders

    def order(
        self,
        problem: str,
        strategy: str | Strategy[Any, Any],
        options: Mapping[str, Any],
        budget: Budget,
        team: Team,
    ) -> tuple[Order, Performers]:
        """Check everything a user asked for, before anything is written or paid.

        Raises:
            UsageError: Something is wrong with it; the message says what and what is legal.
        """
        check_problem(problem)
        why = ""
        if isinstance(strategy, str) and strategy.strip().lower() == AUTO:
            driven = [one for one in self.strategies.values() if one.is_driven]
            strategy, why = choose_strategy(problem, driven, has_tools=bool(team.tools))
        chosen = self.strategy(strategy) if isinstance(strategy, str) else self.known(strategy)
        if not isinstance(options, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"options must be a mapping, got {type(options).__name__}", option="options")
        given = dict(options)
        team = self._with_resources(team, chosen)
        # A recording is opened last: nothing is to be written for an order that is refused.
        who, crew = self.performers(replace(team, record=None), problem)
        if who.verifier is not None and _has_option(chosen, "verify"):
            given.setdefault("verify", True)
        if who.tools is not None and _has_option(chosen, "tools"):
            given.setdefault("tools", who.tools.cards())  # pyright: ignore[reportAttributeAccessIssue]
        if _has_option(chosen, "over") and (inner := named(str(given.get("over", "")), self.strategies)):
            given["over"] = inner.name
        read = read_options(chosen, given)
        if who.verifier is None and getattr(read, "verify", False):
            raise UsageError("verify needs a verifier: name one (verifier=, --verifier)", option="verify")
        inside = self._inside(chosen, read)
        _check_named([card.name for one in inside for card in getattr(one, "tools", None) or ()], team)
        check_priced(dollar_limit(budget, inside), who.models, who.prices)
        who = structs.replace(who, model=self._recording(who.model, team.record))
        return Order(strategy=chosen, problem=problem, options=read, budget=budget, crew=crew, why=why), who

    def _inside(self, strategy: Strategy[Any, Any], options: Any) -> list[Any]:
        """Return the options of a run, and those of the strategies inside it."""
        inner = named(options.over, self.strategies) if _has_option(strategy, "over") else None
        if inner is None:
            return [options]
        try:
            inside = read_options(inner, options.over_options)
        except UsageError:
            # A run that cannot begin calls no tools and spends nothing.
            return [options]
        return [options, *self._inside(inner, inside)]

    def strategy(self, name: str) -> Strategy[Any, Any]:
        """Return the strategy that goes by a name or alias.

        Raises:
            UsageError: There is none; `choices` has the names.
        """
        return resolve(name, self.strategies)

    def known(self, strategy: Strategy[Any, Any]) -> Strategy[Any, Any]:
        """Add a strategy that a program brings along, so that its runs can be read again."""
        if not isinstance(strategy, Strategy):  # pyright: ignore[reportUnnecessaryIsInstance]
            message = f"strategy must be a name or a Strategy, got {type(strategy).__name__}"
            raise UsageError(message, option="strategy")
        if self.strategies.get(strategy.name) is not strategy:
            self.strategies = {**self.strategies, strategy.name: strategy}
            self.engine.strategies = self.strategies
        return strategy

    def _with_resources(self, team: Team, strategy: Strategy[Any, Any]) -> Team:
        if team.context and "search_documents" not in strategy.resources:
            raise UsageError(f"{strategy.name} makes no use of documents", option="context")
        if not strategy.resources:
            return team
        from .tools.built_in import built_in

        taken = {getattr(tool, "name", None) for tool in team.tools}
        names = [name for name in strategy.resources if name not in taken]
        key = (*names, team.context, team.sandbox)
        if key not in self._resources:
            self._resources[key] = built_in(names, documents=team.context, sandbox=team.sandbox)
            for tool in self._resources[key]:
                self._opened.callback(getattr(tool, "close", lambda: None))
        return replace(team, tools=[*team.tools, *self._resources[key]])

    @property
    def has_model(self) -> bool:
        """Whether the environment names a model or holds a provider's key."""
        from .models.choose import is_configured

        return is_configured(self.environ)

    def allow_list(self) -> AllowList:
        """Return what agents may name here, as the settings list it. No file is opened, nothing is sent.

        Raises:
            UsageError: An entry cannot be what it is listed as; the message names the setting.
        """
        from .models.choose import check_model_form
        from .tools.catalog import split_tools
        from .tools.verifiers import check_verifier_form

        allowed = AllowList.from_environ(self.environ)
        checks = (
            ("model", allowed.models, check_model_form),
            ("verifier", allowed.verifiers, check_verifier_form),
            ("tools", allowed.tools, split_tools),
        )
        for argument, entries, check in checks:
            for spec in entries.values():
                try:
                    check(spec)
                except UsageError as error:
                    refusal = UsageError(f"{SETTINGS[argument]}: {error.message}")
                    refusal.details = {**error.details, "option": SETTINGS[argument]}
                    raise refusal from None
        return allowed

    async def equipped(
        self,
        team: Team,
        budget: Budget | None = None,
        *,
        run_id: str | None = None,
        shared: bool = False,
    ) -> Team:
        """Return the team with the tools of its MCP servers, which live until the app is closed.

        Args:
            budget: Its seconds bound the opening of the servers and their closing too.
            run_id: The run that is gone on with: of its time what it has used is gone.
            shared: The servers are opened for several runs, each of which has the seconds of the budget.

        Raises:
            UsageError: A server is not named rightly.
            ToolError: One does not answer; `deadline_exceeded` if it had no more time than the budget gives.
        """
        if not isinstance(team.tools, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"tools must be a list, got {type(team.tools).__name__}", option="tools")
        check_budget(budget or Budget())
        if not team.mcp:
            return team
        from .tools.mcp_client import OPEN_TIMEOUT_S, mcp_tools

        began, left = time.monotonic(), await self._time_left(budget, run_id)
        until = began + left

        def time_to_close() -> float:
            return left if shared else until - time.monotonic()

        taken = [getattr(tool, "name", getattr(tool, "__name__", "")) for tool in team.tools]
        servers = mcp_tools(
            team.mcp,
            timeout_s=self.policy.tool_timeout_s,
            taken=taken,
            open_within_s=min(left, OPEN_TIMEOUT_S),
            time_to_close=time_to_close,
        )
        try:
            tools = await self._opened.enter_async_context(servers)
        except ToolError as error:
            if time.monotonic() < until:
                raise
            message = f"the time of the run was up before its tool servers were open: {error.message}"
            raise ToolError(message, code="deadline_exceeded", **error.details) from error
        opened_s = 0.0 if shared else time.monotonic() - began
        return replace(team, tools=[*team.tools, *tools], mcp=(), opened_s=opened_s)

    async def _time_left(self, budget: Budget | None, run_id: str | None) -> float:
        """Return how many seconds a run still has; infinitely many without a limit."""
        spent_s = 0.0
        if run_id is not None:
            _, limits, _ = await self.engine.terms(run_id)
            budget = budget or limits
            spent_s = (await self.engine.result(run_id)).duration_ms / 1000
        if budget is None or budget.seconds is None:
            return math.inf
        return max(0.0, budget.seconds - spent_s)

    def performers(self, team: Team, problem: str) -> tuple[Performers, Crew]:
        """Open the models, the verifier and the tools of a run."""
        model = self._recording(self._model(team.model, problem), team.record)
        judge = None if team.judge_model is None else self._model(team.judge_model, problem)
        draft = None if team.draft_model is None else self._model(team.draft_model, problem)
        verifier = self._verifier(team.verifier, model, problem)
        tools = self._tools(team.tools)
        models = [one for one in (model, judge, draft) if one is not None]
        price = self._priced(team, models)
        crew = Crew(model.name, _name(judge), _name(verifier), _name(draft), price)
        prices = Prices.read(price)
        return Performers(model, judge, verifier, tools, draft, prices, team.opened_s), crew

    def _priced(self, team: Team, models: Sequence[Model]) -> tuple[str, ...]:
        """Return what the user or the environment says the models cost, each by its name."""
        prices = Prices.read(team.prices)
        prices.check_models(models)
        return fix((prices, self.usual_prices()), models)

    def usual_prices(self) -> Prices:
        """Return the prices that hold where none is named with a run: those of `REASONRY_PRICE`.

        Raises:
            UsageError: One is none.
        """
        usual = [spec for spec in self.environ.get("REASONRY_PRICE", "").split(",") if spec.strip()]
        try:
            return Prices.read(usual)
        except UsageError as error:
            raise UsageError(f"REASONRY_PRICE: {error.message}", option="REASONRY_PRICE") from None

    def _model(self, spec: str | Model | None, problem: str, keyed_by: Sequence[str] | None = None) -> Model:
        from .models.choose import default_model, open_model

        if spec is not None and not isinstance(spec, str):
            return spec
        if spec == CALLER:
            raise UsageError(
                "this run's questions are answered by its caller: use `reasonry coach answer`, or name --model to "
                "hand it over",
                option="model",
            )
        if spec is None:
            spec, self.model_why = default_model(problem, self.environ)
        if spec in self._shared:
            return self._shared[spec]
        model = open_model(spec, self.environ, keyed_by=keyed_by)
        self._models.append(model)
        # One that keeps its place in a file belongs to one run.
        if not hasattr(model, "rewind"):
            self._shared[spec] = model
        return model

    def _recording(self, model: Model, path: str | None) -> Model:
        if path is None:
            return model
        from .models.recorded import Recorder

        recorder = Recorder(model, path)
        self._models.append(recorder)
        return recorder

    def _verifier(self, spec: Any, model: Model, problem: str) -> Verifier | None:
        from .tools.verifiers import CallableVerifier, open_verifier, verifier_of_offline

        if isinstance(spec, str):
            return open_verifier(spec)
        if spec is None:
            # The offline model computes, so what it finds can be proved by computing.
            return verifier_of_offline(problem) if model.name == "offline" else None
        if not callable(getattr(spec, "verify", spec)):
            raise UsageError(
                f"verifier is text, a callable or an object with `verify`, got {type(spec).__name__}",
                option="verifier",
            )
        return spec if hasattr(spec, "verify") else CallableVerifier(spec)

    def _tools(self, tools: Sequence[Any]) -> Any:
        if not tools:
            return None
        from .tools.catalog import Catalog

        return Catalog.of(tools)

    # -- thinking by others

    def sessions(self) -> Sessions:
        """Return the guided sessions of the store."""
        return Sessions(
            self.store,
            self.strategies,
            SessionSettings.from_environ(self.environ),
            run_thoughts=self._thoughts_of,
        )

    async def _thoughts_of(self, run_id: str) -> Any:
        return rows_of_run(await self.engine.thoughts(run_id))

    def coach(self) -> Coach:
        """Return the coached runs of the store."""
        return Coach(self.engine)

    async def coach_start(
        self,
        problem: str,
        strategy: str | Strategy[Any, Any],
        options: Mapping[str, Any],
        budget: Budget,
        team: Team,
    ) -> dict[str, Any]:
        """Start a coached run; only the team's verifier and tools work on it."""
        team = replace_model(team)
        order, who = await self.aside(lambda: self.order(problem, strategy, options, budget, team))
        return await self.coach().start(order, who)

    async def coach_take_over(self, run_id: str, team: Team, budget: Budget | None) -> dict[str, Any]:
        """Hand a run over to its caller."""
        if budget is not None:
            check_priced(dollar_limit(budget, ()), [Caller()], Prices())
        return await self.coach().take_over(
            run_id, lambda run: self.aside(lambda: self._coaching(run, team)), budget
        )

    async def coach_answer(
        self,
        run_id: str,
        answers: Sequence[Any],
        team: Team | None = None,
        *,
        vet: Callable[[Folded, Team], Team] | None = None,
    ) -> dict[str, Any]:
        """Take answers to a coached run.

        Args:
            vet: Says who may work on the run as it is recorded, or raises.
        """
        named = team or Team()

        def performers(run: Folded) -> Performers:
            return self._coaching(run, vet(run, named) if vet else named)

        return await self.coach().answer(run_id, answers, lambda run: self.aside(lambda: performers(run)))

    def _coaching(self, run: Folded, team: Team) -> Performers:
        team = self._with_resources(self._checks_again(team, run.crew), run.strategy)
        _check_tools(run.begun, team)
        return self.performers(replace_model(team), run.begun.problem)[0]

    async def aside(self, work: Callable[[], T]) -> T:
        """Do what may read files, one piece of work at a time, without keeping the event loop waiting."""
        async with self._working:
            return await asyncio.to_thread(work)

    def _crew_again(self, team: Team, crew: Crew) -> Team:
        """Return the crew a run had, with what is named anew."""
        named = [spec for spec in (team.model, team.judge_model, team.draft_model) if isinstance(spec, str)]
        again = (
            None if team.model else crew.model,
            None if team.judge_model else crew.judge_model,
            None if team.draft_model else crew.draft_model,
        )
        return replace(
            self._checks_again(team, crew),
            price=team.prices or kept(crew.price, again),
            model=team.model or self._recorded_model(crew.model, named),
            judge_model=team.judge_model or self._recorded_model(crew.judge_model, named),
            draft_model=team.draft_model or self._recorded_model(crew.draft_model, named),
        )

    @staticmethod
    def _checks_again(team: Team, crew: Crew) -> Team:
        """Return the team with the verifier a run had, if none is named anew."""
        from .tools.verifiers import reopen_verifier

        return replace(team, verifier=team.verifier or reopen_verifier(crew.verifier), mcp=(), record=None)

    def _recorded_model(self, spec: str | None, named: Sequence[str]) -> Model | None:
        """Open a model that a run's record names; a key is not sent where only the record says."""
        if not spec:
            return None
        settings = AllowList.from_environ(self.environ).models.values()
        return self._model(spec, "", (*settings, *named))

    # -- runs

    async def solve(self, order: Order, who: Performers, observer: Observer | None = None) -> Result:
        """Accept a run and drive it to its end."""
        run_id = await self.engine.accept(order)
        return await self.engine.drive(run_id, who, observer)

    async def resume(
        self,
        run_id: str,
        team: Team | None = None,
        budget: Budget | None = None,
        observer: Observer | None = None,
    ) -> Result:
        """Go on with a run, with the crew it began with or another one."""
        async with self.engine.open(run_id) as opened:
            return await self.go_on(opened, team, budget, observer)

    async def go_on(
        self,
        opened: OpenRun,
        team: Team | None = None,
        budget: Budget | None = None,
        observer: Observer | None = None,
    ) -> Result:
        """Go on with a run that is open; see `resume`."""
        run = opened.run
        again = self._with_resources(self._crew_again(team or Team(), run.crew), run.strategy)
        _check_tools(run.begun, again)
        who, crew = self.performers(again, run.begun.problem)
        recorded = run.begun.options
        inside = (recorded, recorded.get("over_options") or {})
        check_priced(dollar_limit(budget or run.budget, inside), who.models, who.prices)
        rewind(who, run, run.crew)
        changed = None if crew == run.crew else crew
        await opened.reopen(budget, changed)
        return await opened.drive(who, observer)

    async def fork(
        self,
        run_id: str,
        at: int,
        team: Team,
        options: Mapping[str, Any],
        budget: Budget | None,
        observer: Observer | None = None,
    ) -> Result:
        """Start a new run from a point of another and drive it."""
        begun, limits, crew = await self.engine.terms(run_id)
        strategy = self.strategy(begun.strategy)
        full = self._with_resources(self._crew_again(team, crew), strategy)
        if "tools" not in options:
            _check_tools(begun, full)
        merged = {**begun.options, **options}
        order, who = self.order(begun.problem, strategy, merged, budget or limits, full)
        async with self.engine.open(await self.engine.fork(run_id, order, at)) as opened:
            rewind(who, opened.run, crew)
            return await opened.drive(who, observer)


def _name(one: Model | Verifier | None) -> str | None:
    return one.name if one else None


def _check_tools(begun: Begun, team: Team) -> None:
    _check_named([card["name"] for card in begun.options.get("tools") or ()], team)


def _check_named(names: Sequence[str], team: Team) -> None:
    given = {getattr(tool, "name", getattr(tool, "__name__", "")) for tool in team.tools}
    missing = [name for name in names if name not in given]
    if missing:
        raise UsageError(
            f"the run would work with the tools {', '.join(missing)}, which it is not given: name them "
            "(tools, mcp, context), again if it began with them",
            tools=missing,
        )


def _has_option(strategy: Strategy[Any, Any], name: str) -> bool:
    return name in getattr(strategy.options, "__struct_fields__", ())


def replace_model(team: Team) -> Team:
    """Return the team with the caller in the model's place."""
    return replace(team, model=Caller(), judge_model=None, draft_model=None)

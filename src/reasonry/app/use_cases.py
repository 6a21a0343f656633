"""Runs as a user asks for them: checked and begun, continued, forked, or answered by their caller."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

from msgspec import structs, to_builtins

from ..blocks.drafts import DraftOptions
from ..core.budget import DEFAULT_CALLS, Budget
from ..core.json_schema import schema_fault
from ..core.options import nested_options, read_options, with_coached_defaults, with_preset
from ..core.problem import check_problem, without_quoted
from ..core.prompts import read_prompts
from ..core.registry import Registry, add_strategies, resolve, strategies_at_hand
from ..core.strategy import Strategy
from ..engine.coach import CALLER, Caller, Coach
from ..engine.drive import OpenRun
from ..engine.engine import Engine, RecordedRun, Steer
from ..engine.follow import Observer
from ..engine.fork import Fork, check_rewordings
from ..engine.journal import Begun, Steered
from ..engine.named_prices import check_priced, dollar_limit
from ..engine.policy import Performers, rewind
from ..engine.result import Result
from ..engine.run import Run
from ..errors import ConflictError, UsageError
from ..ids import find_id
from ..masking import SECRETS
from ..records import JobOptions, RunFilters, RunRow
from ..strategies import DEFAULT_STRATEGY
from ..strategies.choice import AUTO, choose_strategy
from ..tools.verifiers import idle_verifier_warning
from .composition import MAX_LEVELS, Composition, read_composition
from .participants import Participants, PerformerPool
from .run_head import RunHead, run_head

Levels = list[tuple[Strategy[Any, Any], dict[str, Any]]]
"""The strategies of a composition with what their options say, outermost first."""
AtHand = Callable[[], dict[str, Any]]
"""Returns what `auto` chooses by, besides the problem; called where it chooses."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """A run that somebody asks for, on whatever surface.

    Args:
        problem: None: the first thought of the session.
        session: The session whose thoughts come with the problem: its id, the beginning of it, or `last`.
        strategy: A name of the registry, or a strategy of the caller's own.
        budget: None: no limit is named; `DEFAULT_CALLS` then, unless the caller answers or a preset is named.
        participants: Who is to work on it. Of a coached run, only its verifier and its tools do.
        form: JSON schema that the answer is to fit.
        prompts: Questions of stages in place of the strategy's own, by `STRATEGY.STAGE`; see `core.prompts`.
        coached: Whether the caller answers the questions.
    """

    problem: str | None = None
    session: str | None = None
    strategy: str | Strategy[Any, Any] = DEFAULT_STRATEGY
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    budget: Budget | None = None
    participants: Participants = field(default_factory=Participants)
    form: dict[str, Any] | None = None
    prompts: Mapping[str, str] = field(default_factory=dict[str, str])
    coached: bool = False

    def __post_init__(self) -> None:
        """Refuse what is of a wrong type, before anything is looked up in it or by it.

        Raises:
            UsageError: The options are no mapping, or the session no text.
        """
        for name, kind in (("options", Mapping), ("session", str | None)):
            if not isinstance(value := getattr(self, name), kind):
                wanted = "text" if name == "session" else "a mapping"
                raise UsageError(f"{name} must be {wanted}, got {type(value).__name__}", option=name)


class UseCases:
    """What a user asks of runs, over an engine and a pool of performers."""

    def __init__(self, engine: Engine, pool: PerformerPool) -> None:
        self.engine, self.pool = engine, pool

    # -- what is asked for

    @property
    def strategies(self) -> Registry:
        """The strategies that runs may have, by canonical name."""
        return self.engine.strategies

    def strategy(self, name: str) -> Strategy[Any, Any]:
        """Return the strategy that goes by a name or alias.

        Raises:
            UsageError: There is none; `choices` has the names.
        """
        return resolve(name, self.strategies)

    async def run_id(self, text: str, own: Sequence[str] = ()) -> str:
        """Return the id of the run that a text stands for: an id, how it begins, or `last`, the one begun last.

        Args:
            own: The runs of the caller, latest last; where there are any, `last` means one of them.

        Raises:
            UsageError: Several ids begin with it; `choices` has them.
            NotFoundError: It is `last`, and there is no run.
        """

        async def last() -> str | None:
            if own:
                return own[-1]
            rows = await self.engine.store.runs(limit=1)
            return rows[0].run_id if rows else None

        return await find_id(text, "run", self.engine.store.run_ids, last)

    def register(self, strategy: Strategy[Any, Any]) -> Strategy[Any, Any]:
        """Add a user-defined strategy to the registry, so that its runs can be read again."""
        if not isinstance(strategy, Strategy):  # pyright: ignore[reportUnnecessaryIsInstance]
            message = f"strategy must be a name or a Strategy, got {type(strategy).__name__}"
            raise UsageError(message, option="strategy")
        if self.strategies.get(strategy.name) is not strategy:
            self.engine.strategies = add_strategies(self.strategies, {strategy.name: strategy})
        return strategy

    def order(self, request: RunRequest) -> tuple[Begun, Performers]:
        """Check everything a user asked for, before anything is written or paid; see `receive`.

        Args:
            request: Its problem is the whole one, and its participants are admitted.

        Raises:
            UsageError: Something is wrong with it; the message says what and what is legal.
        """
        problem, form = request.problem or "", request.form
        participants = request.participants.with_caller() if request.coached else request.participants
        check_problem(problem)
        if form is not None and (fault := schema_fault(form)):
            raise UsageError(f"the answer cannot be put into this form: {fault}", option="form")
        asked = without_quoted(problem)
        levels, why = self._levels(
            asked, request.strategy, request.options, lambda: self._at_hand(request, participants, asked)
        )
        used = [level for level, _ in levels]
        participants = self.pool.attach_built_in(participants, used)
        is_given = bool(request.options.get("candidates"))
        if not request.coached:
            participants = replace(participants, seats=self._seats(levels) or participants.seats)
        if is_given and participants.verifier and not (participants.model or self.pool.offered_model(asked)):
            # The verifier decides alone.
            participants = replace(participants, model="offline")
        # A recording is opened last: nothing is to be written for an order that is refused.
        performers = self.pool.open(replace(participants, record=None), asked)
        nested = self._read_options(levels, performers)
        checked = nested[0]
        check_rewordings(request.prompts)
        inside = [self.strategy(nested[-1].over)] if isinstance(nested[-1], DraftOptions) else []
        prompts = read_prompts(SECRETS.mask_data(dict(request.prompts)), [*used, *inside])
        budget = request.budget
        if budget is None:
            is_exempt = isinstance(performers.model, Caller) or "preset" in request.options
            budget = Budget() if is_exempt else Budget(calls=DEFAULT_CALLS)
        if performers.verifier is None and any(getattr(each, "verify", False) for each in nested):
            raise UsageError("verify needs a verifier: name one", option="verify")
        cards = [card for each in nested for card in getattr(each, "tools", None) or ()]
        participants.check_tools([card.name for card in cards])
        plain = to_builtins(checked)
        check_priced(dollar_limit(budget, plain), performers.models, performers.prices)
        model = self.pool.record_answers(performers.model, participants.record)
        verifies = getattr(checked, "verify", False)
        idle = [
            idle_verifier_warning(performers.verifier, asked) if verifies else "",
            f"tools: {used[0].name} calls no tools" if participants.tools and not cards else "",
            "" if is_given else check_least_calls(used[0], budget),
        ]
        order = Begun(
            strategy=used[0].name,
            problem=problem,
            options=plain,
            budget=budget,
            participants=performers.names,
            why=why,
            warnings=tuple(filter(None, idle)),
            from_session=request.session,
            form=form,
            prompts=prompts,
        )
        return order, structs.replace(performers, model=model)

    def _levels(
        self,
        problem: str,
        strategy: str | Strategy[Any, Any],
        options: Mapping[str, Any],
        at_hand: AtHand,
        *,
        above: int = 0,
    ) -> tuple[Levels, str]:
        """Return the strategies of a composition with what their options say, outermost first; and why it was chosen.

        A strategy that is inside by default, with nothing said of its options, is no level.
        """
        # In a name with `_` for each `-`, a key would not be found any more.
        options = SECRETS.mask_data(dict(options))
        written = read_composition(SECRETS.mask(strategy)) if isinstance(strategy, str) else Composition("")
        complete = {name.replace("-", "_"): value for name, value in options.items()}
        for name in written.options:
            if name.replace("-", "_") in complete:
                raise UsageError(f"the option {name} is named twice", option=name)
        complete = {**written.options, **complete}
        chosen, why = self._choose(problem, written.name or strategy, at_hand)
        if not _has_option(chosen, "over"):
            if written.inside is not None:
                raise UsageError(f"{chosen.name} takes no strategy inside", option="strategy")
            return [(chosen, complete)], why
        if written.inside is not None:
            complete["over"] = written.inside
        inner = {name: complete[name] for name in ("over", "over_options") if name in complete}
        over = read_options(chosen, inner)
        inside, below = over.over, over.over_options  # pyright: ignore[reportAttributeAccessIssue]
        if above >= MAX_LEVELS:
            raise UsageError(f"at most {MAX_LEVELS} strategies are inside one another", option="strategy")
        levels, _ = self._levels(problem, inside, below, at_hand, above=above + 1)
        complete["over"] = levels[0][0].name
        is_plain = levels[0][0].name == chosen.options().over and not levels[0][1]  # pyright: ignore
        return [(chosen, complete), *([] if is_plain else levels)], why

    def _choose(
        self, problem: str, strategy: str | Strategy[Any, Any], at_hand: AtHand
    ) -> tuple[Strategy[Any, Any], str]:
        """Return the strategy, and why it was chosen if it was `auto` that chose it."""
        if not isinstance(strategy, str):
            return self.register(strategy), ""
        if strategy.strip().lower() != AUTO:
            return self.strategy(strategy), ""
        name, why, _ = choose_strategy(problem, self._choices(), **at_hand())
        return self.strategy(name), why

    def _choices(self) -> list[Strategy[Any, Any]]:
        return [each for each in strategies_at_hand(self.strategies).values() if each.is_driven]

    def _at_hand(self, request: RunRequest, participants: Participants, problem: str) -> dict[str, Any]:
        """Return what `auto` chooses by, besides the problem."""
        return {
            "has_tools": bool(participants.tools),
            "has_verifier": participants.verifier is not None,
            "reasons": self.pool.reasons(participants.model, problem),
            "calls": DEFAULT_CALLS if request.budget is None else request.budget.calls,
        }

    def explain(self, request: RunRequest) -> dict[str, Any]:
        """Return which strategy `auto` takes for a problem, and what it considered, in order; nothing is begun."""
        problem = without_quoted(request.problem or "")
        check_problem(problem)
        at_hand = self._at_hand(request, request.participants, problem)
        name, why, considered = choose_strategy(problem, self._choices(), **at_hand)
        return {"strategy": name, "why": why, "considered": [structs.asdict(each) for each in considered]}

    def _seats(self, levels: Levels) -> tuple[str, ...]:
        """Return the models that the options of a composition name, as the operator would write them."""
        named = [(level, options["models"]) for level, options in levels if options.get("models")]
        if len(named) > 1:
            raise UsageError("only one strategy of a composition may name models", option="models")
        names = (name for level, written in named for name in read_options(level, {"models": written}).models)  # pyright: ignore
        return tuple(self.listed_model(name) for name in names)

    def listed_model(self, name: str) -> str:
        """Return the model that an option names; the operator may name any."""
        return name

    def _read_options(self, levels: Levels, performers: Performers) -> list[Any]:
        """Return the options of a composition, outermost first, with what follows from the performers."""
        checked: list[Any] = []
        for strategy, written in reversed(levels):
            complete = dict(written)
            if checked:
                complete["over_options"] = to_builtins(checked[0])
            if isinstance(performers.model, Caller):
                complete = with_coached_defaults(strategy, complete)
            if performers.verifier is not None and _has_option(strategy, "verify"):
                complete.setdefault("verify", True)
            if performers.tools is not None and _has_option(strategy, "tools"):
                complete.setdefault("tools", performers.tools.cards())  # pyright: ignore[reportAttributeAccessIssue]
            checked.insert(0, read_options(strategy, complete))
        return checked

    def strategies_in(self, begun: Begun) -> list[Strategy[Any, Any]]:
        """Return the strategy of a run, and those inside it."""
        inside = [str(options["over"]) for options in nested_options(begun.options) if "over" in options]
        return [self.strategy(name) for name in (begun.strategy, *inside)]

    # -- who may work on it

    async def admit(
        self, named: Participants, source: Run | RecordedRun | None = None, *, coached: bool = False
    ) -> Participants:
        """Return the named participants that may work on a run; the operator may name anything.

        Args:
            source: The run that is continued or forked, if it is no new one.
            coached: Whether the caller answers its questions from now on.
        """
        return named

    def fit_errors(self) -> AbstractContextManager[None]:
        """Have errors say what whoever asks may be told; the operator is told everything."""
        return nullcontext()

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
        """Admit participants; return them with the tools that text names, and those of their MCP servers.

        The servers run until the app is closed.

        Args:
            budget: Its seconds bound the opening of the servers too.
            source: As in `admit`; so is `coached`.
            spent_s: What the run has used of them already.
            shared: The servers are opened for several runs, each of which has the seconds of the budget.

        Raises:
            UsageError: A tool or a server is not named rightly.
            ToolError: A server does not answer; `deadline_exceeded` if it had no more time than the budget.
        """
        for name in ("tools", "mcp", "context"):
            named = getattr(participants, name)
            if isinstance(named, str) or not isinstance(named, Sequence):
                raise UsageError(f"{name} must be a list, got {type(named).__name__}", option=name)
        if not isinstance(budget, Budget | None):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"budget must be a Budget, got {type(budget).__name__}", option="budget")
        participants = self.pool.load_tools(await self.admit(participants, source, coached=coached))
        if not participants.mcp:
            return participants
        limit_s = math.inf if budget is None or budget.seconds is None else budget.seconds
        return await self.pool.start_servers(participants, max(0.0, limit_s - spent_s), shared=shared)

    # -- driven by models

    async def solve(
        self, order: Begun, performers: Performers, observer: Observer | None = None, fork: Fork | None = None
    ) -> Result:
        """Accept a run, with what it takes over of another, and drive it to its end."""
        async with self.engine.begin(order, performers, fork) as opened:
            return await opened.drive(performers, observer)

    async def resume(
        self,
        run_id: str,
        participants: Participants | None = None,
        budget: Budget | None = None,
        observer: Observer | None = None,
    ) -> Result:
        """Resume a run, with the participants it began with or others."""
        async with self.engine.open(run_id) as opened:
            performers = await self.reopen(opened, participants, budget)
            return await opened.drive(performers, observer)

    async def continue_paused(
        self,
        run_id: str,
        participants: Participants | None,
        budget: Budget | None,
        steer: Steer | None = None,
    ) -> bool:
        """Have a paused run continue where it is still driven, because something of it was in flight.

        No other model can take it up there.

        Args:
            steer: Steers the run; None: `Engine.steer` does.

        Returns:
            Whether it continues there; if not, it has to be opened.
        """
        store, has_ended = self.engine.store, False
        is_others = participants is not None and participants.model is not None
        while not is_others and (row := await store.run(run_id)).paused and row.status == "active":
            if not await store.find_driven([run_id]):
                return False
            # Another may be quicker, with this or with the end of the run.
            with suppress(ConflictError):
                await (steer or self.engine.steer)(run_id, Steered(paused=False))
                has_ended = True
        if not (has_ended and await store.find_driven([run_id])):
            return False
        with suppress(ConflictError):
            if budget is not None:
                await self.set_limits(run_id, structs.asdict(budget))
            return True
        # It has ended meanwhile.
        return False

    async def reopen(
        self,
        opened: OpenRun,
        participants: Participants | None = None,
        budget: Budget | None = None,
        *,
        coached: bool = False,
        job: JobOptions | None = None,
    ) -> Performers:
        """Take up a run that is open, to be driven by the performers that are returned; see `resume`.

        Args:
            budget: None: that of the run; `DEFAULT_CALLS` more if that is the limit which nobody named, and it was met.
            coached: Its caller answers its questions from now on.
            job: As in `OpenRun.reopen`.
        """
        run = opened.run
        conclusion = run.snapshot.conclusion
        # The limit that nobody named, or what resuming made of it.
        is_default = run.begun.budget == Budget(calls=DEFAULT_CALLS) and run.budget == Budget(
            calls=run.budget.calls
        )
        if budget is None and is_default and conclusion is not None and conclusion.reason == "max_calls":
            budget = Budget(calls=run.usage.calls + DEFAULT_CALLS)

        performers = await self._open_again(run, participants, budget, coached=coached)
        names, limits, options = performers.names, budget or run.budget, run.begun.options
        if coached:
            # The prices of the models that drove it so far stay, and so do its limits.
            names = structs.replace(names, price=run.participants.price)
            limits, options = budget or Budget(), {}
        check_priced(dollar_limit(limits, options), performers.models, performers.prices)
        rewind(performers, run, run.participants)
        changed = None if names == run.participants else names
        await opened.reopen(budget, changed, job=job)
        return performers

    async def _open_again(
        self, run: Run, named: Participants | None, budget: Budget | None = None, *, coached: bool
    ) -> Performers:
        """Open the participants of a run: the named ones, else those of its record, with its strategies' own tools."""
        equipped = Participants()

        def open_all() -> Performers:
            complete = self._reopen(equipped, run, coached=coached)
            complete.check_recorded_tools(run.begun)
            return self.pool.open(complete, without_quoted(run.begun.problem))

        with self.fit_errors():
            if named is not None:
                limits, spent_s = budget or run.budget, run.snapshot.at_ms / 1000
                equipped = await self.equip(named, limits, run, coached=coached, spent_s=spent_s)
            return await self.pool.run_in_thread(open_all)

    def _reopen(self, named: Participants, source: Run | RecordedRun, *, coached: bool) -> Participants:
        """Return the named participants, else those of the record of a run, with its strategies' own tools."""
        listed = self.pool.add_listed(named, source.participants)
        reopened = self.pool.reopen(listed, source.participants, coached=coached)
        return self.pool.attach_built_in(reopened, self.strategies_in(source.begun))

    async def list_runs(
        self, limit: int, cursor: str | None = None, **which: Unpack[RunFilters]
    ) -> dict[str, Any]:
        """Return a page of runs, newest first, and in `next_cursor` where the next one begins.

        Raises:
            UsageError: There is no such strategy.
            NotFoundError: The run of the cursor is not there.
        """
        if (name := which.get("strategy")) is not None:
            which["strategy"] = self.strategy(name).name
        rows = await self.engine.store.runs(limit=limit + 1, before=cursor, **which)
        more = rows[limit - 1].run_id if len(rows) > limit else None
        return {"runs": await self.heads(rows[:limit]), "next_cursor": more}

    async def heads(self, rows: Sequence[RunRow]) -> list[RunHead]:
        """Return runs as lists show them."""
        left = await self.resumable(rows)
        return [run_head(row, resumable=row.run_id in left) for row in rows]

    async def resumable(self, rows: Sequence[RunRow]) -> set[str]:
        """Return which of these runs nobody drives, though they have not ended: to continue, they have to be resumed.

        Whoever drove them has died or let go of them, or they wait for what their caller has to say.
        """
        active = [row for row in rows if row.status == "active" and row.model != CALLER]
        left = {
            row.run_id for row in active if not (row.unattended or row.paused or row.outcome == "waiting")
        }
        return left - await self.engine.store.find_driven(left) if left else left

    async def order_fork(
        self,
        source: RecordedRun,
        participants: Participants,
        options: Mapping[str, Any],
        budget: Budget | None,
        *,
        coached: bool = False,
    ) -> tuple[Begun, Performers]:
        """Check a fork as `order` checks a new run; a setting that is not named is the run's."""
        begun, limits = source.begun, budget or source.budget

        def order() -> tuple[Begun, Performers]:
            strategy = self.strategy(begun.strategy)
            complete = self._reopen(equipped, source, coached=coached)
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

        with self.fit_errors():
            equipped = await self.equip(participants, limits, source, coached=coached)
            return await self.pool.run_in_thread(order)

    # -- steering

    async def set_limits(self, run_id: str, limits: Mapping[str, Any]) -> Budget:
        """Replace the named limits of an active run, whatever process drives it; return all limits.

        Args:
            limits: None lifts a limit.

        Raises:
            UsageError: The budget limits dollars where a price is not known.
            ConflictError: The run has ended.
        """
        source = await self.engine.recorded_run(run_id)
        budget, names = structs.replace(source.budget, **limits), source.participants
        if budget.usd is not None:

            def open_recorded() -> Performers:
                is_coached = names.model == CALLER
                return self.pool.open(self.pool.reopen(Participants(), names, coached=is_coached), "")

            performers = await self.pool.run_in_thread(open_recorded)
            check_priced(dollar_limit(budget), performers.models, performers.prices)
        await self.engine.steer(run_id, Steered(budget))
        return budget

    # -- answered by their caller

    def coach(self, *, brief: bool = False) -> Coach:
        """Return the coached runs of the store, whose replies are brief if wanted; see `Coach`."""
        return Coach(self.engine, brief)

    async def coach_take_over(
        self,
        run_id: str,
        named: Participants = Participants(),
        budget: Budget | None = None,
        *,
        brief: bool = False,
    ) -> dict[str, Any]:
        """Hand a run over to its caller; `named` as in `coach_answer`."""
        async with self.engine.open(run_id) as opened:
            performers = await self.reopen(opened, named, budget, coached=True)
            return await self.coach(brief=brief).go_on(opened, performers)

    async def coach_answer(
        self,
        run_id: str,
        answers: Any,
        named: Participants = Participants(),
        *,
        brief: bool = False,
        says_all: bool = False,
    ) -> dict[str, Any]:
        """Take answers to a coached run; see `Coach.answer`.

        Args:
            named: Who works on the run besides its caller; its verifier is that of the record where none is named.
        """
        coach = self.coach(brief=brief)
        return await coach.answer(
            run_id, answers, lambda run: self._open_again(run, named, coached=True), says_all=says_all
        )


def check_least_calls(strategy: Strategy[Any, Any], budget: Budget) -> str:
    """Return what there is to say of a limit on calls that leaves a strategy fewer than it needs.

    Raises:
        UsageError: It gives nothing at all with so few.
    """
    calls = budget.calls
    if calls is None or calls >= strategy.least_calls:
        return ""
    needed = f"{strategy.name} needs {strategy.least_calls} calls; with {calls}"
    if strategy.needs_least:
        raise UsageError(f"{needed} it gives nothing: allow more, or take another strategy", option="budget")
    return f"{needed} this is one direct question"


def _has_option(strategy: Strategy[Any, Any], name: str) -> bool:
    return name in getattr(strategy.options, "__struct_fields__", ())

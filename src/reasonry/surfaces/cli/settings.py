"""Options that several commands share, and running a command's work."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from cyclopts import Parameter
from msgspec import structs

from ...app.installed import installed_strategies, read_strategies
from ...app.participants import Participants
from ...app.use_cases import RunRequest
from ...app.wiring import App
from ...core.budget import Budget
from ...core.registry import Registry
from ...engine.policy import Policy, RateLimits
from ...engine.ports import provider_of
from ...errors import UsageError
from ..signals import on_ending
from .arguments import WholeNumber, read_pairs
from .output import print_document, print_line

T = TypeVar("T")

POLICY = Policy()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Common:
    """Options of every command.

    Args:
        store: Where runs and sessions are kept: a SQLite path, a PostgreSQL URL or `memory`. Default: REASONRY_STORE,
            else the user's data folder.
        strategies_dir: A folder with strategies of your own, as TOML tables.
        json: Print one JSON document on standard output and nothing else.
    """

    store: str | None = None
    strategies_dir: str | None = None
    json: bool = False

    def strategies(self) -> Registry:
        """Return the registry, with those of installed packages and the user's own tables if a folder is named."""
        known = installed_strategies()
        return known if self.strategies_dir is None else read_strategies(self.strategies_dir, known)

    def app(self, policy: Policy | None = None, environ: Mapping[str, str] = os.environ) -> App:
        """Wire everything together."""
        return App(self.store, policy or Policy(), environ, self.strategies())

    def do(
        self,
        work: Callable[[App], Awaitable[T]],
        policy: Policy | None = None,
        environ: Mapping[str, str] = os.environ,
        make_loop: Callable[[], asyncio.AbstractEventLoop] | None = None,
    ) -> T:
        """Do a command's work with an app, and close it whatever happens."""

        async def main(app: App) -> T:
            async with app:
                return await work(app)

        return run_async(main(self.app(policy, environ)), make_loop)

    def do_on_run(
        self, run: str, work: Callable[[App, str], Awaitable[T]], policy: Policy | None = None
    ) -> T:
        """Do the same on a run, named by its id, how that begins, or `last`; the work is handed its id."""

        async def on_run(app: App) -> T:
            return await work(app, await app.run_id(run))

        return self.do(on_run, policy)

    def show(self, document: Any, text: str | Callable[[], object]) -> int:
        """Print a document, or what there is to say of it to people, and return the exit code 0."""
        show(document, text, as_json=self.json)
        return 0


def show(document: Any, text: str | Callable[[], object], *, as_json: bool) -> None:
    """Print a document, or what there is to say of it to people: a line, or what the function prints."""
    if as_json:
        print_document(document)
    elif isinstance(text, str):
        print_line(text)
    else:
        text()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SessionRules:
    """What holds for sessions; what is not named here is taken from REASONRY_… variables.

    Args:
        session_ttl_s: Seconds a session stays active after its last use.
        session_on_expiry: archive or delete.
        retention: Days without use after which an archived session is deleted; without it, never.
        max_thoughts: Of one session.
        max_branches: Of one session.
        max_thought_chars: Of one thought.
        max_history_chars: Of the thoughts that a reply shows.
    """

    session_ttl_s: str | None = None
    session_on_expiry: str | None = None
    retention: str | None = None
    max_thoughts: str | None = None
    max_branches: str | None = None
    max_thought_chars: str | None = None
    max_history_chars: str | None = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Listed:
    """What agents may name; what is not named here is taken from REASONRY_… variables.

    Args:
        model: The model that is taken where an agent names none, as after `solve --model`.
        models: Another model that agents may name, as SPEC or NAME=SPEC; may be repeated.
        verifiers: A verifier that agents may name besides arithmetic:TARGET, as SPEC or NAME=SPEC; may be repeated.
        tools: Python callables that agents may name, as FILE.py:NAME or NAME=FILE.py:NAME; may be repeated.
        documents: A file that agents may have searched, as FILE or NAME=FILE; may be repeated.
    """

    model: str | None = None
    models: tuple[str, ...] = ()
    verifiers: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AgentSettings(SessionRules, Listed):
    """What a server of agents is told about them."""

    def environ(self) -> dict[str, str]:
        """Return the environment with what was named laid over it."""
        texts = {
            name: ",".join(value) if isinstance(value, tuple) else value for name, value in vars(self).items()
        }
        return overlay(os.environ, {name: text or None for name, text in texts.items()})


def overlay(environ: Mapping[str, str], options: Mapping[str, str | None]) -> dict[str, str]:
    """Return the environment with the options that are named laid over their variables."""
    named = {f"REASONRY_{name.upper()}": value for name, value in options.items() if value is not None}
    return {**environ, **named}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Shown:
    """How much of a run is printed.

    Args:
        full: Print every thought whole.
        partial: Print the best so far where a run gave no answer; the exit code stays.
    """

    full: bool = False
    partial: bool = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Limits:
    """Hard limits of a run.

    Args:
        max_calls: Requests to models, retries included.
        max_tokens: Input and output tokens together.
        max_usd: US dollars.
        max_seconds: Seconds of run time; cuts a call in flight.
        max_thoughts: Thoughts recorded.
        max_nodes: Nodes a search may hold.
    """

    max_calls: WholeNumber | None = None
    max_tokens: WholeNumber | None = None
    max_usd: float | None = None
    max_seconds: float | None = None
    max_thoughts: WholeNumber | None = None
    max_nodes: WholeNumber | None = None

    def budget(self) -> Budget | None:
        """Return the budget, or None if no limit was named.

        Raises:
            UsageError: A limit is not above 0.
        """
        named = {name: getattr(self, name) for name in Limits.__annotations__}
        limits = {name: value for name, value in named.items() if value is not None}
        check_above_0(limits)
        if not limits:
            return None
        return Budget(**{name.removeprefix("max_"): value for name, value in limits.items()})


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Equipment:
    """What works on a run besides whoever answers its questions.

    Args:
        verifier: arithmetic:TARGET, json-schema:FILE or python:FILE (its `verify(problem, path, final)`, in a sandbox).
        mcp: Server whose tools may be called: a command, a URL or a JSON file with mcpServers; may be repeated.
        tools: FILE.py:NAME,…: Python callables that strategies with tools may call.
        context: A file (text, Markdown, PDF) that the run may search; may be repeated.
        sandbox: Where code that a model writes is run: monty or bubblewrap.
        max_concurrency: Calls of one run performed at once.
        tool_timeout: Seconds until a tool counts as failed.
    """

    verifier: str | None = None
    tools: tuple[str, ...] = ()
    mcp: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    sandbox: str | None = None
    max_concurrency: WholeNumber = POLICY.max_concurrency
    tool_timeout: float = POLICY.tool_timeout_s

    def participants(self) -> Participants:
        """Return the participants these options name."""
        return Participants(
            verifier=self.verifier,
            tools=_load_tools(self.tools),
            mcp=self.mcp,
            context=self.context,
            sandbox=self.sandbox,
        )

    def policy(self) -> Policy:
        """Return the policy these options name."""
        check_above_0({"max_concurrency": self.max_concurrency, "tool_timeout": self.tool_timeout})
        return Policy(max_concurrency=self.max_concurrency, tool_timeout_s=self.tool_timeout)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CoachSettings(Limits, Equipment):
    """The settings of a run, whoever answers its questions."""

    def request(
        self, problem: str | None, strategy: str, options: Sequence[str], session: str | None = None
    ) -> RunRequest:
        """Return the request for a run with these settings."""
        return RunRequest(
            problem=problem,
            session=session,
            strategy=strategy,
            options=read_pairs(options),
            budget=self.budget(),
            participants=self.participants(),
        )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ProviderRates:
    """How much goes out to a provider in any minute.

    Args:
        max_requests_per_minute: Calls of this process to a provider in any minute: a number, or PROVIDER=NUMBER; may be
            repeated.
        max_tokens_per_minute: Tokens in any minute; likewise.
    """

    max_requests_per_minute: tuple[str, ...] = ()
    max_tokens_per_minute: tuple[str, ...] = ()

    def limits(self, models: Collection[str] = ()) -> RateLimits:
        """Return the limits these options name.

        Args:
            models: All that are asked, if that is known; a limit of a provider of none of them is a mistake.

        Raises:
            UsageError: One of them is not valid.
        """
        known = sorted({provider_of(model).partition(":")[0] for model in models})
        return RateLimits(*(self._read(name, known) for name in ProviderRates.__annotations__))

    def _read(self, option: str, known: Collection[str]) -> dict[str, int]:
        rates: dict[str, int] = {}
        for text in getattr(self, option):
            provider, equals, number = text.rpartition("=")
            if not number.isdecimal() or int(number) < 1 or (equals and not provider.strip()):
                message = (
                    f"--{option.replace('_', '-')} takes NUMBER or PROVIDER=NUMBER, from 1 up, got {text!r}"
                )
                raise UsageError(message, option=option)
            if known and provider and provider.partition(":")[0] not in known:
                message = f"no model of this command is {provider}'s; there is {', '.join(known)}"
                raise UsageError(message, option=option, choices=known)
            rates[provider.strip() or "*"] = int(number)
        return rates


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunSettings(ProviderRates, CoachSettings):
    """The settings of a run: who and what works on it, and its limits.

    Args:
        model: openai:…, anthropic:…, google:…, zai:…, ollama:…, openai-compatible:URL#NAME, scripted:FILE,
            recorded:FILE or offline.
        judge_model: Another model that values thoughts.
        draft_model: Another model that proposes thoughts.
        record: A file that keeps the model's answers; play it again with --model recorded:FILE.
        price: What the models cost, IN/OUT in dollars per million tokens; or MODEL=IN/OUT, which may be repeated.
            Default: REASONRY_PRICE, else what the provider or the price list says.
        call_timeout: Seconds until a call to a model counts as lost.
        max_output_tokens: Of one reply, with what is reasoned before it. Default: as many as its stage has room for.
        cache_warmup: Send the first call of a fan-out alone, so that the others find its prefix in the provider's
            cache. Default: for providers with prompt caches.
    """

    model: str | None = None
    judge_model: str | None = None
    draft_model: str | None = None
    record: str | None = None
    price: tuple[str, ...] = ()
    call_timeout: float = POLICY.call_timeout_s
    max_output_tokens: WholeNumber | None = None
    cache_warmup: bool | None = None

    def participants(self) -> Participants:
        """Return the participants these options name."""
        return replace(
            super().participants(),
            model=self.model,
            judge_model=self.judge_model,
            draft_model=self.draft_model,
            record=self.record,
            price=self.price,
        )

    def policy(self) -> Policy:
        """Return the policy these options name."""
        check_above_0({"call_timeout": self.call_timeout})
        models = [model for model in (self.model, self.judge_model, self.draft_model) if model]
        rates = self.limits(models if self.model else ())
        return structs.replace(
            super().policy(),
            call_timeout_s=self.call_timeout,
            max_output_tokens=self.max_output_tokens,
            cache_warmup=self.cache_warmup,
            rates=rates,
        )

    def refuse_models(self) -> None:
        """Refuse what belongs to models, where the caller answers the questions.

        Raises:
            UsageError: An option is set that would do nothing.
        """
        idle = [
            name
            for name in (*RunSettings.__annotations__, *ProviderRates.__annotations__)
            if getattr(self, name) != getattr(RunSettings, name)
        ]
        if idle:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in idle)
            message = f"{names} would do nothing: this run's questions are answered by its caller"
            raise UsageError(message, option=idle[0])


def check_above_0(options: Mapping[str, float | None]) -> None:
    """Raise UsageError if one of these options is named and not a number above 0."""
    for name, value in options.items():
        if value is not None and not 0 < value < math.inf:
            message = f"--{name.replace('_', '-')} must be above 0, got {value:g}"
            raise UsageError(message, option=name)


def check_between(option: str, value: int, lower: int, upper: int) -> None:
    """Raise UsageError if an option's number is out of its bounds."""
    if not lower <= value <= upper:
        raise UsageError(f"--{option} must be from {lower} to {upper}, got {value}", option=option)


def _load_tools(specs: tuple[str, ...]) -> list[Any]:
    if not specs:
        return []
    from ...tools.catalog import load_tools

    return [tool for spec in specs for tool in load_tools(spec)]


def run_async(
    work: Coroutine[Any, Any, T], make_loop: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> T:
    """Run a command's work; Ctrl-C and SIGTERM cancel it once, so that it can clean up.

    Args:
        make_loop: Returns the event loop to run it on; None: Python's own.

    Raises:
        KeyboardInterrupt: It was cancelled and returned nothing.
    """

    async def main() -> T:
        task = asyncio.ensure_future(work)
        on_ending(task.cancel)
        return await task

    try:
        with asyncio.Runner(loop_factory=make_loop) as runner:
            return runner.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None

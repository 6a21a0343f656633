"""The options that several commands share, and functions that run a command's work."""

import asyncio
import os
import shlex
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from cyclopts import Group, Parameter
from msgspec import structs

from ...app.allow_list import AllowList
from ...app.app import App
from ...app.installed import installed_strategies, read_strategies
from ...app.participants import Participants
from ...app.requests import RunRequest
from ...core.budget import DEFAULT_CALLS, Budget
from ...core.registry import Registry
from ...engine.policy import Policy
from ...engine.ports import provider_of
from ...engine.rate_limits import RateLimits
from ...errors import UsageError
from ...records import short_id
from ..signals import on_ending
from .output import Column, print_document, print_line, print_note, print_part, print_record, print_table
from .parameters import Amount, Count, read_pairs, read_prompts

T = TypeVar("T")

POLICY = Policy()


@Parameter(name="*", group=Group("Output", sort_key=9))
@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """The options for the output of a command.

    Args:
        json: Print one JSON document on standard output and nothing else.
        field: Print only this part of the JSON document, such as answer, usage.calls or questions.0.prompt.
    """

    json: bool = False
    field: str | None = None

    @property
    def as_data(self) -> bool:
        """Whether the output is meant for a program, not for a person."""
        return self.json or self.field is not None

    def show(self, document: Any, text: str | Callable[[], object] | None = None, note: str = "") -> int:
        """Print a document in the form that the options select. Return 0.

        Args:
            text: The text for people, or a function that prints it. Default: a table of the document's members.
            note: A note for people that is printed last.
        """
        if self.field is not None:
            print_part(document, self.field)
        elif self.json:
            print_document(document)
        else:
            if text is None:
                print_record(document)
            elif isinstance(text, str):
                print_line(text)
            else:
                text()
            print_note(*(f"note: {notice['message']}" for notice in (document or {}).get("notices", ())))
            print_note(*filter(None, [note]))
        return 0


@Parameter(name="*", group=Group("Output and store", sort_key=9))
@dataclass(frozen=True, kw_only=True)
class Common(OutputOptions):
    """Options of every command that uses the store.

    Args:
        store: Store of runs and sessions: a SQLite path, a PostgreSQL URL or `memory`. Default: REASONRY_STORE, else
            the user's data folder.
        strategies_dir: A folder with strategies of your own, as tables in TOML or JSON.
    """

    store: str | None = None
    strategies_dir: str | None = None

    def strategies(self) -> Registry:
        """Return the registry of installed strategies. If the user named a folder, add the folder's strategies."""
        known = installed_strategies()
        return known if self.strategies_dir is None else read_strategies(self.strategies_dir, known)

    def do(
        self,
        work: Callable[[App], Awaitable[T]],
        policy: Policy = POLICY,
        environ: Mapping[str, str] = os.environ,
        make_loop: Callable[[], asyncio.AbstractEventLoop] | None = None,
    ) -> T:
        """Open an app with this store, do a command's work with it, and close the app."""

        async def main() -> T:
            async with App(self.store, policy, environ, self.strategies()) as app:
                return await work(app)

        return run_async(main(), make_loop)

    def show_page(
        self,
        work: Callable[[App], Awaitable[dict[str, Any]]],
        name: str,
        columns: Sequence[Column],
        *,
        none: str,
    ) -> int:
        """Show the list under the key `name` in the result of `work`. If the list is empty, print the note `none`."""
        document = self.do(work)
        more = document["next_cursor"]
        note = f"next page: --cursor {short_id(more)}" if more else "" if document[name] else none
        return self.show(document, lambda: print_table(columns, document[name]), note)

    def do_on_run(self, run: str, work: Callable[[App, str], Awaitable[T]]) -> tuple[str, T]:
        """Do `work` on a run. Return the run's full id and the result of `work`."""

        async def on_run(app: App) -> tuple[str, T]:
            run_id = await app.run_id(run)
            return run_id, await work(app, run_id)

        return self.do(on_run)


@Parameter(name="*", group=Group("What agents may use", sort_key=5))
@dataclass(frozen=True, kw_only=True)
class Listed:
    """The models, verifiers, tools and files that agents may name. Each option defaults to its REASONRY_… variable.

    Args:
        model: The default model, in the same form as for `solve --model`.
        models: Another model that agents may name, as SPEC or NAME=SPEC; may be repeated.
        verifiers: A verifier that agents may name besides arithmetic:TARGET, as SPEC or NAME=SPEC; may be repeated.
        tools: Python callables that agents may name, as FILE.py:NAME or NAME=FILE.py:NAME; may be repeated.
        documents: A file that agents may search, as FILE or NAME=FILE; may be repeated.
        retention: Days without use after which an archived session is deleted. Default: never.
    """

    model: str | None = None
    models: tuple[str, ...] = ()
    verifiers: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    retention: Annotated[str | None, Parameter(group=Group("Sessions", sort_key=6))] = None

    def environ(self) -> dict[str, str]:
        """Return the environment variables. Each option that the user set replaces its REASONRY_… variable."""
        environ = overlay(os.environ, vars(self))
        try:
            AllowList.from_environ(environ)
        except UsageError as error:
            setting = str(error.details["option"])
            if vars(self).get(name := setting.removeprefix("REASONRY_").lower()):
                error.message = error.message.replace(setting, f"--{name}")
            raise
        return environ


def overlay(environ: Mapping[str, str], options: Mapping[str, str | Sequence[str] | None]) -> dict[str, str]:
    """Copy `environ`. Each option that has a value replaces its REASONRY_… variable."""
    named = {name: [value] if isinstance(value, str) else value for name, value in options.items() if value}
    return {**environ, **{f"REASONRY_{name.upper()}": ",".join(values) for name, values in named.items()}}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Shown:
    """The options for how much of a run is printed.

    Args:
        full: Print every thought whole.
        partial: If a run gives no answer, print its best answer so far. The exit code stays the same.
    """

    full: bool = False
    partial: bool = False


@Parameter(name="*", group=Group("Limits", sort_key=2))
@dataclass(frozen=True, kw_only=True)
class Limits:
    """Hard limits of a run.

    Args:
        max_calls: Maximum requests to models, retries included. Default: 30, unless another limit is set or you answer.
        max_tokens: Maximum input and output tokens together.
        max_usd: Maximum cost in US dollars.
        max_seconds: Maximum run time in seconds. An unfinished call is then cut off.
        max_thoughts: Maximum thoughts that the run may record.
        max_nodes: Maximum nodes that a search may have.
        at_limit: At a limit, `answer` from the thoughts so far (the last call is reserved for this), or `stop`.
    """

    max_calls: Count | None = None
    max_tokens: Count | None = None
    max_usd: Amount | None = None
    max_seconds: Amount | None = None
    max_thoughts: Count | None = None
    max_nodes: Count | None = None
    at_limit: Literal["answer", "stop"] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the limits that the user set."""
        named = {name.removeprefix("max_"): value for name, value in vars(self).items() if value is not None}
        at_limit = named.pop("at_limit", None)
        return named if at_limit is None else {**named, "closes": at_limit == "answer"}

    def budget(self) -> Budget | None:
        """Return the budget, or None if the user named no limit."""
        named = self.as_dict()
        if named.keys() == {"closes"}:
            named["calls"] = DEFAULT_CALLS
        return Budget(**named) if named else None


@Parameter(name="*", group=Group("Rates", sort_key=4))
@dataclass(frozen=True, kw_only=True)
class ProviderRates:
    """Limits on the calls and the tokens that this process sends to a provider in any minute.

    Args:
        max_requests_per_minute: Maximum calls from this process to a provider in any minute: a number, or
            PROVIDER=NUMBER; may be repeated.
        max_tokens_per_minute: Maximum tokens in any minute, in the same form.
    """

    max_requests_per_minute: tuple[str, ...] = ()
    max_tokens_per_minute: tuple[str, ...] = ()

    def limits(self, models: Collection[str] = ()) -> RateLimits:
        """Return the rate limits that these options set.

        Args:
            models: All models of the run, if known. In that case, a limit for another provider is an error.
        """
        known = sorted({provider_of(model).partition(":")[0] for model in models})
        return RateLimits(*(self._read(name, known) for name in ProviderRates.__annotations__))

    def _read(self, option: str, known: Collection[str]) -> dict[str, int]:
        rates: dict[str, int] = {}
        for text in getattr(self, option):
            provider, equals, number = text.rpartition("=")
            if not number.isdecimal() or int(number) < 1 or (equals and not provider.strip()):
                name = option.replace("_", "-")
                message = f"--{name} takes NUMBER or PROVIDER=NUMBER, from 1 up, got {text!r}"
                raise UsageError(message, option=option)
            if known and provider and provider.partition(":")[0] not in known:
                message = f"no model of this command is {provider}'s; there is {', '.join(known)}"
                raise UsageError(message, option=option, choices=known)
            rates[provider.strip() or "*"] = int(number)
        return rates


_REPEATED = ("model", "tools", "mcp", "context", "sandbox", "strategies_dir", "store")
MODELS = Parameter(group=Group("Models", sort_key=1))
TOOLS = Parameter(group=Group("Tools", sort_key=3))


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AnswerSettings:
    """The settings of a command that runs the tools and verifiers of a run.

    Args:
        verifier: arithmetic:TARGET, json-schema:FILE, python:FILE (calls its `verify(problem, path, final)` in a
            sandbox) or command:PROGRAM (such as `command:pytest -q`).
        verifier_hides: Pattern of files that appear empty in the sandbox of command:PROGRAM, in addition to .env*, .git
            and other secrets; may be repeated.
        mcp: MCP server whose tools the run may call: a command, a URL or a JSON file with mcpServers; may be repeated.
        tools: Python callables that strategies with tools may call, as FILE.py:NAME,….
        context: A file (text, Markdown, PDF) that the run may search; may be repeated.
        sandbox: Sandbox for code from a model: monty or bubblewrap.
        max_concurrency: Maximum simultaneous calls of a run.
        tool_timeout_s: Seconds until a tool counts as failed.
    """

    verifier: Annotated[str | None, TOOLS] = None
    verifier_hides: Annotated[tuple[str, ...], TOOLS] = ()
    tools: Annotated[tuple[str, ...], TOOLS] = ()
    mcp: Annotated[tuple[str, ...], TOOLS] = ()
    context: Annotated[tuple[str, ...], TOOLS] = ()
    sandbox: Annotated[str | None, TOOLS] = None
    max_concurrency: Annotated[Count, TOOLS] = POLICY.max_concurrency
    tool_timeout_s: Annotated[Amount, TOOLS, Parameter(name="--tool-timeout")] = POLICY.tool_timeout_s
    common: Common = Common()

    def participants(self) -> Participants:
        """Return the participants in a run, such as models and tools, that these options name."""
        return Participants(**self._members_of(Participants))

    def policy(self) -> Policy:
        """Return the policy that these options set."""
        return Policy(**self._members_of(Policy))

    def options_again(self) -> str:
        """Return the options that a later command on the run must repeat, since the run's record lacks them."""
        named = {**vars(self), **vars(self.common)}
        if not (named.get("model") or "").startswith(("command:", "openai-compatible:")):
            named["model"] = None
        values = {name: [value] if isinstance(value, str) else value or () for name, value in named.items()}
        return "".join(
            f" --{name.replace('_', '-')} {shlex.quote(value)}"
            for name in _REPEATED
            for value in values[name]
        )

    def _members_of(self, kind: type) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name in kind.__annotations__}

    def do(self, work: Callable[[App], Awaitable[T]]) -> T:
        """Open an app with these settings, do a command's work with it, and close the app."""
        return self.common.do(work, self.policy())


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CoachSettings(AnswerSettings):
    """The settings of a command that starts a coached run."""

    limits: Limits = Limits()

    def request(
        self,
        problem: str | None,
        strategy: str,
        options: Sequence[str],
        session: str | None = None,
        prompts: Sequence[str] = (),
    ) -> RunRequest:
        """Return the request for a run with these settings."""
        return RunRequest(
            problem=problem,
            session=session,
            strategy=strategy,
            options=read_pairs(options),
            budget=self.limits.budget(),
            participants=self.participants(),
            prompts=read_prompts(prompts),
        )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunSettings(CoachSettings):
    """The settings of a command that starts or resumes a run. A model answers the run's questions.

    Args:
        model: openai:…, anthropic:…, google:…, zai:…, ollama:…, openai-compatible:URL#NAME, command:PROGRAM,
            scripted:FILE, recorded:FILE or offline. Default: the first model that is ready; `reasonry doctor` shows it.
        judge_model: Another model that scores thoughts.
        draft_model: Another model that proposes thoughts.
        record: Record the model's answers in this file; replay them with --model recorded:FILE. With compare: record a
            table for --rescore.
        price: Price of the models, IN/OUT in dollars per million tokens; or MODEL=IN/OUT, which may be repeated.
            Default: REASONRY_PRICE, else the price of the provider or the price list.
        call_timeout_s: Seconds until a call to a model counts as lost.
        max_output_tokens: Maximum tokens per reply, including reasoning. Default: set by each stage.
        cache_warmup: Send the first call of a batch alone, so that the other calls hit the prompt cache. Default: only
            for providers with prompt caches.
    """

    model: Annotated[str | None, MODELS] = None
    judge_model: Annotated[str | None, MODELS] = None
    draft_model: Annotated[str | None, MODELS] = None
    record: Annotated[str | None, MODELS] = None
    price: Annotated[tuple[str, ...], MODELS] = ()
    call_timeout_s: Annotated[Amount, MODELS, Parameter(name="--call-timeout")] = POLICY.call_timeout_s
    max_output_tokens: Annotated[Count | None, MODELS] = None
    cache_warmup: Annotated[bool | None, MODELS] = None
    provider_rates: ProviderRates = ProviderRates()

    def policy(self) -> Policy:
        """Return the policy that these options set, including the rate limits."""
        models = [model for model in (self.model, self.judge_model, self.draft_model) if model]
        rates = self.provider_rates.limits(models if self.model else ())
        return structs.replace(super().policy(), rates=rates)

    def refuse_models(self) -> None:
        """Raise an error if the user set a model option. A coached run asks no model."""
        kept = {*vars(CoachSettings()), "provider_rates"}
        named, unset = ({**vars(each), **vars(each.provider_rates)} for each in (self, RunSettings()))
        idle = [name for name, value in named.items() if name not in kept and value != unset[name]]
        if idle:
            name = f"--{idle[0].removesuffix('_s').replace('_', '-')}"
            message = f"{name} would do nothing: this run's caller answers its questions"
            raise UsageError(message, option=idle[0])


def run_async(
    work: Coroutine[Any, Any, T], make_loop: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> T:
    """Run a command's work in a new event loop, and return the result of the work.

    Ctrl-C and SIGTERM cancel the work, so that the work can clean up.

    Raises:
        KeyboardInterrupt: The work was cancelled without a result.
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

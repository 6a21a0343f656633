"""`reasonry.solve`: the Python face of a driven run."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, ParamSpec

from msgspec import structs

from ...app.app import App
from ...app.participants import Participants
from ...app.requests import RunRequest
from ...app.runs import coach_answer, coach_start, coach_take_over
from ...core.budget import Budget
from ...core.data_types import schema_of
from ...core.strategy import Strategy
from ...engine.coach import Coach
from ...engine.follow import Observer
from ...engine.policy import Policy
from ...engine.ports import Verifier
from ...engine.result import Result, T
from ...errors import UsageError
from ...records import Store
from ...strategies import DEFAULT_STRATEGY
from ...tools.verifiers import TypeVerifier

P = ParamSpec("P")


async def solve(
    problem: str | None = None,
    *,
    output_type: type[T] | Mapping[str, Any] | None = None,
    session: str | None = None,
    strategy: str | Strategy[Any, Any] = DEFAULT_STRATEGY,
    model: Any = None,
    options: Mapping[str, Any] | None = None,
    prompts: Mapping[str, str] | None = None,
    budget: Budget | None = None,
    store: str | Store | None = None,
    judge_model: Any = None,
    draft_model: Any = None,
    verifier: str | Verifier | Callable[..., Any] | None = None,
    tools: Sequence[Any] = (),
    mcp: Sequence[str] = (),
    context: Sequence[str] = (),
    sandbox: str | None = None,
    price: str | Sequence[str] = (),
    policy: Policy | None = None,
    observer: Observer | None = None,
) -> Result[T]:
    """Solve a problem and return the result.

    Args:
        output_type: The type of `result.output`: a Pydantic model, dataclass, msgspec Struct, TypedDict, another type
            that JSON can hold, or a JSON schema. A reply that does not fit is asked for again.
        problem: None: the first thought of the session.
        session: A session of the store whose thoughts come with the problem, as quoted text: its id, the beginning of
            it, or `last`.
        strategy: A name of the registry, or a strategy of your own.
        model: A value of `--model`, or an `async (messages) -> str`, a model object of pydantic-ai or
            LangChain, or of the `Model` port; None: the environment's model.
        options: Options of the strategy, by name.
        prompts: Questions of stages in place of their own, by `STRATEGY.STAGE`; `{prompt}` and `{system}` stand
            for those, `{problem}` for the problem.
        budget: Hard limits; a run that meets one ends with the best so far. None: 30 calls; `Budget()`: no limit.
        store: A value of `--store`, or a store; None: `REASONRY_STORE`, else the user's data folder.
        verifier: A value of `--verifier`, or a callable `(problem, path) -> bool | Retry | None`, which may take
            `final`, whether the candidate claims to be the answer, as a third parameter.
        judge_model: Scores thoughts; None: the model does.
        draft_model: Proposes thoughts that are valued afterwards; None: the model does.
        tools: Python callables, or objects of the `Tool` port.
        mcp: Servers whose tools may be called, as `--mcp` takes them.
        context: Files that a strategy may search.
        sandbox: Sandbox for code from a model; None: the default.
        price: Price of the models, in dollars per million tokens: `IN/OUT`, or `MODEL=IN/OUT`, or several of these. A
            limit on dollars needs it where no price list has the price; it counts whatever a list or a provider says.
        policy: Concurrency, timeouts, attempts and rate limits; calls with the same policy share its rate limits.
        observer: Called as the run proceeds.

    Raises:
        UsageError: An argument is wrong; nothing was written or paid.
        StoreError: The store cannot be used.
    """
    named = Participants(
        model=model,
        judge_model=judge_model,
        draft_model=draft_model,
        verifier=verifier,
        tools=tools,
        mcp=mcp,
        context=context,
        sandbox=sandbox,
        price=price,
    )
    try:
        form = None if output_type is None else schema_of(output_type)
    except TypeError as error:
        raise UsageError(f"output_type: {error}", option="output_type") from None
    async with App(store, policy or Policy()) as app:
        request = RunRequest(
            problem=problem,
            session=session,
            strategy=strategy,
            options={} if options is None else options,
            prompts=prompts or {},
            budget=budget,
            participants=named,
            form=form,
        )
        order, performers = await app.receive(request)
        if request.form is not None and not isinstance(output_type, Mapping):
            order = structs.replace(order, checks_form=True)
            performers = structs.replace(performers, verifier=TypeVerifier(output_type, performers.verifier))
        result = await app.solve(order, performers, observer)
        return structs.replace(result, output_type=output_type)


def _run_to_end(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Return a function that awaits another in an event loop of its own; its signature is that function's."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return asyncio.run(function(*args, **kwargs))

    run.__name__ = run.__qualname__ = f"{function.__name__}_sync"
    run.__doc__ = f"Call `{function.__name__}` where there is no event loop.\n\n{inspect.getdoc(function)}"
    return run


solve_sync = _run_to_end(solve)
"""The only synchronous entry point."""


class Coaching:
    """A coached run: the engine runs the algorithm, you answer its questions.

    Attributes:
        document: Where the run stands: `run_id`, `status`, `questions` [{`id`, `stage`, `prompt`, `answer_schema`}],
            `progress`, and `result` once it has ended.
    """

    def __init__(self, app: App, participants: Participants, document: dict[str, Any]) -> None:
        self._app, self._participants = app, participants
        self.document = document

    @property
    def questions(self) -> list[dict[str, Any]]:
        """What is asked now; none once the run has ended."""
        return self.document["questions"]

    async def answer(self, answers: Any) -> dict[str, Any]:
        """Answer questions, as `{id: answer}`; an unusable answer's question comes again, with the reason.

        Raises:
            ConflictError: One answers what is not asked (any more). None of them is taken.
            UsageError: They do not say which questions they are to.
        """
        self.document = await coach_answer(self._app, self.document["run_id"], answers, self._participants)
        return self.document

    async def cancel(self) -> dict[str, Any]:
        """End the run."""
        await self._app.engine.cancel(self.document["run_id"])
        self.document = await Coach(self._app.engine).status(self.document["run_id"])
        return self.document

    async def close(self) -> None:
        """Give the store back; the run stays and can be resumed."""
        await self._app.close()

    async def __aenter__(self) -> Coaching:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def coach(
    problem: str | None = None,
    *,
    run_id: str | None = None,
    session: str | None = None,
    strategy: str | Strategy[Any, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    budget: Budget | None = None,
    store: str | Store | None = None,
    verifier: str | Verifier | Callable[..., Any] | None = None,
    tools: Sequence[Any] = (),
    mcp: Sequence[str] = (),
    context: Sequence[str] = (),
    sandbox: str | None = None,
) -> Coaching:
    """Start a run whose questions you answer, or with `run_id` resume one.

    The arguments are those of `solve`. A run that is resumed keeps its strategy and options; it needs the tools
    it began with, the verifier if that was an object, and the strategy if it is one of your own.

    Raises:
        UsageError: An argument is wrong; nothing was written.
        NotFoundError: There is no such run.
    """
    has_text = problem is not None or session is not None or bool(options and options.get("claims"))
    if has_text == (run_id is not None):
        raise UsageError("give a problem to start a run, or the run_id of one to continue")
    if run_id is not None and (options is not None or isinstance(strategy, str)):
        raise UsageError("a run that is resumed keeps its strategy and options; leave them out")
    app = App(store)
    named = Participants(verifier=verifier, tools=tools, mcp=mcp, context=context, sandbox=sandbox)
    try:
        participants = await app.equip(named, budget)
        if run_id is None:
            request = RunRequest(
                problem=problem,
                session=session,
                strategy=DEFAULT_STRATEGY if strategy is None else strategy,
                options={} if options is None else options,
                budget=budget,
                participants=participants,
            )
            document = await coach_start(app, request)
        else:
            if isinstance(strategy, Strategy):
                app.register(strategy)
            document = await coach_take_over(app, run_id, participants, budget)
    except BaseException:
        await app.close()
        raise
    return Coaching(app, participants, document)

"""Starts runs from Python: `reasonry.solve`, `solve_sync`, `select` and `coach`."""

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
from ...blocks.data_types import schema_of
from ...core.budget import Budget
from ...core.strategy import Strategy
from ...engine.coach import Coach
from ...engine.observer import Observer
from ...engine.policy import Policy
from ...engine.ports import Verifier
from ...engine.result import Result, T
from ...errors import UsageError
from ...records import Store
from ...strategies import DEFAULT_STRATEGY, SELECTOR
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
            that JSON can hold, or a JSON schema. If a reply does not fit the type, the model is asked again.
        problem: The problem. Defaults to the first thought of the session.
        session: A session of the store whose thoughts are quoted below the problem: its id, the beginning of its id,
            or `last`.
        strategy: The name of a registered strategy, or a strategy of your own.
        model: A string as for `--model`, an `async (messages) -> str`, a model object of pydantic-ai or LangChain, or
            an object that implements `Model`. By default, the environment decides which model is used.
        options: Options of the strategy, by name.
        prompts: Maps `STRATEGY.STAGE` to your own text for the question of this stage. In your text, `{prompt}` and
            `{system}` stand for the strategy's own texts, and `{problem}` stands for the problem.
        budget: Hard limits. A run that reaches a limit ends with an answer from its thoughts so far, unless its
            `closes` is false. Defaults to 30 calls; `Budget()` sets no limit.
        store: A store, or a string as for `--store`. Default: `REASONRY_STORE` or, without it, the user's data folder.
        verifier: A string as for `--verifier`, or a callable `(problem, path) -> bool | str | None`; a str says what is
            wrong. An optional third parameter `final` says whether the candidate claims to be the answer.
        judge_model: The model that scores thoughts. Defaults to `model`.
        draft_model: The model that proposes thoughts. Defaults to `model`.
        tools: Python callables, or objects that implement `Tool`.
        mcp: MCP servers whose tools the run may call, as strings for `--mcp`.
        context: Files that a strategy may search.
        sandbox: The sandbox for code from a model.
        price: The price in dollars per million tokens: `IN/OUT`, `MODEL=IN/OUT`, or several of these. It overrides the
            prices of price lists and providers. A budget in dollars requires `price` if no price list has the model.
        policy: Concurrency, timeouts, attempts and rate limits. Runs with the same policy share its rate limits.
        observer: An object whose methods are called with the events of the run.

    Raises:
        UsageError: An argument is wrong. Nothing was written or paid.
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
    """Return a synchronous version of `function`. Each call runs in a new event loop."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return asyncio.run(function(*args, **kwargs))

    run.__name__ = run.__qualname__ = f"{function.__name__}_sync"
    run.__doc__ = f"Call `{function.__name__}` where there is no event loop.\n\n{inspect.getdoc(function)}"
    return run


solve_sync = _run_to_end(solve)
"""`solve` for programs without an event loop. It is the only synchronous function that starts a run."""


async def select(
    problem: str,
    candidates: Sequence[str] | Mapping[str, str],
    *,
    criteria: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    **others: Any,
) -> Result[str]:
    """Compare existing texts. In the result, `details["ranking"]` lists the texts with the best one first.

    If there is a verifier, it checks every text first. A judge then compares the texts that are not proved wrong. Other
    arguments and errors are the same as for `solve`.

    Args:
        criteria: Maps the name of each criterion to a sentence. Default: everything that the problem asks for.
        options: Additional options of `best_of_n`.
    """
    options = {**(options or {}), "candidates": candidates, "criteria": criteria or {}}
    return await solve(problem, strategy=SELECTOR, options=options, **others)


class Coaching:
    """A coached run: the engine runs the strategy, and you answer its questions.

    Attributes:
        document: The state of the run: `run_id`, `status`, `questions` [{`id`, `stage`, `prompt`, `answer_schema`}],
            `progress`, and `result` once it has ended.
    """

    def __init__(self, app: App, participants: Participants, document: dict[str, Any]) -> None:
        self._app, self._participants = app, participants
        self.document = document

    @property
    def questions(self) -> list[dict[str, Any]]:
        """The open questions. The list is empty once the run has ended."""
        return self.document["questions"]

    async def answer(self, answers: Any) -> dict[str, Any]:
        """Answer questions, as `{id: answer}`. If an answer is unusable, its question is asked again with the reason.

        Raises:
            ConflictError: A question is not open. No answer was accepted.
            UsageError: The answers do not say which questions they answer.
        """
        self.document = await coach_answer(self._app, self.document["run_id"], answers, self._participants)
        return self.document

    async def cancel(self) -> dict[str, Any]:
        """End the run, and return its state."""
        await self._app.engine.cancel(self.document["run_id"])
        self.document = await Coach(self._app.engine).status(self.document["run_id"])
        return self.document

    async def close(self) -> None:
        """Release the store. The run is kept in the store and can be resumed."""
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
    """Start a run whose questions you answer, or resume the run `run_id`.

    The other arguments are the same as for `solve`. A resumed run keeps its strategy and options. To resume, pass the
    tools again, the verifier if it was an object, and the strategy if it is your own.

    Raises:
        UsageError: An argument is wrong. Nothing was written.
        NotFoundError: The run does not exist.
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

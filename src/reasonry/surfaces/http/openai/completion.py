"""A completion: a run that is begun, or gone on with, for a request; what it thinks, and what comes of it."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncGenerator, Collection, Generator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from typing import Any, Final

from msgspec import Struct, structs

from ....app.participants import Participants
from ....app.use_cases import RunRequest
from ....core.budget import NOTHING, Usage
from ....core.effects import CallTool
from ....core.metering import estimate_tokens
from ....engine.callers import result_events, waiting_calls
from ....engine.result import Result
from ....engine.run import Run
from ....errors import ConflictError, NotFoundError, OverloadedError, ReasonryError, UsageError, WorldError
from ....supervisor import RunEvent
from ....tools.catalog import CallersTool
from ..context import RequestContext
from .conversation import ANSWER, CallId, Conversation, problem_of, unknown_call
from .request import ChatFields, read_call, read_name
from .thinking import Thinking

HUNG_UP: Final = "its client hung up"
"""Why a run was cancelled that goes on when its client comes again; one that its user has cancelled does not."""


class Completion(Struct, frozen=True):
    """A run that works for a request.

    Args:
        before: What the run had spent before the request.
        results: The effects whose results the request brought: what happened before them was told before.
        warnings: What of the request has no effect.
    """

    run_id: str
    before: Usage = NOTHING
    results: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()


class FunctionCall(Struct, frozen=True):
    """A call that the caller is asked to make."""

    id: str
    name: str
    arguments: dict[str, Any]


class Finish(Struct, frozen=True):
    """How a completion ends: with an answer, or with calls to make.

    Args:
        cut: Whether a limit cut the answer, or the run, short.
        usage: Of this request alone.
    """

    result: Result
    usage: Usage
    warnings: tuple[str, ...] = ()
    answer: str = ""
    calls: tuple[FunctionCall, ...] = ()
    cut: bool = False

    @property
    def document(self) -> dict[str, Any]:
        """What is said of the run beside the reply."""
        whole = self.result.document(nodes=False)
        named = (
            "run_id",
            "session_id",
            "status",
            "termination",
            "strategy",
            "model",
            "rounds",
            "duration_ms",
        )
        members = {name: whole[name] for name in (*named, "usage")}
        return {"runs": [{**members, "warnings": [*whole["warnings"], *self.warnings]}]}


async def begin(
    context: RequestContext,
    wanted: ChatFields,
    conversation: Conversation,
    key: str | None,
    digest: bytes,
    warnings: Sequence[str] = (),
) -> Completion:
    """Begin the run of a request; with a key that is known, take the one it stands for.

    Args:
        warnings: What of the request is passed over.

    Raises:
        UsageError: Something is wrong with what is asked for; then no run is begun.
        OverloadedError: Too many runs are in work.
    """
    named = read_name(wanted.model, context.app.strategies, context.app.allowed)
    own, form, cards = wanted.reasonry, wanted.form, wanted.cards()
    request = RunRequest(
        problem=problem_of(conversation, form),
        strategy=own.strategy or named.strategy,
        options={**named.options, **own.options},
        budget=own.budget,
        participants=Participants(
            model=named.model,
            verifier=own.verifier,
            tools=[*own.tools, *map(CallersTool, cards)],
            context=own.documents,
        ),
        form=form,
    )
    order, performers = await context.app.receive(request)
    calls_them = performers.callers_tools & _tools_in(structs.asdict(order.options))
    idle = [] if calls_them or not cards else [f"tools: {order.strategy.name} calls no tools"]
    run_id, is_new = await context.supervisor.start(
        context.app, order, performers, key=key, digest=digest, text=wanted.streams_text
    )
    if not is_new:
        await _take_up_again(context, run_id)
    return Completion(run_id, warnings=(*warnings, *idle))


def _tools_in(options: Any) -> set[str]:
    """Return the names of the tools in the options of a run and of those inside it."""
    if not isinstance(options, dict):
        return set()
    names = {getattr(card, "name", None) or card["name"] for card in options.get("tools") or ()}
    return names | _tools_in(options.get("over_options"))


async def _take_up_again(context: RequestContext, run_id: str) -> None:
    """Go on with a run that stopped because its client hung up or its server ended, now that its client came again."""
    row = await context.app.store.run(run_id)
    if row.status == "active":
        is_left = run_id in await context.app.resumable([row])
    else:
        is_left = row.status == "cancelled" and _was_left(await context.app.engine.result(run_id))
    if is_left:
        with suppress(ConflictError):
            await context.supervisor.resume(context.app, run_id)


def _was_left(result: Result) -> bool:
    return result.status == "cancelled" and result.termination.detail == HUNG_UP


async def go_on(context: RequestContext, wanted: ChatFields, brought: Mapping[CallId, str]) -> Completion:
    """Give a run the results that a request brought, and go on with it.

    Raises:
        UsageError: No run of the caller waits for them.
    """
    ids = list(brought)
    run_id = ids[0].run_id
    results = {call.effect: text for call, text in brought.items()}
    field = "messages"
    try:
        async with context.app.engine.open(run_id) as opened:
            run = opened.run
            at_ms = max(run.snapshot.at_ms, 0)
            events = result_events(run, results, at_ms)
            completion = Completion(run_id, _spent_before(run, results), frozenset(results))
            await opened.take_answers(events)
    except NotFoundError:
        raise unknown_call(str(ids[0]), field) from None
    except ConflictError as error:
        if error.details.get("effect") is not None:
            wrong = CallId(run_id, str(error.details["effect"]))
            raise UsageError(f"{wrong}: {error.message}", field=field) from None
        # Another request has brought results, and the run works on.
        run = (await context.app.engine.read(run_id)).run
        if result_events(run, results, 0):
            raise
        return Completion(run_id, _spent_before(run, results), frozenset(results))
    if opened.run.snapshot.status == "active":
        with suppress(ConflictError):
            await context.supervisor.resume(context.app, run_id, text=wanted.streams_text)
    return completion


def _spent_before(run: Run, results: Collection[str]) -> Usage:
    """Return what a run had spent when these results came."""
    spent = NOTHING
    for settled in run.events:
        if settled.id in results:
            break
        spent += getattr(settled.event, "usage", NOTHING)
    return spent


async def follow(
    context: RequestContext, wanted: ChatFields, completion: Completion
) -> AsyncGenerator[str | Finish]:
    """Yield what a run thinks from the request on, and in the end what comes of it.

    A client that hangs up ends the run, unless it asked to leave it.

    Raises:
        ReasonryError: Nothing came of it.
    """
    run_id, finish, result = completion.run_id, None, None
    thinking, awaited, after = Thinking(), set(completion.results), 0
    with _attending(context, run_id, leaves=wanted.reasonry.on_disconnect == "leave"):
        for is_again in (False, True):
            watched = context.supervisor.watch(context.app, run_id, after, text=wanted.streams_text)
            async with aclosing(watched) as events:
                async for event in events:
                    if event.kind == "idle" and (finish := await _calls_of(context, wanted, completion)):
                        break
                    if awaited:
                        awaited.discard(_result_in(event))
                    elif wanted.reasonry.reasoning:
                        for piece in thinking.take(event):
                            yield piece
                    after, result = event.id or after, event.result
            result = result or await context.app.engine.result(run_id)
            if finish or is_again or not _was_left(result):
                break
            # The client before this one hung up a moment ago.
            await _take_up_again(context, run_id)
    yield finish or _end_of(result, wanted, completion)


@contextmanager
def _attending(context: RequestContext, run_id: str, *, leaves: bool) -> Generator[None]:
    """Count a client of a run; the run is cancelled when the last one hangs up.

    Args:
        leaves: Whether the run goes on without it.
    """
    wiring = context.wiring
    wiring.present[run_id] += 1
    try:
        yield
    except (asyncio.CancelledError, GeneratorExit):
        if wiring.present[run_id] == 1 and not leaves and not context.supervisor.draining:
            # Whoever hung up does not wait, and must not be what the cancelling is cancelled with.
            wiring.beside(_cancel(context, run_id))
        raise
    finally:
        wiring.present[run_id] -= 1
        if not wiring.present[run_id]:
            del wiring.present[run_id]


async def _cancel(context: RequestContext, run_id: str) -> None:
    with suppress(ReasonryError):
        await context.supervisor.cancel(context.app, run_id, HUNG_UP)


def _result_in(event: RunEvent) -> str:
    return event.data.get("effect", "") if event.kind == "tool_returned" else ""


async def _calls_of(context: RequestContext, wanted: ChatFields, completion: Completion) -> Finish | None:
    """Return the calls that a run waits for, if it waits for any.

    Raises:
        OverloadedError: The server is about to end.
    """
    run_id = completion.run_id
    if context.supervisor.draining:
        raise OverloadedError(
            "the server is about to end; the same request with its Idempotency-Key goes on with the run once the "
            "server is back, as does `reasonry runs resume`",
            retryable=True,
            retry_after_s=5,
            run_id=run_id,
        )
    waiting = waiting_calls((await context.app.engine.read(run_id)).run)
    calls = tuple(
        FunctionCall(str(CallId(run_id, pending.id)), pending.effect.tool, pending.effect.arguments)
        for pending in waiting[: None if wanted.parallel_tool_calls else 1]
        if isinstance(pending.effect, CallTool)
    )
    if not calls or context.supervisor.is_driven(run_id):
        return None
    result = await context.app.engine.result(run_id)
    return Finish(result, _since(result.usage, completion.before), completion.warnings, calls=calls)


def _end_of(result: Result, wanted: ChatFields, completion: Completion) -> Finish:
    is_stopped = result.outcome == "stopped" and result.status == "done"
    text = result.best_answer if is_stopped else result.answer
    if text is None:
        raise failure_of(result)
    usage = _since(result.usage, completion.before)
    if wanted.forced:
        called = read_call(wanted.forced, text)
        if called is None:
            raise failure_of(result)
        call = FunctionCall(str(CallId(result.run_id, ANSWER)), *called)
        return Finish(result, usage, completion.warnings, calls=(call,))
    answer, cut = cut_answer(text, wanted.stops, wanted.max_completion_tokens or wanted.max_tokens)
    return Finish(result, usage, completion.warnings, answer, cut=cut or is_stopped)


def failure_of(result: Result) -> ReasonryError:
    """Return the error that a run without an answer comes to."""
    reason = result.termination.reason
    code = "budget_exceeded" if result.outcome == "stopped" else result.termination.code
    if result.status == "cancelled":
        code = "cancelled"
    detail = result.termination.detail or reason
    return WorldError(
        f"the run ended without an answer: {detail}", code=code or "output_invalid", run_id=result.run_id
    )


def cut_answer(answer: str, stops: Sequence[str], max_tokens: int | None) -> tuple[str, bool]:
    """Return an answer up to the first of the texts that end it, and whether `max_tokens` cut it shorter still."""
    answer = answer[
        : min([found for stop in stops if (found := answer.find(stop)) >= 0], default=len(answer))
    ]
    if max_tokens is None or estimate_tokens(answer) <= max_tokens:
        return answer, False
    lengths = range(len(answer) + 1)
    fits = bisect_right(lengths, max_tokens, key=lambda length: estimate_tokens(answer[:length]))
    return answer[: fits - 1], True


def _since(usage: Usage, before: Usage) -> Usage:
    counts = ("calls", "input_tokens", "output_tokens", "cached_input_tokens")
    spent = {name: getattr(usage, name) - getattr(before, name) for name in counts}
    return Usage(**spent, usd=None if usage.usd is None else usage.usd - (before.usd or 0))

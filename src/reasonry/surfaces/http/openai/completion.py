"""A completion: a run that is begun, or gone on with, for a request; what it thinks, and what comes of it."""

from __future__ import annotations

import asyncio
import itertools
from bisect import bisect_right
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
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
from ....errors import ConflictError, NotFoundError, OverloadedError, ReasonryError, UsageError, WorldError
from ....records import JobOptions
from ....supervisor import RunEvent
from ....tools.catalog import CallersTool
from ..context import RequestContext, page_url
from .conversation import ANSWER, CallId, problem_of, unknown_call
from .request import ChatFields, Named, read_call
from .thinking import Thinking

HUNG_UP: Final = "its client hung up"
"""Why a run was cancelled that goes on when its client comes again; one that its user has cancelled does not."""

_SHOWN: Final = (
    *("run_id", "session_id", "outcome", "status", "termination", "strategy", "model", "rounds"),
    *("duration_ms", "usage", "warnings"),
)
"""What a reply says of its run."""


class Completion(Struct, frozen=True):
    """A run that works for a request.

    Args:
        results: The effects whose results the request brought: what happened before them was told before.
        warnings: What of the request has no effect.
        leaves: Whether the run goes on where the client hangs up.
    """

    run_id: str
    results: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()
    leaves: bool = False


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
        whole["warnings"] += self.warnings
        return {"runs": [{name: whole[name] for name in _SHOWN}]}


# -- begun, or gone on with


async def begin(
    context: RequestContext,
    named: Named,
    wanted: ChatFields,
    key: str | None,
    digest: bytes,
    warnings: Sequence[str] = (),
    *,
    background: bool = False,
) -> Completion:
    """Begin the run of a request; with a key that is known, take the one it stands for.

    Args:
        warnings: What of the request is passed over.
        background: Whether it is a job, which is driven whatever becomes of this server.

    Raises:
        UsageError: Something is wrong with what is asked for; then no run is begun.
        OverloadedError: Too many runs are in work.
    """
    own, form, cards = wanted.reasonry, wanted.form, wanted.cards()
    request = RunRequest(
        problem=problem_of(wanted.messages, form),
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
    job = JobOptions() if background else None
    run_id, is_new = await context.supervisor.start(
        context.app, order, performers, key=key, digest=digest, text=wanted.streams_text, job=job
    )
    if not is_new:
        await _take_up_again(context, run_id)
    leaves = background or own.on_disconnect == "leave"
    return Completion(run_id, warnings=tuple(warnings), leaves=leaves)


async def _take_up_again(context: RequestContext, run_id: str) -> None:
    """Go on with a run that stopped because its client hung up or its server ended, now that its client came again."""
    row = await context.app.store.run(run_id)
    if row.status == "active":
        is_left = run_id in await context.app.resumable([row])
    else:
        is_left = row.status == "cancelled" and row.detail == HUNG_UP
    if is_left:
        with suppress(ConflictError):
            await context.supervisor.resume(context.app, run_id)


async def go_on(context: RequestContext, wanted: ChatFields, brought: Mapping[CallId, str]) -> Completion:
    """Give a run the results that a request brought, and go on with it.

    Raises:
        UsageError: No run of the caller waits for them.
    """
    results = {call.effect: text for call, text in brought.items()}
    run_id, field = next(iter(brought)).run_id, "messages"
    try:
        async with context.app.engine.open(run_id) as opened:
            events = result_events(opened.run, results, max(opened.run.snapshot.at_ms, 0))
            await opened.take_answers(events)
            is_active = opened.run.snapshot.status == "active"
    except NotFoundError:
        raise unknown_call(str(next(iter(brought))), field) from None
    except ConflictError as error:
        if (effect := error.details.get("effect")) is not None:
            raise UsageError(f"{CallId(run_id, str(effect))}: {error.message}", field=field) from None
        is_active = False
        if result_events((await context.app.engine.read(run_id)).run, results, 0):
            raise
        # Another request has brought the results, and the run works on.
    if is_active:
        with suppress(ConflictError):
            await context.supervisor.resume(context.app, run_id, text=wanted.streams_text)
    return Completion(run_id, frozenset(results), leaves=wanted.reasonry.on_disconnect == "leave")


# -- followed


async def follow(
    context: RequestContext, wanted: ChatFields, completion: Completion
) -> AsyncGenerator[str | Finish]:
    """Yield what a run thinks from the request on, and in the end what comes of it.

    A client that hangs up ends the run, unless it asked to leave it.

    Raises:
        ReasonryError: Nothing came of it.
    """
    run_id, finish, result, shows = completion.run_id, None, None, wanted.reasonry.reasoning
    thinking, awaited, after = Thinking(), set(completion.results), 0
    with _attending(context, completion):
        if shows:
            yield f"{page_url(context.request)}#/runs/{run_id}"
        for is_again in (False, True):
            watched = context.supervisor.watch(context.app, run_id, after, text=wanted.streams_text)
            async with aclosing(watched) as events:
                async for event in events:
                    if event.kind == "idle" and (finish := await _calls_of(context, wanted, completion)):
                        break
                    if awaited:
                        awaited.discard(_result_in(event))
                    elif shows:
                        for piece in thinking.take(event):
                            yield piece
                    after, result = event.id or after, event.result
            result = result or await context.app.engine.result(run_id)
            if finish or is_again or result.termination.detail != HUNG_UP:
                break
            # The client before this one hung up a moment ago.
            await _take_up_again(context, run_id)
    yield finish or await _end(context, result, wanted, completion)


@contextmanager
def _attending(context: RequestContext, completion: Completion) -> Generator[None]:
    """Count a client of a run; the run is cancelled when the last one hangs up, unless it is left."""
    wiring, run_id = context.wiring, completion.run_id
    wiring.present[run_id] += 1
    try:
        yield
    except (asyncio.CancelledError, GeneratorExit):
        if wiring.present[run_id] == 1 and not (completion.leaves or context.supervisor.draining):
            # Whoever hung up does not wait, and must not be what the cancelling is cancelled with.
            wiring.beside(_cancel(context, run_id))
        raise
    finally:
        wiring.present[run_id] -= 1
        wiring.present += Counter()


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
    return Finish(result, await _usage(context, result, completion), completion.warnings, calls=calls)


async def _end(context: RequestContext, result: Result, wanted: ChatFields, completion: Completion) -> Finish:
    is_stopped = result.outcome == "stopped" and result.status == "done"
    text = result.best_answer if is_stopped else result.answer
    called = read_call(wanted.forced, text) if wanted.forced and text is not None else None
    if text is None or (wanted.forced and called is None):
        raise _failure_of(result)
    finish = Finish(result, await _usage(context, result, completion), completion.warnings)
    if called is not None:
        return structs.replace(finish, calls=(FunctionCall(str(CallId(result.run_id, ANSWER)), *called),))
    stops = [wanted.stop] if isinstance(wanted.stop, str) else wanted.stop or []
    answer, cut = cut_answer(text, stops, wanted.max_completion_tokens or wanted.max_tokens)
    return structs.replace(finish, answer=answer, cut=cut or is_stopped)


async def _usage(context: RequestContext, result: Result, completion: Completion) -> Usage:
    """Return what a run spent for a request: after the results that it brought, if it did."""
    if not completion.results:
        return result.usage
    latest = reversed((await context.app.engine.read(result.run_id)).run.events)
    after = itertools.takewhile(lambda settled: settled.id not in completion.results, latest)
    return sum((getattr(settled.event, "usage", NOTHING) for settled in after), NOTHING)


def _failure_of(result: Result) -> ReasonryError:
    """Return the error that a run without an answer comes to."""
    end = result.termination
    code = "budget_exceeded" if result.outcome == "stopped" else end.code
    return WorldError(
        f"the run ended without an answer: {end.detail or end.reason}",
        code="cancelled" if result.status == "cancelled" else code or "output_invalid",
        run_id=result.run_id,
    )


def cut_answer(answer: str, stops: Sequence[str], max_tokens: int | None) -> tuple[str, bool]:
    """Return an answer up to the first of the texts that end it, and whether `max_tokens` cut it shorter still."""
    ends = [found for stop in stops if stop and (found := answer.find(stop)) >= 0]
    answer = answer[: min(ends, default=len(answer))]
    if max_tokens is None or estimate_tokens(answer) <= max_tokens:
        return answer, False
    fits = bisect_right(
        range(len(answer) + 1), max_tokens, key=lambda length: estimate_tokens(answer[:length])
    )
    return answer[: fits - 1], True

"""A completion: a run that is begun, or gone on with, for a request; what it thinks, and what comes of it."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing, suppress
from typing import Any

from msgspec import Struct, structs

from ....app.participants import Participants
from ....app.use_cases import RunRequest
from ....core.budget import NOTHING, Usage
from ....core.effects import CallTool
from ....core.metering import estimate_tokens
from ....core.registry import strategies_at_hand
from ....engine.callers_calls import result_events, waiting_calls
from ....engine.journal import Run
from ....engine.result import Result
from ....errors import ConflictError, NotFoundError, OverloadedError, ReasonryError, UsageError, WorldError
from ....supervisor import RunEvent
from ....tools.catalog import CallersTool
from ..attendance import HUNG_UP
from ..context import RequestContext
from .call_ids import CallId, unknown_call
from .names import read_name
from .request import CompletionRequest
from .thinking import Thinking


class CompletionChoice(Struct, frozen=True):
    """A run that works for a request.

    Args:
        before: What the run had spent before the request.
        results: The effects whose results the request brought: what happened before them was told before.
    """

    run_id: str
    before: Usage = NOTHING
    results: frozenset[str] = frozenset()


class FunctionCall(Struct, frozen=True):
    """A call that the caller is asked to make."""

    id: str
    name: str
    arguments: dict[str, Any]


class Finish(Struct, frozen=True):
    """How a choice ends: with an answer, or with calls to make.

    Args:
        cut: Whether a limit cut the answer, or the run, short.
        usage: Of this request alone.
    """

    result: Result
    usage: Usage
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
        return {name: whole[name] for name in (*named, "usage", "warnings")}


async def begin(
    context: RequestContext, wanted: CompletionRequest, key: str | None, digest: bytes
) -> list[CompletionChoice]:
    """Begin the runs of a request, one for each choice; with a key that is known, take those it stands for.

    Raises:
        UsageError: Something is wrong with what is asked for; then no run is begun.
        OverloadedError: Too many runs are in work.
    """
    named = read_name(wanted.model, context.app.strategies, context.access.allowed)
    own = wanted.own
    request = RunRequest(
        problem=wanted.problem,
        strategy=own.strategy or named.strategy,
        options={**named.options, **own.options},
        budget=own.budget,
        participants=Participants(
            model=named.model,
            verifier=own.verifier,
            tools=[*own.tools, *map(CallersTool, wanted.cards)],
            context=own.documents,
        ),
        form=wanted.form,
    )
    choices = list[CompletionChoice]()
    try:
        for place in range(wanted.n):
            order, performers = await context.access.order(request)
            if wanted.cards and not performers.callers_tools & _names_in(structs.asdict(order.options)):
                raise _calls_no_tools(context, order.strategy.name)
            run_id, is_new = await context.supervisor.start(
                context.app,
                order,
                performers,
                key=f"{key}/{place}" if key and place else key,
                digest=digest,
                text=wanted.stream and own.reasoning,
            )
            choices.append(CompletionChoice(run_id))
            if not is_new:
                await _take_up_again(context, run_id)
    except ReasonryError:
        for choice in choices:
            await context.wiring.attendance.cancel(context.app, choice.run_id)
        raise
    return choices


def _calls_no_tools(context: RequestContext, strategy: str) -> UsageError:
    known = strategies_at_hand(context.app.strategies).items()
    choices = [name for name, each in known if "tools" in getattr(each.options, "__struct_fields__", ())]
    return UsageError(
        f"tools: {strategy} calls no tools; those that do: {', '.join(choices)}",
        field="tools",
        code="unsupported_parameter",
        choices=choices,
    )


def _names_in(value: Any) -> set[str]:
    """Return the names of the tools in the options of a run and of those inside it."""
    if not isinstance(value, dict):
        return set()
    names = {getattr(card, "name", None) or card["name"] for card in value.get("tools") or ()}
    return names | _names_in(value.get("over_options"))


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


async def go_on(context: RequestContext, wanted: CompletionRequest) -> CompletionChoice:
    """Give a run the results that a request brought, and go on with it.

    Raises:
        UsageError: No run of the caller waits for them.
    """
    ids = list(wanted.results)
    run_id = ids[0].run_id
    results = {call.effect: wanted.results[call] for call in ids}
    field = "messages"
    try:
        async with context.app.engine.open(run_id) as opened:
            run = opened.run
            at_ms = max(run.snapshot.at_ms, 0)
            events = result_events(run, results, at_ms)
            choice = CompletionChoice(run_id, _spent_before(run, results), frozenset(results))
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
        return CompletionChoice(run_id, _spent_before(run, results), frozenset(results))
    if opened.run.snapshot.status == "active":
        with suppress(ConflictError):
            await context.supervisor.resume(context.app, run_id, text=wanted.stream and wanted.own.reasoning)
    return choice


def _spent_before(run: Run, results: Collection[str]) -> Usage:
    """Return what a run had spent when these results came."""
    spent = NOTHING
    for settled in run.events:
        if settled.id in results:
            break
        spent += getattr(settled.event, "usage", NOTHING)
    return spent


async def follow(
    context: RequestContext, wanted: CompletionRequest, choice: CompletionChoice
) -> AsyncGenerator[str | Finish]:
    """Yield what a run thinks from the request on, and in the end what comes of it.

    A client that hangs up ends the run, unless it asked to leave it.

    Raises:
        ReasonryError: Nothing came of it.
    """
    thinking, awaited, after = Thinking(), set(choice.results), 0
    attendance = context.wiring.attendance
    with attendance.attend(context.app, choice.run_id, leaves=wanted.own.on_disconnect == "leave"):
        for is_again in (False, True):
            result = None
            watched = context.supervisor.watch(
                context.app, choice.run_id, after, text=wanted.stream and wanted.own.reasoning
            )
            async with aclosing(watched) as events:
                async for event in events:
                    if event.kind == "idle":
                        _check_not_draining(context, choice)
                        finish = await _calls_of(context, wanted, choice)
                        if finish is not None:
                            attendance.let_go(choice.run_id)
                            yield finish
                            return
                    if awaited:
                        awaited.discard(_result_in(event))
                    elif wanted.own.reasoning:
                        for piece in thinking.take(event):
                            yield piece
                    after, result = event.id or after, event.result
            result = result or await context.app.engine.result(choice.run_id)
            if is_again or not _was_left(result):
                attendance.let_go(choice.run_id)
                yield _end_of(result, wanted, choice)
                return
            # The client before this one hung up a moment ago.
            await _take_up_again(context, choice.run_id)


def _check_not_draining(context: RequestContext, choice: CompletionChoice) -> None:
    if context.supervisor.draining:
        raise OverloadedError(
            "the server is about to end; the same request with its Idempotency-Key goes on with the run once the "
            "server is back, as does `reasonry runs resume`",
            retryable=True,
            retry_after_s=5,
            run_id=choice.run_id,
        )


def _result_in(event: RunEvent) -> str:
    return event.data.get("effect", "") if event.kind == "tool_returned" else ""


async def _calls_of(
    context: RequestContext, wanted: CompletionRequest, choice: CompletionChoice
) -> Finish | None:
    """Return the calls that a run waits for, if it waits for any."""
    read = await context.app.engine.read(choice.run_id)
    waiting = waiting_calls(read.run)
    calls = tuple(
        FunctionCall(str(CallId(choice.run_id, pending.id)), pending.effect.tool, pending.effect.arguments)
        for pending in waiting[: None if wanted.side_by_side else 1]
        if isinstance(pending.effect, CallTool)
    )
    if not calls or context.supervisor.is_driven(choice.run_id):
        return None
    result = await context.app.engine.result(choice.run_id)
    return Finish(result, _since(result.usage, choice.before), calls=calls)


def _end_of(result: Result, wanted: CompletionRequest, choice: CompletionChoice) -> Finish:
    is_stopped = result.outcome == "stopped" and result.status == "done"
    text = result.best_answer if is_stopped else result.answer
    if text is None:
        raise failure_of(result)
    answer, cut = cut_answer(text, wanted.stop, wanted.max_tokens)
    return Finish(result, _since(result.usage, choice.before), answer, cut=cut or is_stopped)


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
    low, high = 0, len(answer)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimate_tokens(answer[:middle]) <= max_tokens else (low, middle - 1)
    return answer[:low], True


def _since(usage: Usage, before: Usage) -> Usage:
    usd = None if usage.usd is None else usage.usd - (before.usd or 0)
    return Usage(
        calls=usage.calls - before.calls,
        input_tokens=usage.input_tokens - before.input_tokens,
        output_tokens=usage.output_tokens - before.output_tokens,
        cached_input_tokens=usage.cached_input_tokens - before.cached_input_tokens,
        usd=usd,
    )


def now_s() -> int:
    """Return the time as OpenAI's clients are told it."""
    return int(time.time())

"""A completion: the run that works for a request, its thoughts, and its end."""

from __future__ import annotations

import asyncio
import itertools
from bisect import bisect_right
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import replace
from typing import Any, Final

import msgspec
from msgspec import Struct

from ....app.use_cases import RunRequest
from ....core.budget import NOTHING, Usage
from ....core.effects import CallTool
from ....core.metering import estimate_tokens
from ....engine.callers import result_events, waiting_calls
from ....engine.result import Result
from ....errors import ConflictError, NotFoundError, OverloadedError, ReasonryError, UsageError, WorldError
from ....records import JobOptions
from ..context import RequestContext, page_url
from .conversation import ANSWER, CalledFunction, CallId, MadeCall, problem_of, unknown_call
from .request import ChatFields, Named, read_call
from .thinking import Thinking

HUNG_UP: Final = "its client hung up"
"""Why a run was cancelled that continues when its client comes again; one that its user has cancelled does not."""

_SHOWN: Final = (
    *("run_id", "session_id", "outcome", "status", "termination", "strategy", "model", "rounds"),
    *("duration_ms", "usage", "warnings"),
)
"""The members of a run's document that a reply has."""


class Finish(Struct, frozen=True):
    """How a completion ends: with an answer, or with calls to make.

    Args:
        usage: Of this request alone.
        cut: Whether a limit cut the answer, or the run, short.
    """

    result: Result
    usage: Usage
    warnings: Sequence[str]
    answer: str = ""
    calls: Sequence[MadeCall] = ()
    cut: bool = False

    @property
    def document(self) -> dict[str, Any]:
        """The run, as it is told beside the reply."""
        whole = self.result.document(nodes=False)
        whole["warnings"] += tuple(self.warnings)
        return {"runs": [{name: whole[name] for name in _SHOWN}]}


class Completion:
    """A run that works for a request.

    Args:
        results: The effects whose results the request brought: the events before them belong to earlier replies.
        warnings: About the parts of the request that have no effect.
        leaves: Whether the run continues where the client hangs up.
    """

    def __init__(
        self,
        context: RequestContext,
        fields: ChatFields,
        run_id: str,
        *,
        results: frozenset[str] = frozenset(),
        warnings: Sequence[str] = (),
        leaves: bool = False,
    ) -> None:
        self.run_id, self.results = run_id, results
        self._context, self._fields, self._warnings = context, fields, warnings
        self._leaves = leaves or fields.reasonry.on_disconnect == "leave"

    async def follow(self) -> AsyncGenerator[str | Finish]:
        """Yield the run's thoughts from the request on, and last how it ends.

        A client that hangs up ends the run, unless it asked to leave it.

        Raises:
            ReasonryError: It ends without an answer.
        """
        app, supervisor, fields = self._context.app, self._context.supervisor, self._fields
        finish, result, shows = None, None, fields.reasonry.reasoning
        thinking, awaited, after = Thinking(), set(self.results), 0
        with self._attending():
            if shows:
                yield f"{page_url(self._context.request)}#/runs/{self.run_id}"
            for is_again in (False, True):
                watched = supervisor.watch(app, self.run_id, after, text=fields.streams_text)
                async with aclosing(watched) as events:
                    async for event in events:
                        if event.kind == "idle" and (finish := await self._hand_out_calls()):
                            break
                        if awaited and event.kind == "tool_returned":
                            awaited.discard(event.data["effect"])
                        elif shows and not awaited:
                            for piece in thinking.take(event):
                                yield piece
                        after, result = event.id or after, event.result
                result = result or await app.engine.result(self.run_id)
                if finish or is_again or result.termination.detail != HUNG_UP:
                    break
                # The client before this one hung up a moment ago.
                await _resume_abandoned(self._context, self.run_id)
        yield finish or await self._end(result)

    @contextmanager
    def _attending(self) -> Generator[None]:
        """Count a client of the run; the run is cancelled when the last one hangs up, unless it is left."""
        wiring, run_id = self._context.wiring, self.run_id
        wiring.present[run_id] += 1
        try:
            yield
        except (asyncio.CancelledError, GeneratorExit):
            if wiring.present[run_id] == 1 and not (self._leaves or self._context.supervisor.draining):
                wiring.cancel_left(self._context.app, run_id, HUNG_UP)
            raise
        finally:
            wiring.present[run_id] -= 1
            wiring.present += Counter()

    async def _hand_out_calls(self) -> Finish | None:
        """Return the calls that the run waits for, if it waits for any.

        Raises:
            OverloadedError: The server is about to end.
        """
        app, supervisor = self._context.app, self._context.supervisor
        if supervisor.draining:
            raise OverloadedError(
                "the server is about to end; the same request with its Idempotency-Key resumes the run once the "
                "server is back, as does `reasonry runs resume`",
                retryable=True,
                retry_after_s=5,
                run_id=self.run_id,
            )
        waiting = waiting_calls((await app.engine.read(self.run_id)).run)
        calls = [
            self._call(pending.id, pending.effect.tool, pending.effect.arguments)
            for pending in waiting[: None if self._fields.parallel_tool_calls else 1]
            if isinstance(pending.effect, CallTool)
        ]
        if not calls or supervisor.is_driven(self.run_id):
            return None
        return await self._finish(await app.engine.result(self.run_id), calls=calls)

    async def _end(self, result: Result) -> Finish:
        fields, is_stopped = self._fields, result.outcome == "stopped" and result.status == "done"
        text = result.best_answer if is_stopped else result.answer
        called = read_call(fields.forced, text) if fields.forced and text is not None else None
        if text is None or (fields.forced and called is None):
            raise _failure_of(result)
        if called is not None:
            return await self._finish(result, calls=[self._call(ANSWER, *called)])
        stops = [fields.stop] if isinstance(fields.stop, str) else fields.stop or []
        answer, cut = cut_answer(text, stops, fields.max_completion_tokens or fields.max_tokens)
        return await self._finish(result, answer=answer, cut=cut or is_stopped)

    def _call(self, effect: str, name: str, arguments: Mapping[str, Any]) -> MadeCall:
        function = CalledFunction(name, msgspec.json.encode(arguments).decode())
        return MadeCall(str(CallId(self.run_id, effect)), function)

    async def _finish(self, result: Result, **ending: Any) -> Finish:
        """Return the end of the request, with the usage since the results that it brought, if it did."""
        usage = result.usage
        if self.results:
            latest = reversed((await self._context.app.engine.read(self.run_id)).run.events)
            since = itertools.takewhile(lambda settled: settled.id not in self.results, latest)
            usage = sum((getattr(settled.event, "usage", NOTHING) for settled in since), NOTHING)
        return Finish(result, usage, self._warnings, **ending)


# -- begun, or continued


async def begin(
    context: RequestContext,
    named: Named,
    fields: ChatFields,
    warnings: Sequence[str],
    *,
    key: str | None,
    digest: bytes,
    background: bool,
) -> Completion:
    """Begin the run of a request; with a key that is known, take the one it stands for.

    Args:
        background: Whether it is a job, which is driven whatever becomes of this server.

    Raises:
        UsageError: Something is wrong with what is asked for; then no run is begun.
        OverloadedError: Too many runs are in work.
    """
    own, form, tools = fields.reasonry, fields.form, fields.callers_tools()
    request = RunRequest(
        problem=problem_of(fields.messages, form),
        strategy=own.strategy or named.strategy,
        options={**named.options, **own.options},
        budget=own.budget,
        participants=replace(own.participants(named.model), tools=[*own.tools, *tools]),
        form=form,
    )
    order, performers = await context.app.receive(request)
    job = JobOptions() if background else None
    run_id, is_new = await context.supervisor.start(
        context.app, order, performers, key=key, digest=digest, text=fields.streams_text, job=job
    )
    if not is_new:
        await _resume_abandoned(context, run_id)
    return Completion(context, fields, run_id, warnings=warnings, leaves=background)


async def _resume_abandoned(context: RequestContext, run_id: str) -> None:
    """Resume a run that stopped because its client hung up or its server ended, now that its client came again."""
    row = await context.app.store.run(run_id)
    is_left = row.status == "cancelled" and row.detail == HUNG_UP
    if is_left or (row.status == "active" and run_id in await context.app.resumable([row])):
        with suppress(ConflictError):
            await context.supervisor.resume(context.app, run_id)


async def go_on(context: RequestContext, fields: ChatFields, brought: Mapping[CallId, str]) -> Completion:
    """Give a run the results that a request brought, and resume it.

    Raises:
        UsageError: No run of the caller waits for them.
    """
    results, first = {call.effect: text for call, text in brought.items()}, next(iter(brought))
    run_id, engine = first.run_id, context.app.engine
    try:
        async with engine.open(run_id) as opened:
            await opened.take_answers(result_events(opened.run, results, max(opened.run.snapshot.at_ms, 0)))
            is_active = opened.run.snapshot.status == "active"
    except NotFoundError:
        raise unknown_call(str(first), "messages") from None
    except ConflictError as error:
        if (effect := error.details.get("effect")) is not None:
            message = f"{CallId(run_id, str(effect))}: {error.message}"
            raise UsageError(message, field="messages") from None
        is_active = False
        if result_events((await engine.read(run_id)).run, results, 0):
            raise
        # Another request has brought the results, and the run works on.
    if is_active:
        with suppress(ConflictError):
            await context.supervisor.resume(context.app, run_id, text=fields.streams_text)
    return Completion(context, fields, run_id, results=frozenset(results))


# -- ended


def _failure_of(result: Result) -> ReasonryError:
    """Return the error of a run without an answer."""
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
    lengths = range(len(answer) + 1)
    fits = bisect_right(lengths, max_tokens, key=lambda length: estimate_tokens(answer[:length]))
    return answer[: fits - 1], True

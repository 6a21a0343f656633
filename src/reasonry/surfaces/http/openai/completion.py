"""Answers a request with a run, and provides the thoughts and the answer of the run as text.

If several replies of models arrive at the same time, the first reply is streamed piece by piece, unless it is JSON. The
other replies follow as finished thoughts. The streamed text omits the tags `<answer>` and `</answer>`.
"""

import itertools
from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from ....app.requests import RunRequest
from ....app.runs import resumable
from ....core.effects import CallTool
from ....core.events import NOTHING, Usage
from ....engine.open_questions import result_events, waiting_calls
from ....engine.rate_limits import UNCLEAR_WAIT_S
from ....engine.result import Result
from ....engine.usage import estimate_tokens
from ....errors import ConflictError, NotFoundError, OverloadedError, ReasonryError, UsageError, WorldError
from ....models.http_session import HEADER, enter_nested
from ....records import JobOptions
from ....supervisor import HUNG_UP, RunEvent
from ...present import count_of, end_text
from ..context import RequestContext, page_url
from ..documents import read_json, read_key
from ..listings import read_name
from .request import (
    ANSWER,
    CalledFunction,
    CallId,
    ChatFields,
    MadeCall,
    ResponseFields,
    passed_over,
    problem_of,
    read_call,
    results_in,
    unknown_call,
)

_SAY_NOTHING: Final = ("sent", "ended")
"""The kinds of events that have neither text nor thoughts. The documents of these events are never built."""
SAY_SPEND_MS: Final = 5_000
"""Milliseconds of run time between two reports of the spending."""
_REMEMBERED: Final = 20_000
_OPENS: Final = "<answer>"
_CLOSES: Final = "</answer>"
_SHOWN: Final = (
    *("run_id", "session_id", "outcome", "status", "termination", "strategy", "model", "rounds"),
    *("duration_ms", "usage", "warnings"),
)
"""The members of a run's document that a reply shows in `reasonry`."""


def readable(raw: str) -> str:
    """Return the readable text of a partial reply, without answer tags. If the reply is JSON, return an empty string.

    `<answer>` becomes a paragraph break. Characters at the end are omitted if they may be the beginning of a tag.
    """
    if raw.startswith(("{", "[")):
        return ""
    lengths = range(min(len(raw), len(_CLOSES)), 0, -1)
    half = next((length for length in lengths if raw[-length:] in (_OPENS[:length], _CLOSES[:length])), 0)
    parts = raw[: len(raw) - half].replace(_CLOSES, "").split(_OPENS)
    return "\n\n".join(map(str.strip, parts)).strip()


class Thinking:
    """Turns the events of a run into a text with the thoughts of the run. Each thought is a paragraph."""

    def __init__(self) -> None:
        self._begun = set[str]()
        """The ids of the effects whose replies have begun to arrive but are not complete."""
        self._speaker = self._raw = self._read = ""
        """The id of the effect whose reply is streamed, the reply's text so far, and the readable part of this text."""
        self._said, self._spend_said_ms = "", 0
        """The end of the streamed text without its spaces, and the run time at the latest report of the spending."""

    def take(self, event: RunEvent) -> Iterator[str]:
        """Yield the pieces that an event adds to the text of the thoughts."""
        data, effect = event.data, event.data.get("effect") or ""
        if event.kind == "text":
            if not self._speaker and effect not in self._begun:
                self._speaker, self._raw, self._read = effect, "", ""
            self._begun.add(effect)
            if effect == self._speaker:
                self._raw, before = (self._raw + data["text"]).lstrip(), self._read
                self._read = readable(self._raw)
                if text := self._read[len(before) :]:
                    yield self._say(text, begins=not before)
            return
        if event.kind in ("answered", "failed", "retrying"):
            self._begun.discard(effect)
            self._speaker = "" if effect == self._speaker else self._speaker
        for thought in data.get("thoughts", ()):
            text = str(thought.get("text", "")).strip()
            if text and "".join(text.split()) not in self._said:
                yield self._say(text, begins=True)
        if not self._speaker and data.get("at_ms", 0) >= self._spend_said_ms + SAY_SPEND_MS:
            self._spend_said_ms = data["at_ms"]
            spent = f"({count_of(data['usage']['calls'], 'call')}, {data['at_ms'] // 1_000} s so far)"
            yield self._say(spent, begins=True)

    def _say(self, text: str, *, begins: bool) -> str:
        self._said = (self._said + "".join(text.split()))[-_REMEMBERED:]
        return f"\n\n{text}" if begins else text


class Completion(Struct):
    """A request, its run, and the result of the run: either an answer, or tool calls for the client to make.

    Args:
        results: The effects whose results came with the request. Events before these results belong to earlier replies.
        leaves: Whether the run continues if the client disconnects.
        cut: Whether a limit shortened the answer or stopped the run.
        usage: The usage of this request, without the usage of earlier requests to the same run.
        run: The document that describes the run in the member `reasonry` of the reply.
    """

    context: RequestContext
    fields: ChatFields
    run_id: str
    results: frozenset[str] = frozenset()
    leaves: bool = False
    answer: str = ""
    calls: Sequence[MadeCall] = ()
    cut: bool = False
    usage: Usage = NOTHING
    run: Mapping[str, Any] = {}
    _result: Result | None = None

    @property
    def name(self) -> str:
        """The id of the reply, without a prefix such as `resp_`."""
        effects = "-".join(sorted(effect.replace("/", ".") for effect in self.results))
        return self.run_id.replace("-", "") + (f"_{effects}" if effects else "")

    async def think(self) -> AsyncGenerator[str]:
        """Yield the thoughts of the run as pieces of text, until the run ends or waits for tool results.

        If the client disconnects, the run is cancelled, unless `leaves` is true.
        """
        app, supervisor, shows = self.context.app, self.context.supervisor, self.fields.reasonry.reasoning
        thinking, awaited, after = Thinking(), set(self.results), 0
        with supervisor.attending(app, self.run_id, leaves=self.leaves):
            if shows:
                yield f"{page_url(self.context.request)}#/runs/{self.run_id}"
            for is_last in (False, True):
                ended, watched = None, supervisor.watch(app, self.run_id, after, text=self.fields.stream)
                async with aclosing(watched) as events:
                    async for event in events:
                        after, ended = event.id or after, event.result
                        if event.kind == "idle" and await self._find_calls():
                            break
                        if awaited and event.kind == "tool_returned":
                            awaited.discard(event.data["effect"])
                        elif shows and not awaited and event.kind not in _SAY_NOTHING:
                            for piece in thinking.take(event):
                                yield piece
                self._result = ended or await app.engine.result(self.run_id)
                if is_last or self.leaves or self._result.termination.detail != HUNG_UP:
                    break
                # The previous client of the run has just disconnected, and the run was cancelled.
                await _resume_abandoned(self.context, self.run_id)
            if shows and self._result.outcome == "stopped":
                ending = app.rights.allowed.hide_addresses(end_text(self._result.document()))
                yield f"\n\nThe run {ending}; its best so far is no answer"

    async def _find_calls(self) -> bool:
        """Set `calls` to the tool calls that the client must make. Return False if there is no such call."""
        waiting = waiting_calls((await self.context.app.engine.read(self.run_id)).run)
        self.calls = [
            self._call(pending.id, pending.effect.tool, pending.effect.arguments)
            for pending in waiting[: None if self.fields.parallel_tool_calls else 1]
            if isinstance(pending.effect, CallTool) and not self.context.supervisor.is_driven(self.run_id)
        ]
        return bool(self.calls)

    def _call(self, effect: str, name: str, arguments: Mapping[str, Any]) -> MadeCall:
        function = CalledFunction(name, msgspec.json.encode(arguments).decode())
        return MadeCall(str(CallId(self.run_id, effect)), function)

    async def end(self) -> None:
        """Set `answer` or `calls`, and set `usage` and `run`. Call this method after `think` has yielded all thoughts.

        Raises:
            ReasonryError: The run ended without an answer.
        """
        result, fields = self._result or await self.context.app.engine.result(self.run_id), self.fields
        text = reply_text(result)
        if fields.forced and text is not None:
            called = read_call(fields.forced, text)
            self.calls = [self._call(ANSWER, *called)] if called else []
        elif text is not None:
            limit = fields.max_completion_tokens or fields.max_tokens
            stops = [fields.stop] if isinstance(fields.stop, str) else fields.stop or []
            self.answer, is_cut = cut_answer(text, stops, limit)
            self.cut = is_cut or result.outcome == "stopped"
        if not self.calls and (text is None or fields.forced):
            raise _failure_of(result, self.context.app.rights.allowed.hide_addresses)
        whole, self.usage = result.document(nodes=False), result.usage
        shown = msgspec.json.encode({name: whole[name] for name in _SHOWN}).decode()
        self.run = msgspec.json.decode(self.context.app.rights.allowed.hide_addresses(shown))
        if self.results:
            latest = reversed((await self.context.app.engine.read(self.run_id)).run.events)
            since = itertools.takewhile(lambda settled: settled.id not in self.results, latest)
            self.usage = sum((getattr(settled.event, "usage", NOTHING) for settled in since), NOTHING)


# -- starting and continuing


async def begin(
    context: RequestContext, fields: ChatFields, form: type[ChatFields | ResponseFields], *, background: bool
) -> Completion:
    """Start a run for a request. If the request is repeated or brings tool results, use the existing run instead.

    Args:
        background: Whether the run is a job, which outlives this server.

    Raises:
        UsageError: The request is invalid. No run was started.
        OverloadedError: Too many runs are active.
    """
    strategy, model = read_name(fields.model, context.app.strategies, context.app.rights.allowed)
    enter_nested(context.request.headers.get(HEADER))
    if fields.stream:
        # Check that there is room for another stream before any work begins.
        with context.wiring.stream(context.principal):
            pass
    own = fields.reasonry
    leaves = background or own.on_disconnect == "leave"
    # If the answer must be a call, a new run begins. The problem of the new run quotes the earlier calls and results.
    if brought := {} if fields.forced else results_in(fields.messages):
        run_id = await _go_on(context, brought, text=fields.stream)
        return Completion(context, fields, run_id, frozenset(call.effect for call in brought), leaves=leaves)
    tools = [*own.tools, *fields.callers_tools]
    request = RunRequest(
        problem=problem_of(fields.messages, fields.form),
        strategy=own.strategy or strategy,
        options=own.options,
        budget=own.budget,
        participants=structs.replace(own.participants(), model=model, tools=tools),
        form=fields.form,
    )
    order, performers = await context.app.receive(request)
    passed = passed_over(await read_json(context.request), form)
    # A repeated request may be formatted differently, and may change whether the reply is streamed.
    asked = structs.replace(fields, stream=False, stream_options={})
    run_id, written = await context.supervisor.start(
        context.app,
        structs.replace(order, warnings=(*order.warnings, *passed)),
        performers,
        key=await read_key(context.request, msgspec.json.encode(asked, order="deterministic")),
        text=fields.stream,
        job=JobOptions() if background else None,
    )
    if written is None:
        await _resume_abandoned(context, run_id)
    return Completion(context, fields, run_id, leaves=leaves)


async def _resume_abandoned(context: RequestContext, run_id: str) -> None:
    """Resume a run if it stopped because its client disconnected or its server ended. Leave any other run unchanged."""
    row = await context.app.store.run(run_id)
    is_left = row.status == "cancelled" and row.detail == HUNG_UP
    if is_left or (row.status == "active" and run_id in await resumable(context.app.store, [row])):
        with suppress(ConflictError):
            await context.supervisor.resume(context.app, run_id)


async def _go_on(context: RequestContext, brought: Mapping[CallId, str], *, text: bool) -> str:
    """Give the tool results in `brought` to the run that waits for them, and resume the run. Return the run's id.

    Raises:
        UsageError: No run of the caller waits for these results.
    """
    results, first = {call.effect: text for call, text in brought.items()}, next(iter(brought))
    run_id, engine = first.run_id, context.app.engine
    try:
        run = (await engine.read(run_id)).run
        if result_events(run, results, 0):
            async with engine.open(run_id) as opened:
                run = opened.run
                await opened.take_answers(result_events(run, results, max(run.snapshot.at_ms, 0)))
    except NotFoundError:
        raise unknown_call(str(first), "messages") from None
    except ConflictError as error:
        if (effect := error.details.get("effect")) is None:
            raise
        raise UsageError(f"{CallId(run_id, str(effect))}: {error.message}", field="messages") from None
    if run.snapshot.status == "active":
        with suppress(ConflictError):
            await context.supervisor.resume(context.app, run_id, text=text)
    return run_id


# -- the end


def reply_text(result: Result) -> str | None:
    """Return the answer of a run. If a limit stopped the run, return the best answer so far."""
    is_stopped = result.outcome == "stopped" and result.status == "done"
    return result.best_answer if is_stopped else result.answer


def _failure_of(result: Result, hidden: Callable[[str], str]) -> ReasonryError:
    """Return the error for a run that has no answer. `hidden` removes the addresses of models from the message."""
    if result.status == "active":
        return OverloadedError(
            "the server is about to end; the same request with its Idempotency-Key resumes the run once the "
            "server is back, as does `reasonry runs resume`",
            retry_after_s=5,
            run_id=result.run_id,
        )
    end = result.termination
    message = hidden(f"the run ended without an answer: {end.detail or end.reason}")
    if end.reason == "rate_limited":
        return OverloadedError(message, code=end.reason, retry_after_s=UNCLEAR_WAIT_S, run_id=result.run_id)
    code = "budget_exceeded" if result.outcome == "stopped" else end.code
    return WorldError(
        message,
        code="cancelled" if result.status == "cancelled" else code or "output_invalid",
        run_id=result.run_id,
    )


def cut_answer(answer: str, stops: Sequence[str], max_tokens: int | None) -> tuple[str, bool]:
    """Cut an answer at the first stop sequence, then at `max_tokens`. Also return whether `max_tokens` cut it."""
    ends = [found for stop in stops if stop and (found := answer.find(stop)) >= 0]
    answer = answer[: min(ends, default=len(answer))]
    if max_tokens is None:
        return answer, False
    lengths = range(len(answer) + 1)
    fits = bisect_right(lengths, max_tokens, key=lambda length: estimate_tokens(answer[:length]))
    return answer[: fits - 1], fits < len(lengths)

"""Performing effects: the world's side of a run. Everything that goes wrong here comes back as an event.

A call to a model is a list of layers around one request, in the order of `Calls.ask`. A layer is
`(call, send) -> Sent`: it may answer by itself, wait, or send more than once. It takes and returns values; what it
wants the layers inside it to know, it puts into the call that it sends on.
Only transport is tried again here: overload, resets, time-outs, bodies that are no answer. What an answer says is the
machine's business; it re-asks by itself, so that every reply that was paid for is in the journal.
"""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeGuard

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..core.budget import NOTHING, Refusal, Usage
from ..core.effects import Ask, CallTool, RunStrategy, Verify
from ..core.events import Answered, Event, Failed, ToolReturned, Verified
from ..core.machine import Pending
from ..core.problem import without_quoted
from ..errors import ModelError, ReasonryError
from ..masking import SECRETS
from ..reading.json_in_text import without_surrogates
from ..reading.no_answer import Endless
from .control import Control, Held
from .follow import Observer
from .guard import Booking, BudgetExhausted, BudgetGuard, LedgerKeeper, limits_calls
from .policy import Performers, Policy
from .ports import NOT_FAILURES, BrokenReplyError, Model, OnText, Question, SamplingModel, provider_of
from .telemetry import span

WARM_PREFIX_CHARS = 4_096
"""Providers cache prompts from about 1,024 tokens on; shorter ones are not worth waiting for."""

MAX_FALLBACKS = 10
"""How often a question is asked in another form because of what the server does not take; it takes no attempt."""

MAX_TRIED_CHARS = 300
"""Of what is recorded of a request that failed."""


class Call(Struct, frozen=True):
    """A question on its way to a model."""

    model: Model
    question: Question
    samples: int = 1
    estimate_tokens: int = 0


class Sent(Struct, frozen=True):
    """What came of a call, or of one request: answers, a failure for good, or an error.

    Attributes:
        spent: What a request took, sample by sample.
    """

    came: Sequence[Answered] | Failed | BaseException
    spent: Sequence[Usage] = (NOTHING,)


Send = Callable[[Call], Awaitable[Sent]]
Layer = Callable[[Call, Send], Awaitable[Sent]]
Draw = Callable[[int], Awaitable[Sequence[Answered] | Failed]]
"""Asks a question for so many samples; what comes back may be fewer."""


class Calls:
    """The calls of one drive.

    Args:
        intend: Writes down durably that a call is about to go out.
        at_ms: Reads the run's clock.
        control: Holds requests back while the drive is to halt, or the owner's day is used up.
    """

    def __init__(
        self,
        performers: Performers,
        guard: BudgetGuard,
        policy: Policy,
        observer: Observer,
        intend: Callable[[str], Awaitable[None]],
        at_ms: Callable[[], int],
        control: Control | None = None,
    ) -> None:
        self.performers, self.guard, self.policy, self.observer = performers, guard, policy, observer
        control = control or Control()
        self.gate, self.allowance = control.gate, control.allowance
        self.intend, self.at_ms = intend, at_ms
        self.slots = asyncio.Semaphore(policy.max_concurrency)
        self.in_flight: dict[str, Usage] = {}
        """What the requests took that went out for effects not answered yet, as far as can be seen."""
        self._flights: dict[object, asyncio.Future[Sent]] = {}
        self._warmings: dict[object, asyncio.Event] = {}
        self._batch = Batch()

    async def perform(self, pending: Pending) -> Event:
        """Perform one effect of a drive. No key in use gets into the event, whoever has echoed it.

        Raises:
            BudgetExhausted: It was not performed, because the budget does not cover it.
            Held: It was not performed, because the drive is to halt.
        """
        self.observer.asked(pending)
        effect = pending.effect
        if isinstance(effect, Ask):
            return SECRETS.mask_data(await self.ask(pending, effect))
        async with self.slots:
            self.gate.check()
            assert not isinstance(effect, RunStrategy), "a strategy inside a run is opened by the machine"
            settle = self._call_tool(effect) if isinstance(effect, CallTool) else self._verify(effect)
            return SECRETS.mask_data(await settle)

    async def ask(self, pending: Pending, ask: Ask) -> Event:
        """Have a question answered.

        Raises:
            BudgetExhausted: The budget does not cover the call.
            Held: The drive is to halt, and the call has not gone out.
        """
        model = self.performers.answering(ask.by)
        put = replace(
            ask.spelled_out(reasons=getattr(model, "reasons", False)),
            max_output_tokens=self.policy.output_limit(pending, ask, model),
        )
        question = Question(pending.id, pending.stage, put, timeout_s=self.policy.call_timeout_s)
        layers: tuple[Layer, ...] = (
            self._share_flight,
            self._gather_samples,
            self._warm_cache,
            self._retry,
            self._take_slot,
            self._reserve_budget,
            self._reserve_allowance,
            self._wait_for_rate,
            self._write_down,
        )
        # Put together again for each call: kept, it would be a cycle that only the garbage collector finds.
        send: Send = self._request
        for layer in reversed(layers):
            send = _wrap(layer, send)
        came = (await send(Call(model, question))).came
        self.in_flight.pop(pending.id, None)
        assert not isinstance(came, BaseException), "raised where it is not tried again"
        return came if isinstance(came, Failed) else came[0]

    # -- the layers, outermost first

    async def _share_flight(self, call: Call, send: Send) -> Sent:
        """Let equal questions that are asked at the same time share one call; the first one has paid for it."""
        # Equal are model, question, form, sample, and the run inside the run.
        inside = call.question.id.rpartition("/")[0]
        key = inside, call.model.name, msgspec.json.encode(replace(call.question.ask, about=""))
        flight = self._flights.get(key)
        if flight is not None:
            came = (await asyncio.shield(flight)).came
            assert not isinstance(came, BaseException), "raised where it is not tried again"
            if isinstance(came, Failed):
                return Sent(replace(came, usage=NOTHING))
            return Sent([replace(answer, usage=NOTHING) for answer in came])
        flight = self._flights[key] = asyncio.get_running_loop().create_future()
        try:
            sent = await send(call)
        except BaseException as error:
            flight.set_exception(error)
            flight.exception()
            raise
        else:
            flight.set_result(sent)
            return sent
        finally:
            del self._flights[key]

    async def _gather_samples(self, call: Call, send: Send) -> Sent:
        """Send samples of one question as one request, if the model takes that."""
        if not takes_samples(call.model):
            return await send(call)

        async def draw(samples: int) -> Sequence[Answered] | Failed:
            came = (await send(replace(call, samples=samples))).came
            assert not isinstance(came, BaseException), "raised where it is not tried again"
            return came

        key = call.model.name, msgspec.json.encode(replace(call.question.ask, sample=0, about=""))
        came = await self._batch.ask(key, call.model, draw)
        return Sent(came if isinstance(came, Failed) else [came])

    async def _warm_cache(self, call: Call, send: Send) -> Sent:
        """Send the first of a fan-out alone: the others then find their common prefix in the provider's cache."""
        ask = call.question.ask
        head = f"{ask.system}\n{ask.prompt}"[:WARM_PREFIX_CHARS]
        wanted = self.policy.cache_warmup
        if wanted is None:
            wanted = getattr(call.model, "caches_prompts", False)
        if not wanted or len(head) < WARM_PREFIX_CHARS:
            return await send(call)
        warming = self._warmings.get((call.model.name, head))
        if warming is not None:
            await warming.wait()
            return await send(call)
        warming = self._warmings[call.model.name, head] = asyncio.Event()
        try:
            return await send(call)
        finally:
            warming.set()

    async def _retry(self, call: Call, send: Send) -> Sent:
        """Try again what may succeed later, after a pause; what is lost for good is a `Failed`."""
        attempt, tried, lost = 1, list[str](), NOTHING
        while True:
            sent = await send(call)
            came = sent.came
            assert not isinstance(came, Failed), "what fails for good is decided here"
            if not isinstance(came, BaseException):
                first, *others = came
                first = replace(first, usage=first.usage + lost, tried=tuple(tried))
                return Sent([self._as_recorded(answer) for answer in (first, *others)])
            if not isinstance(came, ModelError):
                try:
                    raise came
                finally:
                    # Its traceback refers to this frame, which must not refer to it.
                    del came, sent
            lost += sent.spent[0]
            degraded = bool(came.details.get("degraded")) and len(tried) < MAX_FALLBACKS
            if not (came.retryable and (degraded or attempt < self.policy.max_attempts)):
                return Sent(Failed(came.code, came.message, self.at_ms(), lost, tried=tuple(tried)))
            pause = self._pause_s(attempt, came.retry_after_s)
            self.observer.retrying(call.question.id, came.message, pause)
            tried.append(f"{came.code}: {came.message}"[:MAX_TRIED_CHARS])
            attempt += not degraded
            await self.gate.wait(asyncio.sleep(pause))

    async def _take_slot(self, call: Call, send: Send) -> Sent:
        """Keep to `max_concurrency`."""
        async with self.slots:
            return await send(call)

    async def _reserve_budget(self, call: Call, send: Send) -> Sent:
        """Set an estimate of what the request takes aside, and book what it took."""
        samples = self.guard.fitting(call.question, call.samples) if takes_samples(call.model) else 1
        estimate = await self.guard.reserve(call.question, samples)
        question = self.guard.with_room(call.question, estimate, samples)
        call = replace(call, question=question, samples=samples, estimate_tokens=estimate.tokens)
        sent = await self._book(self.guard, estimate, call, send)
        self.guard.note_prompt(question, sent.spent[0])
        return sent

    async def _reserve_allowance(self, call: Call, send: Send) -> Sent:
        """Do the same with what the run's owner may spend in a day.

        Raises:
            BudgetExhausted: It is used up.
        """
        if self.allowance is None:
            return await send(call)
        estimate = await self.allowance.take(call.samples, self.gate.wait)
        if isinstance(estimate, Refusal):
            raise BudgetExhausted(estimate)
        return await self._book(self.allowance, estimate, call, send)

    async def _book(self, keeper: LedgerKeeper, estimate: Usage, call: Call, send: Send) -> Sent:
        spent: Sequence[Usage] = (NOTHING,)
        try:
            sent = await send(call)
            spent = sent.spent
            return sent
        finally:
            keeper.settle(estimate, spent, self._reply_key(call))

    async def _wait_for_rate(self, call: Call, send: Send) -> Sent:
        """Keep to the provider's rate limits."""

        def pausing(pause_s: float) -> None:
            reason = f"the rate limit of {provider_of(call.model.name)} is reached"
            self.observer.retrying(call.question.id, reason, pause_s)

        limit = self.policy.rates.of(call.model.name)
        if limit.requests is None and limit.tokens is None:
            return await send(call)
        counted = await self.gate.wait(limit.wait(call.estimate_tokens, pausing))
        sent = await send(call)
        counted.tokens = sum(usage.tokens for usage in sent.spent) or call.estimate_tokens
        return sent

    async def _write_down(self, call: Call, send: Send) -> Sent:
        """Note that the request goes out, durably where a limit must survive a crash; note what it took."""
        effect_id = call.question.id
        before = self.in_flight.get(effect_id, NOTHING)
        self.in_flight[effect_id] = before + Usage()
        try:
            self.gate.check()
            if limits_calls(self.guard.ledger.budget) or self.allowance is not None:
                await self.intend(effect_id)
        except Held:
            self.in_flight[effect_id] = before
            raise
        sent = await send(call)
        self.in_flight[effect_id] = before + sent.spent[0]
        return sent

    # -- the request

    async def _request(self, call: Call) -> Sent:
        """Send the request, and book what it took, whatever comes of it."""
        booking = Booking(call.model, call.question, self.performers.prices, self._limits_replies)
        try:
            answers = booking.of_answers(await self._listen(call, booking), call.samples)
        except BaseException as error:
            return Sent(error, (booking.of_failure(error),))
        return Sent(answers, [answer.usage for answer in answers])

    async def _listen(self, call: Call, booking: Booking) -> Sequence[Answered]:
        """Return the answers; cut off a reply that comes too late, passes a limit or repeats itself without end.

        Raises:
            BudgetExhausted: The answer was cut off as it streamed in.
            ModelError: The model gave no answer.
        """
        question = call.question
        watched = functools.partial(self._limit_passed, call) if self._limits_replies else None
        in_time = asyncio.timeout(question.timeout_s)
        listener = _Listener(booking, in_time, watched)
        try:
            async with in_time:
                return await self._ask_model(call, listener)
        except TimeoutError as error:
            if listener.passed is not None:
                raise BudgetExhausted(listener.passed) from None
            if listener.endless.is_heard:
                text, model = "".join(listener.pieces), call.model.name
                return [Answered(text, usage=booking.so_far, model=model, truncated=True)]
            message = f"{call.model.name} did not answer within {question.timeout_s or 0:g} s"
            late = ModelError(message, code="provider_timeout", retryable=True)
            raise BrokenReplyError(late, booking.so_far) from error
        except (ReasonryError, *NOT_FAILURES):
            raise
        except BaseException as error:
            raise ModelError(f"{call.model.name} failed: {type(error).__name__}: {error}") from error

    def _limit_passed(self, call: Call, so_far: Usage) -> Refusal | None:
        keepers = (self.guard, self.allowance) if self.allowance else (self.guard,)
        passed = [keeper.watch(self._reply_key(call), so_far) for keeper in keepers]
        return next(filter(None, passed), None)

    def _reply_key(self, call: Call) -> object:
        """Return what tells a reply from those to the other questions of this run, and of others."""
        return id(self), call.question.id

    async def _ask_model(self, call: Call, listener: _Listener) -> Sequence[Answered]:
        """Ask the model in a span; several samples are never streamed."""

        def heard(piece: str) -> None:
            listener.hear_reply(piece)
            self.observer.text(call.question.id, piece)

        on_text: OnText | None = heard if self.observer.wants_text else None
        question = replace(call.question, on_hidden=listener.hear if on_text else None)
        with span(call.model.name, call.question, call.samples) as note:
            if call.samples > 1 and takes_samples(call.model):
                answers: Sequence[Answered] = await call.model.answer_many(question, call.samples)
            else:
                answers = [await call.model.answer(question, on_text)]
            if not answers:
                raise ModelError(f"{call.model.name} gave no answer at all", retryable=True)
            note(answers)
            return answers

    # -- tools and verifiers

    async def _call_tool(self, effect: CallTool) -> Event:
        if self.performers.tools is None:
            return Failed("tool_error", f"there is no tool {effect.tool!r} in this run", at_ms=self.at_ms())
        try:
            async with asyncio.timeout(self.policy.tool_timeout_s):
                value = await self.performers.tools.call(effect.tool, effect.arguments)
        except TimeoutError:
            message = f"{effect.tool} did not return within {self.policy.tool_timeout_s:g} s"
            return Failed("tool_timeout", message, at_ms=self.at_ms())
        except ReasonryError as error:
            return Failed(error.code, error.message, at_ms=self.at_ms())
        except NOT_FAILURES:
            raise
        except BaseException as error:
            message = f"{effect.tool} failed: {type(error).__name__}: {error}"
            return Failed("tool_error", message, at_ms=self.at_ms())
        return ToolReturned(value, at_ms=self.at_ms())

    async def _verify(self, effect: Verify) -> Event:
        if self.performers.verifier is None:
            return Verified("unknown", "no verifier was given", at_ms=self.at_ms())
        try:
            claim = replace(effect, problem=without_quoted(effect.problem))
            verdict = await self.performers.verifier.verify(claim)
        except NOT_FAILURES:
            raise
        except BaseException as error:
            detail = f"the verifier failed: {type(error).__name__}: {error}"[:500]
            return Verified("unknown", detail, at_ms=self.at_ms(), failed=True)
        return replace(verdict, at_ms=self.at_ms())

    # -- what the layers share

    @property
    def _limits_replies(self) -> bool:
        """Whether a reply that streams in may pass a limit."""
        budget = self.guard.ledger.budget
        return (budget.tokens, budget.usd) != (None, None) or self.allowance is not None

    @property
    def sent(self) -> dict[str, int]:
        """How many requests went out for effects not answered yet."""
        return {effect_id: usage.calls for effect_id, usage in self.in_flight.items()}

    def _as_recorded(self, answer: Answered) -> Answered:
        name = "" if answer.model == self.performers.model.name else answer.model
        return replace(answer, text=without_surrogates(answer.text), at_ms=self.at_ms(), model=name)

    def _pause_s(self, attempt: int, retry_after_s: float | None) -> float:
        policy = self.policy
        if retry_after_s is not None:
            return min(max(retry_after_s, 0.0), policy.max_backoff_s)
        return random.uniform(0, min(policy.backoff_s * 2 ** (attempt - 1), policy.max_backoff_s))


class _Listener:
    """Hears a reply as it streams in, and cuts it off where it should not continue.

    Args:
        in_time: Its time is up at once where the reply is cut off.
        limit_passed: Returns the limit that the reply has passed by now; None: no limit depends on it.
    """

    def __init__(
        self,
        booking: Booking,
        in_time: asyncio.Timeout,
        limit_passed: Callable[[Usage], Refusal | None] | None,
    ) -> None:
        self._booking, self._in_time, self._limit_passed = booking, in_time, limit_passed
        self.pieces, self.endless = list[str](), Endless()
        self.passed: Refusal | None = None

    def hear(self, piece: str) -> None:
        """Hear a piece, of the reply or of what is hidden."""
        self._booking.hear(piece)
        if self.passed is None and self._limit_passed is not None:
            self.passed = self._limit_passed(self._booking.so_far)
            if self.passed is not None:
                self._cut()

    def hear_reply(self, piece: str) -> None:
        """Hear a piece of the reply."""
        self.pieces.append(piece)
        if self.endless.hear(piece):
            self._cut()
        self.hear(piece)

    def _cut(self) -> None:
        self._in_time.reschedule(asyncio.get_running_loop().time())


def _wrap(layer: Layer, send: Send) -> Send:
    return lambda call: layer(call, send)


# -- independent samples of one question, gathered so that they go out as one request where the model can do that


def takes_samples(model: Model) -> TypeGuard[SamplingModel]:
    """Whether a model takes several samples in one request, as far as is known."""
    return bool(getattr(model, "takes_n", False)) and hasattr(model, "answer_many")


class Batch:
    """Merges the asks of one turn of the event loop into a request. The tasks of a round start in the same turn."""

    def __init__(self) -> None:
        self._open: dict[object, list[asyncio.Future[Answered | bool]]] = {}

    async def ask(self, key: object, model: Model, draw: Draw) -> Answered | Failed:
        """Have one sample drawn; asks with equal keys are told apart by nothing but their sample.

        The first to come sends for all that come in the same turn. Those for whom nothing came share the next request;
        where the request failed, or the model turned out to give one answer at a time, each asks alone.
        """
        while (waiting := self._open.get(key)) is not None:
            mine = asyncio.get_running_loop().create_future()
            waiting.append(mine)
            answer = await mine
            if isinstance(answer, Answered):
                return answer
            if not (answer and takes_samples(model)):
                return _first(await draw(1))
        return await self._lead(key, draw)

    async def _lead(self, key: object, draw: Draw) -> Answered | Failed:
        waiting = self._open[key] = []
        answers: Sequence[Answered] | Failed = ()
        try:
            try:
                await asyncio.sleep(0)
            finally:
                del self._open[key]
            answers = await draw(1 + len(waiting))
        finally:
            _hand_out(answers, waiting)
        return _first(answers)


def _hand_out(
    answers: Sequence[Answered] | Failed, waiting: Sequence[asyncio.Future[Answered | bool]]
) -> None:
    """Give the waiting what came after the first answer, or else whether the request was answered at all.

    Plain futures, so that all of them continue in one turn.
    """
    others = () if isinstance(answers, Failed) else answers[1:]
    answered = not isinstance(answers, Failed) and bool(answers)
    for number, mine in enumerate(waiting):
        if not mine.done():
            mine.set_result(others[number] if number < len(others) else answered)


def _first(answers: Sequence[Answered] | Failed) -> Answered | Failed:
    return answers if isinstance(answers, Failed) else answers[0]

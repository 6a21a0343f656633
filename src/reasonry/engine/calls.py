"""Calls to models: each is a list of layers around one request, in the order of `Calls.layers`.

A layer is `(call, send) -> answers`: it may answer by itself, wait, send more than once, or look at what comes back.
Only transport is tried again here: overload, resets, time-outs, bodies that are no answer. What an answer says is the
machine's business; it re-asks by itself, so that every reply that was paid for is in the journal.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

import msgspec
from msgspec.structs import replace as replaced

from ..core.budget import NOTHING, Refusal, Usage
from ..core.effects import Ask
from ..core.events import Answered, Event, Failed
from ..core.machine import Pending
from ..errors import ModelError, ReasonryError
from ..reading.json_in_text import without_surrogates
from ..reading.repetition import Endless
from .batch import Batch, takes_samples
from .booking import Booking
from .control import Control, Held
from .guard import BudgetExhausted, BudgetGuard
from .observe import Observer
from .policy import Performers, Policy
from .ports import NOT_FAILURES, BrokenReplyError, Model, OnText, Question, provider_of
from .telemetry import span

WARM_PREFIX_CHARS = 4_096
"""Providers cache prompts from about 1,024 tokens on; shorter ones are not worth waiting for."""

MAX_FALLBACKS = 10
"""How often a question is asked in another form because of what the server does not take; it takes no attempt."""

MAX_TRIED_CHARS = 300
"""Of what is recorded of a request that failed."""


def _hear_nothing(piece: str) -> None:
    pass


@dataclass
class Call:
    """A question on its way to a model; what one layer finds out, those after it see."""

    model: Model
    question: Question
    samples: int = 1
    booking: Booking | None = None
    estimate_tokens: int = 0
    spent: Sequence[Usage] = (NOTHING,)
    """What the latest request took, sample by sample; nothing before it is sent."""
    on_text: OnText = _hear_nothing
    """Told of each piece that streams in, of the reply and of what is hidden."""
    on_reply: OnText = _hear_nothing
    """Told of those that are the reply."""


Answers = Sequence[Answered] | Failed
Send = Callable[[Call], Awaitable[Answers]]
Layer = Callable[[Call, Send], Awaitable[Answers]]


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
        self.in_flight: dict[str, int] = {}
        """How many requests went out for effects not answered yet."""
        self.taken: dict[str, Usage] = {}
        """What these requests took, as far as can be seen."""
        self._flights: dict[object, asyncio.Future[Answers]] = {}
        self._warmings: dict[object, asyncio.Event] = {}
        self._batch = Batch()

    @property
    def layers(self) -> tuple[Layer, ...]:
        """What a call goes through, outermost first; after the last one the request is sent."""
        return (
            self._single_flight,
            self._gather_samples,
            self._warm_cache,
            self._retry,
            self._take_slot,
            self._reserve_budget,
            self._reserve_allowance,
            self._wait_for_rate,
            self._write_down,
            self._cut_at_limit,
            self._cut_endless,
            self._trace,
        )

    async def ask(self, pending: Pending, ask: Ask) -> Event:
        """Have a question answered.

        Raises:
            BudgetExhausted: The budget does not cover the call.
            Held: The drive is to halt, and the call has not gone out.
        """
        model = self.performers.of(ask)
        put = replaced(
            ask.spelled_out(reasons=getattr(model, "reasons", False)),
            max_output_tokens=self.policy.output_limit(pending, ask, model),
        )
        question = Question(pending.id, pending.stage, put, timeout_s=self.policy.call_timeout_s)
        send: Send = self._request
        # Put together anew for each call: kept here, it would be a cycle of references that only the garbage
        # collector finds.
        for layer in reversed(self.layers):
            send = _wrap(layer, send)
        answers = await send(Call(model, question))
        return answers if isinstance(answers, Failed) else answers[0]

    # -- the layers, outermost first

    async def _single_flight(self, call: Call, send: Send) -> Answers:
        """Let equal questions that are asked at the same time share one call; the first one has paid for it."""
        key = _equality_key(call)
        flight = self._flights.get(key)
        if flight is not None:
            answers = await asyncio.shield(flight)
            if isinstance(answers, Failed):
                return replaced(answers, usage=NOTHING)
            return [replaced(answer, usage=NOTHING) for answer in answers]
        flight = self._flights[key] = asyncio.get_running_loop().create_future()
        try:
            answers = await send(call)
        except BaseException as error:
            flight.set_exception(error)
            flight.exception()
            raise
        else:
            flight.set_result(answers)
            return answers
        finally:
            del self._flights[key]

    async def _gather_samples(self, call: Call, send: Send) -> Answers:
        """Send samples of one question as one request, if the model takes that."""
        if not takes_samples(call.model):
            return await send(call)
        key = call.model.name, _encode(replaced(call.question.ask, sample=0, about=""))
        event = await self._batch.ask(key, call.model, lambda samples: send(replace(call, samples=samples)))
        assert isinstance(event, Answered | Failed), "a question is answered or fails"
        return event if isinstance(event, Failed) else [event]

    async def _warm_cache(self, call: Call, send: Send) -> Answers:
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

    async def _retry(self, call: Call, send: Send) -> Answers:
        """Try again what may succeed later, after a pause; what is lost for good is a `Failed`."""
        attempt, tried, effect_id = 1, list[str](), call.question.id
        while True:
            try:
                answers = await send(call)
            except ModelError as error:
                degraded = bool(error.details.get("degraded")) and len(tried) < MAX_FALLBACKS
                if not (error.retryable and (degraded or attempt < self.policy.max_attempts)):
                    lost = self._collect(effect_id)
                    return Failed(error.code, error.message, self.at_ms(), lost, tried=tuple(tried))
                pause = self._pause_s(attempt, error.retry_after_s)
                self.observer.retrying(effect_id, error.message, pause)
                await self.gate.wait(asyncio.sleep(pause))
                attempt += not degraded
                tried.append(f"{error.code}: {error.message}"[:MAX_TRIED_CHARS])
            else:
                assert not isinstance(answers, Failed), "what fails for good is decided here"
                first, *others = answers
                first = replaced(first, usage=first.usage + self._collect(effect_id), tried=tuple(tried))
                return [self._as_recorded(answer) for answer in (first, *others)]

    async def _take_slot(self, call: Call, send: Send) -> Answers:
        """Keep to `max_concurrency`."""
        async with self.slots:
            return await send(call)

    async def _reserve_budget(self, call: Call, send: Send) -> Answers:
        """Set an estimate of what the request takes aside, and book what it took."""
        samples = self.guard.fitting(call.question, call.samples) if takes_samples(call.model) else 1
        estimate = await self.guard.reserve(call.question, samples)
        booking = Booking(call.model, call.question, self.performers.prices, self._limits_replies)
        attempt = replace(
            call,
            question=self.guard.with_room(call.question, estimate, samples),
            samples=samples,
            booking=booking,
            estimate_tokens=estimate.tokens,
        )
        try:
            return await send(attempt)
        finally:
            self.guard.forget(call.question.id)
            self.guard.settle(estimate, *attempt.spent)
            self.guard.note_prompt(call.question, attempt.spent[0])

    async def _reserve_allowance(self, call: Call, send: Send) -> Answers:
        """Do the same with what the run's owner may spend in a day.

        Raises:
            BudgetExhausted: It is used up.
        """
        if self.allowance is None:
            return await send(call)
        estimate = await self.allowance.take(call.samples, self.gate.wait)
        if isinstance(estimate, Refusal):
            raise BudgetExhausted(estimate)
        try:
            return await send(call)
        finally:
            self.allowance.forget(id(call))
            self.allowance.settle(estimate, call.spent)

    async def _wait_for_rate(self, call: Call, send: Send) -> Answers:
        """Keep to the provider's rate limits."""

        def pausing(pause_s: float) -> None:
            reason = f"the rate limit of {provider_of(call.model.name)} is reached"
            self.observer.retrying(call.question.id, reason, pause_s)

        limit = self.policy.rates.of(call.model.name)
        if not limit.is_limited:
            return await send(call)
        counted = await self.gate.wait(limit.wait(call.estimate_tokens, pausing))
        answers = await send(call)
        counted.tokens = sum(usage.tokens for usage in call.spent) or call.estimate_tokens
        return answers

    async def _write_down(self, call: Call, send: Send) -> Answers:
        """Note that the request goes out, durably where a limit must survive a crash; note what it took."""
        assert call.booking is not None
        effect_id = call.question.id
        before = self.taken.get(effect_id, NOTHING)
        call.spent = (Usage(),)
        self.in_flight[effect_id] = self.in_flight.get(effect_id, 0) + 1
        self.taken[effect_id] = before + Usage()
        try:
            self.gate.check()
            if self.guard.limits_calls or self.allowance is not None:
                await self.intend(effect_id)
            answers = await send(call)
        except Held:
            call.spent, self.taken[effect_id] = (NOTHING,), before
            self.in_flight[effect_id] -= 1
            raise
        except BaseException as error:
            call.spent = (call.booking.of_failure(error),)
            self.taken[effect_id] = before + call.spent[0]
            raise
        assert not isinstance(answers, Failed), "a failed request is an error up to the retries"
        call.spent = [answer.usage for answer in answers]
        self.taken[effect_id] = before
        return answers

    async def _cut_at_limit(self, call: Call, send: Send) -> Answers:
        """Cut a reply off that comes too late, or with which a limit would be passed.

        Raises:
            BudgetExhausted: The answer was cut off as it streamed in.
            ModelError: The model gave no answer.
        """
        assert call.booking is not None
        passed: Refusal | None = None
        booking, question = call.booking, call.question

        def hear(piece: str) -> None:
            nonlocal passed
            booking.hear(piece)
            if passed is None and self._limits_replies:
                passed = self.guard.watch(question.id, booking.so_far)
                if passed is None and self.allowance is not None:
                    passed = self.allowance.watch(id(call), booking.so_far)
                if passed is not None:
                    in_time.reschedule(asyncio.get_running_loop().time())

        call.on_text = hear
        try:
            async with asyncio.timeout(question.timeout_s) as in_time:
                return await send(call)
        except TimeoutError as error:
            if passed is not None:
                raise BudgetExhausted(passed) from None
            seconds = question.timeout_s or 0
            late = ModelError(
                f"{call.model.name} did not answer within {seconds:g} s",
                code="provider_timeout",
                retryable=True,
            )
            raise BrokenReplyError(late, booking.so_far) from error
        except (ReasonryError, *NOT_FAILURES):
            raise
        except BaseException as error:
            raise ModelError(f"{call.model.name} failed: {type(error).__name__}: {error}") from error
        finally:
            call.on_text = _hear_nothing

    async def _cut_endless(self, call: Call, send: Send) -> Answers:
        """Cut a reply off that repeats itself without end; what came of it is the reply."""
        assert call.booking is not None
        endless, pieces = Endless(), list[str]()

        def hear(piece: str) -> None:
            pieces.append(piece)
            if endless.hear(piece):
                in_time.reschedule(asyncio.get_running_loop().time())

        call.on_reply = hear
        try:
            async with asyncio.timeout(None) as in_time:
                return await send(call)
        except TimeoutError:
            if not endless.is_heard:
                raise
            text, usage = "".join(pieces), call.booking.so_far
            cut = Answered(text, usage=usage, model=call.model.name, truncated=True)
            return call.booking.of_answers([cut], 1)

    async def _trace(self, call: Call, send: Send) -> Answers:
        """Note the request and its answers in a span."""
        with span(call.model.name, call.question, call.samples) as note:
            answers = await send(call)
            if not isinstance(answers, Failed):
                note(answers)
            return answers

    async def _request(self, call: Call) -> Answers:
        """Ask the model; several samples are never streamed."""

        def heard(piece: str) -> None:
            call.on_reply(piece)
            call.on_text(piece)
            self.observer.text(call.question.id, piece)

        assert call.booking is not None
        on_text: OnText | None = heard if self.observer.wants_text else None
        question = replaced(call.question, on_hidden=call.on_text if on_text else None)
        if call.samples > 1 and takes_samples(call.model):
            answers: Sequence[Answered] = await call.model.answer_many(question, call.samples)
        else:
            answers = [await call.model.answer(question, on_text)]
        if not answers:
            raise ModelError(f"{call.model.name} gave no answer at all", retryable=True)
        return call.booking.of_answers(answers, call.samples)

    # -- what the layers share

    @property
    def _limits_replies(self) -> bool:
        """Whether a reply that streams in may pass a limit."""
        return self.guard.limits_replies or self.allowance is not None

    @property
    def cut_off(self) -> Usage:
        """What the requests in flight took, as far as can be seen."""
        return sum(self.taken.values(), NOTHING)

    def _collect(self, effect_id: str) -> Usage:
        """Take an effect as no longer in flight; return what the requests took that brought no answer."""
        self.in_flight.pop(effect_id, None)
        return self.taken.pop(effect_id, NOTHING)

    def _as_recorded(self, answer: Answered) -> Answered:
        name = "" if answer.model == self.performers.model.name else answer.model
        return replaced(answer, text=without_surrogates(answer.text), at_ms=self.at_ms(), model=name)

    def _pause_s(self, attempt: int, retry_after_s: float | None) -> float:
        policy = self.policy
        if retry_after_s is not None:
            return min(max(retry_after_s, 0.0), policy.max_backoff_s)
        return random.uniform(0, min(policy.backoff_s * 2 ** (attempt - 1), policy.max_backoff_s))


def _wrap(layer: Layer, send: Send) -> Send:
    return lambda call: layer(call, send)


def _equality_key(call: Call) -> object:
    """Return what makes two calls equal: model, question, form, sample, and the run inside the run."""
    return (
        call.question.id.rpartition("/")[0],
        call.model.name,
        _encode(replaced(call.question.ask, about="")),
    )


def _encode(ask: Ask) -> bytes:
    return msgspec.json.encode(ask)

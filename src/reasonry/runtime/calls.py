"""Calls to models: attempts with patience, one flight for equal calls, a warm prompt cache before a fan-out.

Only transport is tried again here: overload, resets, time-outs, bodies that are no answer. What an answer says is the
machine's business; it re-asks by itself, so that every reply that was paid for is in the journal.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from msgspec.structs import replace

from ..core.budget import NOTHING, Refusal, Usage
from ..core.effects import Ask
from ..core.events import Answered, Event, Failed
from ..core.machine import Pending
from ..core.parse import without_surrogates
from ..errors import ModelError, ReasonryError
from .batch import Batch, takes_samples
from .booking import Booking
from .guard import BudgetExhausted, BudgetGuard
from .observe import Observer
from .policy import Performers, Policy
from .ports import NOT_FAILURES, BrokenReplyError, Model, OnText, Question, provider_of
from .rate import Sent
from .telemetry import span

WARM_PREFIX_CHARS = 4_096
"""Providers cache prompts from about 1,024 tokens on; shorter ones are not worth waiting for."""

MOST_CONCESSIONS = 10
"""How often a question is asked in another form because of what the server does not take; it takes no attempt."""

MAX_TRIED_CHARS = 300
"""Of what is recorded of a request that failed."""


class Calls:
    """The calls of one drive.

    Args:
        intend: Writes down durably that a call is about to go out.
        at_ms: Reads the run's clock.
    """

    def __init__(
        self,
        who: Performers,
        guard: BudgetGuard,
        policy: Policy,
        observer: Observer,
        intend: Callable[[str], Awaitable[None]],
        at_ms: Callable[[], int],
    ) -> None:
        self.who, self.guard, self.policy, self.observer = who, guard, policy, observer
        self.intend, self.at_ms = intend, at_ms
        self.slots = asyncio.Semaphore(policy.max_concurrency)
        self.in_flight: dict[str, int] = {}
        """How many requests went out for effects not answered yet."""
        self.taken: dict[str, Usage] = {}
        """What these requests took, as far as can be seen."""
        self._flights: dict[object, asyncio.Future[Event]] = {}
        self._warmings: dict[object, asyncio.Event] = {}
        self._batch = Batch()

    async def ask(self, one: Pending, ask: Ask) -> Event:
        """Have a question answered; equal questions asked at the same time share one call.

        Raises:
            BudgetExhausted: The budget does not cover the call.
        """
        model = self.who.of(ask)
        key = _sameness(model, one.id, ask)
        flight = self._flights.get(key)
        if flight is not None:
            event = await asyncio.shield(flight)
            return replace(event, usage=NOTHING) if isinstance(event, Answered | Failed) else event
        flight = self._flights[key] = asyncio.get_running_loop().create_future()
        try:
            event = await self._sampled(model, one, ask)
        except BaseException as error:
            flight.set_exception(error)
            flight.exception()
            raise
        else:
            flight.set_result(event)
            return event
        finally:
            del self._flights[key]

    async def _sampled(self, model: Model, one: Pending, ask: Ask) -> Event:
        """Send samples of one question as one request, if the model takes that; several are never streamed."""

        async def send(samples: int) -> Sequence[Answered] | Failed:
            return await self._when_warm(model, one, ask, samples)

        if takes_samples(model):
            return await self._batch.ask((model.name, _written(replace(ask, sample=0))), model, send)
        answers = await send(1)
        return answers if isinstance(answers, Failed) else answers[0]

    async def _when_warm(
        self, model: Model, one: Pending, ask: Ask, samples: int
    ) -> Sequence[Answered] | Failed:
        """Send the first of a fan-out alone: the others then find their common prefix in the provider's cache."""
        head = f"{ask.system}\n{ask.prompt}"[:WARM_PREFIX_CHARS]
        wanted = self.policy.cache_warmup
        if wanted is None:
            wanted = getattr(model, "caches_prompts", False)
        if not wanted or len(head) < WARM_PREFIX_CHARS:
            return await self._attempts(model, one, ask, samples)
        warming = self._warmings.get((model.name, head))
        if warming is not None:
            await warming.wait()
            return await self._attempts(model, one, ask, samples)
        warming = self._warmings[model.name, head] = asyncio.Event()
        try:
            return await self._attempts(model, one, ask, samples)
        finally:
            warming.set()

    async def _attempts(
        self, model: Model, one: Pending, ask: Ask, samples: int
    ) -> Sequence[Answered] | Failed:
        question = Question(one.id, one.stage, ask, timeout_s=self.policy.call_timeout_s)
        attempt, tried = 1, list[str]()
        while True:
            try:
                async with self.slots:
                    answers = await self._attempt(model, question, samples)
            except ModelError as error:
                conceded = bool(error.details.get("conceded")) and len(tried) < MOST_CONCESSIONS
                if not (error.retryable and (conceded or attempt < self.policy.max_attempts)):
                    lost = self._settled(one.id)
                    return Failed(error.code, error.message, self.at_ms(), lost, tried=tuple(tried))
                pause = self._pause(attempt, error.retry_after_s)
                self.observer.retrying(one.id, error.message, pause)
                await asyncio.sleep(pause)
                attempt += not conceded
                tried.append(f"{error.code}: {error.message}"[:MAX_TRIED_CHARS])
            else:
                first, *others = answers
                usage = first.usage + self._settled(one.id)
                first = replace(first, usage=usage, tried=tuple(tried))
                return [self._kept(one) for one in (first, *others)]

    def _settled(self, effect_id: str) -> Usage:
        """Take an effect as no longer in flight; return what the requests took that brought no answer."""
        self.in_flight.pop(effect_id, None)
        return self.taken.pop(effect_id, NOTHING)

    def _kept(self, answer: Answered) -> Answered:
        name = "" if answer.model == self.who.model.name else answer.model
        return replace(answer, text=without_surrogates(answer.text), at_ms=self.at_ms(), model=name)

    async def _attempt(self, model: Model, question: Question, samples: int) -> Sequence[Answered]:
        samples = self.guard.fitting(question, samples) if takes_samples(model) else 1
        estimate = await self.guard.reserve(question, samples)
        booking = Booking(model, question, self.who.prices, self.guard.limits_replies)
        before = self.taken.get(question.id, NOTHING)
        spent: Sequence[Usage] = (NOTHING,)
        try:
            sent = await self._in_turn(model, question, estimate.tokens)
            spent = (Usage(),)
            self.in_flight[question.id] = self.in_flight.get(question.id, 0) + 1
            self.taken[question.id] = before + Usage()
            if self.guard.limits_calls:
                await self.intend(question.id)
            answers = await self._answers(model, question, samples, booking)
            spent = [one.usage for one in answers]
            sent.tokens = sum(one.tokens for one in spent) or sent.tokens
        except BaseException as error:
            if spent[0].calls:
                spent = (booking.of_failure(error),)
                self.taken[question.id] = before + spent[0]
            raise
        else:
            self.taken[question.id] = before
            return answers
        finally:
            self.guard.forget(question.id)
            self.guard.settle(estimate, *spent)

    async def _in_turn(self, model: Model, question: Question, tokens: int) -> Sent:
        def pausing(pause_s: float) -> None:
            reason = f"the rate limit of {provider_of(model.name)} is reached"
            self.observer.retrying(question.id, reason, pause_s)

        return await self.policy.rates.of(model.name).wait(tokens, pausing)

    async def _answers(
        self, model: Model, question: Question, samples: int, booking: Booking
    ) -> Sequence[Answered]:
        """Ask, in time and within the budget.

        Raises:
            BudgetExhausted: The answer was cut off as it streamed in: with it a limit would have been passed.
            ModelError: No answer is to be had.
        """
        passed: Refusal | None = None

        def hear(piece: str) -> None:
            nonlocal passed
            booking.hear(piece)
            if passed is None and self.guard.limits_replies:
                passed = self.guard.watch(question.id, booking.so_far)
                if passed is not None:
                    in_time.reschedule(asyncio.get_running_loop().time())

        try:
            async with asyncio.timeout(question.timeout_s) as in_time:
                return await self._traced(model, question, samples, booking, hear)
        except TimeoutError as error:
            if passed is not None:
                raise BudgetExhausted(passed) from None
            seconds = question.timeout_s or 0
            late = ModelError(
                f"{model.name} did not answer within {seconds:g} s", code="provider_timeout", retryable=True
            )
            raise BrokenReplyError(late, booking.so_far) from error
        except (ReasonryError, *NOT_FAILURES):
            raise
        except BaseException as error:
            raise ModelError(f"{model.name} failed: {type(error).__name__}: {error}") from error

    async def _traced(
        self, model: Model, question: Question, samples: int, booking: Booking, hear: OnText
    ) -> Sequence[Answered]:
        def heard(piece: str) -> None:
            hear(piece)
            self.observer.text(question.id, piece)

        on_text = heard if self.observer.wants_text else None
        question = replace(question, on_hidden=hear if on_text else None)
        with span(model.name, question, samples) as note:
            if samples > 1 and takes_samples(model):
                answers = await model.answer_many(question, samples)
            else:
                answers = [await model.answer(question, on_text)]
            if not answers:
                raise ModelError(f"{model.name} gave no answer at all", retryable=True)
            answers = booking.of_answers(answers, samples)
            note(answers)
        return answers

    def _pause(self, attempt: int, retry_after_s: float | None) -> float:
        policy = self.policy
        if retry_after_s is not None:
            return min(max(retry_after_s, 0.0), policy.max_backoff_s)
        return random.uniform(0, min(policy.backoff_s * 2 ** (attempt - 1), policy.max_backoff_s))


def _sameness(model: Model, effect_id: str, ask: Ask) -> object:
    """What makes two calls equal: model, question, form of the answer, sample, and the run inside the run."""
    return effect_id.rpartition("/")[0], model.name, _written(ask)


def _written(ask: Ask) -> bytes:
    return msgspec.json.encode(ask)

"""Perform the effects of a run: calls to models, tools and verifiers. If a call fails, return an event for the failure.

A call to a model passes through layers, outermost first: `_share_flight`, `_draw`, `_warm_cache`, `_retry`,
`_send_through` and `_send`. Each layer is a function that takes and returns values. This module retries only failures
of transport: overload, connection resets, time-outs and unusable bodies. The machine (`core.machine`) judges the text
of an answer. If the text is unusable, the machine asks the model again, so that every paid reply is in the journal.
"""

from __future__ import annotations

import asyncio
import functools
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Final, TypeGuard, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..core.budget import Refusal
from ..core.effects import Ask, CallTool, RunStrategy, Verify
from ..core.events import NOTHING, Answered, Event, Failed, ToolReturned, Usage, Verified
from ..core.pending import Pending
from ..core.problem import without_quoted
from ..errors import ModelError, ReasonryError, ToolError
from ..system.masking import SECRETS
from ..text import repeats_itself, without_surrogates
from .budget_guard import Allowance, BudgetExhausted, BudgetGuard, limits_calls
from .observer import Observer
from .policy import Performers, Policy
from .ports import (
    NOT_FAILURES,
    BrokenReplyError,
    Model,
    OnText,
    Question,
    SamplingModel,
    is_rate_limit,
    provider_of,
)
from .prices import Prices
from .rate_limits import MOST_WAIT_S, CountedCall, Gate, GateClosed, gate_of
from .telemetry import facts_of_answers, facts_of_request, labels_of, trace_work
from .usage import Booking

T = TypeVar("T")

WARM_PREFIX_CHARS = 4_096
"""The shortest common prefix, in characters, that is worth caching. Providers cache from about 1,024 tokens on."""

MAX_FALLBACKS = 10
"""How often a request may be resent in another form because the server refuses a feature. Resending is no attempt."""

MAX_TRIED_CHARS = 300
"""The length limit, in characters, of the record of a failed request."""

ENDLESS_CHARS: Final = 6_000
"""A reply counts as endless if its last `ENDLESS_CHARS` characters only repeat a shorter piece."""

LOOK_EVERY: Final = 100
"""How many pieces of a streamed text arrive between two checks for repetition."""

LAST_S = 0.1
"""A wait for a provider ends this many seconds before the run's time limit. A later answer would come too late."""


class Sent(Struct, frozen=True):
    """The result of one request: the answers or the error (`came`), and the usage of each sample (`spent`)."""

    came: Sequence[Answered] | BaseException
    spent: Sequence[Usage]


Drawn = Sequence[Answered | Failed]
"""The answers to one request, which may be fewer than the requested samples. A failed request has only one `Failed`."""


class Halted(Exception):
    """Raised to end an attempt before it sends a request, because the drive halts. The effect stays open."""


class Halt(asyncio.Event):
    """A flag that is set while a drive halts. The flag is checked before each request to a model, tool or verifier."""

    def check(self) -> None:
        """Raise `Halted` if the drive halts."""
        if self.is_set():
            raise Halted

    async def cut_short(self, pause: Awaitable[T]) -> T:
        """Return the result of `pause`, or raise Halted if the drive halts first."""
        waiting = asyncio.ensure_future(pause)
        halting = asyncio.ensure_future(self.wait())
        try:
            await asyncio.wait([waiting, halting], return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                raise Halted
            return waiting.result()
        finally:
            waiting.cancel()
            halting.cancel()
            await asyncio.gather(waiting, halting, return_exceptions=True)


class Calls:
    """Performs the effects of one drive.

    Args:
        intend: Records durably that a call is about to be sent (False), or that a rate limit refused the call (True).
        withdraw: Withdraws the call `recorded`, if any.
        at_ms: Returns the run time in milliseconds.
        allowance: The guard of the daily limit of the run's owner. None means no limit.
        give_way: Releases the run for a later drive if a provider's gate stays closed. If None, the run ends instead.
    """

    def __init__(
        self,
        performers: Performers,
        guard: BudgetGuard,
        policy: Policy,
        observer: Observer,
        intend: Callable[[str, bool], Awaitable[None]],
        withdraw: Callable[[], Awaitable[None]],
        at_ms: Callable[[], int],
        allowance: Allowance | None = None,
        give_way: Callable[[], None] | None = None,
    ) -> None:
        self.performers, self.guard, self.policy, self.observer = performers, guard, policy, observer
        self.halt, self.allowance = Halt(), allowance
        self.keepers = (guard, allowance) if allowance else (guard,)
        self.intend, self.withdraw, self.at_ms, self.give_way = intend, withdraw, at_ms, give_way
        self.recorded: str | None = None
        """The id of the effect whose first call was recorded with the run, until the call goes out or is withdrawn."""
        self.slots = asyncio.Semaphore(policy.max_concurrency)
        self.in_flight: dict[str, Usage] = {}
        """Maps the id of each unanswered effect to the known usage of the requests sent for the effect."""
        self.slowest_s = 0.0
        """How many seconds the slowest finished request took."""
        self._flights: dict[object, asyncio.Future[Answered | Failed]] = {}
        self._warmings: dict[object, asyncio.Event] = {}
        self._batch = Batch()

    async def perform(self, pending: Pending) -> Event:
        """Perform one effect and return its event. Secret keys in the event are masked.

        Raises:
            BudgetExhausted: The budget does not cover the effect, or a streamed reply was cut off at a limit.
            Halted: The drive halts before a request of the effect. The effect stays open.
        """
        self.observer.asked(pending)
        effect = pending.effect
        if isinstance(effect, Ask):
            return SECRETS.mask_data(await self.ask(pending, effect))
        async with self.slots:
            self.halt.check()
            assert not isinstance(effect, RunStrategy), "a strategy inside a run is opened by the machine"
            settle = self._call_tool(effect) if isinstance(effect, CallTool) else self._verify(effect)
            return SECRETS.mask_data(await settle)

    async def ask(self, pending: Pending, ask: Ask) -> Event:
        """Ask a model a question. Return the answer or the failure. Raises the same errors as `perform`."""
        model = self.performers.answering(ask.by)
        put = replace(
            ask.spelled_out(
                reasons=getattr(model, "reasons", False), takes_tools=getattr(model, "takes_tools", False)
            ),
            max_output_tokens=self.policy.output_limit(pending, ask, model),
        )
        question = Question(pending.id, pending.stage, put, timeout_s=self.policy.call_timeout_s)
        came = await self._share_flight(model, question)
        self.in_flight.pop(pending.id, None)
        return came

    # -- the layers, outermost first

    async def _share_flight(self, model: Model, question: Question) -> Answered | Failed:
        """Answer a question. If an equal question is already being answered, share its answer at no cost."""
        # Equal questions have the same model, text, form, sample and inner run.
        inside = question.id.rpartition("/")[0]
        key = inside, model.name, msgspec.json.encode(replace(question.ask, about=""))
        flight = self._flights.get(key)
        if flight is not None:
            return replace(await asyncio.shield(flight), usage=NOTHING)
        flight = self._flights[key] = asyncio.get_running_loop().create_future()
        try:
            came = await self._draw(model, question)
        except BaseException as error:
            flight.set_exception(error)
            flight.exception()
            raise
        else:
            flight.set_result(came)
            return came
        finally:
            del self._flights[key]

    async def _draw(self, model: Model, question: Question) -> Answered | Failed:
        """Return one sample. Samples of the same question share a request if the model supports that."""
        draw = functools.partial(self._warm_cache, model, question)
        if not takes_samples(model):
            return (await draw(1))[0]
        key = model.name, msgspec.json.encode(replace(question.ask, sample=0, about=""))
        return await self._batch.ask(key, model, draw)

    async def _warm_cache(self, model: Model, question: Question, samples: int) -> Drawn:
        """Send the first of several calls alone, so that the provider caches the common prefix for the other calls."""
        key, mine = (model.name, question.prompt[:WARM_PREFIX_CHARS]), asyncio.Event()
        wanted = self.policy.cache_warmup
        if wanted is None:
            wanted = getattr(model, "caches_prompts", False)
        if wanted and len(key[1]) == WARM_PREFIX_CHARS:
            warming = self._warmings.setdefault(key, mine)
            if warming is not mine:
                await warming.wait()
        try:
            return await self._retry(model, question, samples)
        finally:
            mine.set()

    async def _retry(self, model: Model, question: Question, samples: int) -> Drawn:
        """Send a request, and retry it after failures that may be temporary. If no retry succeeds, return `Failed`."""
        attempt, forms, tried, lost = 1, 0, list[str](), NOTHING
        gate, until_s = gate_of(model.name), None
        while True:
            if until_s is None and not gate.is_open:
                seconds = self.guard.ledger.budget.seconds
                left_s = math.inf if seconds is None else seconds - self.at_ms() / 1000
                until_s = time.monotonic() + min(left_s - LAST_S, MOST_WAIT_S)
            try:
                sent = await self._send_through(gate, until_s, model, question, samples)
            except GateClosed:
                continue
            came = sent.came
            if not isinstance(came, BaseException):
                first, *others = came
                first = replace(first, usage=first.usage + lost, tried=tuple(tried))
                return [self._as_recorded(answer) for answer in (first, *others)]
            if not isinstance(came, ModelError):
                try:
                    raise came
                finally:
                    # The error's traceback refers to this frame, which must not refer to the error.
                    del came, sent
            lost += sent.spent[0]
            if came.retryable:
                self.policy.meter.add("retries", code=came.code, **labels_of(model.name))
            is_limited = is_rate_limit(came)
            degraded = bool(came.details.get("degraded")) and forms < MAX_FALLBACKS
            if not (is_limited or (came.retryable and (degraded or attempt < self.policy.max_attempts))):
                return [Failed(came.code, came.message, self.at_ms(), lost, tried=tuple(tried))]
            tried.append(f"{came.code}: {came.message}"[:MAX_TRIED_CHARS])
            if is_limited:
                continue
            pause = self.policy.pause_s(attempt, came.retry_after_s)
            self.observer.retrying(question.id, came.message, pause)
            forms, attempt = forms + degraded, attempt + (not degraded)
            await self.halt.cut_short(asyncio.sleep(pause))

    async def _send_through(
        self, gate: Gate, until_s: float | None, model: Model, question: Question, samples: int
    ) -> Sent:
        """Wait until the gate of the provider lets a request through, and then send the request.

        Args:
            until_s: The time on the monotonic clock when the wait for the gate ends. None while the gate is open.

        Raises:
            BudgetExhausted: The run's budget, or the daily limit of its owner, does not cover the request;
                `rate_limited`: the gate stays closed for longer than the run may wait.
            GateClosed: The gate closed while the request waited for a slot, the budget or a rate limit.
            Halted: The drive halts, or releases its run because the gate stays closed.
        """
        call, came_through = object(), False
        try:
            if until_s is not None:
                reason = f"{provider_of(model.name)} takes no more calls for now"
                await self.withdraw()
                try:
                    pausing = functools.partial(self.observer.retrying, question.id, reason)
                    await self.halt.cut_short(gate.enter(call, until_s, pausing))
                except TimeoutError:
                    if self.give_way is None:
                        refusal = Refusal("rate_limited", f"{reason}; resume the run later")
                        raise BudgetExhausted(refusal) from None
                    self.give_way()
                    raise Halted from None
            sent = await self._send(model, question, samples, functools.partial(gate.check, call))
            if isinstance(sent.came, ModelError) and is_rate_limit(sent.came):
                gate.close(sent.came.retry_after_s, self.policy.longest_pause_s)
                if self._writes_down and not sent.spent[0].calls:
                    await self.intend(question.id, True)
            came_through = not isinstance(sent.came, BaseException)
            return sent
        finally:
            gate.leave(call, came_through=came_through)

    async def _send(
        self, model: Model, question: Question, samples: int, check_gate: Callable[[], None]
    ) -> Sent:
        """Wait for a slot, the budget and the rate limits. Then send the request and record its usage.

        Raises:
            BudgetExhausted: The run's budget, or the daily limit of its owner, does not cover the request.
            Halted: The drive halts.
        """
        spent: Sequence[Usage] = (NOTHING,)
        estimates = list[Usage]()
        async with self.slots:
            check_gate()
            samples = self.guard.fitting(question, samples) if takes_samples(model) else 1
            try:
                for keeper in self.keepers:
                    estimates.append(await keeper.reserve(question, samples, self.halt.cut_short))
                question = self.guard.with_room(question, estimates[0], samples)
                async with AsyncExitStack() as held:
                    counted = await self._wait_for_rate(model, question, estimates[0].tokens, held)
                    check_gate()
                    before = self.in_flight.get(question.id, NOTHING)
                    self.halt.check()
                    if question.id == self.recorded:
                        self.recorded = None
                    elif self._writes_down:
                        await self.intend(question.id, False)
                    self.in_flight[question.id], began = before + Usage(), time.monotonic()
                    sent = await self._request(model, question, samples)
                    self.slowest_s = max(self.slowest_s, time.monotonic() - began)
                spent = sent.spent
            finally:
                for keeper, estimate in zip(self.keepers, estimates, strict=False):
                    keeper.settle(estimate, spent, (id(self), question.id))
        self.in_flight[question.id] = before + spent[0]
        self.guard.note_prompt(question, spent[0])
        counted.tokens = sum(usage.tokens for usage in spent) or counted.tokens
        return sent

    async def _wait_for_rate(
        self, model: Model, question: Question, tokens: int, held: AsyncExitStack
    ) -> CountedCall:
        """Wait until the rate limits allow a call. The call keeps its place in a shared limit until `held` closes."""
        provider, rates, counted = provider_of(model.name), self.policy.rates, CountedCall(0, tokens)
        reason = f"the rate limit of {provider} is reached"
        pausing = functools.partial(self.observer.retrying, question.id, reason)
        limit = rates.of(model.name)
        is_limited = limit.requests is not None or limit.tokens is not None
        if is_limited or rates.shared is not None:
            # A call that may wait must not count in the meantime.
            await self.withdraw()
        if is_limited:
            counted = await self.halt.cut_short(limit.wait(tokens, pausing))
        if rates.shared is not None:
            place = rates.shared(provider, self.policy.call_timeout_s, pausing)
            await self.halt.cut_short(held.enter_async_context(place))
        return counted

    # -- the request

    async def _request(self, model: Model, question: Question, samples: int) -> Sent:
        """Send a request, and determine its usage even if the request fails."""
        budget = self.guard.ledger.budget
        is_limited = (budget.tokens, budget.usd) != (None, None) or self.allowance is not None

        def find_passed(so_far: Usage) -> Refusal | None:
            passed = [keeper.watch((id(self), question.id), so_far) for keeper in self.keepers]
            return next(filter(None, passed), None)

        reply = _StreamedReply(model, question, self.performers.prices, find_passed if is_limited else None)
        try:
            answers = reply.of_answers(await self._listen(model, question, samples, reply), samples)
        except BaseException as error:
            sent = Sent(error, (reply.of_failure(error),))
        else:
            sent = Sent(answers, [answer.usage for answer in answers])
        error = sent.came if isinstance(sent.came, BaseException) else None
        self.policy.meter.note_call(model.name, sum(sent.spent, NOTHING), error)
        return sent

    async def _listen(
        self, model: Model, question: Question, samples: int, reply: _StreamedReply
    ) -> Sequence[Answered]:
        """Ask the model. Cut off a reply that is late, endless or over a limit."""
        try:
            async with reply.in_time:
                return await self._ask_model(model, question, samples, reply)
        except TimeoutError as error:
            if reply.passed is not None:
                raise BudgetExhausted(reply.passed) from None
            if reply.is_endless:
                text = "".join(reply.pieces)
                return [Answered(text, usage=reply.so_far, model=model.name, truncated=True)]
            message = f"{model.name} did not answer within {question.timeout_s or 0:g} s"
            late = ModelError(message, code="provider_timeout", retryable=True)
            raise BrokenReplyError(late, reply.so_far) from error
        except (ReasonryError, *NOT_FAILURES):
            raise
        except BaseException as error:
            raise ModelError(f"{model.name} failed: {type(error).__name__}: {error}") from error

    async def _ask_model(
        self, model: Model, question: Question, samples: int, reply: _StreamedReply
    ) -> Sequence[Answered]:
        """Ask the model in a trace span. A request for several samples is never streamed."""

        def heard(piece: str) -> None:
            reply.hear_text(piece)
            self.observer.text(question.id, piece)

        on_text: OnText | None = heard if self.observer.wants_text else None
        asked = facts_of_request(model.name, question, samples)
        with trace_work(f"chat {asked['gen_ai.request.model']}", "CLIENT", asked) as traced:
            if samples > 1 and takes_samples(model):
                answers: Sequence[Answered] = await model.answer_many(question, samples)
            else:
                put = replace(question, on_hidden=reply.hear if on_text else None)
                answers = [await model.answer(put, on_text)]
            if not answers:
                raise ModelError(f"{model.name} gave no answer at all", retryable=True)
            traced.note(facts_of_answers(answers))
            return answers

    # -- tools and verifiers

    async def _call_tool(self, effect: CallTool) -> Event:
        tools, limit_s = self.performers.tools, self.policy.tool_timeout_s
        try:
            if tools is None:
                raise ToolError(f"there is no tool {effect.tool!r} in this run")
            async with asyncio.timeout(limit_s):
                value = await tools.call(effect.tool, effect.arguments)
            return ToolReturned(value, at_ms=self.at_ms())
        except TimeoutError:
            failure = ToolError(f"{effect.tool} did not return within {limit_s:g} s", code="tool_timeout")
        except ReasonryError as error:
            failure = error
        except NOT_FAILURES:
            raise
        except BaseException as error:
            failure = ToolError(f"{effect.tool} failed: {type(error).__name__}: {error}")
        return Failed(failure.code, failure.message, at_ms=self.at_ms())

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
    def _writes_down(self) -> bool:
        """Whether calls are recorded before they go out, so that a limit survives a crash."""
        return limits_calls(self.guard.ledger.budget) or self.allowance is not None

    @property
    def sent(self) -> dict[str, int]:
        """How many requests were sent for each unanswered effect."""
        return {effect_id: usage.calls for effect_id, usage in self.in_flight.items()}

    def _as_recorded(self, answer: Answered) -> Answered:
        name = "" if answer.model == self.performers.model.name else answer.model
        return replace(answer, text=without_surrogates(answer.text), at_ms=self.at_ms(), model=name)


class _StreamedReply(Booking):
    """Tracks the usage of a streaming reply. Cuts off a reply that is endless or over a limit."""

    def __init__(
        self,
        model: Model,
        question: Question,
        prices: Prices,
        limit_passed: Callable[[Usage], Refusal | None] | None,
    ) -> None:
        super().__init__(model, question, prices, limit_passed is not None)
        self._limit_passed, self.in_time = limit_passed, asyncio.timeout(question.timeout_s)
        self.pieces, self.is_endless = list[str](), False
        self.passed: Refusal | None = None

    def hear(self, piece: str) -> None:
        super().hear(piece)
        if self.passed is None and self._limit_passed is not None:
            self.passed = self._limit_passed(self.so_far)
            if self.passed is not None:
                self._cut()

    def hear_text(self, piece: str) -> None:
        self.pieces.append(piece)
        if len(self.pieces) % LOOK_EVERY == 0 and not self.is_endless:
            self.is_endless = repeats_itself("".join(self.pieces[-ENDLESS_CHARS:]), ENDLESS_CHARS)
            if self.is_endless:
                self._cut()
        self.hear(piece)

    def _cut(self) -> None:
        self.in_time.reschedule(asyncio.get_running_loop().time())


# -- one request for several independent samples of a question, if the model supports such requests


def takes_samples(model: Model) -> TypeGuard[SamplingModel]:
    """Whether a model supports requests for several samples."""
    return bool(getattr(model, "takes_n", False)) and hasattr(model, "answer_many")


class Batch:
    """Merges equal questions into one request if their tasks start in the same turn of the event loop."""

    def __init__(self) -> None:
        self._open: dict[object, list[asyncio.Future[Answered | Failed | bool]]] = {}
        """The waiting callers of each question. A caller gets an answer, or a bool: whether the request succeeded."""

    async def ask(
        self, key: object, model: Model, draw: Callable[[int], Awaitable[Drawn]]
    ) -> Answered | Failed:
        """Return one sample. Questions with equal keys differ only in their `sample`.

        The first caller sends a request for all callers of the same turn. If there are too few answers, the remaining
        callers share the next request. If that is impossible or the request failed, each remaining caller asks alone.
        """
        while (waiting := self._open.get(key)) is not None:
            mine = asyncio.get_running_loop().create_future()
            waiting.append(mine)
            answer = await mine
            if isinstance(answer, Answered):
                return answer
            if not (answer and takes_samples(model)):
                return (await draw(1))[0]
        waiting = self._open[key] = []
        answers: Drawn = list[Answered | Failed]()
        try:
            try:
                await asyncio.sleep(0)
            finally:
                del self._open[key]
            answers = await draw(1 + len(waiting))
        finally:
            answered = bool(answers) and isinstance(answers[0], Answered)
            for number, mine in enumerate(waiting, 1):
                if not mine.done():
                    mine.set_result(answers[number] if number < len(answers) else answered)
        if waiting:
            # All callers continue in the next turn, so that the answers of one request are written down together.
            await asyncio.sleep(0)
        return answers[0]

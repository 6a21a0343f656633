"""Models behind an OpenAI-compatible endpoint, over aiohttp."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from ..core.events import Answered
from ..engine.ports import BrokenReplyError, OnText, Question
from ..errors import ModelError, UsageError
from ..system.masking import SECRETS
from .http_session import (
    MAX_STREAM_BYTES,
    EventLines,
    HttpSession,
    booked_whole,
    in_time,
    nesting_header,
    reply_limit,
    too_long,
)
from .known import price_list
from .openai_wire import (
    Dialect,
    Gathered,
    asked_again_without,
    error_in,
    refusal_of_request,
    request_body,
)

if TYPE_CHECKING:
    from aiohttp import ClientResponse

MAX_ERROR_BYTES = 65_536

OPENAI = (".openai.com", ".openai.azure.com")
CACHING = (*OPENAI, ".deepseek.com")
"""Servers that cache prompt prefixes by default."""


class OpenAICompatibleModel:
    """A model behind `URL/chat/completions`.

    If the server refuses a parameter (a JSON schema, `max_tokens`, `temperature`, `n`), later requests omit or
    change it. The refused call fails with `degraded` and can be retried at once, so the engine counts every request.

    Args:
        url: Base URL, including `/v1`.
        model: The server's name for the model.
        api_key: The bearer token, if any.
        name: The value of `--model`.
        seller: The seller in the price list, if the URL does not identify it.
        takes_n: Whether one request may ask for several samples.
        takes_schema: Whether the server is asked to enforce the JSON schema of a reply, and not only valid JSON.

    Raises:
        UsageError: The URL or the key cannot be used.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        api_key: str | None = None,
        name: str | None = None,
        seller: str | None = None,
        takes_n: bool = True,
        takes_schema: bool = True,
    ) -> None:
        self.url = checked_url(url)
        self.model = model
        self.name = name or f"openai-compatible:{self.url}#{model}"
        self.reasons = False
        self.takes_tools = True
        SECRETS.keep(api_key)
        if api_key and not re.fullmatch(r"[\x21-\x7e]+", api_key):
            raise UsageError(
                "the API key has characters that no key has; set it again, without spaces or line ends"
            )
        self._headers = {"Content-Type": "application/json"}
        self._headers |= {"Authorization": f"Bearer {api_key}"} if api_key else {}
        host = f".{urlsplit(self.url).hostname}"
        self.caches_prompts = host.endswith(CACHING)
        self._dialect = Dialect(
            limit_name="max_completion_tokens" if host.endswith(OPENAI) else "max_tokens",
            samples=takes_n,
            format="json_schema" if takes_schema else "json_object",
        )
        self.price = price_list(self.url, model, seller)
        self._http = HttpSession(self.url)

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        """See `Model.answer`. The reply is streamed if `on_text` is given."""
        return (await in_time(self._ask(question, on_text, 1), question, self.name, self.price))[0]

    @property
    def takes_n(self) -> bool:
        """See `SamplingModel`."""
        return self._dialect.samples

    async def answer_many(self, question: Question, samples: int) -> list[Answered]:
        """See `SamplingModel.answer_many`. Replies are never streamed."""
        return await in_time(self._ask(question, None, samples), question, self.name, self.price)

    async def _ask(self, question: Question, on_text: OnText | None, samples: int) -> list[Answered]:
        stream = on_text is not None
        body = request_body(self.model, question.ask, question.stage, self._dialect, stream, samples)
        samples = body.get("n", 1)
        limit = reply_limit(question.ask, samples)
        gathered = Gathered(samples, on_text, question.on_hidden)
        try:
            address, headers = f"{self.url}/chat/completions", {**self._headers, **nesting_header()}
            async with await self._http.post(address, headers, msgspec.json.encode(body)) as response:
                if response.status != 200:
                    raise await self._refusal(response, body)
                if response.content_type == "text/event-stream":
                    await self._listen(response, gathered, limit)
                else:
                    gathered.take(await self._document(response, gathered, limit), self.name)
            answers = gathered.to_answers(self.name, body, self.price, question.prompt)
        except ModelError as error:
            if error.code == "reply_too_long":
                raise booked_whole(error, question, self.price, samples) from None
            if not (gathered.choices or gathered.unread or gathered.stated is not None):
                raise
            # A reply costs tokens even if it is not an answer.
            raise BrokenReplyError(error, gathered.usage(question.prompt, self.price)) from error
        if len(gathered.choices) < gathered.wanted:
            self._dialect.samples = False
        return answers

    async def _document(self, response: ClientResponse, gathered: Gathered, limit: int) -> bytes:
        await self._http.read(response, gathered.unread.append, limit)
        raw, gathered.unread = b"".join(gathered.unread), []
        if raw.lstrip()[:1] == b"<":
            message = (
                f"{self.name} answered with a web page, not JSON; check the URL (it usually ends in /v1)"
            )
            raise ModelError(message, retryable=True)
        return raw

    async def _listen(self, response: ClientResponse, gathered: Gathered, limit: int) -> None:
        lines = EventLines()

        def take(piece: bytes) -> None:
            for data in lines.data(piece):
                if data == b"[DONE]":
                    for choice in gathered.choices.values():
                        choice.finish = choice.finish or "stop"
                else:
                    gathered.take(data, self.name)
            if max(gathered.text_bytes, lines.held_bytes) > limit:
                raise too_long(self.name, limit)

        await self._http.read(response, take, MAX_STREAM_BYTES)
        if any(choice.finish is None for choice in gathered.choices.values()) or not gathered.choices:
            raise ModelError(f"{self.name} broke off in the middle of its reply", retryable=True)

    async def _refusal(self, response: ClientResponse, body: dict[str, Any]) -> ModelError:
        pieces, headers = list[bytes](), response.headers
        await self._http.read(response, pieces.append)
        raw = b"".join(pieces)[:MAX_ERROR_BYTES]
        message, code, _ = error_in(raw)
        complaint = f"{message} {code} {raw[:2000].decode('utf-8', 'replace')}".lower()
        # Some servers report a missing model or an internal error although they merely do not accept tools.
        refusals = (400, 415, 422, 501, *((404, 500) if "tools" in body and "tool" in complaint else ()))
        if response.status in refusals and self._dialect.degrade(body, complaint):
            return asked_again_without(self.name, status=response.status)
        error = refusal_of_request(response.status, headers, raw, self.name)
        if error.code == "context_overflow":
            # The prompt was too long. Shorter prompts leave room for longer replies.
            self._dialect.limit_most = Dialect().limit_most
        # A gateway sets this header if its servers have already tried again.
        error.retryable = error.retryable and headers.get("x-should-retry") != "false"
        return error

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


def checked_url(url: str) -> str:
    """Return a base URL without slashes at its end.

    Raises:
        UsageError: The URL is not `http` or `https`, or contains a password or key.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
        parts = urlsplit("")
    if not usable or not url.isascii() or re.search(r"[\x00-\x20\x7f]", url):
        raise UsageError("the model's URL must be like http://127.0.0.1:8000/v1", option="model")
    if parts.username is not None or parts.query or parts.fragment:
        raise UsageError(
            "the model's URL must hold no user, password, key or query; keys go into REASONRY_API_KEY",
            option="model",
        )
    return url.rstrip("/")

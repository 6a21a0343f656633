"""The OpenAI chat completion protocol as data: the requests to send, and the replies to read.

Servers differ in the parameters they accept. A refused parameter is noted in the server's `Dialect` and not sent again.
"""

import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..core.effects import Ask
from ..core.events import Answered, Usage
from ..engine.ports import OnText
from ..engine.prices import PriceOf
from ..engine.rate_limits import UNCLEAR_WAIT_S
from ..engine.usage import Stated, meter
from ..errors import ModelError
from ..reading.json_in_text import is_whole
from ..system.masking import SECRETS, Secrets, mask_keylike
from ..text import UNSEEN, shorten, without_surrogates

MOST_SAMPLES = 128
"""The largest value of `n`, the number of samples in one request."""

Format = Literal["json_schema", "json_object", "none"]

_REFUSED = ("content_filter", "sensitive")
_CUT_OFF = ("length", "model_context_window_exceeded")
_BROKEN = ("network_error",)
"""Finish reasons of refused, cut-off and broken replies, from OpenAI and Z.AI."""

_USED_UP = ("insufficient_quota", "billing_hard_limit_reached", "1113")
"""Error codes for an account without money, from OpenAI and Z.AI."""

LEAST_LIMIT = 512
"""A refused token limit of this size or less is not lowered further, because the prompt leaves no room for a reply."""

LIMIT_TOO_HIGH = re.compile(
    r"(?=.*(?:max_(?:completion_|new_)?tokens|in the completion|(?:completion|output) tokens))"
    r".*(?:too (?:large|high|big|long)|at most|maximum|less than|valid range|exceed|must be <=)",
    re.DOTALL | re.IGNORECASE,
)
"""Matches complaints that the reply's token limit, alone or together with the prompt, exceeds the model's context."""

PROMPT_TOO_LONG = re.compile(
    r"context.{0,12}(?:length|size|window)|exceed_context"
    r"|too many (?:input |prompt )?tokens|(?:prompt|input) is too long",
    re.IGNORECASE,
)

_ABOUT_SAMPLES = re.compile(
    r"(?<![\\\w])n(?![\w])|(multiple|only one|single) (\w+ )?(choice|completion|candidate|sample)"
)
_ABOUT_FORM = ("response_format", "responseformat", "json_object", "jsonobject", "structured", "schema")
_ABOUT_TOOLS = re.compile(r"\btool|function")
_ABOUT_LIMIT = re.compile("max_(?:completion_)?tokens")
LimitName = Literal["max_tokens", "max_completion_tokens"]
_OTHER_NAME: Final[dict[LimitName, LimitName]] = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
}


class Dialect(Struct):
    """The parameters that a server accepts, as far as known. A refusal by the server changes the dialect."""

    format: Format = "json_schema"
    limit_name: LimitName = "max_tokens"
    limit_swapped: bool = False
    limit_most: int = 1_000_000
    temperature: bool = True
    stream_options: bool = True
    samples: bool = True
    """Whether the server accepts `n`."""
    tools: bool = True

    def degrade(self, sent: dict[str, Any], complaint: str) -> bool:
        """Note which parameter the server refused. Return whether to ask again.

        Args:
            sent: The body of the refused request. Other refusals may have changed the dialect since then.
            complaint: The server's message in lower case.
        """
        for name, about, taken in (("tools", _ABOUT_TOOLS, "tools"), ("n", _ABOUT_SAMPLES, "samples")):
            if name in sent and about.search(complaint):
                setattr(self, taken, False)
                return True
        tried = sent.get("response_format", {}).get("type", "none")
        if tried != "none" and any(word in complaint for word in _ABOUT_FORM):
            if self.format == tried:
                self.format = "json_object" if tried == "json_schema" else "none"
            return True
        if (limit := sent.get(self.limit_name, 0)) > LEAST_LIMIT and LIMIT_TOO_HIGH.search(complaint):
            self.limit_most = min(self.limit_most, limit // 2)
            return True
        limit_name = next(filter(sent.__contains__, _OTHER_NAME), None)
        has_other = limit_name != self.limit_name or not self.limit_swapped
        if limit_name and has_other and _ABOUT_LIMIT.search(complaint):
            self.limit_name, self.limit_swapped = _OTHER_NAME[limit_name], True
            return True
        for name in ("temperature", "stream_options"):
            if name in sent and name in complaint:
                setattr(self, name, False)
                return True
        return False


def request_body(
    model: str, ask: Ask, stage: str, dialect: Dialect, stream: bool, samples: int = 1
) -> dict[str, Any]:
    """Build the body of a request, with the question's tools if the server accepts tools."""
    ask = with_tools(ask, dialect)
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": role, "content": without_surrogates(text)} for role, text in ask.messages],
    }
    if ask.tools:
        body["tools"] = [{"type": "function", "function": tool} for tool in ask.tools]
    if ask.temperature is not None and dialect.temperature:
        body["temperature"] = ask.temperature
    if ask.max_output_tokens is not None:
        body[dialect.limit_name] = min(ask.max_output_tokens, dialect.limit_most)
    if ask.form is not None and dialect.format == "json_schema":
        body["response_format"] = {"type": "json_schema", "json_schema": _form(ask.form, stage)}
    elif ask.form is not None and dialect.format == "json_object":
        body["response_format"] = {"type": "json_object"}
    if samples > 1 and dialect.samples:
        body["n"] = min(samples, MOST_SAMPLES)
    if stream:
        body["stream"] = True
        if dialect.stream_options:
            body["stream_options"] = {"include_usage": True}
    return body


def with_tools(ask: Ask, dialect: Dialect) -> Ask:
    """Pass a question's tools as request parameters if the server accepts them, or else describe them in the prompt.

    Each tool gets a name that providers accept. `card_named` finds the tool again by this name.
    """
    tools = tuple(tool | {"name": form_name(tool["name"])} for tool in ask.tools) if dialect.tools else ()
    return replace(ask, tools=tools, by_hand="" if tools else ask.by_hand)


def with_calls(text: str, calls: Iterable[tuple[str, Any]]) -> str:
    """Append the tool calls of a reply to the text of the reply.

    A strategy then reads the calls as if the model had written them in the text.
    """
    listed = [{"name": name, "arguments": arguments} for name, arguments in calls]
    encoded = msgspec.json.encode({"tool_calls": listed}).decode() if listed else ""
    return "\n".join(filter(str.strip, (text, encoded)))


def _form(form: dict[str, Any], stage: str) -> dict[str, Any]:
    name = form_name(stage)
    try:
        return {"name": name, "schema": _strict_schema(form), "strict": True}
    except ValueError:
        return {"name": name, "schema": form, "strict": False}


def form_name(stage: str) -> str:
    """Convert the name of a stage or of a tool to a name that providers accept."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", stage)[:64] or "reply"


def _strict_schema(node: Any) -> Any:
    """Convert a schema to strict mode, or raise ValueError if strict mode cannot express the schema."""
    if isinstance(node, list):
        return [_strict_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = ("enum", "const", "default", "examples")
    closed = {key: value if key in kept else _strict_schema(value) for key, value in node.items()}
    if node.get("type") != "object":
        return closed
    properties = node.get("properties")
    is_whole = properties and set(node.get("required", ())) == set(properties)
    if not is_whole or node.get("additionalProperties"):
        raise ValueError
    return closed | {"additionalProperties": False}


class _Choice(Struct):
    index: Any = None
    message: dict[str, Any] | None = None
    delta: dict[str, Any] | None = None
    finish_reason: Any = None


class _Reply(Struct):
    choices: list[_Choice] = []
    usage: Any = None
    error: Any = None


_decoder = msgspec.json.Decoder(_Reply)


class ReplyChoice(Struct):
    """One `choice` of a reply, assembled piece by piece. A reply has a `choice` for each requested sample."""

    pieces: list[str] = []
    refusals: list[str] = []
    finish: str | None = None
    calls: dict[int, list[str]] = {}
    """The tool calls by position. Each call is a list: the name, then the pieces of the arguments."""

    def add(self, message: dict[str, Any], finish: Any) -> str:
        """Add a piece of the choice, and return the text of the piece."""
        text = _text(message.get("content"))
        self.pieces.append(text)
        self.refusals.append(_text(message.get("refusal")))
        self.finish = finish if isinstance(finish, str) else self.finish
        calls: Any = message.get("tool_calls")
        for place, call in enumerate(calls if isinstance(calls, list) else []):
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                place = call["index"] if isinstance(call.get("index"), int) else place
                known = self.calls.setdefault(place, [""])
                known[0] += _text(function.get("name"))
                known.append(_text(function.get("arguments")))
        return text

    def to_answer(self, name: str, sent: dict[str, Any]) -> Answered:
        """Return the choice as an answer.

        Raises:
            ModelError: The choice is empty and has no finish reason, or the provider broke off the reply.
        """
        text, refusal = "".join(self.pieces), "".join(self.refusals)
        calls = ((name, "".join(parts)) for name, *parts in self.calls.values())
        text = with_calls(text, calls) if self.calls else text
        if self.finish is None and not text and not refusal:
            raise _no_choice(name)
        if self.finish in _BROKEN:
            raise ModelError(f"{name} broke off in the middle of its reply", retryable=True)
        refused = bool(refusal) or self.finish in _REFUSED
        held = sent.get("response_format", {}).get("type") == "json_schema"
        return Answered(
            text or refusal,
            model=name,
            native=held and not refused and is_whole(text),
            truncated=self.finish in _CUT_OFF,
            refused=refused,
        )


class Gathered:
    """A reply being assembled, either from one body or from the chunks of a stream.

    Args:
        wanted: How many choices were requested.
        on_text: Called with each piece of text of the first choice.
        on_hidden: Called with text outside the answer: reasoning, and choices that were not requested.
    """

    def __init__(
        self, wanted: int = 1, on_text: OnText | None = None, on_hidden: OnText | None = None
    ) -> None:
        self.wanted = wanted
        self.choices: defaultdict[int, ReplyChoice] = defaultdict(ReplyChoice)
        self.stated: Any = None
        self.reasoning: list[str] = []
        self.unread: list[bytes] = []
        """Parts of a body that are not decoded yet or cannot be decoded."""
        self._on_text, self._on_hidden = on_text, on_hidden
        self.text_bytes = 0
        """Bytes of the choices and the reasoning so far."""

    def take(self, raw: bytes, shown: str) -> None:
        """Add a complete reply, or a chunk of a streamed reply.

        Raises:
            ModelError: The data is not a chat completion, or is an error document.
        """
        try:
            reply = _decoder.decode(raw)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            self.unread.append(raw)
            raise ModelError(f"{shown} sent a reply that is not a chat completion", retryable=True) from None
        if reply.error:
            raise refusal_of_request(200, {}, raw, shown)
        self.stated = reply.usage or self.stated
        for place, choice in enumerate(reply.choices):
            if choice.delta is not None and type(choice.index) is int:
                place = choice.index
            message = choice.message or choice.delta or {}
            text = self.choices[place].add(message, choice.finish_reason)
            hidden = _text(message.get("reasoning_content")) or _text(message.get("reasoning"))
            self.reasoning.append(hidden)
            self.text_bytes += len(text.encode("utf-8", "surrogatepass")) + len(hidden)
            hidden += text if place >= self.wanted else ""
            if self._on_text is not None and text and place == 0:
                self._on_text(text)
            if self._on_hidden is not None and hidden:
                self._on_hidden(hidden)

    def usage(self, prompt: str, price: PriceOf) -> Usage:
        """Return the usage of the reply so far; see `engine.usage`."""
        stated = self.stated if isinstance(self.stated, dict) else {}
        details = stated.get("prompt_tokens_details")
        figures = Stated(
            stated.get("prompt_tokens"),
            stated.get("completion_tokens"),
            details.get("cached_tokens") if isinstance(details, dict) else None,
            stated.get("cost"),
        )
        unread = b"".join(self.unread).decode("utf-8", "replace")
        replies = [unread, *("".join(choice.pieces + choice.refusals) for choice in self.choices.values())]
        return meter(figures, prompt, replies, reasoning="".join(self.reasoning), price=price)

    def to_answers(self, name: str, sent: dict[str, Any], price: PriceOf, prompt: str) -> list[Answered]:
        """Convert the requested choices to answers. Leave out choices that cannot be converted.

        Raises:
            ModelError: No choice is an answer.
        """
        answers, fault = list[Answered](), _no_choice(name)
        for place in [place for place in range(self.wanted) if place in self.choices]:
            try:
                answers.append(self.choices[place].to_answer(name, sent))
            except ModelError as error:
                fault = error
        if not answers:
            raise fault
        shares = share_out(self.usage(prompt, price), len(answers))
        return [replace(answer, usage=share) for answer, share in zip(answers, shares, strict=True)]


def _no_choice(shown: str) -> ModelError:
    return ModelError(f"{shown} sent a reply without a choice in it", retryable=True)


def share_out(whole: Usage, samples: int) -> list[Usage]:
    """Split the usage of a request among its samples, because a provider reports only the total.

    The first sample gets the prompt's tokens. Every sample gets a share of the output tokens.
    """
    each = whole.output_tokens // samples
    usd = whole.usd * each / whole.tokens if whole.usd is not None and whole.tokens else None
    other = Usage(calls=0, output_tokens=each, usd=usd)
    first = replace(
        whole,
        output_tokens=whole.output_tokens - each * (samples - 1),
        usd=None if whole.usd is None else whole.usd - (usd or 0) * (samples - 1),
    )
    return [first, *[other] * (samples - 1)]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def refusal_of_request(status: int, headers: Mapping[str, str], raw: bytes, shown: str) -> ModelError:
    """Return the error that explains a refused request."""
    message, code, stated = error_in(raw)
    status = stated or status
    detail = f": {redact(message)}" if message else ""
    kind, retryable = "provider_error", status >= 500 or status in (200, 409, 425)
    match status:
        case 401 | 403:
            kind = "provider_auth"
            text = f" refused the API key ({status}){detail}; check the key in the environment"
        case 429:
            kind, retryable = "rate_limited", code not in _USED_UP
            text = f": {'too many requests' if retryable else 'the quota is used up'} (429){detail}"
        case 408 | 504:
            kind, retryable = "provider_timeout", True
            text = f" took too long itself ({status}){detail}"
        case 404:
            text = f" has no such model or address (404){detail}; check the model's name and the URL"
        case _ if 300 <= status < 400:
            text = f" answered with a redirect ({status}), which is not followed; set the URL it should be"
        case 400 | 413 | 422 | 500 if PROMPT_TOO_LONG.search(f"{code} {message}"):
            advice = "take a model with more room, or give a shorter problem"
            return ModelError(
                f"the question is too long for {shown}{detail}; {advice}", code="context_overflow"
            )
        case _:
            text = f" {'failed' if retryable else 'refused the request'} ({status}){detail}"
    wait = retry_after(headers) if retryable else None
    return ModelError(f"{shown}{text}", code=kind, retryable=retryable, retry_after_s=wait, status=status)


def asked_again_without(shown: str, **details: Any) -> ModelError:
    """Return the retryable error for a request that was refused because of a parameter."""
    message = f"{shown} refused part of the request, which is now left out"
    return ModelError(message, retryable=True, retry_after_s=0.0, degraded=True, **details)


def error_in(raw: bytes) -> tuple[str, str, int | None]:
    """Return the message and the code of an error document, in any of the usual forms.

    The third part is the HTTP status inside the document, if any: gateways send a provider's errors with status 200.
    """
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return "", "", None
    document = document[0] if isinstance(document, list) and document else document
    error = document.get("error", document) if isinstance(document, dict) else document
    if not isinstance(error, dict):
        return error if isinstance(error, str) else "", "", None
    stated: Any = error.get("code") or error.get("status") if error is not document else None
    status = int(stated) if re.fullmatch("[45][0-9][0-9]", str(stated)) else None
    message = error.get("message") or error.get("detail") or ""
    return str(message), str(error.get("code") or error.get("type") or ""), status


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds the server asks to wait, or None if it does not ask.

    Args:
        headers: Headers with lower-case or case-insensitive names. An unreadable wait counts as `UNCLEAR_WAIT_S`.
    """
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    if re.fullmatch(r"\d{1,12}(\.\d{1,6})?", text):
        return float(text)
    try:
        instant = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return UNCLEAR_WAIT_S
    return max(0.0, instant - time.time())


# -- messages from servers, made safe to show

MAX_SHOWN = 300


def redact(text: str, secrets: Secrets = SECRETS) -> str:
    """Make a message from a server safe to show: one short line without keys and control characters.

    Known keys, and words that look like keys, become `***`.
    """
    text = mask_keylike(secrets.mask(text, error=True)[: MAX_SHOWN * 20])
    return shorten(re.sub(f"[{UNSEEN}]+", " ", text), MAX_SHOWN, one_line=True)

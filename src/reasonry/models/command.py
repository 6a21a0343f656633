"""A program as a model: the command line of an agent, such as `claude -p` or `codex exec`, or any other program.

Each question starts one process, which reads the question from standard input and writes the reply to standard output,
as text or as JSON with the text in `result`, `response` or `text`. The process runs in an empty folder, with the few
environment variables that a login needs and without API keys. If the program reports no usage, the usage is estimated.
"""

import json
import tempfile
from collections.abc import Mapping
from typing import Any

from ..core.events import Answered
from ..engine.ports import BrokenReplyError, Model, OnText, Question
from ..engine.prices import PriceOf, no_price
from ..engine.usage import Stated, meter
from ..errors import ModelError
from ..system.processes import Output, bare_environment, run_child, split_command
from .http_session import DEFAULT_TIMEOUT_S

MAX_REPLY_BYTES = 4 * 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024

_TEXTS = ("result", "response", "text")
_AROUND = ("type", "session_id", "stats", "usage")
"""JSON members that show that the output is an agent's own document, and not a reply in JSON."""
_BUSY = ("rate limit", "rate_limit", "429", "overloaded", "usage limit")


class CommandModel(Model):
    """A model that is a program, started once for each question.

    Args:
        text: The command in shell syntax. No shell runs it.

    Raises:
        UsageError: The program does not exist.
    """

    price: PriceOf = staticmethod(no_price)

    def __init__(self, text: str, environ: Mapping[str, str]) -> None:
        self.name = f"command:{text}"
        self.words, self.environ = split_command(text), bare_environment(environ)

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        """Run the program once. If the call is cancelled, the program and all its child processes are ended.

        Raises:
            ModelError: The program cannot be started, fails, or exceeds the time limit.
            BrokenReplyError: The output is empty or too long.
        """
        asked, reply, printed = question.ask.text, Output(MAX_REPLY_BYTES), Output(MAX_ERROR_BYTES)
        limit_s = question.timeout_s or DEFAULT_TIMEOUT_S
        with tempfile.TemporaryDirectory(prefix="reasonry-", ignore_cleanup_errors=True) as folder:
            try:
                ended = await run_child(
                    self.words, asked.encode(), limit_s, reply, printed, env=self.environ, cwd=folder
                )
            except OSError as error:
                raise ModelError(f"{self.words[0]} cannot be started: {error.strerror}") from None
        if ended.overran:
            message = f"the program did not reply within {limit_s:g} s"
            raise ModelError(message, code="provider_timeout", retryable=True)
        text, stated, failed = _read(reply.text())
        usage = meter(stated, asked, [text])
        # If the output is too long, the program may have failed only because of this limit.
        if (ended.code or failed) and not reply.truncated:
            message = (printed.text().strip() or text.strip() or "nothing").splitlines()[-1][:300]
            busy = any(sign in message.lower() for sign in _BUSY)
            code = "rate_limited" if busy else "provider_error"
            raise ModelError(f"the program ended with {ended.code}: {message}", code=code, retryable=busy)
        if reply.truncated or not text.strip():
            why = f"is longer than {MAX_REPLY_BYTES:,} bytes" if reply.truncated else "is empty"
            error = ModelError(f"the program's reply {why}", retryable=not reply.truncated)
            raise BrokenReplyError(error, usage)
        if on_text is not None:
            on_text(text)
        return Answered(text, usage=usage, model=self.name)


def _read(printed: str) -> tuple[str, Stated, bool]:
    """Parse a program's output into the reply, its usage, and whether the program reports a failure."""
    try:
        document: Any = json.loads(printed)
    except (ValueError, RecursionError):
        return printed.strip(), Stated(), False
    is_wrapped = isinstance(document, dict) and any(name in document for name in _AROUND)
    texts = [document[name] for name in _TEXTS if name in document] if is_wrapped else []
    if not texts or not isinstance(texts[0], str):
        return printed.strip(), Stated(), False
    usage = document.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    read, cached = usage.get("input_tokens"), usage.get("cache_read_input_tokens")
    if isinstance(read, int) and isinstance(cached, int):
        read += cached
    stated = Stated(read, usage.get("output_tokens"), cached, document.get("total_cost_usd"))
    return texts[0].strip(), stated, document.get("is_error") is True

"""What a loopback model server counts: tokens, a prefix cache, and who asked what when."""

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

_TOKEN = re.compile(r"\w+|[^\w\s]")


def count_tokens(text: str) -> int:
    """Return the number of words and punctuation marks: near a tokenizer, and the same everywhere."""
    return sum(1 for _ in _TOKEN.finditer(text))


def first_tokens(text: str, count: int) -> str:
    """Return the head of a text, `count` tokens long."""
    for seen, token in enumerate(_TOKEN.finditer(text), start=1):
        if seen == count:
            return text[: token.end()]
    return text


class PrefixCache:
    """A provider's prompt cache: a prefix counts as cached once a request that began with it was answered.

    Prefixes are looked at in whole blocks, and prompts shorter than `min_tokens` not at all.
    """

    def __init__(self, min_tokens: int, block_tokens: int) -> None:
        self._min, self._block = min_tokens, block_tokens
        self._known: set[bytes] = set()

    def look_up(self, prompt: str) -> tuple[int, list[bytes]]:
        """Return how many tokens are cached, and the keys to `keep` once the request is answered."""
        tokens = _TOKEN.findall(prompt) if self._min else []
        if not tokens or len(tokens) < self._min:
            return 0, []
        digest, keys, hit = hashlib.blake2b(digest_size=12), list[bytes](), 0
        for end in range(self._block, len(tokens) + 1, self._block):
            digest.update("\0".join(tokens[end - self._block : end]).encode("utf-8", "replace"))
            keys.append(digest.digest())
            if hit == end - self._block and keys[-1] in self._known:
                hit = end
        return (hit if hit >= self._min else 0), keys

    def keep(self, keys: list[bytes]) -> None:
        """Remember the prefixes of an answered request."""
        self._known.update(keys)


@dataclass(slots=True)
class Call:
    """One request for a completion, as it is booked. Instants are loop time."""

    number: int
    began_s: float
    ended_s: float = 0.0
    samples: int = 1
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    fault: str | None = None
    outcome: str = "open"
    """`open`, then `answered`, `failed`, or `abandoned` by the client."""


@dataclass(slots=True)
class Ledger:
    """All calls since the last reset."""

    calls: list[Call] = field(default_factory=list[Call])
    inflight: int = 0
    max_inflight: int = 0

    def open(self, now_s: float) -> Call:
        """Book the arrival of a request."""
        call = Call(len(self.calls) + 1, now_s)
        self.calls.append(call)
        self.inflight += 1
        self.max_inflight = max(self.max_inflight, self.inflight)
        return call

    def settle(self, call: Call, outcome: str, now_s: float) -> None:
        """Book how it ends, before the client can know."""
        call.outcome, call.ended_s = outcome, now_s
        self.inflight -= 1

    def close(self, call: Call, now_s: float) -> None:
        """Book a call that ends without having been settled: its client has gone."""
        if call.outcome == "open":
            self.settle(call, "abandoned", now_s)

    def stats(self) -> dict[str, Any]:
        """Return the figures as JSON data.

        `rounds` is the longest chain of answered requests of which each began after the one before had ended.
        """
        calls = list(self.calls)
        answered = [call for call in calls if call.outcome == "answered"]
        return {
            "requests": len(calls),
            "answered": len(answered),
            "failed": sum(call.outcome == "failed" for call in calls),
            "abandoned": sum(call.outcome == "abandoned" for call in calls),
            "faults": dict(Counter(call.fault for call in calls if call.fault)),
            "samples": sum(call.samples for call in answered),
            "inflight": self.inflight,
            "max_inflight": self.max_inflight,
            "rounds": rounds(answered),
            "prompt_tokens": sum(call.prompt_tokens for call in answered),
            "cached_tokens": sum(call.cached_tokens for call in answered),
            "completion_tokens": sum(call.completion_tokens for call in answered),
        }


def rounds(calls: list[Call]) -> int:
    """Return the length of the longest chain of calls that did not overlap."""
    chain, end = 0, float("-inf")
    for call in sorted(calls, key=lambda call: call.ended_s):
        if call.began_s >= end:
            chain, end = chain + 1, call.ended_s
    return chain

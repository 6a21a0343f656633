"""The journal: a run as the list of what happened to it, chained by digests.

Rule 1: the journal is the truth. A run's snapshot, path, thoughts, questions and usage are one fold over it.
Rule 2: an answer is on disk before it is used; a call that counts against a budget is on disk before it goes out.
Rule 3: every line's digest covers the line before, so a changed, lost or foreign line shows.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from ..blocks.toolcard import ToolCard
from ..core.budget import Budget
from ..core.events import Event
from ..core.readings import Reading
from ..errors import StoreError
from ..records import Line

T = TypeVar("T")

DIRECT_LINES: Final = 200
"""A journal up to this long is folded on the event loop: that takes less than 20 ms."""

HEAD_CHARS = 200
"""How much of a problem or an answer is shown in lists."""

SCHEMA = 1
"""Version of the entries below; a store written by a newer one is refused."""


CALLER = "caller"
"""The model of the participants where the caller answers the questions."""


class ParticipantNames(Struct, frozen=True, omit_defaults=True):
    """The participants of a run and their prices, as a user would write them."""

    model: str = ""
    judge_model: str | None = None
    verifier: str | None = None
    verifier_hides: tuple[str, ...] = ()
    draft_model: str | None = None
    price: tuple[str, ...] = ()
    callers_tools: tuple[ToolCard, ...] = ()
    """Tools that whoever asked for the run calls."""
    listed_tools: tuple[str, ...] = ()
    """Names of what the operator listed for requests, where a request named them; `listed_documents` too."""
    listed_documents: tuple[str, ...] = ()
    seats: tuple[str, ...] = ()
    """Models that answer side by side."""


class Begun(Struct, frozen=True, tag="begun", array_like=True, omit_defaults=True):
    """The first entry: what was asked for; before a run is accepted, the order."""

    strategy: str
    problem: str
    options: dict[str, Any]
    budget: Budget = Budget()
    participants: ParticipantNames = ParticipantNames()
    created_at_ms: int = 0
    forked_from: str | None = None
    forked_at: int | None = None
    schema: int = SCHEMA
    why: str = ""
    """Why this strategy, where it was not the user who named it."""
    version: int = 0
    """The strategy's."""
    warnings: tuple[str, ...] = ()
    """What was known from the start to matter to what comes of it."""
    from_session: str | None = None
    """The session whose thoughts are quoted below the problem."""
    form: dict[str, Any] | None = None
    """JSON schema of the answer."""
    reworded: dict[str, str] = {}
    """Of a fork: the texts that questions have in place of the strategy's, by their ids."""
    prompts: dict[str, str] = {}
    """Questions of stages in place of the strategy's own, by `STRATEGY.STAGE`."""
    checks_form: bool = False
    """Whether the verifier is asked about the answer in the form."""


class CallIntended(Struct, frozen=True, tag="sent", array_like=True, omit_defaults=True):
    """A call is about to go out; written only where a limit must survive a crash.

    `tokens` and `usd` are what the dearest answer so far took: it may have come in without being written down yet.
    `refused` takes an earlier one back: its provider has refused the call for its rate, so it does not count.
    """

    id: str
    tokens: int = 0
    usd: float | None = None
    refused: bool = False


class Settled(Struct, frozen=True, tag="took", array_like=True, omit_defaults=True):
    """An event settled the effect `id`; None: the run was stopped."""

    id: str | None
    event: Event
    reading: Reading | None = None
    """How an answer was read; None: it is read again."""


class Resumed(Struct, frozen=True, tag="resumed", array_like=True, omit_defaults=True):
    """Someone took the run up again, perhaps with other limits or other participants; a stop before it is lifted.

    Other limits lift a closing as well, and all that came after it.
    """

    budget: Budget | None = None
    participants: ParticipantNames | None = None


class Steered(Struct, frozen=True, tag="steered", array_like=True, omit_defaults=True):
    """A user changed the limits of an active run, or paused or continued it; the process that drives it follows."""

    budget: Budget | None = None
    paused: bool | None = None


class Ended(Struct, frozen=True, tag="ended", array_like=True):
    """The run has ended."""

    record: bytes
    """All there is to see of the run, as deflated JSON, so that it reads without the code of its day."""


Entry = Begun | CallIntended | Settled | Resumed | Steered | Ended

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Entry)


class Chain:
    """Turns entries into lines, each digest covering the one before."""

    def __init__(self, run_id: str, seq: int = 0, digest: bytes | None = None) -> None:
        self.run_id, self.seq = run_id, seq
        self.digest = digest or _digest(b"", run_id.encode())

    def lines(self, entries: Iterable[Entry]) -> list[Line]:
        """Return the next lines, without taking them as written."""
        seq, digest, lines = self.seq, self.digest, list[Line]()
        for entry in entries:
            body = _encoder.encode(entry)
            seq, digest = seq + 1, _digest(digest, body)
            lines.append(Line(seq, body, digest))
        return lines

    def extend(self, lines: Sequence[Line]) -> None:
        """Continue after these lines."""
        if lines:
            self.seq, self.digest = lines[-1].seq, lines[-1].digest

    def check(self, line: Line) -> None:
        """Check that a line that was read is the next one, and continue after it.

        Raises:
            StoreError: `store_corrupt` names the run and the line.
        """
        if line.seq != self.seq + 1 or line.digest != _digest(self.digest, line.body):
            raise _damage_error(self.run_id, line.seq)
        self.seq, self.digest = line.seq, line.digest


def _digest(before: bytes, body: bytes) -> bytes:
    return hashlib.sha256(before + body).digest()[:16]


def read(run_id: str, lines: Sequence[Line]) -> tuple[list[Entry], Chain]:
    """Check the chain and decode the entries of a whole journal; raises as `decode`."""
    chain = Chain(run_id)
    return list(decode(chain, lines)), chain


def read_last(run_id: str, lines: Sequence[Line]) -> Entry:
    """Check the chain of a whole journal and return its last entry; raises as `decode`."""
    chain = Chain(run_id)
    next(decode(chain, lines[:1]))
    for line in lines[1:]:
        chain.check(line)
    return _decode(run_id, lines[-1])


def decode(chain: Chain, lines: Iterable[Line]) -> Iterator[Entry]:
    """Check and decode the entries that follow in a chain, one after the other.

    Raises:
        StoreError: `store_corrupt` names the run and the line; `store_newer` if a newer version wrote it.
    """
    for line in lines:
        chain.check(line)
        yield _decode(chain.run_id, line)
    if chain.seq == 0:
        raise _damage_error(chain.run_id, 1)


def _decode(run_id: str, line: Line) -> Entry:
    try:
        entry = _decoder.decode(line.body)
    except msgspec.DecodeError as error:
        raise _damage_error(run_id, line.seq) from error
    if isinstance(entry, Begun) != (line.seq == 1):
        raise _damage_error(run_id, line.seq)
    if isinstance(entry, Begun) and entry.schema > SCHEMA:
        raise StoreError(f"run {run_id} was written by a newer version", code="store_newer", run_id=run_id)
    return entry


def _damage_error(run_id: str, seq: int) -> StoreError:
    return StoreError(
        f"run {run_id} is damaged at line {seq} of its journal; other runs are not affected",
        code="store_corrupt",
        run_id=run_id,
        line=seq,
    )


def terms(entries: Sequence[Entry]) -> tuple[Begun, Budget, ParticipantNames]:
    """Return what a run was begun with, and the limits and the participants it was last given."""
    begun = entries[0]
    assert isinstance(begun, Begun), "checked when the journal was read"
    budget, participants = begun.budget, begun.participants
    for entry in entries:
        if isinstance(entry, Resumed | Steered):
            budget = entry.budget or budget
        if isinstance(entry, Resumed):
            participants = entry.participants or participants
    return begun, budget, participants


async def aside(lines: Sequence[Line], work: Callable[[], T]) -> T:
    """Do work on the lines of a journal; where they are many, in a thread, so that nothing else waits for it."""
    return work() if len(lines) <= DIRECT_LINES else await asyncio.to_thread(work)

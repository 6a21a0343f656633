"""The journal: a run as the list of its events, chained by digests.

Rule 1: the journal is the truth. One fold over the journal gives a run's snapshot, path, thoughts, questions and usage.
Rule 2: an answer is on disk before it is used; a call that counts against a budget is on disk before it goes out.
Rule 3: the digest of each line covers the digest of the line before. So digests reveal changed, lost or foreign lines.
"""

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
"""A journal of at most this many lines is folded on the event loop, which takes less than 20 ms."""

HEAD_CHARS = 200
"""How many characters of a problem or an answer the lists of runs show."""

SCHEMA = 1
"""The version of the entry formats below. A journal with a newer version is refused."""

CALLER = "caller"
"""The model name of a run whose caller answers the questions."""


class ParticipantNames(Struct, frozen=True, omit_defaults=True):
    """The names of a run's participants and the prices of its models, written as the user enters them."""

    model: str = ""
    judge_model: str | None = None
    verifier: str | None = None
    verifier_hides: tuple[str, ...] = ()
    draft_model: str | None = None
    price: tuple[str, ...] = ()
    callers_tools: tuple[ToolCard, ...] = ()
    """The caller's own tools. The caller, not the engine, calls these tools."""
    listed_tools: tuple[str, ...] = ()
    """Names of the operator's listed tools that the request named."""
    listed_documents: tuple[str, ...] = ()
    """Names of the operator's listed documents that the request named."""
    seats: tuple[str, ...] = ()
    """The models of a panel, which answer in parallel."""


class Begun(Struct, frozen=True, tag="begun", array_like=True, omit_defaults=True):
    """A journal's first entry: the request for the run. Until the run is accepted, the request is called an order."""

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
    """The reason why the strategy was chosen, if the user did not name a strategy."""
    version: int = 0
    warnings: tuple[str, ...] = ()
    """Problems known from the start that may matter to the result."""
    from_session: str | None = None
    """The session whose thoughts are quoted below the problem."""
    form: dict[str, Any] | None = None
    """JSON schema of the answer."""
    reworded: dict[str, str] = {}
    """The new texts that a fork gives to questions, by question id."""
    prompts: dict[str, str] = {}
    """Prompts that replace the strategy's own prompts, by `STRATEGY.STAGE`."""
    checks_form: bool = False
    """Whether the verifier checks the answer that has been put into `form`."""


class CallIntended(Struct, frozen=True, tag="sent", array_like=True, omit_defaults=True):
    """A call is about to go out. This entry is written only if a limit must survive a crash.

    Attributes:
        tokens: The tokens of the most expensive answer so far, since that answer may not be written yet.
        usd: The dollars of the most expensive answer so far.
        refused: Whether the entry withdraws an earlier entry, because the call did not go out, or because a rate limit
            made the provider refuse the call.
    """

    id: str
    tokens: int = 0
    usd: float | None = None
    refused: bool = False


class Settled(Struct, frozen=True, tag="took", array_like=True, omit_defaults=True):
    """The entry for an event that settled the effect `id`. Without an `id`, the event ended or closed the run."""

    id: str | None
    event: Event
    reading: Reading | None = None
    """The recorded reading of an answer. None if the answer is to be read again."""


class Resumed(Struct, frozen=True, tag="resumed", array_like=True, omit_defaults=True):
    """The run was resumed, perhaps with new limits or participants. This entry lifts an earlier stop.

    New limits also lift an earlier closing. All events after that closing then no longer count.
    """

    budget: Budget | None = None
    participants: ParticipantNames | None = None


class TermsChanged(Struct, frozen=True, tag="terms_changed", array_like=True, omit_defaults=True):
    """A command changed the limits of an active run, or paused or continued the run. The drive of the run obeys."""

    budget: Budget | None = None
    paused: bool | None = None


class Ended(Struct, frozen=True, tag="ended", array_like=True):
    """The run has ended."""

    record: msgspec.Raw
    """The record of the run as JSON. It stays readable even after the code of the strategy has changed."""


Entry = Begun | CallIntended | Settled | Resumed | TermsChanged | Ended

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Entry)


class Chain:
    """Turns entries into lines. The digest of each line covers the digest of the line before."""

    def __init__(self, run_id: str, seq: int = 0, digest: bytes | None = None) -> None:
        self.run_id, self.seq = run_id, seq
        self.digest = digest or _digest(b"", run_id.encode())

    def lines(self, entries: Iterable[Entry]) -> list[Line]:
        """Return the lines of the next entries, without extending the chain."""
        seq, digest, lines = self.seq, self.digest, list[Line]()
        for entry in entries:
            body = _encoder.encode(entry)
            seq, digest = seq + 1, _digest(digest, body)
            lines.append(Line(seq, body, digest))
        return lines

    def extend(self, lines: Sequence[Line]) -> None:
        """Continue the chain after these lines."""
        if lines:
            self.seq, self.digest = lines[-1].seq, lines[-1].digest

    def check(self, line: Line) -> None:
        """Check that a line is the next line of the chain, and continue the chain after the line.

        Raises:
            StoreError: `store_corrupt`: the line is not the undamaged next line. The error names the run and the line.
        """
        if line.seq != self.seq + 1 or line.digest != _digest(self.digest, line.body):
            raise _damage_error(self.run_id, line.seq)
        self.seq, self.digest = line.seq, line.digest


def _digest(before: bytes, body: bytes) -> bytes:
    return hashlib.sha256(before + body).digest()[:16]


def read(run_id: str, lines: Sequence[Line]) -> tuple[list[Entry], Chain]:
    """Check the chain and decode the entries of a whole journal. Raises the same errors as `decode`."""
    chain = Chain(run_id)
    return list(decode(chain, lines)), chain


def read_last(run_id: str, lines: Sequence[Line]) -> Entry:
    """Check the chain of a whole journal and return its last entry. Raises the same errors as `decode`."""
    chain = Chain(run_id)
    next(decode(chain, lines[:1]))
    for line in lines[1:]:
        chain.check(line)
    return _decode(run_id, lines[-1])


def decode(chain: Chain, lines: Iterable[Line]) -> Iterator[Entry]:
    """Check and decode the next entries of a chain one by one.

    Raises:
        StoreError: `store_corrupt`: the named line is damaged. `store_newer`: a newer version wrote the run.
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
    """Return the first entry of a run, and the run's latest limits and participants."""
    begun = entries[0]
    assert isinstance(begun, Begun), "checked when the journal was read"
    budget, participants = begun.budget, begun.participants
    for entry in entries:
        if isinstance(entry, Resumed | TermsChanged):
            budget = entry.budget or budget
        if isinstance(entry, Resumed):
            participants = entry.participants or participants
    return begun, budget, participants


async def offload(lines: Sequence[Line], work: Callable[[], T]) -> T:
    """Do work on the lines of a journal. Work on a long journal runs in a thread and does not block the event loop."""
    return work() if len(lines) <= DIRECT_LINES else await asyncio.to_thread(work)

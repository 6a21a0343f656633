"""Snapshots and events as JSON bytes and back, with the version of their schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ..errors import StoreError
from .events import Event
from .snapshot import Pending, Snapshot
from .strategy import Strategy

SCHEMA = 1
"""Raised when what is written can no longer be read as before."""


class _Envelope(Struct, frozen=True):
    schema: int
    body: Raw


T = TypeVar("T")

_encoder = msgspec.json.Encoder()
_envelopes = msgspec.json.Decoder(_Envelope)
_snapshots = msgspec.json.Decoder(Snapshot)
_events: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def dump_snapshot(snapshot: Snapshot) -> bytes:
    """Return the snapshot as JSON; equal snapshots give equal bytes."""
    return _encoder.encode(_Envelope(SCHEMA, Raw(_encoder.encode(snapshot))))


def load_snapshot(data: bytes, strategies: Mapping[str, Strategy[Any, Any]]) -> Snapshot:
    """Return the snapshot that was dumped, each state in its strategy's own type.

    Raises:
        StoreError: `store_newer`: a newer version wrote it; `store_corrupt`: it is no snapshot, or its
            strategy is not among `strategies`.
    """
    return _typed(_open(data, _snapshots, "snapshot"), strategies)


def dump_event(event: Event) -> bytes:
    """Return the event as JSON."""
    return _encoder.encode(_Envelope(SCHEMA, Raw(_encoder.encode(event))))


def load_event(data: bytes) -> Event:
    """Return the event that was dumped.

    Raises:
        StoreError: `store_newer`: a newer version wrote it; `store_corrupt`: it is no event.
    """
    return _open(data, _events, "event")


def _open(data: bytes, decoder: msgspec.json.Decoder[T], what: str) -> T:
    try:
        envelope = _envelopes.decode(data)
        if envelope.schema > SCHEMA:
            raise StoreError(
                f"the {what} was written by a newer version (schema {envelope.schema}; this one reads up to "
                f"{SCHEMA}); update reasonry to read it",
                code="store_newer",
                schema=envelope.schema,
            )
        return decoder.decode(envelope.body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise StoreError(f"this is no {what}: {error}", code="store_corrupt") from error


def _typed(snapshot: Snapshot, strategies: Mapping[str, Strategy[Any, Any]]) -> Snapshot:
    strategy = strategies.get(snapshot.strategy)
    if strategy is None:
        raise StoreError(
            f"the snapshot's strategy {snapshot.strategy!r} is not registered here", code="store_corrupt"
        )
    try:
        state = msgspec.convert(snapshot.state, strategy.state)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise StoreError(
            f"the snapshot does not fit the strategy {strategy.name!r}: {error}", code="store_corrupt"
        ) from error
    pending = tuple(_with_typed_child(one, strategies) for one in snapshot.pending)
    return replace(snapshot, state=state, pending=pending)


def _with_typed_child(one: Pending, strategies: Mapping[str, Strategy[Any, Any]]) -> Pending:
    return one if one.child is None else replace(one, child=_typed(one.child, strategies))

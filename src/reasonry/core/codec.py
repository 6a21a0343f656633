"""Encode and decode snapshots as JSON, with the version of their schema."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ..errors import StoreError
from .events import Delivered, Reply
from .pending import Round, Snapshot
from .strategy import Strategy

SCHEMA = 2
"""Increases with each incompatible change of the format."""


class _SnapshotEnvelope(Struct, frozen=True):
    schema: int
    body: Raw


_encoder = msgspec.json.Encoder()
_envelopes = msgspec.json.Decoder(_SnapshotEnvelope)
_snapshots = msgspec.json.Decoder(Snapshot)


def dump_snapshot(snapshot: Snapshot) -> bytes:
    """Encode a snapshot as JSON; equal snapshots give equal bytes."""
    return _encoder.encode(_SnapshotEnvelope(SCHEMA, Raw(_encoder.encode(snapshot))))


def load_snapshot(data: bytes, strategies: Mapping[str, Strategy[Any, Any]]) -> Snapshot:
    """Decode a snapshot, each state in its strategy's type.

    Raises:
        StoreError: `store_newer`: a newer version wrote it; `store_corrupt`: it is not a snapshot, or its strategy is
            missing from `strategies`.
    """
    try:
        envelope = _envelopes.decode(data)
        if envelope.schema > SCHEMA:
            raise StoreError(
                f"the snapshot was written by a newer version (schema {envelope.schema}; this one reads up to "
                f"{SCHEMA}); update reasonry to read it",
                code="store_newer",
                schema=envelope.schema,
            )
        return _type_states(_snapshots.decode(envelope.body), strategies)
    except (msgspec.MsgspecError, RecursionError, KeyError) as error:
        message = f"this is not a snapshot of a registered strategy: {error}"
        raise StoreError(message, code="store_corrupt") from error


def _type_states(snapshot: Snapshot, strategies: Mapping[str, Strategy[Any, Any]]) -> Snapshot:
    strategy = strategies[snapshot.strategy]
    kind: Any = strategy.state
    value = strategy.by_name[snapshot.stage].value_type

    def answer(event: Delivered) -> Delivered:
        if value is None or not isinstance(event, Reply):
            return event
        return replace(event, value=msgspec.convert(event.value, value))

    return replace(
        snapshot,
        state=msgspec.convert(snapshot.state, kind),
        entry=None if snapshot.entry is None else msgspec.convert(snapshot.entry, kind),
        pending=tuple(
            replace(
                waiting,
                settled=waiting.settled and answer(waiting.settled),
                child=waiting.child and _type_states(waiting.child, strategies),
            )
            for waiting in snapshot.pending
        ),
        rounds_had=tuple(Round(had.asked, tuple(map(answer, had.answers))) for had in snapshot.rounds_had),
    )

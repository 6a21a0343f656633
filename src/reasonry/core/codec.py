"""Encode and decode snapshots as JSON."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from ..errors import StoreError
from .events import Delivered, Reply
from .pending import Round, Snapshot
from .strategy import Strategy

_encoder = msgspec.json.Encoder()
_snapshots = msgspec.json.Decoder(Snapshot)


def dump_snapshot(snapshot: Snapshot) -> bytes:
    """Encode a snapshot as JSON; equal snapshots give equal bytes."""
    return _encoder.encode(snapshot)


def load_snapshot(data: bytes, strategies: Mapping[str, Strategy[Any, Any]]) -> Snapshot:
    """Decode a snapshot, and convert each state to the type that its strategy declares.

    Raises:
        StoreError: `store_corrupt`: the data is not a snapshot, or its strategy is missing from `strategies`.
    """
    try:
        return _type_states(_snapshots.decode(data), strategies)
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

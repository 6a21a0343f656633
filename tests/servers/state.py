"""Everything about a loopback model server that a reset puts back: brain, faults, cache and books."""

from __future__ import annotations

from typing import Any

from .accounting import Ledger, PrefixCache
from .behaviour import Behaviour
from .brain import Brain, Reply
from .faults import FaultPlan


class ServerState:
    """One stretch of work between two resets."""

    def __init__(self, behaviour: Behaviour, reply: Reply | None) -> None:
        self.behaviour = behaviour
        self.brain = Brain(behaviour, reply)
        self.faults = FaultPlan(behaviour.faults)
        self.cache = PrefixCache(behaviour.cache_min_tokens, behaviour.cache_block_tokens)
        self.ledger = Ledger()
        self.bodies: list[dict[str, Any]] = []

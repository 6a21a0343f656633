"""The loopback model server of the tests: it speaks the providers' protocols, counts honestly and breaks on demand."""

from __future__ import annotations

from .behaviour import FAULT_KINDS, Behaviour, Fault, Rule
from .brain import ChatRequest
from .game24 import Player
from .model_server import ModelServer
from .process import ServerProcess

__all__ = [
    "FAULT_KINDS",
    "Behaviour",
    "ChatRequest",
    "Fault",
    "ModelServer",
    "Player",
    "Rule",
    "ServerProcess",
]

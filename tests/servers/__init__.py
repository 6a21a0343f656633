"""The loopback model server of the tests: it speaks the providers' protocols, counts honestly and breaks on demand."""

from .behaviour import FAULT_KINDS, Fault
from .brain import ChatRequest
from .game24 import Player
from .model_server import ModelServer
from .process import ServerProcess

__all__ = [
    "FAULT_KINDS",
    "ChatRequest",
    "Fault",
    "ModelServer",
    "Player",
    "ServerProcess",
]

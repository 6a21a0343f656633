"""The servers of the tests, for the measurements."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from tests.servers import ChatRequest, Player, ServerProcess
from tests.servers.postgres import PostgresServer, postgres_server

__all__ = ["ChatRequest", "Player", "PostgresServer", "ServerProcess", "postgres_server"]

"""The loopback model server in a process of its own: for measurements, and for tests that kill the client."""

import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, Self

import msgspec

from tests.forked import ForkedProcess

from .behaviour import Behaviour, changed

ROOT = Path(__file__).parents[2]
"""Where `tests` is found as a package."""


class ServerProcess:
    """A `ModelServer` in another process; a context manager with the same face, but no `reply` function.

    Args:
        brain: `form` (data that fits the request's form), `game24` (plays number puzzles), or a function of your own
            as `FILE.py:NAME`.
        settings: Those of `Behaviour`.

    Attributes:
        url: The base URL that clients are given, `…/v1`.
    """

    def __init__(self, *, brain: str = "form", **settings: Any) -> None:
        self._behaviour = changed(Behaviour(), settings)
        self._brain = brain
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    @property
    def model(self) -> str:
        """The server's first model, as a user would write it after `--model`."""
        return f"openai-compatible:{self.url}#{self._behaviour.models[0]}"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The bodies of the requests since the last reset, oldest first."""
        return self._http("GET", "/_bodies")

    def stats(self) -> dict[str, Any]:
        """Return the figures since the last reset."""
        return self._http("GET", "/_stats")

    def reset(self, **settings: Any) -> None:
        """Forget all that was counted and change these settings."""
        self._behaviour = changed(self._behaviour, settings)
        self._http("POST", "/_reset", msgspec.json.encode(self._behaviour))

    def __enter__(self) -> Self:
        behaviour = msgspec.json.encode(self._behaviour).decode()
        command = [sys.executable, "-m", "tests.servers", self._brain, behaviour]
        self._process = ForkedProcess(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            self._process.wait()
            raise OSError("the model server did not start; what it wrote on stderr says why")
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()

    def _http(self, method: str, path: str, body: bytes | None = None) -> Any:
        request = urllib.request.Request(self.url.removesuffix("/v1") + path, data=body, method=method)
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=30) as response:
            return msgspec.json.decode(response.read())

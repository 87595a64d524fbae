"""The worker process: its loop, its start, and what it keeps from the caller's process and terminal."""

import os
import socket
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from firmware_bridge import errors, protocol
from firmware_bridge.protocol import (
    Ask,
    AskReply,
    Hello,
    OperationDone,
    OperationFailed,
    Question,
    WorkerCall,
)
from firmware_bridge.worker import Server
from tests.support.processes import ended, said


class Client:
    """Answers from a list; raises an exception in it."""

    def __init__(self, answers):
        self.answers = answers
        self.asked = []
        self.cancelled = threading.Event()
        self.closed = False

    def call(self, op, args):
        self.asked.append((op, args))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer

    def cancel(self):
        self.cancelled.set()

    def close(self):
        self.closed = True


class Desk:
    """Our end of the channel, and the clients that the server opened."""

    def __init__(self, channel, *scripts):
        self._stream = channel.makefile("rb")
        self._channel = channel
        self._scripts = list(scripts)
        self.clients = []
        self.openings = []
        self.caller = None

    def open_device(self, caller, request):
        self.caller = caller
        self.openings.append(request)
        script = self._scripts.pop(0)
        if isinstance(script, Exception):
            raise script
        self.clients.append(Client(script))
        return self.clients[-1]

    def ask(self, number, op, recover=False, **args):
        self._channel.sendall(protocol.encode(WorkerCall(number, op, args, recover)))
        return self.hear()

    def tell(self, message):
        self._channel.sendall(message)

    def hear(self):
        header = self._stream.read(protocol.HEADER_SIZE)
        return protocol.decode(self._stream.read(protocol.body_size(header))) if header else None

    def leave(self):
        """As a killed bridge; what the worker still sends is heard."""
        self._channel.shutdown(socket.SHUT_WR)

    def close(self):
        self.leave()
        self._stream.close()


@contextmanager
def served(*scripts):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(5)
        desk = Desk(ours, *scripts)
        ended = []
        server = Server(theirs, desk.open_device, end_process=ended.append)
        thread = threading.Thread(target=server.serve, kwargs={"preloaded": True})
        thread.start()
        try:
            assert isinstance(desk.hear(), Hello)
            yield desk
        finally:
            desk.close()
            thread.join(5)
            assert not thread.is_alive()


def fault():
    return errors.DeviceFault("out of step")


def test_after_a_failure_the_device_is_opened_anew():
    with served([errors.Locked()], [2]) as desk:
        assert desk.ask(1, "fingerprint") == OperationFailed(1, "locked", None)
        assert desk.clients[0].closed
        assert desk.ask(2, "fingerprint") == OperationDone(2, 2)


def test_a_session_that_another_program_broke_is_opened_anew_for_a_reading():
    with served([1, fault()], [2]) as desk:
        desk.ask(1, "fingerprint")
        assert desk.ask(2, "fingerprint") == OperationDone(2, 2)


def test_a_person_is_never_asked_twice_by_a_retry():
    with served([1, fault()]) as desk:
        desk.ask(1, "fingerprint")
        assert desk.ask(2, "sign") == OperationFailed(2, "device-fault", "out of step")


def test_cancel_reaches_the_device_while_it_works():
    with served([1, lambda: desk.clients[0].cancelled.wait(5)]) as desk:
        desk.ask(1, "fingerprint")
        desk.tell(protocol.encode(WorkerCall(2, "sign")) + protocol.encode(WorkerCall(2, protocol.CANCEL)))
        assert desk.hear() == OperationDone(2, value=True)


def test_a_cancel_that_fails_ends_nothing():
    """A device pulled out at that moment: the pipe is still read, and the end of the bridge still noticed."""
    tried = threading.Event()

    def fail():
        tried.set()
        raise RuntimeError("no such device")

    with served([1, lambda: tried.wait(5), 3]) as desk:
        desk.ask(1, "fingerprint")
        desk.clients[0].cancel = fail
        desk.tell(protocol.encode(WorkerCall(2, "sign")) + protocol.encode(WorkerCall(2, protocol.CANCEL)))
        assert desk.hear() == OperationDone(2, value=True)
        # Read directly, so that an unread pipe is a failure and not an endless wait.
        desk.tell(protocol.encode(WorkerCall(3, "fingerprint")))
        assert desk.hear() == OperationDone(3, 3)


def test_when_the_bridge_has_gone_the_device_takes_its_question_back_and_asks_no_other():
    began = threading.Event()

    def is_taken_back():
        began.set()
        client = desk.clients[0]
        assert client.cancelled.wait(5)
        client.cancelled.clear()
        desk.caller.tell("confirm", "A screen that came late.")
        return client.cancelled.is_set()

    with served([1, is_taken_back, 3]) as desk:
        desk.ask(1, "fingerprint")
        desk.tell(protocol.encode(WorkerCall(2, "sign")))
        desk.tell(protocol.encode(WorkerCall(3, "sign")))
        assert began.wait(5)
        desk.leave()
        while not isinstance(answer := desk.hear(), OperationDone):
            assert answer is not None
        assert answer == OperationDone(2, value=True)
    client = desk.clients[0]
    assert (len(client.asked), client.closed) == (2, True)


def test_a_late_reply_answers_no_later_question():
    with served(
        [lambda: desk.caller.ask(Question.PIN)], [lambda: desk.caller.ask(Question.PASSPHRASE)]
    ) as desk:
        desk.ask(1, "unlock")
        desk.tell(protocol.encode(WorkerCall(1, protocol.CANCEL)))
        assert desk.hear() == OperationFailed(1, "cancelled", None)
        # The person pressed enter just then. Were the PIN taken for the passphrase, it would open another
        # wallet.
        desk.tell(protocol.encode(AskReply(1, "1234")))
        assert desk.ask(2, "unlock") == Ask(2, 2, "passphrase")
        desk.tell(protocol.encode(AskReply(1, "1234")))
        desk.tell(protocol.encode(AskReply(2, "wallet")))
        assert desk.hear() == OperationDone(2, "wallet")


START = """
import socket
from firmware_bridge.worker import spawn
from tests.support import workers

_ours, theirs = socket.socketpair()
worker = spawn(theirs, "endpoint", "regtest", entry=workers.mute)
print(worker.is_alive())
worker.kill()
"""


def test_nothing_is_imported_from_the_folder_that_the_program_is_in(tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    for name in ("multiprocessing", "socket", "struct"):
        (here / f"{name}.py").write_text("raise SystemExit('somebody else was here')")
    program = tmp_path / "program.py"
    program.write_text(START)
    # Where `tests.support` is found; the tests themselves find it by the folder they are started in.
    root = Path(__file__).parents[2]
    done = ended([sys.executable, program], cwd=here, env=os.environ | {"PYTHONPATH": str(root)})
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr
    assert "somebody else" not in done.stderr


@pytest.mark.parametrize(
    ("module", "never"),
    [
        ("firmware_bridge", "hwilib usb1 hid ecdsa pyaes"),
        # The listing without sysfs, which the caller's own process makes.
        ("firmware_bridge.presence.libusb", "hwilib ecdsa pyaes"),
    ],
)
def test_the_caller_never_imports_hwi(module, never):
    program = f"import sys, {module}; print([name for name in {never.split()} if name in sys.modules])"
    assert said([sys.executable, "-c", program]) == "[]\n"

"""A worker is not trusted: for anything that it sends, the caller gets an outcome and the person short plain
text (L8).
"""

import asyncio
import contextlib
import json
import os
import socket
import threading

import pytest

from firmware_bridge import lane as lanes
from firmware_bridge.calls import answer
from firmware_bridge.conversation import Conversation
from firmware_bridge.errors import DeviceFault, WorkerCrashed
from firmware_bridge.lane import Lane
from firmware_bridge.model import Deadlines, Endpoint
from firmware_bridge.operations import Probed
from firmware_bridge.protocol import HEADER_SIZE, Hello, WorkerCall, body_size, encode
from multisig import Network
from tests.support.patience import PATIENCE
from tests.support.scripted import bridge_answering

pytestmark = pytest.mark.anyio

ENDPOINT = Endpoint.parse("trezor:udp:127.0.0.1:1")
NASTY = "pay\x1b[2J\r\nall\u202e" + "!" * 5000


class Player:
    """A fake worker process: a thread that sends the test's messages, and then nothing."""

    pid = None

    def __init__(self, channel, says):
        self._channel = channel.dup()
        self._says = says
        self._thread = threading.Thread(target=self._play, daemon=True)
        self._thread.start()

    def is_alive(self):
        return self._thread.is_alive()

    def kill(self):
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)

    def _play(self):
        with self._channel, contextlib.suppress(OSError):
            self._channel.sendall(encode(Hello(os.getpid(), preloaded=True)))
            self._says(self._channel)
            while self._channel.recv(1 << 16):
                pass


def framed(**message):
    body = json.dumps(message).encode()
    return len(body).to_bytes(HEADER_SIZE, "big") + body


def send(channel, **message):
    channel.sendall(framed(**message))


def heard(channel):
    size = body_size(channel.recv(HEADER_SIZE, socket.MSG_WAITALL))
    return json.loads(channel.recv(size, socket.MSG_WAITALL))


def saying(*messages):
    """Says these once it is asked."""

    def says(channel):
        heard(channel)
        for message in messages:
            channel.sendall(message if isinstance(message, bytes) else framed(**message))

    return says


@contextlib.asynccontextmanager
async def lane_to(says, **deadlines):
    lane = Lane(
        ENDPOINT,
        Network.REGTEST,
        deadlines=Deadlines(**{"grace": 0.2, **deadlines}),
        spawner=lambda channel, _endpoint, _network: Player(channel, says),
    )
    try:
        async with asyncio.timeout(PATIENCE):
            yield lane
    finally:
        lane.release()


@pytest.mark.parametrize(
    "message",
    [
        {"type": "failed", "id": 1, "code": [], "detail": None},
        {"type": "failed", "id": 1, "code": "locked", "detail": {"a": 1}},
        {"type": "failed", "id": 1, "code": "locked", "detail": None, "more": "yes"},
        {"type": "done", "id": True, "value": "an answer to nothing"},
        {"type": "done", "id": 1.0, "value": "an answer to nothing"},
        {"type": "note", "id": 1, "step": [], "text": "", "done": None, "total": None},
        {"type": "note", "id": 1, "step": "", "text": "", "done": "1", "total": 2},
        {"type": "ask", "id": 1, "number": "1", "question": "pin"},
        {"type": "hello", "pid": 1, "preloaded": True},
        {"type": "request", "id": 1, "op": "sign"},
        # The answer to a question that was not asked.
        {"type": "done", "id": 999, "value": "gotcha"},
        b"\x00\x00\x00\x05hello",
        # More bytes are announced than the reader accepts.
        b"\xff\xff\xff\xff",
    ],
)
async def test_a_message_of_the_wrong_kind_ends_the_worker_and_is_an_outcome(message):
    async with lane_to(saying(message)) as lane:
        with pytest.raises(WorkerCrashed):
            await lane.call("sign", deadline=5)
        assert lane.worker_pid is None


async def test_a_failures_words_are_one_short_line():
    failed = {"type": "failed", "id": 1, "code": "device-fault", "detail": NASTY}
    async with lane_to(saying(failed)) as lane:
        with pytest.raises(DeviceFault) as caught:
            await lane.call("sign", deadline=5)
    assert caught.value.detail.isprintable()
    assert len(caught.value.detail) <= 300


async def test_what_is_told_of_the_progress_is_one_short_line_and_counts_something():
    told, note = [], {"type": "note", "id": 1, "total": 3}
    says = saying(
        {**note, "step": NASTY, "text": NASTY, "done": -1},
        {**note, "step": "signing", "text": "", "done": 2},
        {"type": "done", "id": 1, "value": None},
    )
    bridge, _device, _script = await bridge_answering()
    async with lane_to(says) as lane:
        (record,) = bridge._roster.records.values()
        record.lane = lane
        talk = Conversation(
            Network.REGTEST, Deadlines(), bridge._roster, bridge._registrations, record, told.append
        )
        await talk.call("sign", deadline=5)
    first, second = told
    assert first.text.isprintable()
    assert first.step.isprintable()
    assert len(first.text) <= 300
    assert (first.done, first.total, second.done, second.total) == (None, None, 2, 3)


async def test_a_worker_that_floods_with_notes_is_ended(monkeypatch):
    monkeypatch.setattr(lanes, "_MAX_NOTES", 100)

    def says(channel):
        heard(channel)
        while True:
            send(channel, type="note", id=1, step="a", text="b", done=None, total=None)

    told = []
    async with lane_to(says) as lane:
        with pytest.raises(WorkerCrashed):
            await lane.call("sign", deadline=3600, on_note=told.append)
    assert len(told) == 100


async def test_a_person_is_asked_one_question_at_a_time_and_not_for_ever():
    open_questions, asked = 0, []

    async def ask(question):
        nonlocal open_questions
        open_questions += 1
        assert open_questions == 1
        asked.append(question)
        try:
            await asyncio.Event().wait()
        finally:
            open_questions -= 1

    def says(channel):
        heard(channel)
        number = 0
        while True:
            number += 1
            send(channel, type="ask", id=1, number=number, question="passphrase")

    async with lane_to(says) as lane:
        with pytest.raises(WorkerCrashed):
            await lane.call("unlock", deadline=3600, on_ask=ask)
    await asyncio.sleep(0)
    assert open_questions == 0
    assert len(asked) <= lanes._MAX_QUESTIONS


async def test_a_secret_that_is_asked_for_while_nothing_is_unlocked_is_not_passed_on():
    replies = []

    def says(channel):
        heard(channel)
        send(channel, type="ask", id=1, number=1, question="passphrase")
        replies.append(heard(channel))
        send(channel, type="done", id=1, value="signed")

    async with lane_to(says) as lane:
        assert await lane.call("sign", deadline=5) == "signed"
    assert replies == [{"number": 1, "answer": None, "type": "reply"}]


@pytest.mark.parametrize(
    "error", [EOFError(), AssertionError("daemonic"), RuntimeError("no thread"), OSError(11, "again")]
)
async def test_a_worker_that_cannot_be_started_is_an_outcome(error):
    def spawner(*_arguments):
        raise error

    lane = Lane(ENDPOINT, Network.REGTEST, deadlines=Deadlines(), spawner=spawner)
    with pytest.raises(WorkerCrashed, match="does not start"):
        await lane.call("probe", deadline=5)


def test_what_a_device_calls_itself_is_one_short_line():
    words = dict.fromkeys(("model", "label", "detail", "firmware"), NASTY)
    told = answer(Probed, {**words, "fingerprint": None, "obstacle": "locked"})
    for words in (told.model, told.label, told.detail, told.firmware):
        assert words.isprintable()
        assert len(words) <= 300


def test_how_a_device_is_opened_shows_no_session():
    assert "s3cret" not in repr(WorkerCall(0, "probe", session="s3cret"))

"""The server's life inside the daemon's: it starts before it is spoken of, finishes what it began, and
leaves nothing. The feed as server-sent events: from where, to whom, and how many (L11).
"""

import asyncio
import signal
import threading

import pytest

from signerd.endpoint import socket_path
from signerd.errors import DaemonFailed, TooManyStreams
from signerd.feed import Feed
from signerd.loopback import serve
from signerd.loopback.events import EventStreamResponse, Streams
from signerd.loopback.serve import serving
from tests.signerd.loopback.test_routes import STATUS
from tests.support.command import is_tame
from tests.support.patience import PATIENCE
from tests.support.served import Scripted, served_script


def test_an_answer_that_has_begun_is_finished_before_the_server_ends(state):
    begun, then_step = threading.Event(), threading.Event()

    async def slow():
        begun.set()
        await asyncio.to_thread(then_step.wait)
        return STATUS

    answers = []

    def ask(daemon) -> None:
        with daemon.client() as client:
            answers.append(client.status())

    with served_script(state, status=slow) as daemon:
        asking = threading.Thread(target=ask, args=(daemon,))
        asking.start()
        assert begun.wait(10)
        threading.Timer(0.05, then_step.set).start()
    asking.join(10)
    assert answers == [STATUS]
    assert not socket_path(state).exists()


def test_an_answer_that_waits_for_a_person_does_not_hold_up_the_end(state, monkeypatch, caplog):
    monkeypatch.setattr(serve, "GRACE_SECONDS", 0)
    caplog.set_level("CRITICAL", logger="uvicorn.error")
    begun = threading.Event()
    cancelled: list[bool] = []
    outcome = []

    async def person():
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    def ask(daemon) -> None:
        with daemon.client() as client:
            try:
                client.status()
            except DaemonFailed as error:
                outcome.append(error)

    with served_script(state, status=person) as daemon:
        asking = threading.Thread(target=ask, args=(daemon,))
        asking.start()
        assert begun.wait(10)
    asking.join(10)
    assert cancelled == [True]
    assert len(outcome) == 1


@pytest.mark.anyio
async def test_signals_stay_the_daemons_and_an_error_of_the_body_is_kept(state):
    before = signal.getsignal(signal.SIGTERM)

    async def body() -> None:
        async with serving(Scripted(), state) as path:
            assert path.is_socket()
            assert signal.getsignal(signal.SIGTERM) is before
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await body()
    assert not socket_path(state).exists()


def test_l11_a_stream_is_not_taken_for_a_connection_without_a_request(state, monkeypatch):
    monkeypatch.setattr(serve, "REQUEST_SECONDS", 0.05)
    with served_script(state) as daemon, daemon.client() as client, client.follow() as lines:
        daemon.on_loop(asyncio.sleep, 0.1)
        daemon.feed("p-1", "progress", "still told")
        assert next(line.text for line in lines if line is not None) == "still told"


pytestmark = pytest.mark.anyio


async def first(stream, count: int) -> list[str]:
    return [await anext(stream) for _ in range(count)]


def numbers(events: list[str]) -> list[int]:
    return [int(event.split("\n")[0].removeprefix("id: ")) for event in events]


async def test_a_stream_goes_on_where_its_reader_left_off():
    feed, streams = Feed(), Streams()
    for number in range(4):
        feed.add("p-1", "info", f"line {number}")
    stream = streams.follow(feed, 2, None)
    assert numbers(await first(stream, 2)) == [3, 4]
    feed.add("p-1", "info", "and on")
    assert numbers(await first(stream, 1)) == [5]
    await stream.aclose()
    # A number from before a restart misses nothing.
    stream = streams.follow(feed, 900, None)
    assert numbers(await first(stream, 1)) == [1]
    await stream.aclose()
    # Silence is told from death.
    stream = Streams(heartbeat=0.01).follow(Feed(), 0, None)
    assert await first(stream, 2) == [": still here\n\n"] * 2
    await stream.aclose()


async def test_also_where_all_that_happens_is_hidden_from_the_reader():
    feed = Feed()
    stream = Streams(heartbeat=60).follow(feed, 0, None, hides=lambda subject: subject == "b-1")
    async with asyncio.timeout(PATIENCE):
        for _ in range(3):
            feed.add("b-1", "info", "another's")
            assert await first(stream, 1) == [": still here\n\n"]
        feed.add("p-1", "info", "its own")
        assert numbers(await first(stream, 1)) == [4]
    await stream.aclose()


def test_l11_a_place_is_taken_before_anything_is_sent_and_free_again_when_it_is_given_back():
    streams = Streams(most=2, most_of_an_app=1)
    give_back = streams.admit("a-1")
    with pytest.raises(TooManyStreams):
        streams.admit("a-1")
    streams.admit("a-2")
    with pytest.raises(TooManyStreams):
        streams.admit()
    give_back()
    assert streams.open == 1
    streams.admit("a-1")


class ReaderGone(Exception):
    """A reader's connection ended."""


@pytest.mark.parametrize("most", [0, 1, 2])
async def test_l11_a_stream_gives_its_place_back_wherever_its_reader_goes(most):
    feed, streams, sent = Feed(), Streams(), []
    feed.add("p-1", "info", "x")

    async def send(message) -> None:
        if len(sent) == most:
            raise ReaderGone
        sent.append(message)

    async def receive():
        return await asyncio.Event().wait()

    answer = EventStreamResponse(streams.follow(feed, 0, None), streams.admit("a-1"))
    assert streams.open == 1
    streams.heartbeat = 0.01
    with pytest.raises(ReaderGone):
        await answer({"type": "http", "asgi": {"spec_version": "2.3"}}, receive, send)
    assert len(sent) == most
    assert streams.open == 0


async def test_l8_a_line_is_one_line_and_tame():
    feed = Feed()
    feed.add("p-1", "info", "a\n\ndata: {}\n\n\x1b[2J")
    assert is_tame(feed.since(0)[0].text)
    stream = Streams().follow(feed, 0, None)
    event = await anext(stream)
    assert event.count("\n") == 4
    await stream.aclose()


def test_the_client_resumes_filters_and_is_stopped_from_another_thread(state):
    with served_script(state) as daemon, daemon.client() as client:
        daemon.feed("p-1", "progress", "one")
        daemon.feed("p-2", "progress", "other")
        daemon.feed("p-1", "state", "signing")
        with client.follow(after=0, subject="p-1") as lines:
            seen = []
            for line in lines:
                if line is not None:
                    seen.append((line.number, line.kind, line.text))
                if len(seen) == 2:
                    lines.stop()
        assert seen == [(1, "progress", "one"), (3, "state", "signing")]


def test_last_event_id_counts_before_the_query(state):
    with served_script(state) as daemon, daemon.raw() as http:
        for text in ("one", "two", "three"):
            daemon.feed("p-1", "progress", text)
        headers = {"Last-Event-ID": "2"}
        with http.stream("GET", "/v1/events?after=0", headers=headers) as answer:  # as an EventSource resumes
            assert next(answer.iter_lines()) == "id: 3"
            assert answer.headers["content-type"].startswith("text/event-stream")


def test_a_shutdown_ends_the_streams_at_once(state):
    with served_script(state) as daemon:
        lines = daemon.client().follow(after=0)
        lines.__enter__()
    # The server is down: the reader sees the end of the stream, no error and no wait.
    assert list(lines) == []
    lines.__exit__(None, None, None)


async def test_l13_a_stream_ends_with_its_readers_right_to_it():
    feed, over = Feed(), asyncio.Event()

    async def gone() -> None:
        await over.wait()

    stream = Streams().follow(feed, 0, None, gone)
    feed.add("p-1", "info", "for its eyes")
    assert numbers(await first(stream, 1)) == [1]
    over.set()
    async with asyncio.timeout(PATIENCE):
        assert [event async for event in stream] == []

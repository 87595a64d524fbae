"""One request: deadlines, bounds, no second address, and a pause after a failure. How much an explorer is
asked: the load that the documentation promises.
"""

import logging
import socket
from collections import Counter
from contextlib import closing, suppress
from itertools import pairwise

import httpx
import pytest

from custody.common.exchange import HttpReply
from custody.server.chain.esplora import EsploraBackend
from custody.server.chain.esplora import wire as module
from custody.server.chain.esplora.wire import (
    LONGEST_PAUSE,
    LONGEST_RETRY_AFTER,
    MAX_BODY_BYTES,
    MAX_VALUES,
    RequestPace,
    Wire,
    check_url,
)
from custody.server.errors import ChainUnavailable
from multisig.network import Network
from tests.support.chains import confirmed_coin
from tests.support.dripping import dripping
from tests.support.esplora import AT_ONCE, URL, plain
from tests.support.regtest import FakeClock, open_output, spend
from tests.support.sdk import through

SECRET_URL = "https://user:hunter2@explorer.example.org/key-0123456789/api"


def wire(answer, *, pace=AT_ONCE, clock=None, url=URL):
    return Wire(url, pace=pace, transport=through(httpx.MockTransport(answer)), clock=clock or FakeClock())


@pytest.mark.parametrize(
    "url",
    [
        "https://blockstream.info/api",
        "https://user:password@explorer.example.org/api",
        "http://127.0.0.1:3002",
        "http://[::1]:3002",
        "http://localhost:3002",
        "http://electrs:3002",
        "http://192.168.1.5:3002",
        "http://mempoolhqx4isw62xs7abwphsq7ldayuidyx2v2oethdhhj6mlo2r6ad.onion/api",
    ],
)
def test_an_explorer_is_asked_over_https_or_nearby(url):
    assert check_url(url).hostname


@pytest.mark.parametrize(
    "url",
    [
        "http://blockstream.info/api",
        "http://8.8.8.8/api",
        "ftp://explorer.example.org",
        "https://",
        "explorer.example.org",
        "",
        "https://explorer.example.org/api?key=hunter2",
        "https://user:hunter2@explorer.example.org:99999/",
        "https://user:hunter2@[::1/",
        "https://user:hunter2@exa\u2100mple.org/",
        "https://user:hunter2@example.org/\x00",
        "https://user:hunter2@example.org/a key",
        "https://user:hunter2@example.org/k\u00e9y",
    ],
)
def test_anything_else_is_refused_before_it_is_asked(url):
    with pytest.raises(ValueError, match="explorer") as caught:
        EsploraBackend(url, Network.REGTEST)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(status):
    asked = []

    def answer(request):
        asked.append(request.url.host)
        return httpx.Response(status, headers={"Location": "https://elsewhere.example.org/"})

    with pytest.raises(ChainUnavailable, match="another address"):
        wire(answer).get("/blocks/tip/hash")
    assert asked == ["explorer.example.org"]


class Endless(httpx.SyncByteStream):
    def __init__(self, piece):
        self.piece, self.sent = piece, 0

    def __iter__(self):
        while True:
            self.sent += len(self.piece)
            yield self.piece


def test_an_endless_body_is_cut():
    body = Endless(b"x" * 1_000_000)
    with pytest.raises(ChainUnavailable, match="no whole answer"):
        wire(lambda _: httpx.Response(200, stream=body)).get("/")
    assert body.sent <= MAX_BODY_BYTES + 2_000_000


def test_a_body_that_comes_by_drops_has_a_deadline(monkeypatch):
    monkeypatch.setattr(module, "DEADLINE_SECONDS", 0.3)
    with dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" ") as url:
        backend = EsploraBackend(url, Network.REGTEST)
        with closing(backend), pytest.raises(ChainUnavailable, match="no whole answer"):
            backend.tip()


def test_f_millions_of_empty_values_are_not_read():
    crowded = b"[" + b",".join([b"{}"] * (MAX_VALUES + 1)) + b"]"
    with pytest.raises(ChainUnavailable, match="no whole answer"):
        wire(lambda _: httpx.Response(200, content=crowded)).get("/")


def test_a_server_that_takes_the_question_and_never_answers(monkeypatch):
    monkeypatch.setattr(module, "SILENCE_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/api"
        backend = EsploraBackend(url, Network.REGTEST)
        with closing(backend), pytest.raises(ChainUnavailable, match="TimeoutError"):
            backend.tip()


@pytest.mark.parametrize("status", [401, 403, 429, 500, 502, 503])
def test_p49_no_sentence_names_the_url(status, caplog):
    """Nor does any log."""
    caplog.set_level(logging.DEBUG)
    asked = Wire(SECRET_URL, pace=AT_ONCE, transport=lambda _: HttpReply(status, {}, b"no"))
    with pytest.raises(ChainUnavailable) as caught:
        asked.get("/blocks/tip/hash")
    for secret in ("hunter2", "key-0123456789"):
        assert secret not in str(caught.value) + repr(asked) + caplog.text
    assert "example.org" not in str(caught.value) + repr(asked)


def test_no_cookie_is_kept():
    """What is sent of the URL's user is a header of its own."""
    seen = []

    def answer(request):
        seen.append((request.headers.get("Cookie"), request.headers["Authorization"][:6]))
        return httpx.Response(200, headers={"Set-Cookie": "track=1"}, content=b"x")

    asked = wire(answer, url=SECRET_URL)
    asked.get("/")
    asked.get("/")
    assert seen == [(None, "Basic ")] * 2


class TestPeace:
    """A watcher looks twice a second: what fails is not asked at every look."""

    @pytest.fixture
    def clock(self):
        return FakeClock()

    @pytest.fixture
    def explorer(self, clock):
        class Explorer:
            def __init__(self):
                self.asked = 0
                self.answer = plain("x")
                self.wire = wire(self.handle, pace=RequestPace(), clock=clock)

            def handle(self, _request):
                self.asked += 1
                return self.answer

            def fails(self):
                with pytest.raises(ChainUnavailable):
                    self.wire.get("/")

        return Explorer()

    def test_retry_after_is_kept_to(self, explorer, clock):
        explorer.answer = httpx.Response(429, headers={"Retry-After": "120"})
        explorer.fails()
        explorer.answer = plain("x")
        clock.now += 119
        with pytest.raises(ChainUnavailable) as caught:
            explorer.wire.get("/")
        assert caught.value.retry_after == 1
        assert explorer.asked == 1
        clock.now += 1
        assert explorer.wire.get("/") == b"x"

    @pytest.mark.parametrize(
        ("header", "seconds"),
        [
            *[(header, LONGEST_RETRY_AFTER) for header in ("999999999999", "1" * 400)],
            # Without a number the peace is our own.
            *[(header, 1) for header in ("soon", "-5", "", "Wed, 21 Oct 2026 07:28:00 GMT")],
        ],
    )
    def test_a_retry_after_is_bounded(self, explorer, clock, header, seconds):
        explorer.answer = httpx.Response(429, headers={"Retry-After": header})
        explorer.fails()
        explorer.answer = plain("x")
        clock.now += seconds
        assert explorer.wire.get("/") == b"x"

    def test_each_failure_in_a_row_doubles_it_up_to_a_bound(self, explorer, clock):
        explorer.answer = plain("broken", 502)
        begun = clock.now
        attempts = []
        while clock.now < begun + 2_000:
            before = explorer.asked
            explorer.fails()
            attempts += [clock.now - begun] * (explorer.asked - before)
            clock.now += 0.5
        gaps = [later - earlier for earlier, later in pairwise(attempts)]
        assert gaps[:9] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
        assert set(gaps[9:]) == {LONGEST_PAUSE}


PACE = RequestPace()


class Watched:
    """A hundred scripts, of which a few were paid, looked at as the watcher does."""

    def __init__(self, rig):
        self.rig, self.clock = rig, FakeClock()
        self.coin, self.number = confirmed_coin(rig)
        rig.mine(3)
        self.scripts = [self.coin.script_pubkey] + [open_output(10_000 + each) for each in range(99)]
        self.backend = EsploraBackend(
            URL, Network.REGTEST, pace=PACE, transport=rig.explorer, clock=self.clock
        )

    def look(self, since=0):
        """The kinds of questions that one look makes, and how many of each."""
        self.rig.explorer.asked.clear()
        for target in (2, 6, 72):
            self.backend.fee_estimate(target)
        tip = self.backend.tip()
        self.found = self.backend.outputs_to(self.scripts, since_height=since)
        self.backend.block_at(tip.height)
        assert self.backend.tip().height >= tip.height
        return Counter(path.split("/")[1] for path in self.rig.explorer.asked)


@pytest.fixture
def watched(rig):
    seen = Watched(rig)
    seen.look()
    return seen


def test_the_next_looks_ask_nothing_and_each_script_once_in_a_period(watched):
    assert watched.look() == {}
    watched.clock.now += PACE.tip_seconds
    assert watched.look() == {"blocks": 1}
    watched.clock.now += PACE.scripts_seconds
    asked = watched.look()
    assert (asked["scripthash"], asked["tx"]) == (100, 0)
    assert watched.found == (watched.coin,)
    pace = RequestPace(scripts_seconds=30, requests_per_second=20)
    assert (pace.scripts_period(100), pace.scripts_period(10_000)) == (30, 500), "the more, the less often"


def test_what_was_broadcast_is_looked_for_at_once(watched, rig):
    payment = spend(watched.coin, watched.number, to=open_output(20_000))
    watched.backend.broadcast(payment)
    watched.look()
    assert [each.spent.txid for each in watched.found] == [payment.txid]


def test_what_waits_is_read_again_though_its_count_is_the_same(watched, rig):
    """A sender's fee bump replaces the transaction but leaves the counts the same."""
    source, number = confirmed_coin(rig)
    first = spend(source, number, to=watched.coin.script_pubkey)
    second = spend(source, number, to=watched.coin.script_pubkey, sequence=0xFFFFFFFE)
    rig.send(first)
    watched.clock.now += PACE.scripts_seconds
    watched.look()
    rig.forget()
    rig.send(second)
    watched.clock.now += PACE.scripts_seconds
    watched.look()
    assert {each.outpoint.txid for each in watched.found if each.block is None} == {second.txid}


def test_a_lie_is_not_asked_for_at_every_look(watched, rig):
    """A watcher looks twice a second, and every lie would cost a sweep of all scripts."""
    sweeps = 0
    with rig.explorer.answering("/scripthash/.*", lambda _: plain("<html>")):
        for _ in range(240):
            watched.clock.now += 0.5
            rig.explorer.asked.clear()
            with suppress(ChainUnavailable):
                watched.look()
            sweeps += any("scripthash" in path for path in rig.explorer.asked)
    assert sweeps <= 5

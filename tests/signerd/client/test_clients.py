"""Both shells on a real socket: the same calls, the same errors, and looks that go on after the daemon was
started anew. The client's side: no daemon, a dead one, a mute one, and one that talks nonsense. Answers read
without their shapes, as the command line reads them. Being paired, over TCP; and the text of
docs/build/client.md, run as it stands there.
"""

import asyncio
import contextlib
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from signerd.api.account import AccountApi
from signerd.asking import DaemonAddress, ask, parse, segment
from signerd.client import AsyncDaemonClient, DaemonClient, store_token, stored_token
from signerd.client.flow import PATIENCE_SECONDS, Patience
from signerd.endpoint import socket_path
from signerd.errors import (
    DaemonFailed,
    DaemonNotRunning,
    InvalidRequest,
    NotAllowed,
    RequestTooLarge,
    TooManyStreams,
    UnsafeFolder,
)
from signerd.problems import problem
from signerd.shapes import AuditReport
from tests.support.desk import spend
from tests.support.dripping import dripping
from tests.support.served import make_outer, served_daemon, served_script

PAGE = Path(__file__).parents[3] / "docs" / "build" / "client.md"
REPORT = AuditReport(entries=3, head="00", at=None, fault="one is missing")


def awaited(at, ask):
    async def run():
        async with at if isinstance(at, AsyncDaemonClient) else AsyncDaemonClient(at) as daemon:
            return await ask(daemon)

    return asyncio.run(run())


def waited(at, ask):
    with at if isinstance(at, DaemonClient) else DaemonClient(at) as daemon:
        return ask(daemon)


SHELLS = pytest.mark.parametrize("shell", [waited, awaited])


@SHELLS
def test_a_call_is_answered_in_its_shape(state, shell):
    with served_script(state, verify_audit=REPORT):
        assert shell(state, lambda daemon: daemon.verify_audit()) == REPORT


@SHELLS
def test_l12_neither_shell_talks_to_a_folder_that_others_can_enter(state, shell):
    with served_script(state, sign_out=None):
        state.chmod(0o755)
        with pytest.raises(UnsafeFolder):
            shell(state, lambda daemon: daemon.sign_out())
        state.chmod(0o700)


@SHELLS
@pytest.mark.parametrize(
    "url",
    [
        "http://example.org:8000",
        "http://localhost:8000",
        "https://127.0.0.1:8000",
        "http://127.0.0.1.example.org",
        "http://me@127.0.0.1:8000",
        "http://127.0.0.1:8000/v1",
        "http://127.0.0.1:99999",
        "127.0.0.1:8000",
        "",
    ],
)
def test_l10_a_token_goes_to_this_machine_only(shell, url):
    kind = DaemonClient if shell is waited else AsyncDaemonClient
    with pytest.raises(InvalidRequest):
        kind.at(url, "secret-token")


def test_l10_a_token_does_not_show_when_it_is_printed():
    with DaemonClient.at("http://127.0.0.1:9", "secret-token") as client:
        assert "secret-token" not in repr(client.address) + str(client.address) + repr(client)


def test_f_a_look_is_due_now_at_each_line_and_when_the_daemon_is_back(state):
    """Also where the new daemon has nothing to tell."""
    served, pauses = contextlib.ExitStack(), []

    def sleep(seconds):
        pauses.append(seconds)
        served.enter_context(served_script(state))

    with served:
        with served_script(state) as found:
            found.feed("p-1", "info", "before")
            client = served.enter_context(DaemonClient(state, sleep=sleep))
            looks = client.changes("p-1")
            next(looks)
            found.feed("p-2", "info", "another's")
            found.feed("p-1", "info", "now")
            next(looks)
        next(looks)
        assert len(pauses) == 1
        looks.close()


def test_a_daemon_that_stays_away_is_given_up():
    patience, pauses = Patience(), []

    def wait():
        while True:
            pauses.append(patience.pause(TooManyStreams("x")))

    with pytest.raises(TooManyStreams):
        wait()
    assert sum(pauses) == PATIENCE_SECONDS
    with pytest.raises(DaemonNotRunning):
        patience.pause(None)
    patience.answered()
    assert patience.pause(None) < 1


def answering(state, answer: bytes, drop: bytes | None = None) -> AbstractContextManager[str]:
    """A server that gives everybody the same bytes, and then this drop again and again for ever."""
    return dripping(answer, drop, str(socket_path(state)))


def http(body: bytes, status: str = "200 OK", kind: str = "application/json") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        http(b"{}"),
        http(b"[]"),
        http(b"not json"),
        http(b"\xff\xfe"),
        http(b'{"version": 1}'),
        http(b"<html>", "500 Oops", "text/html"),
        http(b"[1]", "500 Oops"),
        http(b"{}", "500 Oops"),
        http(b"", "302 Found"),
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{",
    ],
)
def test_nonsense_is_named_as_such(state, answer):
    with answering(state, answer), DaemonClient(state) as client, pytest.raises(DaemonFailed):
        client.status()


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("first", "drop", "seconds", "told"),
    [
        (b"", b"", 0.3, "in time"),
        (HEAD + b"X-Drip: ", b"x", 0.3, "in time"),
        (HEAD + b"Content-Length: 1000000\r\n\r\n", b" ", 0.3, "in time"),
        (HEAD + b"Content-Length: 67108865\r\n\r\n", b" " * (1 << 22), 60, "more than 67,108,864 bytes"),
        (HEAD + b"Content-Encoding: gzip\r\nContent-Length: 1000000\r\n\r\n", b" ", 60, "compressed"),
    ],
    ids=["mute", "headers", "body", "large", "packed"],
)
def test_f_a_daemon_that_comes_to_no_end_or_fills_the_memory_is_given_up(state, first, drop, seconds, told):
    with answering(state, first, drop), DaemonClient(state) as client:
        address = DaemonAddress.of_folder(state)
        signing_out = AccountApi.sign_out.request(address)
        asking = ask(address, replace(signing_out, silence=seconds, whole=seconds))
        with pytest.raises(DaemonFailed, match=told):
            client.run(asking)


@pytest.mark.parametrize("text", ["", "..", "../session", "a/b", "a?b", "a#b", "%2e", "a b", "a\r\nb", "é"])
def test_l10_an_id_that_could_lead_elsewhere_is_none(text):
    with pytest.raises(InvalidRequest, match="cannot be the id of anything"):
        segment(text)


def test_a_stream_that_breaks_off_is_an_error_and_not_an_end(state):
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11\r\n: still here\n\n"
    with (
        answering(state, answer),
        DaemonClient(state) as client,
        client.follow() as lines,
        pytest.raises(DaemonFailed),
    ):
        list(lines)


@SHELLS
def test_a_body_that_is_refused_before_it_is_read_is_answered_all_the_same(state, shell):
    said = json.dumps(problem(RequestTooLarge("too large"))).encode()
    with answering(state, http(said, "413 Too Large")), pytest.raises(RequestTooLarge, match="too large"):
        shell(state, lambda daemon: daemon.inspect_psbt("A" * 8_000_000))


def test_neither_a_proxy_nor_a_redirect_takes_the_words_elsewhere(state, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    moved = b"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n"
    with answering(state, moved), DaemonClient(state) as client, pytest.raises(DaemonFailed):
        client.sign_in("a@example.org", "secret")


def test_an_answer_has_the_attributes_of_its_shape_and_is_printed_as_it_came(tmp_path):
    with served_script(tmp_path / "s", verify_audit=REPORT), DaemonClient.plain(tmp_path / "s") as daemon:
        found = daemon.verify_audit()
    assert (found.entries, found.at, found.fault) == (3, None, "one is missing")
    assert found.as_json() == REPORT.model_dump(mode="json")


def test_fields_inside_fields_and_lists():
    told = {"checks": [{"name": "fee", "figures": {"sats": 1}}], "keys": "a field, and no method"}
    found = parse(json.dumps(told))
    assert found.checks[0].figures.sats == 1
    assert "sats" in found.checks[0].figures
    assert found.keys == told["keys"]
    assert found.as_json() == told


def test_a_field_that_is_not_there_is_told_as_another_version():
    with pytest.raises(DaemonFailed, match="another version of signerd"):
        _ = parse("{}").version


@pytest.mark.parametrize("content", [b"", b"not json", b"1", b'"text"', b"null", b"[" * 100_000, b"\xff\xfe"])
def test_what_is_no_answer_is_refused(content):
    with pytest.raises(ValueError):
        parse(content)


@pytest.fixture
def daemon(tmp_path):
    outer = make_outer(tmp_path)
    outer.platform.proposals.clear()
    with served_daemon(tmp_path / "s", outer, port=0) as found:
        yield found


def url(daemon):
    with daemon.client() as person:
        return person.status().page_url


def answered(daemon, shell, answer, *given):
    """The shell waits in another thread, as an app does; the person answers to the code that it shows."""
    shown, codes = threading.Event(), []

    def show(code, seconds):
        assert seconds > 0
        codes.append(code)
        shown.set()

    with ThreadPoolExecutor(1) as pool, daemon.client() as person:
        at = (DaemonClient if shell is waited else AsyncDaemonClient).at(url(daemon))
        asking = pool.submit(shell, at, lambda app: app.pair("Shop", {"read", "propose"}, show, *given))
        assert shown.wait(20)
        (request,) = person.pairings()
        answer(person, request, codes[0])
        return asking.result(20)


def accept(person, request, code):
    person.accept_pairing(request.id, code, {"read"})


@SHELLS
def test_the_granted_token_is_stored_for_its_owner_only(daemon, tmp_path, shell):
    file = tmp_path / "token"
    granted = answered(daemon, shell, accept, file)
    assert granted.rights == ("read",)
    assert stored_token(file) == granted.token
    assert granted.token not in repr(granted)
    with DaemonClient.at(url(daemon), granted.token) as app:
        assert app.me().rights == ("read",)
        with pytest.raises(NotAllowed):
            app.import_psbt("cHNidP8=")


def test_a_no_is_an_error_and_stores_nothing(daemon, tmp_path):
    file = tmp_path / "token"
    with pytest.raises(NotAllowed, match="refused to pair this app"):
        answered(daemon, waited, lambda person, request, _code: person.refuse_pairing(request.id), file)
    assert stored_token(file) is None


def test_l12_a_token_that_others_could_have_read_is_not_used(tmp_path):
    file = tmp_path / "token"
    store_token(file, "t")
    file.chmod(0o644)
    with pytest.raises(UnsafeFolder):
        stored_token(file)


def test_a_token_takes_the_place_of_the_one_before_and_of_no_link_s_target(tmp_path):
    target, file = tmp_path / "target", tmp_path / "token"
    target.write_text("mine")
    file.symlink_to(target)
    store_token(file, "t")
    assert (target.read_text(), stored_token(file)) == ("mine", "t")
    with pytest.raises(UnsafeFolder):
        store_token(tmp_path / "nowhere" / "token", "t")


@pytest.fixture
def ten_lines():
    text = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    given: dict[str, object] = {}
    exec(text, given)
    return given["signed"]


def test_f_ten_lines_to_a_signature_and_to_the_same_one_after_a_restart(tmp_path, ten_lines):
    """What happened before the restart, no event tells any more."""
    token, psbt, outer = tmp_path / "token", spend().to_base64(), make_outer(tmp_path)
    outer.platform.proposals.clear()
    with served_daemon(tmp_path / "s", outer, port=0) as daemon:
        signed = first_time(daemon, ten_lines, token, psbt)
    assert signed.startswith("cHNidP")
    assert signed != psbt
    with (
        served_daemon(tmp_path / "s", outer, prepared=False, port=0) as daemon,
        ThreadPoolExecutor(1) as pool,
    ):
        assert pool.submit(ten_lines, url(daemon), token, psbt).result(20) == signed
    assert outer.bridge.asked == 1


def first_time(daemon, ten_lines, token, psbt):
    """The app is paired, and the person approves what it imports."""
    with ThreadPoolExecutor(1) as pool, daemon.client() as person:
        asking = pool.submit(ten_lines, url(daemon), token, psbt)
        daemon.until(lambda: asking.done() or bool(daemon.service.apps._requests.waiting()))
        (request,) = person.pairings()
        person.accept_pairing(request.id, request.code)
        daemon.until(lambda: asking.done() or bool(daemon.service.journal.imported.waiting()))
        approve_when_it_waits(person)
        return asking.result(30)


def approve_when_it_waits(person):
    (line,) = person.imported_psbts()
    for _ in person.changes(line.psbt_id):
        view = person.proposal(line.psbt_id)
        if view.state == "waiting-for-person":
            person.approve(line.psbt_id, view.digest, view.to_acknowledge)
            return

"""Being paired, over TCP, in both shells; and the text of docs/build/client.md, run as it stands there."""

import asyncio
import re
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from signerd.client import AsyncDaemonClient, DaemonClient, store_token, stored_token
from signerd.errors import NotAllowed, UnsafeFolder
from tests.support.served import make_outer, served_daemon

PAGE = Path(__file__).parents[3] / "docs" / "build" / "client.md"


@pytest.fixture
def daemon(tmp_path):
    outer = make_outer(tmp_path)
    outer.platform.proposals.clear()
    with served_daemon(tmp_path / "s", outer, port=0) as found:
        yield found


def url(daemon):
    with daemon.client() as person:
        return person.status().page_url


def waited(at, *given):
    with DaemonClient.at(at) as client:
        return client.pair(*given)


def awaited(at, *given):
    async def run():
        async with AsyncDaemonClient.at(at) as client:
            return await client.pair(*given)

    return asyncio.run(run())


SHELLS = pytest.mark.parametrize("shell", [waited, awaited])


def answered(daemon, shell, answer, *given):
    """The shell waits in another thread, as an app does; the person answers to the code that it shows."""
    shown, codes = threading.Event(), []

    def show(code, seconds):
        assert seconds > 0
        codes.append(code)
        shown.set()

    with ThreadPoolExecutor(1) as pool, daemon.client() as person:
        asking = pool.submit(shell, url(daemon), "Shop", {"read", "propose"}, show, *given)
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
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
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
    token, psbt, outer = tmp_path / "token", make_psbt(), make_outer(tmp_path)
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


def approve(person, _app):
    approve_when_it_waits(person)


def first_time(daemon, ten_lines, token, psbt, answer=approve):
    """The app is paired, and the person answers to what it imports."""
    with ThreadPoolExecutor(1) as pool, daemon.client() as person:
        asking = pool.submit(ten_lines, url(daemon), token, psbt)
        daemon.until(lambda: asking.done() or bool(daemon.service.apps._requests.waiting()))
        (request,) = person.pairings()
        person.accept_pairing(request.id, request.code)
        daemon.until(lambda: asking.done() or bool(daemon.service.journal.imported.waiting()))
        with DaemonClient.at(url(daemon), stored_token(token)) as app:
            answer(person, app)
        return asking.result(30)


def approve_when_it_waits(person):
    (line,) = person.imported_psbts()
    for _ in person.changes(line.psbt_id):
        view = person.proposal(line.psbt_id)
        if view.state == "waiting-for-person":
            person.approve(line.psbt_id, view.digest, view.to_acknowledge)
            return


def make_psbt():
    from tests.support.desk import spend

    return spend().to_base64()

"""One session, one request: what a second host destroys, and what can be recovered."""

import asyncio
import socket

import pytest

from device_simulators.errors import AddressUnavailable, InvalidListenAddress
from device_simulators.fleet import Settings, build
from device_simulators.panel import Panel, approve_all, ask_person
from firmware_bridge.model import Family
from multisig import Psbt, verify_signatures
from tests.conformance.second_program import open_coldcard
from tests.support.coldcard import (
    SEED,
    VAULT,
    CCProtocolPacker,
    CCProtoError,
    enrol,
    host,
    knows,
    on_thread,
    poll,
    record,
    running,
    sign,
    socket_path,
    start_signing,
    text_file,
)
from tests.support.patience import PATIENCE
from tests.support.virtual import refuse_kind
from tests.support.wallets import make_spend

pytestmark = pytest.mark.anyio

PSBT = make_spend(VAULT).to_bytes()


def version(path):
    with host(path) as client:
        return client.firmware_version()[1]


async def test_the_link_is_proved_by_the_master_key_s21(tmp_path):
    def work(path):
        with host(path) as client:
            client.check_mitm()
            assert client.master_fingerprint == int.from_bytes(bytes(SEED.fingerprint), "little")
            other = client.send_recv(CCProtocolPacker.get_xpub("m/1"))
            with pytest.raises(RuntimeError, match="MiTM"):
                client.check_mitm(expected_xpub=other)

    async with running(tmp_path) as (_, path):
        await on_thread(work, path)


async def test_it_says_which_release_it_follows():
    plugged = build(Family.COLDCARD, SEED, Panel(approve_all), Settings())
    try:
        endpoint = await plugged.plug()
        assert await on_thread(version, endpoint.place) == "5.6.1"
    finally:
        await plugged.device.stop()
        plugged.discard()


async def test_it_gives_a_result_to_the_link_it_was_made_on_and_nothing_else(tmp_path):
    def work(path):
        with host(path) as client:
            enrol(client, text_file(VAULT))
            start_signing(client, PSBT)
            size, digest = poll(client, CCProtocolPacker.get_signed_txn())
            with pytest.raises(CCProtoError, match="not allowed"):
                client.download_file(size, digest, file_number=0)
            assert client.download_file(size, digest)
        with host(path) as client, pytest.raises(CCProtoError, match="not allowed"):
            client.download_file(size, digest)

    async with running(tmp_path) as (_, path):
        await on_thread(work, path)


async def test_an_upload_while_something_else_is_asked(tmp_path):
    def work(path):
        with host(path) as client:
            client.send_recv(CCProtocolPacker.sign_message(b"take your time", "m/0"))
            with pytest.raises(RuntimeError, match="another request"):
                client.upload_file(PSBT)

    async with running(tmp_path, script=ask_person) as (_, path):
        await on_thread(work, path)


async def test_bytes_that_changed_while_the_person_looked_are_not_signed(tmp_path):
    def begin(path):
        with host(path) as client:
            enrol(client, text_file(VAULT))
            device.panel.script = ask_person
            start_signing(client, PSBT)
            client.upload_file(make_spend(VAULT, fee=2_000).to_bytes())
            client.send_recv(CCProtocolPacker.sim_keypress(b"y"))
            with pytest.raises(CCProtoError, match="Transaction modified"):
                poll(client, CCProtocolPacker.get_signed_txn())

    async with running(tmp_path, allow_keypress=True) as (device, path):
        await on_thread(begin, path)


async def test_a_second_connection_destroys_the_first_and_the_prompt_stays(tmp_path):
    def work(path):
        with host(path) as first:
            enrol(first, text_file(VAULT))
            device.panel.script = ask_person
            start_signing(first, PSBT)
            with host(path), pytest.raises(CCProtoError, match=r"Unknown response signature|Framing Error"):
                first.send_recv(CCProtocolPacker.get_signed_txn())

    async with running(tmp_path) as (device, path):
        shown = record(device.panel)
        await on_thread(work, path)
        assert shown[-1].kind == "sign-transaction"
        assert device.panel.pending is not None


@pytest.mark.parametrize("command", [b"xpubm", b"mitm"])
async def test_nothing_about_keys_in_the_clear(tmp_path, command):
    def work(path):
        with host(path, encrypt=False) as client, pytest.raises(CCProtoError, match="must encrypt"):
            client.send_recv(command)

    async with running(tmp_path) as (_, path):
        await on_thread(work, path)


async def test_a_locked_device_does_not_tell_who_it_is(tmp_path):
    def work(path):
        with open_coldcard(path) as client:
            return client.get_master_fingerprint()

    async with running(tmp_path) as (device, path):
        device.lock()
        with pytest.raises(CCProtoError, match="is locked"):
            await on_thread(work, path)
        device.unlock()
        assert await on_thread(work, path) == bytes(device.fingerprint)


async def test_locking_takes_the_prompt_off_the_screen(tmp_path):
    def work(path):
        with host(path) as client:
            size, digest = client.upload_file(text_file(VAULT))
            client.send_recv(CCProtocolPacker.multisig_enroll(size, digest))

    async with running(tmp_path, script=ask_person) as (device, path):
        await on_thread(work, path)
        assert device.panel.pending is not None
        device.lock()
        async with asyncio.timeout(PATIENCE):
            while device.panel.pending is not None:  # noqa: ASYNC110 - the panel has no event for it
                await asyncio.sleep(0)


async def test_two_devices_do_not_share_a_socket(tmp_path):
    async with running(tmp_path) as (_, path), running(tmp_path) as (other, _):
        with pytest.raises(AddressUnavailable, match="listens"):
            await other.start(path)


async def test_a_socket_that_no_process_listens_on_is_taken_over(tmp_path):
    path = socket_path(tmp_path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(path))
    async with running(tmp_path) as (device, _):
        endpoint = await device.start(path)
        assert str(endpoint) == f"coldcard:unix:{path}"
        assert path.stat().st_mode & 0o777 == 0o600
    assert not path.exists()


async def test_places_where_no_socket_can_be(tmp_path):
    file = tmp_path / "file.sock"
    file.touch()
    async with running(tmp_path) as (device, _):
        with pytest.raises(AddressUnavailable, match="not a socket"):
            await device.start(file)
        with pytest.raises(AddressUnavailable, match="no such folder"):
            await device.start(tmp_path / "nowhere" / "cc-1.sock")
        with pytest.raises(InvalidListenAddress):
            await device.start(tmp_path / ("x" * 120))
    assert file.exists()


async def test_s23_noise_on_the_socket_does_no_harm(tmp_path):
    def work(path):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as nameless:
            for noise in (b"", b"\xff", b"\xff" * 64, b"\x84vers".ljust(64, b"\0"), b"x" * 4000):
                nameless.sendto(noise, path)
        assert version(path) == "5.6.1"

    async with running(tmp_path) as (_, path):
        await on_thread(work, path)


async def test_a_vault_is_offered_for_import_from_the_transactions_xpubs(tmp_path):
    def work(path):
        with host(path) as client:
            once = sign(client, PSBT)
            return once, sign(client, once), knows(client, VAULT)

    async with running(tmp_path) as (device, path):
        shown = record(device.panel)
        once, twice, known = await on_thread(work, path)
    # Signing again asks again, and adds nothing.
    assert [prompt.kind for prompt in shown] == ["import-wallet", "sign-transaction", "sign-transaction"]
    assert known
    assert once == twice
    assert verify_signatures(Psbt.parse(once), VAULT).progress == 1


async def test_a_refused_import_is_told_apart_from_a_refused_transaction(tmp_path):
    def work(path):
        with host(path) as client, pytest.raises(CCProtoError, match="Refused to import new wallet"):
            sign(client, PSBT)

    async with running(tmp_path, script=refuse_kind("import-wallet")) as (device, path):
        await on_thread(work, path)
        assert list(device.wallets) == []

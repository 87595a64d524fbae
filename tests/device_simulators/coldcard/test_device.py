"""One session, one request: what a second host destroys, and what can be recovered."""

import asyncio
import socket

import pytest

from device_simulators.coldcard import XpubPolicy
from device_simulators.coldcard import device as coldcard_device
from device_simulators.coldcard import flows as coldcard_flows
from device_simulators.coldcard.wallet import WalletStore
from device_simulators.coldcard.wire import Message, to_packets
from device_simulators.errors import AddressUnavailable, InvalidListenAddress
from device_simulators.faults import Faults
from device_simulators.fleet import Settings, build
from device_simulators.panel import Panel, approve_all, ask_person
from firmware_bridge.model import Family
from multisig import DerivationPath, Psbt, recover_message_key, verify_signatures
from tests.conformance.second_program import open_coldcard
from tests.support.coldcard import (
    SEED,
    VAULT,
    CCProtocolPacker,
    CCProtoError,
    collect,
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


async def test_a_newer_transaction_takes_the_place_of_an_open_one(tmp_path):
    newer = make_spend(VAULT, fee=2_000)

    def work(path):
        with host(path) as client:
            enrol(client, text_file(VAULT))
            device.panel.script = ask_person
            start_signing(client, PSBT)
            device.panel.script = approve_all
            return sign(client, newer.to_bytes())

    async with running(tmp_path) as (device, path):
        signed = Psbt.parse(await on_thread(work, path))
        assert device.panel.pending is None
    assert signed.tx == newer.tx


async def test_the_bound_link_takes_no_second_handshake(tmp_path):
    def work(path):
        with host(path, ncry_ver=2) as client:
            client.send_recv(CCProtocolPacker.version())
            with pytest.raises(CCProtoError, match="must encrypt"), host(path):
                pass

    async with running(tmp_path) as (_, path):
        await on_thread(work, path)


@pytest.mark.parametrize("command", [b"xpubm", b"mitm"])
async def test_nothing_about_keys_in_the_clear(tmp_path, command):
    def work(path):
        with host(path, encrypt=False) as client, pytest.raises(CCProtoError, match="must encrypt"):
            client.send_recv(command)

    async with running(tmp_path) as (_, path):
        await on_thread(work, path)


@pytest.mark.parametrize("command", [b"hack", b"EXECimport os", b"EVAL1", b"back", b"XKEYy"])
async def test_what_is_not_offered_is_an_unknown_command(tmp_path, command):
    """No code from a host is run, and no host presses the buttons unless the device was told to allow it."""

    def work(path):
        with host(path) as client, pytest.raises(CCProtoError, match="Unknown cmd"):
            client.send_recv(command)

    async with running(tmp_path) as (_, path):
        await on_thread(work, path)


async def test_a_host_may_press_the_buttons_where_that_is_allowed(tmp_path):
    def work(path):
        with host(path) as client:
            client.send_recv(CCProtocolPacker.sim_keypress(b"y"))  # nothing is asked: no effect
            size, digest = client.upload_file(text_file(VAULT))
            client.send_recv(CCProtocolPacker.multisig_enroll(size, digest))
            client.send_recv(CCProtocolPacker.sim_keypress(b"y"))
            assert knows(client, VAULT)
            start_signing(client, PSBT)
            client.send_recv(CCProtocolPacker.sim_keypress(b"x"))
            with pytest.raises(RuntimeError, match="refused"):
                collect(client)

    async with running(tmp_path, script=ask_person, allow_keypress=True) as (_, path):
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


async def test_trusting_the_transactions_xpubs_asks_once_and_records_nothing(tmp_path):
    def work(path):
        with host(path) as client:
            signed = sign(client, PSBT)
            assert not knows(client, VAULT)
            return signed

    async with running(tmp_path, xpub_policy=XpubPolicy.TRUST) as (device, path):
        shown = record(device.panel)
        await on_thread(work, path)
    assert [prompt.kind for prompt in shown] == ["sign-transaction"]


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


async def test_a_host_that_does_not_read_loses_answers_and_holds_up_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(coldcard_device, "SEND_RETRIES", 3)
    question = to_packets(Message(b"ping" + bytes(2048), encrypted=False))

    def work(path):
        with host(path) as deaf:
            for _ in range(20):  # more than the socket's buffer holds
                for packet in question:
                    deaf.dev.pipe.send(packet)
        assert version(path) == "5.6.1"

    async with running(tmp_path) as (_, path):
        await on_thread(work, path)


async def test_a_host_that_is_gone_before_its_answer(tmp_path):
    def work(path):
        with host(path) as leaving:
            leaving.dev.pipe.send(to_packets(Message(b"vers", encrypted=False))[0])
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


async def test_a_broken_message_signature_does_not_recover_to_the_key(tmp_path):
    def work(path):
        with host(path) as client:
            client.send_recv(CCProtocolPacker.sign_message(b"hello", "m/0"))
            return poll(client, CCProtocolPacker.get_signed_msg())[1]

    async with running(tmp_path, faults=Faults(wrong_signatures=frozenset({0}))) as (_, path):
        signature = await on_thread(work, path)
    assert recover_message_key("hello", signature) != SEED.public_key(DerivationPath.parse("m/0"))


async def test_an_unforeseen_error_is_an_answer_too(tmp_path, monkeypatch, caplog):
    """No host brings the device down, or is left waiting by it."""

    def broken(*_arguments):
        raise ZeroDivisionError

    def work(path):
        with host(path) as client:
            enrol(client, text_file(VAULT))
            monkeypatch.setattr(coldcard_flows, "sign", broken)
            with pytest.raises(CCProtoError, match="Confused"):
                sign(client, PSBT)
            monkeypatch.setattr(WalletStore, "knows", broken)
            with pytest.raises(CCProtoError, match="Confused"):
                knows(client, VAULT)

    async with running(tmp_path) as (_, path):
        await on_thread(work, path)
    assert [record.exc_info[0] for record in caplog.records] == [ZeroDivisionError] * 2

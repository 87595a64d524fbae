"""The commands: what their arguments must be, in which words others are refused; and what depends on the
device's mode: a passphrase, a policy, an older model.
"""

import asyncio
from hashlib import sha256
from struct import pack

import pytest
from hwilib.devices.ckcc.constants import AF_P2WPKH
from hypothesis import given
from hypothesis import strategies as st

from device_simulators.coldcard import arguments
from device_simulators.coldcard.arguments import script_to_show
from device_simulators.coldcard.firmware import check_text
from device_simulators.coldcard.replies import CommandRefused
from device_simulators.coldcard.story import Format, single_key_format, single_key_script
from device_simulators.panel import ask_person
from multisig import (
    DerivationPath,
    Network,
    decode_address,
    hash160,
    message_hash,
    p2pkh,
    p2sh,
    p2wpkh,
    recover_message_key,
)
from tests.support.coldcard import (
    NETWORK,
    SEED,
    VAULT,
    CCProtocolPacker,
    CCProtoError,
    enrol,
    host,
    knows,
    on_thread,
    poll,
    running,
    start_signing,
    text_file,
    vault_with_device,
)
from tests.support.wallets import make_spend

pytestmark = pytest.mark.anyio


DIGEST = bytes(32)


def xfp_path(origin, chain, index):
    """One cosigner as the `p2sh` command has it: numbers, the fingerprint first."""
    return [int.from_bytes(bytes(origin.fingerprint), "little"), *origin.path, chain, index]


def show_command(vault, chain=0, index=0, address_format=Format.P2WSH):
    script = vault.witness_script(chain, index)
    by_key = {
        key.xpub.derive_public_key(chain, index): xfp_path(key.origin, chain, index)
        for key in vault.cosigners
    }
    paths = [by_key[key] for key in sorted(by_key)]
    return CCProtocolPacker.show_p2sh_address(vault.threshold, paths, script, addr_fmt=address_format)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (b"xpubm/0/x", "invalid characters in path"),
        (b"xpub" + b"m/" + b"/".join([b"1"] * 13), "too deep"),
        (b"xpub\xff\xff", "must be ascii printable"),
        (b"upld\0\0", "badlen"),
        (b"dwld" + bytes(11), "badlen"),
        (b"ncry" + bytes(10), "badlen"),
        (b"ncry" + pack("<I", 1) + b"\1" * 64, "bad pubkey"),
        (pack("<4sII32s", b"stxn", 50, 0, DIGEST), "badlen"),
        (pack("<4sII32s", b"stxn", 2 * 1024 * 1024 + 1, 0, DIGEST), "badlen"),
        (pack("<4sII32s", b"stxn", 1000, 1, DIGEST), "only partial PSBTs"),
        (pack("<4sII32s", b"stxn", 1000, 0, DIGEST), "Checksum"),
        (pack("<4sI32s", b"enrl", 1000, DIGEST), "Checksum"),
        (pack("<4sIII", b"smsg", 1, 3, 9) + b"m/0", "badlen"),
        (CCProtocolPacker.sign_message(b"hello", "m/0", 14), "Unknown/unsupported addr format"),
        (CCProtocolPacker.sign_message(b"hello", "m/0", 35), "Unknown/unsupported addr format"),
        (CCProtocolPacker.sign_message(b"hello", "n/0"), "invalid characters in path"),
        (CCProtocolPacker.sign_message(b"x"), "msg too short"),
        (b"show\1", "badlen"),
        (b"show" + pack("<I", 14) + b"m", "Unknown/unsupported addr format"),
        (show_command(vault_with_device(account=1)), "with those fingerprints not found"),
        (show_command(VAULT, address_format=8), "Unknown/unsupported addr format"),
        (b"p2sh" + bytes(8), "badlen"),
        (b"stok", "No active request"),
        (b"smok", "No active request"),
    ],
)
async def test_what_is_wrong_is_named(tmp_path, command, reason):
    def work(path):
        with host(path) as client:
            enrol(client, text_file(VAULT))
            with pytest.raises(CCProtoError, match=reason):
                client.send_recv(command)

    async with running(tmp_path) as (device, path):
        await on_thread(work, path)
        assert device.panel.pending is None


async def test_unsafe_link_versions_are_refused(tmp_path):
    def work(path):
        with host(path, encrypt=False) as client, pytest.raises(CCProtoError, match="bad ncry version"):
            client.send_recv(b"ncry" + pack("<I", 3) + bytes(64))

    async with running(tmp_path) as (_, path):
        await on_thread(work, path)


@pytest.mark.parametrize("size", [100, 4001])
async def test_an_enrolment_file_has_its_bounds(tmp_path, size):
    def work(path):
        with host(path) as client:
            length, digest = client.upload_file(b"#" * size)
            assert digest == sha256(b"#" * size).digest()
            with pytest.raises(CCProtoError, match="badlen"):
                client.send_recv(CCProtocolPacker.multisig_enroll(length, digest))

    async with running(tmp_path) as (_, path):
        await on_thread(work, path)


async def test_the_small_questions(tmp_path):
    def work(path):
        with host(path) as client:
            assert client.send_recv(CCProtocolPacker.ping(b"\x00\xffhello")) == b"\x00\xffhello"
            assert client.send_recv(CCProtocolPacker.block_chain()) == "XTN"
            assert client.firmware_version()[1] == "5.6.1"
            assert not client.is_edge()

    async with running(tmp_path) as (_, path):
        await on_thread(work, path)


async def test_the_host_hears_that_the_person_is_still_thinking(tmp_path):
    def work(path):
        with host(path) as client:
            client.send_recv(CCProtocolPacker.sign_message(b"take your time", "m/0"))
            assert client.send_recv(CCProtocolPacker.get_signed_msg()) is None
            assert client.send_recv(CCProtocolPacker.get_signed_msg()) is None
            device.panel.script = ask_person

    async with running(tmp_path, script=ask_person) as (device, path):
        await on_thread(work, path)


async def test_an_address_takes_the_screen_from_a_transaction_but_a_quorums_waits(tmp_path):
    """As the firmware does: a plain address throws an open signing prompt away, a multisig one is told
    "busy".
    """

    def work(path):
        with host(path) as client:
            enrol(client, text_file(VAULT))
            device.panel.script = ask_person
            start_signing(client, make_spend(VAULT).to_bytes())
            with pytest.raises(RuntimeError, match="another request"):
                client.send_recv(show_command(VAULT))
            # The script is looked at only when the screen is free.
            script = VAULT.witness_script(0, 1)
            at, other = 12, show_command(VAULT)
            with pytest.raises(RuntimeError, match="another request"):
                client.send_recv(other[:at] + script + other[at + len(script) :])
            client.send_recv(CCProtocolPacker.show_address("m/0", Format.P2WPKH))
            address = client.send_recv(show_command(VAULT, 1, 5))
            assert decode_address(address, Network.TESTNET4) == VAULT.script_pubkey(1, 5)

    async with running(tmp_path) as (device, path):
        await on_thread(work, path)
        _, prompt = device.panel.pending
        assert prompt.kind == "show-address"
        at = prompt.lines.index("Wallet:")
        assert prompt.lines[at : at + 4] == ("Wallet:", "  Treasury", "  2 of 3", "Paths:")
        # Of each cosigner, in the script's order; the account's path cannot be told from here.
        assert set(prompt.lines[at + 4 : at + 7]) == {
            f"[{key.fingerprint.hex.upper()}/_/_/_/_/1/5]" for key in VAULT.cosigners
        }


@pytest.mark.parametrize("damage", [{"index": 1}, {"chain": 1}])
async def test_an_address_is_shown_only_with_the_keys_own_paths(tmp_path, damage):
    good = show_command(VAULT)
    other = show_command(VAULT, **damage)
    script_size = len(VAULT.witness_script(0, 0))
    mixed = good[: 12 + script_size] + other[12 + script_size :]

    def work(path):
        with host(path) as client:
            enrol(client, text_file(VAULT))
            with pytest.raises(CCProtoError, match="wrong, tried"):
                client.send_recv(mixed)

    async with running(tmp_path) as (_, path):
        await on_thread(work, path)


@pytest.mark.parametrize(
    ("chosen", "script"),
    [
        (Format.P2PKH, lambda key: p2pkh(hash160(key))),
        (Format.P2WPKH, p2wpkh),
        (Format.P2WPKH_IN_P2SH, lambda key: p2sh(hash160(p2wpkh(key)))),
    ],
)
async def test_a_text_is_signed_for_every_single_key_format(tmp_path, chosen, script):
    key = SEED.public_key(DerivationPath.parse("m/84h/1h/0h/0/3"))

    def work(path):
        with host(path) as client:
            client.send_recv(CCProtocolPacker.sign_message(b"hello there", "84'/1'/0'/0/3", chosen))
            return poll(client, CCProtocolPacker.get_signed_msg())

    async with running(tmp_path) as (_, path):
        address, signature = await on_thread(work, path)
    assert decode_address(address, Network.TESTNET4) == script(key) == single_key_script(key, chosen)
    assert recover_message_key("hello there", signature) == key
    assert message_hash("hello there") != message_hash("hello  there")


@pytest.mark.parametrize("text", ["ab", "x" * 240, "a  b", "Register key 7: 100% mine!"])
def test_texts_that_the_screen_can_show(text):
    assert check_text(text.encode()) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a", "too short"),
        ("x" * 241, "too long"),
        ("a   b", "too many spaces"),
        (" ab", "leading"),
        ("ab ", "trailing"),
        ("a\nb", "printable"),
        ("caf\u00e9", "printable"),
    ],
)
def test_texts_that_it_cannot(text, reason):
    with pytest.raises(CommandRefused, match=reason):
        check_text(text.encode())


@pytest.mark.parametrize("text", ["m", "", "m/48'/1'/0'/2'", "48h/1H/0'/2p", " m/0 "])
def test_paths_as_hosts_write_them(text):
    assert len(arguments.path(text)) in {0, 1, 4}


@pytest.mark.parametrize("number", [0, 8, 14, 26, 35, 2**32 - 1])
def test_formats_without_a_single_key(number):
    with pytest.raises(CommandRefused):
        single_key_format(number)


@given(st.binary(max_size=700))
def test_s23_any_bytes_for_an_address_are_parsed_or_refused(data):
    try:
        request = script_to_show(data)
    except CommandRefused:
        return
    assert 1 <= request.threshold <= len(request.origins) <= 15


@given(st.integers(0, 200))
def test_s23_a_cut_address_request_is_refused(cut):
    with pytest.raises(CommandRefused):
        script_to_show(show_command(VAULT)[4 : -cut - 1])


def test_an_address_request_is_read_as_it_was_written():
    request = script_to_show(show_command(VAULT, 1, 9)[4:])
    assert request.script == VAULT.witness_script(1, 9)
    assert {origin.fingerprint for origin in request.origins} == {key.fingerprint for key in VAULT.cosigners}
    assert all(origin.path.indexes[-2:] == (1, 9) for origin in request.origins)


MASTER = DerivationPath(())


def _look(client):
    """Whose keys there are, and whether the vault is on record."""
    return client.send_recv(CCProtocolPacker.get_xpub("m")), knows(client, VAULT)


async def test_a_passphrase_changes_the_keys_until_the_power_goes_and_the_link_stays(tmp_path):
    own, hidden = (str(seed.xpub(MASTER, NETWORK)) for seed in (SEED, SEED.with_passphrase("x")))

    def enter(device, passphrase):
        asyncio.run_coroutine_threadsafe(device.enter_passphrase(passphrase), loop).result(5)

    def work(device, path):
        with host(path) as client:
            enrol(client, text_file(VAULT))
            enter(device, "x")
            # The wallets on record are those of the other keys.
            assert _look(client) == (hidden, False)
            enter(device, "")
            assert _look(client) == (own, True)
            enter(device, "x")

    def again(path):
        with host(path) as client:
            return _look(client)

    loop = asyncio.get_running_loop()
    async with running(tmp_path) as (device, path):
        await on_thread(work, device, path)
        assert device.fingerprint == SEED.with_passphrase("x").fingerprint
        await device.start(path)
        assert device.fingerprint == SEED.fingerprint
        assert await on_thread(again, path) == (own, True)


async def test_a_passphrase_takes_the_prompt_off_the_screen(tmp_path):
    def show(path):
        with host(path) as client:
            client.send_recv(CCProtocolPacker.show_address("m/84'/1'/0'/0/0", AF_P2WPKH))

    async with running(tmp_path, script=ask_person) as (device, path):
        await on_thread(show, path)
        assert device.panel.pending is not None
        await device.enter_passphrase("x")
        assert device.panel.pending is None


async def test_a_device_that_obeys_a_policy_proves_its_link_and_refuses_the_rest(tmp_path):
    def work(path):
        with host(path) as client:
            client.check_mitm()
            for command in (CCProtocolPacker.get_xpub("m"), CCProtocolPacker.multisig_check(2, 3, 0)):
                with pytest.raises(CCProtoError, match="HSM mode"):
                    client.send_recv(command)

    async with running(tmp_path) as (device, path):
        device.set_hsm_mode(on=True)
        await on_thread(work, path)


@pytest.mark.parametrize(("hardware", "taken"), [("mk3", False), ("mk4", True)])
async def test_an_older_model_takes_smaller_transactions(tmp_path, hardware, taken):
    def work(path):
        with host(path) as client:
            assert client.firmware_version()[-1] == hardware
            size, digest = client.upload_file(bytes(384 * 1024 + 1), blksize=2048)
            client.send_recv(CCProtocolPacker.sign_transaction(size, digest))

    async with running(tmp_path, hardware=hardware) as (_device, path):
        if taken:
            await on_thread(work, path)
        else:
            with pytest.raises(CCProtoError, match="badlen"):
                await on_thread(work, path)

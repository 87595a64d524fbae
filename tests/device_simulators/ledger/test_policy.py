"""The virtual Ledger: wallet policies that it registers, knows again and refuses (BIP-388), and its stream
and commands, before anything of Bitcoin comes into play.
"""

import asyncio
import json

import pytest
from hwilib.common import AddressType
from hwilib.devices.ledger_bitcoin.wallet import MultisigWallet, WalletPolicy

from device_simulators.ledger.apdu import (
    Apdu,
    ApduReply,
    CommandAssembler,
    MalformedApdu,
    MalformedStream,
    StatusWord,
    to_bytes,
)
from device_simulators.panel import refuse_all
from device_simulators.seed import Seed
from firmware_bridge import Family
from multisig import Network, decode_address, wallet_policy
from multisig.vault_files import caravan_file
from tests.conformance import rigs
from tests.support import bare_hwi

pytestmark = pytest.mark.anyio


# Facts of the vendor's own tests (app-bitcoin-new, tests/test_get_wallet_address.py), for the emulator's
# public seed.
EMULATOR_WORDS = (
    "glory promote mansion idle axis finger extra february uncover one trip resource "
    "lawn turtle enact monster seven myth punch hobby comfort wild raise skin"
)
EMULATOR_KEYS = [
    "[76223a6e/48'/1'/0'/2']tpubDE7NQymr4AFtewpAsWtnreyq9ghkzQBXpCZjWLFVRAvnbf7vya2eMTvT2fPapNqL8SuVvLQdbUbMfWLVDCZKnsEBqp6UK93QEzL8Ck23AwF",
    "[f5acc2fd/48'/1'/0'/2']tpubDFAqEGNyad35aBCKUAXbQGDjdVhNueno5ZZVEn3sQbW5ci457gLR7HyTmHBg93oourBssgUxuWz1jX5uhc1qaqFo9VsybY1J5FuedLfm4dK",
]
EMULATOR_MARK = bytes.fromhex("d7c7a60b4ab4a14c1bf8901ba627d72140b2fb907f2b4e35d2e693bce9fbb371")


async def test_a_registration_made_on_the_vendor_s_emulator_is_known_here(tmp_path):
    """Same seed, same mark: HMAC-SHA256 by the key at SLIP-21's label, over the policy's id."""
    policy = MultisigWallet("Cold storage", AddressType.WIT, 2, EMULATOR_KEYS)
    assert policy.descriptor_template == "wsh(sortedmulti(2,@0/**,@1/**))"
    rig = rigs.make_rig(Family.LEDGER, tmp_path, seed=Seed.from_mnemonic(EMULATOR_WORDS))

    def ask(client):
        address = client.client.get_wallet_address(policy, EMULATOR_MARK, 0, 0, display=False)
        return address, client.client.register_wallet(policy)

    async with rigs.plugged_in(rig):
        assert await bare_hwi.with_client(rig, ask) == (
            "tb1qmyauyzn08cduzdqweexgna2spwd0rndj55fsrkefry2cpuyt4cpsn2pg28",
            (policy.id, EMULATOR_MARK),
        )


def caravans(text):
    """What Caravan's source makes of its file: the policy (MultisigWalletPolicy), and each Ledger's mark."""
    file = json.loads(text)
    places = ",".join(f"@{place}/**" for place in range(file["quorum"]["totalSigners"]))
    keys = [f"[{key['xfp']}{key['bip32Path'][1:]}]{key['xpub']}" for key in file["extendedPublicKeys"]]
    template = f"wsh(sortedmulti({file['quorum']['requiredSigners']},{places}))"
    marks = {each["xfp"]: bytes.fromhex(each["policyHmac"]) for each in file["ledgerPolicyHmacs"]}
    return WalletPolicy(file["name"], template, keys), marks


async def test_another_program_uses_the_policy_and_what_was_returned_and_asks_nobody(tmp_path):
    """What `signerd policy` gives is the text, the name and the mark that the device knows again."""
    rig, vault = rigs.make_rig(Family.LEDGER, tmp_path), rigs.make_vault()
    async with rigs.bridged(rig) as (bridge, (device,)):
        await bridge.enrol(device.id, vault, "Savings")
        (known,) = bridge.registrations_of(vault)
        policy, xfp = wallet_policy(vault), str(known.fingerprint)
        theirs = WalletPolicy(known.name, policy.template, list(policy.keys))
        caravan, marks = caravans(caravan_file(vault, known.name, {xfp: known.hmac.hex()}))
        rig.panel.script = refuse_all

        def ask(client):
            return {
                client.client.get_wallet_address(policy, mark, 0, 5, display=False)
                for policy, mark in ((theirs, known.hmac), (caravan, marks[xfp]))
            }

        (shown,) = await bare_hwi.with_client(rig, ask)
    assert decode_address(shown, Network.TESTNET4) == vault.script_pubkey(0, 5)


def test_commands_are_cut_out_of_the_stream_however_it_arrives():
    stream = b"\x00\x00\x00\x02ab" + b"\x00\x00\x00\x01c"
    assert CommandAssembler().feed(stream) == [b"ab", b"c"]
    one_by_one = CommandAssembler()
    assert [command for byte in stream for command in one_by_one.feed(bytes((byte,)))] == [b"ab", b"c"]


@pytest.mark.parametrize("length", [0, 261, 0xFFFFFFFF])
def test_a_length_that_no_command_has(length):
    with pytest.raises(MalformedStream):
        CommandAssembler().feed(length.to_bytes(4))


def test_an_answer_s_length_leaves_out_the_status_word():
    assert to_bytes(ApduReply(StatusWord.OK, b"abc")) == bytes.fromhex("00000003 616263 9000")


@pytest.mark.parametrize(
    ("raw", "data"), [("e1050001", b""), ("e105000100", b""), ("e105000102abcd", b"\xab\xcd")]
)
def test_a_command_is_read(raw, data):
    assert Apdu.parse(bytes.fromhex(raw)) == Apdu(0xE1, 0x05, 1, data)


@pytest.mark.parametrize("raw", ["e10500", "e105000102ab", "e105000101abcd", "e1050001ff" + "00" * 256])
def test_a_command_whose_data_is_not_as_long_as_it_says(raw):
    with pytest.raises(MalformedApdu):
        Apdu.parse(bytes.fromhex(raw))


async def test_a_stream_that_makes_no_sense_is_closed_and_the_next_one_is_served(tmp_path):
    rig = rigs.make_rig(Family.LEDGER, tmp_path)
    async with rigs.plugged_in(rig) as endpoint:
        host, _, port = endpoint.place.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET / HTTP/1.1\r\n")
        assert await reader.read() == b""
        writer.close()
        assert await bare_hwi.fingerprint(rig) == bytes(rig.seed.fingerprint)

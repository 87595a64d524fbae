"""Wallet policies on the virtual Ledger: what it registers, knows again, and refuses (BIP-388)."""

import pytest
from hwilib.common import AddressType
from hwilib.devices.ledger_bitcoin.wallet import MultisigWallet

from device_simulators.seed import Seed
from firmware_bridge import Family
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

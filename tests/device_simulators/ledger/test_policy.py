"""Wallet policies on the virtual Ledger: what it registers, knows again, and refuses (BIP-388)."""

import pytest
from hwilib.common import AddressType
from hwilib.devices.ledger_bitcoin.wallet import MultisigWallet, WalletPolicy

from device_simulators.ledger.policy import parse_template
from device_simulators.ledger.work import LedgerRefused
from device_simulators.seed import Seed
from tests.support.ledger_host import (
    OK,
    table,
)
from tests.support.vectors import official

pytestmark = pytest.mark.anyio

KNOWN = {"wpkh(@0/**)", "wsh(sortedmulti(2,@0/**,@1/**))"}
"""Of the official valid templates those that this device knows; the others it must refuse."""

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
EMULATOR_PROFILE = (
    "[f5acc2fd/84'/1'/0']"
    "tpubDCtKfsNyRhULjZ9XMS4VKKtVcPdVDi8MKUbcSD9MJDyjRu1A2ND5MiipozyyspBT9bg8upEp7a8EAgFxNxXn1d7QkdbL52Ty5jiSLcxPt1P"
)


@pytest.mark.parametrize("vector", official("bip388.json"))
def test_the_official_templates(vector):
    text = vector["descriptor_template"]
    if vector["valid"] and text in KNOWN:
        assert parse_template(text)[1] == len(vector["keys_info"])
    else:
        with pytest.raises(LedgerRefused):
            parse_template(text)


@pytest.mark.parametrize(
    "text",
    ["", "wpkh(@0)", "wpkh(@1/**)", "wpkh(@0/<0;1>/*)", "wsh(sortedmulti(0,@0/**))",
     "wsh(sortedmulti(1,@1/**,@0/**))", "wsh(sortedmulti(1,@0/**,@0/**))",
     "wsh(sortedmulti(1,@00/**))", "wsh(sortedmulti(01,@0/**))", "wsh(sortedmulti(1,@0/**,))",
     "wsh(sortedmulti(1, @0/**))", "wsh(sortedmulti(1,@0/**)))", "wsh(sortedmulti(1,@0/*))",
     "wsh(sortedmulti(1))", "sh(wsh(sortedmulti(1,@0/**)))", "wsh(sortedmulti_a(1,@0/**))"],
)  # fmt: skip
def test_templates_that_are_refused(text):
    with pytest.raises(LedgerRefused):
        parse_template(text)


async def test_a_registration_made_on_the_vendor_s_emulator_is_known_here():
    """Same seed, same mark: HMAC-SHA256 by the key at SLIP-21's label, over the policy's id."""
    policy = MultisigWallet("Cold storage", AddressType.WIT, 2, EMULATOR_KEYS)
    assert policy.descriptor_template == "wsh(sortedmulti(2,@0/**,@1/**))"
    async with table(of=Seed.from_mnemonic(EMULATOR_WORDS)) as it:
        status, address = await it.host.address(policy, EMULATOR_MARK, display=False)
        assert (status, address) == (OK, b"tb1qmyauyzn08cduzdqweexgna2spwd0rndj55fsrkefry2cpuyt4cpsn2pg28")
        assert await it.host.register(policy) == (OK, policy.id + EMULATOR_MARK)


@pytest.mark.parametrize(
    ("chain", "index", "address"),
    [
        (0, 0, b"tb1qzdr7s2sr0dwmkwx033r4nujzk86u0cy6fmzfjk"),
        (1, 15, b"tb1qlrvzyx8jcjfj2xuy69du9trtxnsvjuped7e289"),
    ],
)
async def test_the_default_policy_needs_no_registration(chain, index, address):
    policy = WalletPolicy("", "wpkh(@0/**)", [EMULATOR_PROFILE])
    async with table(of=Seed.from_mnemonic(EMULATOR_WORDS)) as it:
        assert await it.host.address(policy, None, chain, index, display=False) == (OK, address)
        assert it.record.prompts == []
        await it.host.address(policy, None, chain, index)
        (prompt,) = it.record.prompts
        assert prompt.lines == ("Verify bitcoin address", f"Address {address.decode()}")

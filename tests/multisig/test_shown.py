"""In logs and in the interpreter a value reads as the field writes it, and its parser reads that again."""

import re

import pytest

import multisig
from firmware_bridge import Endpoint
from firmware_bridge.model import Device
from multisig import (
    DerivationPath,
    ExtendedPublicKey,
    FeeRate,
    Fingerprint,
    KeyOrigin,
    Network,
    OriginKey,
    OutPoint,
    TxOut,
    Vault,
    inspect,
    sats,
)
from tests.support.wallets import ALICE, BOB, CAROL, make_spend, make_vault

VAULT = make_vault((ALICE, BOB, CAROL))
KEY = VAULT.cosigners[0]
TXID = "ab" * 32


@pytest.mark.parametrize(
    ("value", "text", "parse"),
    [
        (Fingerprint.from_hex("9f441a36"), "9f441a36", Fingerprint.from_hex),
        (DerivationPath.parse("m/48h/1h/0h/2h"), "m/48h/1h/0h/2h", DerivationPath.parse),
        (KEY.origin, str(KEY.origin), KeyOrigin.parse),
        (KEY.xpub, str(KEY.xpub), ExtendedPublicKey.parse),
        (KEY, str(KEY), OriginKey.parse),
        (OutPoint(TXID, 1), f"{TXID}:1", None),
        (FeeRate(12_500), "12.5 sat/vB", None),
        (Endpoint.parse("trezor:udp:127.0.0.1:21324"), "trezor:udp:127.0.0.1:21324", Endpoint.parse),
    ],
)
def test_a_value_reads_as_it_is_written(value, text, parse):
    assert repr(value) == f"{type(value).__name__}({text!r})"
    assert parse is None or parse(text) == value


def test_members_stand_by_name_and_bytes_as_hex():
    assert repr(TxOut(sats(50_000), bytes.fromhex("51"))) == "TxOut(amount=50000, script_pubkey='51')"
    psbt = make_spend(VAULT)
    told = repr(Device.at(Endpoint.parse("jade:tcp:127.0.0.1:1"), "Jade"))
    assert "endpoint=Endpoint('jade:tcp:127.0.0.1:1'), state='absent'" in told
    assert repr(VAULT).startswith("Vault(network='regtest', threshold=2, cosigners=(OriginKey('[")
    for value in (VAULT, psbt, psbt.tx, inspect(psbt, VAULT, network=Network.REGTEST), told):
        assert re.search(r"\bb['\"]|<[A-Z]\w+\.", repr(value)) is None


def test_no_public_value_shows_the_bytes_of_python():
    """Each public dataclass that holds bytes, a fingerprint or a path has words of its own."""
    plain = {
        name
        for name in multisig.__all__
        if hasattr(kind := getattr(multisig, name), "__dataclass_fields__")
        and any(str(one.type).startswith("bytes") for one in kind.__dataclass_fields__.values() if one.repr)
        and not kind.__mro__[1].__module__.startswith("multisig.shown")
    }
    assert plain == set()
    assert isinstance(VAULT, Vault)

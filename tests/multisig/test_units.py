"""Amounts and what they are written as; in logs and in the interpreter a value reads as the field writes it,
and its parser reads that again.
"""

import pickle
import pkgutil
import re
from decimal import Decimal
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

import multisig
from firmware_bridge import Endpoint
from firmware_bridge.model import Device
from multisig import (
    MAX_MONEY,
    DerivationPath,
    ExtendedPublicKey,
    FeeRate,
    Fingerprint,
    InvalidAmount,
    KeyOrigin,
    Network,
    OriginKey,
    OutPoint,
    Sats,
    TxOut,
    Vault,
    format_btc,
    inspect,
    parse_btc,
    sats,
)
from multisig.errors import BadSignature
from tests.support.policies import AMOUNTS
from tests.support.wallets import ALICE, BOB, CAROL, make_spend, make_vault


@given(AMOUNTS)
def test_btc_round_trip(amount):
    assert parse_btc(format_btc(amount)) == amount


NO_DECIMALS = (
    "", " ", " 1", "1 ", "1\n", "+1", "-1", "-0", "1e3", "1E3", "NaN", "inf", "0x10", "1_000", "1,5",
    "1.", ".5", "01", "00", "0.000000001", "0." + "0" * 30, "21000000.00000001", "99999999", "123456789",
    "١", "1.٥", "１",
)  # fmt: skip
NO_RATES = (
    Decimal("0.0001"), Decimal("1.00000000000000000000000000000001"), Decimal("NaN"), Decimal("sNaN"),
    Decimal("Infinity"), Decimal(-1), Decimal("1E+999999"), Decimal("1E-999999"), -1, True, 1.5, "2",
)  # fmt: skip


@pytest.mark.parametrize(
    ("make", "args"),
    [
        *((parse_btc, (text,)) for text in NO_DECIMALS),
        *((sats, (value,)) for value in (-1, MAX_MONEY + 1, 2**64, True, 1.0, "1", None)),
        *((FeeRate.from_sat_per_vb, (rate,)) for rate in NO_RATES),
        (format_btc, (Sats(-1),)),
        (FeeRate, (-1,)),
        (FeeRate.of, (Sats(1), 0)),
        (FeeRate(1).fee_for, (-1,)),
    ],
)
def test_p21_what_is_no_amount_and_no_rate(make, args):
    with pytest.raises(InvalidAmount):
        make(*args)


def test_sats_takes_the_bounds():
    assert (sats(0), sats(MAX_MONEY)) == (0, MAX_MONEY)


@pytest.mark.parametrize(
    ("rate", "per_kvb"),
    [(1, 1_000), (Decimal("1.5"), 1_500), (Decimal("0.001"), 1), (Decimal("1E+2"), 100_000), (0, 0)],
)
def test_rate_from_sat_per_vb(rate, per_kvb):
    assert FeeRate.from_sat_per_vb(rate).sat_per_kvb == per_kvb


@given(st.integers(0, 10_000_000), st.integers(1, 100_000))
def test_the_fee_for_a_rate_is_the_least_that_reaches_it(per_kvb, vsize):
    rate = FeeRate(per_kvb)
    fee = rate.fee_for(vsize)
    assert fee * 1000 >= per_kvb * vsize
    assert fee == 0 or (fee - 1) * 1000 < per_kvb * vsize


def test_rate_of_a_fee_is_rounded_down():
    assert FeeRate.of(Sats(1_000), 333) == FeeRate(3_003)


def test_rates_compare_and_read():
    assert FeeRate(999) < FeeRate(1_000)
    assert str(FeeRate(1_500)) == "1.5 sat/vB"
    assert str(FeeRate(10_000)) == "10 sat/vB"
    assert FeeRate(1_500).sat_per_vb == Decimal("1.5")


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
    modules = [import_module(f"multisig.{each.name}") for each in pkgutil.iter_modules(multisig.__path__)]
    plain = {
        name
        for name, kind in {name: kind for module in modules for name, kind in vars(module).items()}.items()
        if not name.startswith("_")
        and hasattr(kind, "__dataclass_fields__")
        and any(str(one.type).startswith("bytes") for one in kind.__dataclass_fields__.values() if one.repr)
        and not kind.__mro__[1].__module__.startswith("multisig.shown")
    }
    assert plain == set()
    assert isinstance(VAULT, Vault)


def test_errors_cross_a_process_border_whole():
    sent = BadSignature("Input 3 is signed wrongly.", 3, hint="Sign again.")
    received = pickle.loads(pickle.dumps(sent))
    assert (str(received), received.input_index, received.hint) == (str(sent), 3, "Sign again.")

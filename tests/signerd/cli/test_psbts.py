"""inspect, sign: a PSBT from a file, against a real daemon over a scripted platform and a device
that obeys (docs/sign/imported.md).
"""

import stat

import pytest

from custody.common.terminal import Exit
from firmware_bridge import RefusedByPerson
from multisig import Psbt, ReceivedPsbt, signer_progress
from tests.support.bills import bill
from tests.support.command import signerd
from tests.support.desk import VAULT, spend
from tests.support.wallets import ALICE


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "bill.psbt"
    path.write_bytes(bill().to_bytes())
    return path


def written(path, psbt: Psbt):
    path.write_text(psbt.to_base64())
    return str(path)


def test_inspect_shows_where_the_money_goes_and_stores_nothing(desk, file):
    ended = signerd("inspect", str(file), state=desk.state)
    assert "0.00050000 BTC (50,000 sats)" in ended.out
    assert "REGTEST" in ended.out
    assert "There is no record of whom it should pay" in ended.out
    [only] = signerd("proposals", "--json", state=desk.state).json
    assert only["psbt_id"] == "p-1"


def test_sign_shows_asks_and_writes_the_signed_psbt(desk, outer, file, tmp_path):
    out = tmp_path / "signed"
    signerd("sign", str(file), state=desk.state, typed="n\n", ends=Exit.DECLINED)
    assert outer.bridge.asked == 0
    # It waits, and is in the list as what it is.
    assert "imported by command line" in signerd("proposals", state=desk.state).out
    ended = signerd("sign", str(file), "-o", str(out), state=desk.state, typed="y\n")
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert "imported by command line" in ended.err
    assert signer_progress(Psbt.parse(out.read_text().strip()), VAULT, ALICE.fingerprint).is_complete
    assert outer.bridge.asked == 1
    # Asked again: the same bytes, and the device is left alone.
    again = signerd("sign", str(file), state=desk.state)
    assert again.out == out.read_text()
    newer = signerd("sign", str(file), "--psbt-version", "2", state=desk.state)
    other = ReceivedPsbt.parse(newer.out.strip())
    assert (other.version, other.psbt) == (2, Psbt.parse(again.out.strip()))
    assert outer.bridge.asked == 1
    # What is there is not overwritten.
    signerd("sign", str(file), "-o", str(out), state=desk.state, ends=Exit.USAGE)


def test_sign_asks_no_device_where_it_cannot_write_or_sign(desk, outer, file, tmp_path):
    signerd(
        "sign", str(file), "--yes", "-o", str(tmp_path / "none" / "signed"), state=desk.state, ends=Exit.USAGE
    )
    of_the_platforms = signerd(
        "sign", written(tmp_path / "x", spend()), "--yes", state=desk.state, ends=Exit.NOT_DECIDED
    )
    assert "p-1" in of_the_platforms.err
    assert outer.bridge.asked == 0
    outer.bridge.failures.append(RefusedByPerson("no"))
    signerd("sign", str(file), "--yes", state=desk.state, ends=Exit.NOT_SIGNED)


def test_what_is_signed_and_cannot_be_written_is_written_the_next_time(desk, outer, file, tmp_path):
    # A name that no file can have: found out at the device's answer only.
    ended = signerd(
        "sign", str(file), "--yes", "-o", str(tmp_path / ("n" * 300)), state=desk.state, ends=Exit.STATE
    )
    assert "It is signed" in ended.err
    signerd("sign", str(file), "-o", str(tmp_path / "signed"), state=desk.state)
    assert outer.bridge.asked == 1

"""Outputs that HWI cannot tell a Trezor of reach no screen."""

import base64

import pytest

from device_simulators.panel import Panel, approve_all
from device_simulators.trezor import VirtualTrezor
from firmware_bridge import sanitised_psbt
from multisig import sats
from tests.support import rigs, wallets
from tests.support.driver import drive, fails, policy_args
from tests.support.rigs import NETWORK, SEEDS
from tests.support.virtual import Record

pytestmark = pytest.mark.anyio

VAULT = rigs.make_vault()


async def sign_with(run, script):
    """What became of a payment to this script, and what was shown."""
    psbt = wallets.with_output(wallets.make_spend(VAULT), 0, script_pubkey=script, amount=sats(0))
    content = base64.b64encode(sanitised_psbt.for_device(psbt, VAULT)).decode()
    args = {"psbt": content, "policy": policy_args(VAULT), "payments": None, "resume": False}
    panel = Panel(approve_all)
    record = Record(panel)
    device = VirtualTrezor(SEEDS[0], panel, NETWORK)
    endpoint = await device.start()
    try:
        return await run(endpoint, "sign", args), record
    finally:
        await device.stop()


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(b"\x6a\x05hello\x05world", id="two pushes"),
        pytest.param(b"\x6a\x4c\x4c" + b"x" * 76 + b"\x01y", id="something behind a long push"),
        pytest.param(b"\x6a\x4c\x05hello", id="a longer form than need be"),
        pytest.param(b"\x6a\x4d\x05\x00hello", id="the longest form"),
        pytest.param(b"\x6a\x4bhello", id="a push that breaks off"),
        pytest.param(b"\x6a", id="no push"),
        pytest.param(b"\x6a\x00", id="a push of nothing"),
        pytest.param(b"\x6a\x51", id="a number"),
        pytest.param(b"\x6a\x4c\x51" + b"x" * 81, id="more than 80 bytes"),
        pytest.param(b"", id="nothing at all"),
        pytest.param(VAULT.witness_script(0, 3), id="a bare quorum"),
        pytest.param(b"\x52\x20" + b"\x11" * 32, id="a witness version without rules"),
        pytest.param(b"\x51\x20" + b"\x11" * 32, id="a taproot key that is no point of the curve"),
    ],
)
async def test_s10_what_cannot_be_told_as_it_stands_is_refused_before_anybody_is_asked(script):
    (code, detail), record = await sign_with(fails, script)
    assert (code, record.kinds) == ("unsupported", [])
    assert "output 0" in detail


# The x of the curve's generator.
POINT = bytes.fromhex("79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798")


@pytest.mark.parametrize("script", [b"\x51\x20" + POINT, b"\x6a\x05hello", wallets.foreign_script()])
async def test_what_can_be_told_is_signed(script):
    _answer, record = await sign_with(drive, script)
    assert record.kinds[-1] == "sign-total"

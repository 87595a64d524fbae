"""What a device does not sign is known before it is asked, and the time it works is waited for."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from device_simulators.ledger.spend import describe_op_return
from firmware_bridge import Deadlines
from firmware_bridge.limits import DeviceLimits, why_not
from firmware_bridge.makers import MAKERS, ledger, trezor
from firmware_bridge.model import Family
from multisig import CHANGE, ChangeTo, Network, Psbt, TxOut, build_psbt, encode_address, p2tr, sats
from multisig.script import witness_output
from tests.conformance import payments, rigs
from tests.support.examples import examples

VAULT = rigs.make_vault()


NO_POINT = (5).to_bytes(32)


# Time


# What makers' devices did in emulators: inputs, outputs, keys of the quorum, bytes of the PSBT (0: not noted)
# and the seconds until they were done.
SEEN = [
    (Family.LEDGER, 5, 2, 15, 0, 72.0),
    (Family.LEDGER, 10, 2, 15, 0, 82.0),
    (Family.LEDGER, 50, 2, 3, 0, 24.0),
    (Family.COLDCARD, 1, 2, 3, 1_900_000, 200.0),
    (Family.COLDCARD, 50, 2, 3, 391_827, 20.0),
    (Family.COLDCARD, 250, 2, 3, 0, 51.0),
    (Family.TREZOR, 100, 1, 3, 0, 1.7),
]


@pytest.mark.parametrize(("family", "inputs", "outputs", "keys", "size", "seconds"), SEEN)
def test_twice_the_time_that_a_device_was_seen_to_take_is_waited_for(
    family, inputs, outputs, keys, size, seconds
):
    work = MAKERS[family].pace.seconds(inputs, outputs, keys, size)
    assert Deadlines().signing(work) >= 2 * seconds
    assert Deadlines().review(work) >= Deadlines().person + seconds


# Output scripts


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
        pytest.param(p2tr(NO_POINT), id="a taproot key that is no point of the curve"),
    ],
)
def test_s10_what_hwi_cannot_say_to_a_trezor(script):
    assert not trezor.takes(script)


OPCODES = st.one_of(
    st.binary(max_size=90).map(lambda data: bytes((len(data) % 76,)) + data),
    st.binary(max_size=90).map(lambda data: bytes((0x4C, len(data))) + data),
    st.integers(0, 255).map(lambda opcode: bytes((opcode,))),
    st.sampled_from([b"\x01\x10", b"\x01\x11", b"\x01\x81"]),
)
SCRIPTS = st.one_of(
    st.lists(OPCODES, max_size=7).map(lambda parts: b"\x6a" + b"".join(parts)),
    st.tuples(st.integers(0, 16), st.binary(min_size=2, max_size=40)).map(lambda one: witness_output(*one)),
    st.sampled_from([payments.foreign_script(), b"", VAULT.witness_script(0, 0), p2tr(NO_POINT)]),
)


@settings(max_examples=examples(500))
@given(script=SCRIPTS)
def test_a_ledger_takes_what_it_can_show(script):
    """The virtual device has its own reading of the app's source."""
    fits = len(script) <= 83
    shown = describe_op_return(script) if fits else None
    known = encode_address(script, Network.TESTNET4) is not None or (
        4 <= len(script) <= 42 and 0x51 <= script[0] <= 0x60 and script[1] == len(script) - 2
    )
    assert ledger.takes(script) == (known or shown is not None)


TREZOR_ONE = MAKERS[Family.TREZOR].limits_of("Trezor One (emulator)")
LEDGER = MAKERS[Family.LEDGER].limits_of("Ledger")


def with_previous(psbt: Psbt, **fields: object) -> Psbt:
    """`psbt` with another transaction behind its first input; the input's outpoint stays the old one."""
    previous = replace(psbt.inputs[0].non_witness_utxo, **fields)
    return payments.with_input(psbt, 0, non_witness_utxo=previous)


def with_script_sig(size: int) -> Psbt:
    psbt = payments.make_spend(VAULT, n_inputs=1)
    (spent,) = psbt.inputs[0].non_witness_utxo.inputs
    return with_previous(psbt, inputs=(replace(spent, script_sig=bytes(size)),))


def with_script(size: int) -> Psbt:
    psbt = payments.make_spend(VAULT, n_inputs=1)
    first, *others = psbt.inputs[0].non_witness_utxo.outputs
    return with_previous(psbt, outputs=(replace(first, script_pubkey=bytes(size)), *others))


def with_change(count: int) -> Psbt:
    coins = [payments.fund(VAULT, 100_000)]
    own = [ChangeTo(sats(1_000), CHANGE, index) for index in range(count)]
    received = TxOut(sats(1_000), VAULT.script_pubkey(0, 5))
    return build_psbt(VAULT, coins, [payments.pay(99_000 - 1_000 * count - 1_000), received, *own], 0)


def many_outputs(count: int) -> Psbt:
    psbt = payments.make_spend(VAULT, n_inputs=1)
    return payments.with_outputs(psbt, *[psbt.outputs[0]] * count)


@pytest.mark.parametrize(
    ("limits", "make", "most", "words"),
    [
        (TREZOR_ONE, lambda count: payments.make_spend(VAULT, n_inputs=count), 512, "up to 512 inputs"),
        (TREZOR_ONE, with_script, 520, "no room"),
        (TREZOR_ONE, with_script_sig, 1_650, "no room"),
        (LEDGER, lambda count: payments.make_spend(VAULT, n_inputs=count), 512, "up to 512 inputs"),
        (LEDGER, many_outputs, 512, "up to 512 outputs"),
        (LEDGER, with_change, 10, "up to 10 change outputs"),
    ],
    ids=[
        "one-inputs",
        "one-output-script",
        "one-script-sig",
        "ledger-inputs",
        "ledger-outputs",
        "ledger-change",
    ],
)
def test_the_most_that_a_device_takes(limits, make, most, words):
    assert why_not(limits, make(most), VAULT) is None
    assert words in why_not(limits, make(most + 1), VAULT)


def test_a_trezor_of_an_unknown_model_has_the_limits_of_a_one():
    maker = MAKERS[Family.TREZOR]
    assert maker.limits_of("Trezor") == TREZOR_ONE
    assert maker.limits_of("Trezor Safe 3").inputs is None
    assert MAKERS[Family.JADE].limits_of("Jade") == DeviceLimits()

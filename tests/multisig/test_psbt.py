"""PSBTs are read strictly, within bounds, and written in one way only (BIP-174; S23)."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multisig import InvalidPsbt, MultisigError, Network, Psbt, PsbtLimits, PsbtTooLarge, inspect
from multisig.psbt.embit_reader import require_same_reading
from multisig.wire import Reader, with_length
from tests.support.examples import examples
from tests.support.vectors import official
from tests.support.wallets import ALICE, make_spend, make_vault, with_input

VAULT = make_vault()
SPEND = make_spend(VAULT)
SIGNED = ALICE.sign(SPEND)
RAW = SIGNED.to_bytes()
MAGIC = b"psbt\xff"

# Two valid vectors of BIP-174 that are refused. They are a Creator's, without inputs: they have nothing to
# sign, and no code here adds inputs. Their transaction is ambiguous too, because BIP-144's marker is an input
# count of 0. HWI, which drives every device, and embit, our second reader, both fail on them.
WITHOUT_INPUTS = {"bip174-valid-09", "bip174-valid-10"}
# With unknown or taproot fields, which are dropped.
NOT_ALL_KEPT = {"bip174-valid-07", *(f"bip371-valid-0{number}" for number in range(1, 7))}


def field(key: bytes, value: bytes) -> bytes:
    return with_length(key) + with_length(value)


def in_globals(extra: bytes) -> bytes:
    return MAGIC + extra + RAW[len(MAGIC) :]


def in_first_input(extra: bytes) -> bytes:
    return _before_map(1, extra)


def in_first_output(extra: bytes) -> bytes:
    return _before_map(1 + len(SIGNED.inputs), extra)


def _before_map(number: int, extra: bytes) -> bytes:
    """Our PSBT with bytes put at the start of one of its maps; 0 is the global one."""
    reader = Reader(RAW)
    reader.take(len(MAGIC))
    for _ in range(number):
        while reader.sized():
            reader.sized()
    return RAW[: reader.offset] + extra + RAW[reader.offset :]


# --- official vectors


@pytest.mark.parametrize("vector", official("bip174.json", lambda v: v["kind"] == "invalid"))
def test_bip174_refuses_what_is_invalid(vector):
    with pytest.raises(InvalidPsbt):
        Psbt.parse(vector["psbt_base64"])


@pytest.mark.parametrize(
    "vector",
    official(
        "bip174.json",
        lambda v: "psbt_base64" in v and v["kind"] != "invalid" and v["id"] not in WITHOUT_INPUTS,
    ),
)
def test_bip174_reads_what_is_valid(vector):
    psbt = Psbt.parse(vector["psbt_base64"])
    assert Psbt.parse(psbt.to_bytes()) == psbt
    if vector["id"] not in NOT_ALL_KEPT:
        assert psbt.to_base64() == vector["psbt_base64"]


@pytest.mark.parametrize("vector", official("bip174.json", lambda v: v["id"] in WITHOUT_INPUTS))
def test_a_psbt_without_inputs_is_refused_although_bip174_allows_it(vector):
    with pytest.raises(InvalidPsbt, match="spends nothing"):
        Psbt.parse(vector["psbt_base64"])


@pytest.mark.parametrize("vector", official("bip370.json"))
def test_bip370_version_2_and_its_fields_are_refused(vector):
    with pytest.raises(InvalidPsbt, match="version"):
        Psbt.parse(vector["psbt_base64"])


@pytest.mark.parametrize("vector", official("bip371.json", lambda v: v["kind"] == "invalid"))
def test_bip371_refuses_malformed_taproot_fields(vector):
    with pytest.raises(InvalidPsbt, match="wrong length"):
        Psbt.parse(vector["psbt_base64"])


@pytest.mark.parametrize("vector", official("bip371.json", lambda v: v["kind"] == "valid"))
def test_bip371_taproot_fields_are_dropped_and_the_rest_is_read(vector):
    psbt = Psbt.parse(vector["psbt_base64"])
    assert len(psbt.to_base64()) < len(vector["psbt_base64"])
    assert Psbt.parse(psbt.to_bytes()) == psbt


def _role(number: int) -> list:
    return official("bip174.json", lambda v: v["id"].startswith(f"bip174-role-{number}"))


@pytest.mark.parametrize("combined", _role(6))
@pytest.mark.parametrize("first", _role(4))
@pytest.mark.parametrize("second", _role(5))
def test_bip174_combiner_merges_the_signatures(first, second, combined):
    ours, theirs = (Psbt.parse(vector["result_psbt_base64"]) for vector in (first, second))
    merged = ours.with_signatures(
        {index: item.partial_signatures for index, item in enumerate(theirs.inputs)}
    )
    assert merged == Psbt.parse(combined["result_psbt_base64"])


@pytest.mark.parametrize("final", _role(7))
@pytest.mark.parametrize("extracted", _role(8))
def test_bip174_final_fields_are_those_of_the_extracted_transaction(final, extracted):
    psbt = Psbt.parse(final["result_psbt_base64"])
    assert all(item.is_final for item in psbt.inputs)
    inputs = (
        replace(tx_in, script_sig=item.final_script_sig or b"", witness=item.final_script_witness or ())
        for tx_in, item in zip(psbt.tx.inputs, psbt.inputs, strict=True)
    )
    tx = replace(psbt.tx, inputs=tuple(inputs))
    assert tx.serialize().hex() == extracted["result_transaction_hex"]


# --- one way to write


def test_a_psbt_survives_bytes_and_base64():
    assert Psbt.parse(RAW) == SIGNED
    assert Psbt.parse(f"\n {SIGNED.to_base64()} \n") == SIGNED


def test_account_keys_read_in_another_order_are_the_same_psbt():
    reader, fields = Reader(RAW), []
    reader.take(len(MAGIC))
    while key := reader.sized():
        fields.append(field(key, reader.sized()))
    assert len(fields) == 1 + len(VAULT.cosigners)
    assert Psbt.parse(MAGIC + b"".join(reversed(fields)) + b"\x00" + RAW[reader.offset :]) == Psbt.parse(RAW)


def test_everything_a_psbt_can_hold_is_written_and_read_again():
    full = with_input(
        SIGNED,
        0,
        sighash_type=0x81,
        redeem_script=b"\x51",
        final_script_sig=b"",
        final_script_witness=(b"", b"\x01" * 300, b"\x02"),
    )
    assert Psbt.parse(full.to_bytes()) == full


def test_sequence_and_version_zero_are_read_as_they_stand():
    """embit reads them as ffffffff and 2, which is another transaction."""
    tx = replace(SPEND.tx, version=0, inputs=tuple(replace(item, sequence=0) for item in SPEND.tx.inputs))
    zero = replace(SPEND, tx=tx, inputs=tuple(replace(item, sequence=0) for item in SPEND.inputs))
    read = Psbt.parse(zero.to_bytes())
    assert (read.tx.version, read.inputs[0].sequence) == (0, 0)
    assert read.tx.txid == tx.txid != SPEND.tx.txid


def test_signatures_are_added_to_the_right_input_and_nothing_else_changes():
    more = SPEND.with_signatures({1: {b"\x02" * 33: b"\x30\x01"}})
    assert more.inputs[0] is SPEND.inputs[0]
    assert more.inputs[1].partial_signatures == {b"\x02" * 33: b"\x30\x01"}
    assert more.without_signatures() == SPEND
    assert SPEND.inputs[1].partial_signatures == {}


@pytest.mark.parametrize(
    "parts",
    [
        {"inputs": SPEND.inputs[:1]},
        {"inputs": SPEND.inputs[::-1]},
        {"inputs": (replace(SPEND.inputs[0], sequence=1), SPEND.inputs[1])},
        {"outputs": ()},
        {"outputs": (replace(SPEND.outputs[0], amount=1), SPEND.outputs[1])},
        {"tx": make_spend(VAULT, fee=999).tx},
    ],
)
def test_a_psbt_cannot_be_built_about_other_inputs_or_outputs_than_its_transaction_s3(parts):
    with pytest.raises(InvalidPsbt, match="not those of its transaction"):
        replace(SPEND, **parts)


@pytest.mark.parametrize("index", [-1, 2])
def test_a_signature_for_an_input_that_is_not_there_is_refused(index):
    with pytest.raises(InvalidPsbt):
        SPEND.with_signatures({index: {b"\x02" * 33: b"\x30"}})


# --- what is refused from any sender

HOSTILE = {
    "empty": b"",
    "magic only": MAGIC,
    "other magic": b"psbt\xfe" + RAW[5:],
    "trailing byte": RAW + b"\x00",
    "trailing map": RAW + field(b"\xf0", b"") + b"\x00",
    "last separator missing": RAW[:-1],
    "key twice in the globals": in_globals(field(b"\xfc\x01", b"1") * 2),
    "unsigned transaction twice": in_globals(field(b"\x00", SPEND.tx.serialize())),
    "key twice in an input": in_first_input(field(b"\xf0", b"") * 2),
    "key twice in an output": in_first_output(field(b"\xf0", b"") * 2),
    "length not in its shortest form": in_globals(b"\xfd\x02\x00\xfc\x01" + with_length(b"1")),
    "length beyond the end": in_globals(b"\x02\xfc\x01\xff" + b"\xff" * 8),
    "version 2": in_globals(field(b"\xfb", b"\x02\x00\x00\x00")),
    "version of three bytes": in_globals(field(b"\xfb", b"\x00\x00\x00")),
    "version 2 transaction version": in_globals(field(b"\x02", b"\x02\x00\x00\x00")),
    "version 2 outpoint in an input": in_first_input(field(b"\x0e", b"\x01" * 32)),
    "version 2 sequence in an input": in_first_input(field(b"\x10", b"\x00" * 4)),
    "version 2 amount in an output": in_first_output(field(b"\x03", b"\x00" * 8)),
    "version 2 script in an output": in_first_output(field(b"\x04", b"\x6a")),
    "origin of five bytes": in_first_output(field(b"\x02" + b"\x02" * 33, b"\x00" * 5)),
    "origin without fingerprint": in_first_output(field(b"\x02" + b"\x02" * 33, b"")),
    "path deeper than 255": in_first_output(field(b"\x02" + b"\x02" * 33, b"\x00" * 4 * 257)),
    "signature by a key off the curve": in_first_input(field(b"\x02\x02" + b"\xff" * 32, b"\x30")),
    "signature by a key of 34 bytes": in_first_input(field(b"\x02" + b"\x02" * 34, b"\x30")),
    "witness with more items than bytes": in_first_input(field(b"\x08", b"\xfe\xff\xff\xff\xff")),
    "witness cut short": in_first_input(field(b"\x08", b"\x01\x05\x00")),
    "witness with bytes behind it": in_first_input(field(b"\x08", b"\x01\x00\x00")),
    "final script with key data": in_first_input(field(b"\x07\x00", b"")),
    "xpub that is none": in_globals(field(b"\x01" + b"\x00" * 78, b"\x00" * 4)),
    "xpub deeper than its path": in_globals(
        field(b"\x01" + bytes.fromhex("043587cf01") + b"\x01" * 40 + b"\x02" * 33, b"\x00" * 4)
    ),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_malformed_bytes_are_refused_s23(data):
    with pytest.raises(InvalidPsbt):
        Psbt.parse(data)


@pytest.mark.parametrize("text", ["", "cHNidP8", "cHNi*dP8B", "psbt", "cHNidP8Bé", "70736274ff"])
def test_malformed_text_is_refused(text):
    with pytest.raises(InvalidPsbt):
        Psbt.parse(text)


def test_a_coin_that_is_not_one_output_is_refused():
    for value in (b"", b"\x00" * 7, b"\x00" * 8, b"\x00" * 8 + b"\x01", b"\x00" * 9 + b"\x00"):
        raw = with_input(SPEND, 0, witness_utxo=None).to_bytes()
        # The first input begins right after the separator of the globals, with its previous transaction.
        at = raw.index(b"\x00\x01\x00", len(MAGIC) + 20) + 1
        with pytest.raises(InvalidPsbt):
            Psbt.parse(raw[:at] + field(b"\x01", value) + raw[at:])


def test_unknown_and_proprietary_fields_are_dropped():
    extended = in_globals(field(b"\xfc\x05hello", b"x") + field(b"\xfd\x00\x01", b"y"))
    assert Psbt.parse(extended) == SIGNED
    assert Psbt.parse(in_first_input(field(b"\x0a" + b"\x01" * 20, b"preimage"))) == SIGNED
    assert Psbt.parse(in_first_output(field(b"\xf0\x01", b""))) == SIGNED
    # A taproot signature, without and with its sighash type.
    for length in (64, 65):
        assert Psbt.parse(in_first_input(field(b"\x13", b"\x01" * length))) == SIGNED


def test_a_taproot_count_that_would_exhaust_memory_never_reaches_the_second_reader_s23():
    leaf_hashes = b"\xff" + b"\xff" * 7 + b"\x00"
    assert Psbt.parse(in_first_input(field(b"\x16" + b"\x01" * 32, leaf_hashes))) == SIGNED


def test_the_second_reader_must_see_the_same_transaction():
    other = make_spend(VAULT, fee=2_000)
    require_same_reading(SPEND.to_bytes(), SPEND.tx)
    with pytest.raises(InvalidPsbt, match="different transactions"):
        require_same_reading(SPEND.to_bytes(), other.tx)
    with pytest.raises(InvalidPsbt, match="malformed"):
        require_same_reading(SPEND.to_bytes()[:-3], SPEND.tx)


def test_a_signed_transaction_in_place_of_the_unsigned_one_is_refused():
    signed = replace(SPEND.tx, inputs=tuple(replace(item, script_sig=b"\x51") for item in SPEND.tx.inputs))
    with pytest.raises(InvalidPsbt, match="carries signatures"):
        Psbt.parse(replace(SPEND, tx=signed).to_bytes())


# --- what is too large


@pytest.mark.parametrize(
    "limits",
    [
        PsbtLimits(max_bytes=len(RAW) - 1),
        PsbtLimits(max_inputs=1),
        PsbtLimits(max_outputs=1),
        PsbtLimits(max_fields_per_map=6),
    ],
)
def test_what_is_beyond_a_limit_is_too_large_s23(limits):
    with pytest.raises(PsbtTooLarge):
        Psbt.parse(RAW, limits)


def test_what_is_just_within_the_limits_is_read():
    limits = PsbtLimits(max_bytes=len(RAW), max_inputs=2, max_outputs=2, max_fields_per_map=8)
    assert Psbt.parse(RAW, limits) == SIGNED
    assert Psbt.parse(SIGNED.to_base64(), limits) == SIGNED


def test_a_final_witness_of_more_items_than_any_spend_has_is_too_large_s23():
    assert Psbt.parse(in_first_input(field(b"\x08", b"\x65" + b"\x00" * 101))).inputs[0].is_final
    with pytest.raises(PsbtTooLarge):
        Psbt.parse(in_first_input(field(b"\x08", b"\x66" + b"\x00" * 102)))


def test_huge_text_is_refused_before_it_is_decoded():
    with pytest.raises(PsbtTooLarge):
        Psbt.parse("*" * 10_000, PsbtLimits(max_bytes=1_000))


def test_a_psbt_of_two_megabytes_of_separators_is_refused_in_no_time():
    with pytest.raises(InvalidPsbt):
        Psbt.parse(MAGIC + b"\x00" * (2 * 1024 * 1024 - 5))
    with pytest.raises(PsbtTooLarge):
        Psbt.parse(b"\x00" * (2 * 1024 * 1024 + 1))


# --- no byte string raises anything else


def judge(data: bytes) -> None:
    """The whole way of a PSBT from outside: only MultisigError may come out."""
    try:
        psbt = Psbt.parse(data)
    except MultisigError:
        return
    assert Psbt.parse(psbt.to_bytes()) == psbt
    inspection = inspect(psbt, VAULT, network=Network.REGTEST)
    assert inspection.digest


@settings(max_examples=examples(100))
@given(st.lists(st.integers(0, len(RAW) * 8 - 1), min_size=1, max_size=4))
def test_flipped_bits_raise_only_our_errors_s23(bits):
    data = bytearray(RAW)
    for bit in bits:
        data[bit // 8] ^= 1 << bit % 8
    judge(bytes(data))


@given(st.integers(0, len(RAW)), st.integers(0, len(RAW)), st.integers(0, len(RAW)))
def test_shuffled_pieces_raise_only_our_errors_s23(one, two, three):
    judge(RAW[:one] + RAW[two:three] + RAW[one:])

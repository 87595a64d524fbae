"""A PSBT from bytes to typed fields and back (BIP-174)."""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from multisig.errors import InvalidPsbt, PsbtTooLarge
from multisig.keys import DerivationPath, ExtendedPublicKey, Fingerprint, KeyOrigin
from multisig.psbt import fields as f
from multisig.psbt.fields import (
    MAGIC,
    MAX_WITNESS_ITEMS,
    SEPARATOR,
    PsbtInput,
    PsbtLimits,
    PsbtOutput,
    malformed,
    read_map,
    write_field,
)
from multisig.transaction import Transaction, TxIn, TxOut
from multisig.units import sats
from multisig.wire import Reader, with_count


@dataclass(frozen=True, slots=True)
class Decoded:
    tx: Transaction
    inputs: tuple[PsbtInput, ...]
    outputs: tuple[PsbtOutput, ...]
    xpubs: tuple[tuple[ExtendedPublicKey, KeyOrigin], ...]
    signed_message: bytes | None


@malformed()
def decode_psbt(data: bytes, limits: PsbtLimits) -> Decoded:
    """Raises InvalidPsbt or PsbtTooLarge; the bytes are already known to be within `limits.max_bytes`."""
    reader = Reader(data)
    if reader.take(len(MAGIC)) != MAGIC:
        raise InvalidPsbt("This is not a PSBT: it does not begin with the magic bytes.")
    globals_ = read_map(reader, limits.max_fields_per_map)
    tx = _unsigned_transaction(globals_, limits)
    inputs = [_input(tx_in, read_map(reader, limits.max_fields_per_map)) for tx_in in tx.inputs]
    outputs = [_output(tx_out, read_map(reader, limits.max_fields_per_map)) for tx_out in tx.outputs]
    reader.finish()
    message = _singles(globals_).get(f.GLOBAL_GENERIC_SIGNED_MESSAGE)
    return Decoded(tx, tuple(inputs), tuple(outputs), _xpubs(globals_), message)


def _unsigned_transaction(globals_: Mapping[bytes, bytes], limits: PsbtLimits) -> Transaction:
    single = _singles(globals_)
    if any(single.get(f.GLOBAL_VERSION, b"")):
        raise InvalidPsbt("Only PSBT version 0 is accepted; this is a later one.")
    f.check_fields(globals_, f.GLOBAL_FIELDS, f.GLOBAL_V2_ONLY)
    raw = single.get(f.GLOBAL_UNSIGNED_TX)
    if raw is None:
        raise InvalidPsbt("The PSBT has no unsigned transaction; version 0 must have one.")
    tx = Transaction.parse(raw, witness=False)
    if any(item.script_sig for item in tx.inputs):
        raise InvalidPsbt("The unsigned transaction of the PSBT carries signatures.")
    # BIP-174 allows none (two of its valid vectors have none); there is then nothing to sign, the 0 reads as
    # the marker of BIP-144, and HWI cannot read it (tests/multisig/test_psbt.py).
    if not tx.inputs:
        raise InvalidPsbt("The PSBT spends nothing: it has no inputs.")
    if len(tx.inputs) > limits.max_inputs or len(tx.outputs) > limits.max_outputs:
        raise PsbtTooLarge(
            f"The PSBT has {len(tx.inputs)} inputs and {len(tx.outputs)} outputs; "
            f"at most {limits.max_inputs} and {limits.max_outputs} are accepted."
        )
    return tx


def _input(tx_in: TxIn, fields: Mapping[bytes, bytes]) -> PsbtInput:
    f.check_fields(fields, f.INPUT_FIELDS, f.INPUT_V2_ONLY)
    single = _singles(fields)
    previous = single.get(f.IN_NON_WITNESS_UTXO)
    spent = single.get(f.IN_WITNESS_UTXO)
    sighash = single.get(f.IN_SIGHASH_TYPE)
    stack = single.get(f.IN_FINAL_SCRIPTWITNESS)
    return PsbtInput(
        outpoint=tx_in.outpoint,
        sequence=tx_in.sequence,
        non_witness_utxo=None if previous is None else Transaction.parse(previous),
        witness_utxo=None if spent is None else _tx_out(spent),
        partial_signatures=_of_kind(fields, f.IN_PARTIAL_SIG),
        sighash_type=None if sighash is None else int.from_bytes(sighash, "little"),
        redeem_script=single.get(f.IN_REDEEM_SCRIPT),
        witness_script=single.get(f.IN_WITNESS_SCRIPT),
        derivations=_read_derivations(fields, f.IN_BIP32_DERIVATION),
        final_script_sig=single.get(f.IN_FINAL_SCRIPTSIG),
        final_script_witness=None if stack is None else read_witness_stack(stack),
    )


def _output(tx_out: TxOut, fields: Mapping[bytes, bytes]) -> PsbtOutput:
    f.check_fields(fields, f.OUTPUT_FIELDS, f.OUTPUT_V2_ONLY)
    single = _singles(fields)
    return PsbtOutput(
        amount=tx_out.amount,
        script_pubkey=tx_out.script_pubkey,
        redeem_script=single.get(f.OUT_REDEEM_SCRIPT),
        witness_script=single.get(f.OUT_WITNESS_SCRIPT),
        derivations=_read_derivations(fields, f.OUT_BIP32_DERIVATION),
    )


def _xpubs(globals_: Mapping[bytes, bytes]) -> tuple[tuple[ExtendedPublicKey, KeyOrigin], ...]:
    # In the order they are written: PSBTs of equal bytes are equal values.
    return tuple(_xpub(key, value) for key, value in sorted(_of_kind(globals_, f.GLOBAL_XPUB).items()))


# Cached: every PSBT of a vault has its account keys.
@lru_cache(maxsize=1024)
def _xpub(key: bytes, value: bytes) -> tuple[ExtendedPublicKey, KeyOrigin]:
    xpub, origin = ExtendedPublicKey.from_bytes(key), _read_origin(value)
    if xpub.depth != len(origin.path):
        raise InvalidPsbt("The path of a global xpub is not as long as the xpub's depth (BIP-174).")
    return xpub, origin


def _singles(fields: Mapping[bytes, bytes]) -> dict[int, bytes]:
    """The fields of which a map holds one each, by type: their keys are the type's byte and no more."""
    return {key[0]: value for key, value in fields.items() if len(key) == 1}


def _of_kind(fields: Mapping[bytes, bytes], kind: int) -> dict[bytes, bytes]:
    """The fields of which a map may hold several, by what stands behind the type's byte."""
    return {key[1:]: value for key, value in fields.items() if key[0] == kind}


def _read_derivations(fields: Mapping[bytes, bytes], kind: int) -> dict[bytes, KeyOrigin]:
    return {key: _read_origin(value) for key, value in _of_kind(fields, kind).items()}


# Cached: building, storing, signing and accepting parse the same PSBT again.
@lru_cache(maxsize=1024)
def _read_origin(value: bytes) -> KeyOrigin:
    return KeyOrigin(Fingerprint(value[:4]), _path(value[4:]))


# Cached: all cosigners of a coin, and often its change, have the same path.
@lru_cache(maxsize=1024)
def _path(value: bytes) -> DerivationPath:
    return DerivationPath(struct.unpack(f"<{len(value) // 4}I", value))


def _tx_out(value: bytes) -> TxOut:
    reader = Reader(value)
    output = TxOut(sats(reader.uint(8)), reader.sized())
    reader.finish()
    return output


def read_witness_stack(value: bytes) -> tuple[bytes, ...]:
    """The items behind their number. Raises WireError, PsbtTooLarge."""
    reader = Reader(value)
    count = reader.count(1)
    if count > MAX_WITNESS_ITEMS:
        raise PsbtTooLarge(f"A final witness has {count} items; at most {MAX_WITNESS_ITEMS} are accepted.")
    stack = tuple(reader.sized() for _ in range(count))
    reader.finish()
    return stack


def encode_psbt(
    tx: Transaction,
    inputs: Sequence[PsbtInput],
    outputs: Sequence[PsbtOutput],
    xpubs: Sequence[tuple[ExtendedPublicKey, KeyOrigin]],
    signed_message: bytes | None = None,
) -> bytes:
    """The bytes of a version 0 PSBT."""
    parts = [MAGIC, *_global_fields(tx, xpubs)]
    if signed_message is not None:
        parts.append(_write_single(f.GLOBAL_GENERIC_SIGNED_MESSAGE, signed_message))
    parts.append(SEPARATOR)
    for item in inputs:
        parts += (*_input_fields(item), SEPARATOR)
    for output in outputs:
        parts += (*_output_fields(output), SEPARATOR)
    return b"".join(parts)


def encode_skeleton(tx: Transaction, inputs: Sequence[PsbtInput], outputs: Sequence[PsbtOutput]) -> bytes:
    """The PSBT for the second reader, without the fields that cost most to parse and are proven in other
    ways: previous transactions (by their hash), origins and account keys (by deriving from the policy).
    """
    parts = [MAGIC, *_global_fields(tx, ()), SEPARATOR]
    for item in inputs:
        parts += (*_input_fields(item, is_whole=False), SEPARATOR)
    for output in outputs:
        parts += (*_output_fields(output, is_whole=False), SEPARATOR)
    return b"".join(parts)


def _global_fields(tx: Transaction, xpubs: Sequence[tuple[ExtendedPublicKey, KeyOrigin]]) -> Iterator[bytes]:
    yield _write_single(f.GLOBAL_UNSIGNED_TX, tx.serialize(include_witness=False))
    for key, value in sorted((xpub.serialize(), _write_origin(origin)) for xpub, origin in xpubs):
        yield write_field(f.GLOBAL_XPUB, key, value)


def _input_fields(item: PsbtInput, *, is_whole: bool = True) -> Iterator[bytes]:
    if is_whole and item.non_witness_utxo is not None:
        yield _write_single(f.IN_NON_WITNESS_UTXO, item.non_witness_utxo.serialize())
    if item.witness_utxo is not None:
        yield _write_single(f.IN_WITNESS_UTXO, item.witness_utxo.serialize())
    for key in sorted(item.partial_signatures):
        yield write_field(f.IN_PARTIAL_SIG, key, item.partial_signatures[key])
    if item.sighash_type is not None:
        yield _write_single(f.IN_SIGHASH_TYPE, item.sighash_type.to_bytes(4, "little"))
    if item.redeem_script is not None:
        yield _write_single(f.IN_REDEEM_SCRIPT, item.redeem_script)
    if item.witness_script is not None:
        yield _write_single(f.IN_WITNESS_SCRIPT, item.witness_script)
    if is_whole:
        yield from _write_derivations(f.IN_BIP32_DERIVATION, item.derivations)
    if item.final_script_sig is not None:
        yield _write_single(f.IN_FINAL_SCRIPTSIG, item.final_script_sig)
    if item.final_script_witness is not None:
        yield _write_single(f.IN_FINAL_SCRIPTWITNESS, with_count(item.final_script_witness))


def _output_fields(output: PsbtOutput, *, is_whole: bool = True) -> Iterator[bytes]:
    if output.redeem_script is not None:
        yield _write_single(f.OUT_REDEEM_SCRIPT, output.redeem_script)
    if output.witness_script is not None:
        yield _write_single(f.OUT_WITNESS_SCRIPT, output.witness_script)
    if is_whole:
        yield from _write_derivations(f.OUT_BIP32_DERIVATION, output.derivations)


def _write_derivations(kind: int, derivations: Mapping[bytes, KeyOrigin]) -> Iterator[bytes]:
    for key in sorted(derivations):
        yield write_field(kind, key, _write_origin(derivations[key]))


def _write_single(kind: int, value: bytes) -> bytes:
    return write_field(kind, b"", value)


def _write_origin(origin: KeyOrigin) -> bytes:
    steps = origin.path.indexes
    return origin.fingerprint.value + struct.pack(f"<{len(steps)}I", *steps)

"""Fields in the order of their type bytes, and by key within one type: equal PSBTs are equal bytes."""

import struct
from collections.abc import Iterator, Mapping, Sequence

from multisig.keys import ExtendedPublicKey, KeyOrigin
from multisig.psbt import fields as f
from multisig.psbt.keyvalue import MAGIC, SEPARATOR, write_field
from multisig.psbt.model import PsbtInput, PsbtOutput
from multisig.transaction import Transaction
from multisig.wire import compact_size, with_length


def encode_psbt(
    tx: Transaction,
    inputs: Sequence[PsbtInput],
    outputs: Sequence[PsbtOutput],
    xpubs: Sequence[tuple[ExtendedPublicKey, KeyOrigin]],
) -> bytes:
    """The bytes of a version 0 PSBT."""
    parts = [MAGIC, *_global_fields(tx, xpubs), SEPARATOR]
    for item in inputs:
        parts += (*_input_fields(item), SEPARATOR)
    for output in outputs:
        parts += (*_output_fields(output), SEPARATOR)
    return b"".join(parts)


def encode_skeleton(tx: Transaction, inputs: Sequence[PsbtInput], outputs: Sequence[PsbtOutput]) -> bytes:
    """What a second reader is shown: the same, without what is proven otherwise and costs the most. That is previous
    transactions, proven by their hash, and origins and account keys, by deriving from the policy.
    """
    parts = [MAGIC, *_global_fields(tx, ()), SEPARATOR]
    for item in inputs:
        parts += (*_input_fields(item, is_whole=False), SEPARATOR)
    for output in outputs:
        parts += (*_output_fields(output, is_whole=False), SEPARATOR)
    return b"".join(parts)


def _global_fields(tx: Transaction, xpubs: Sequence[tuple[ExtendedPublicKey, KeyOrigin]]) -> Iterator[bytes]:
    yield _single(f.GLOBAL_UNSIGNED_TX, tx.serialize(include_witness=False))
    for key, value in sorted((xpub.serialize(), _origin(origin)) for xpub, origin in xpubs):
        yield write_field(f.GLOBAL_XPUB, key, value)


def _input_fields(item: PsbtInput, *, is_whole: bool = True) -> Iterator[bytes]:
    if is_whole and item.non_witness_utxo is not None:
        yield _single(f.IN_NON_WITNESS_UTXO, item.non_witness_utxo.serialize())
    if item.witness_utxo is not None:
        yield _single(f.IN_WITNESS_UTXO, item.witness_utxo.serialize())
    for key in sorted(item.partial_signatures):
        yield write_field(f.IN_PARTIAL_SIG, key, item.partial_signatures[key])
    if item.sighash_type is not None:
        yield _single(f.IN_SIGHASH_TYPE, item.sighash_type.to_bytes(4, "little"))
    if item.redeem_script is not None:
        yield _single(f.IN_REDEEM_SCRIPT, item.redeem_script)
    if item.witness_script is not None:
        yield _single(f.IN_WITNESS_SCRIPT, item.witness_script)
    if is_whole:
        yield from _derivations(f.IN_BIP32_DERIVATION, item.derivations)
    if item.final_script_sig is not None:
        yield _single(f.IN_FINAL_SCRIPTSIG, item.final_script_sig)
    if item.final_script_witness is not None:
        yield _single(f.IN_FINAL_SCRIPTWITNESS, _witness(item.final_script_witness))


def _output_fields(output: PsbtOutput, *, is_whole: bool = True) -> Iterator[bytes]:
    if output.redeem_script is not None:
        yield _single(f.OUT_REDEEM_SCRIPT, output.redeem_script)
    if output.witness_script is not None:
        yield _single(f.OUT_WITNESS_SCRIPT, output.witness_script)
    if is_whole:
        yield from _derivations(f.OUT_BIP32_DERIVATION, output.derivations)


def _derivations(kind: int, derivations: Mapping[bytes, KeyOrigin]) -> Iterator[bytes]:
    for key in sorted(derivations):
        yield write_field(kind, key, _origin(derivations[key]))


def _single(kind: int, value: bytes) -> bytes:
    return write_field(kind, b"", value)


def _origin(origin: KeyOrigin) -> bytes:
    steps = origin.path.indexes
    return origin.fingerprint.value + struct.pack(f"<{len(steps)}I", *steps)


def _witness(stack: Sequence[bytes]) -> bytes:
    return compact_size(len(stack)) + b"".join(with_length(item) for item in stack)

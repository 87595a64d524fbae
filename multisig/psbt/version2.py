"""PSBTs of version 2 (BIP-370), converted from and to version 0, which is what is checked and signed.

A version 2 PSBT has its transaction in fields. It is converted to version 0 and parsed as strictly as any
other. Signatures are added to the maps as they were received: required lock times, taproot and unknown fields
are kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from multisig.errors import InvalidPsbt, PsbtTooLarge
from multisig.psbt import fields as f
from multisig.psbt.container import DEFAULT_LIMITS, Psbt, raw_psbt
from multisig.psbt.fields import MAGIC, SEPARATOR, FieldRule, PsbtLimits, check_fields, malformed, read_map
from multisig.transaction import LOCKTIME_THRESHOLD, OutPoint, Transaction, TxIn, TxOut
from multisig.units import sats
from multisig.wire import Reader, compact_size, with_length

GLOBAL_TX_VERSION: Final = 0x02
GLOBAL_FALLBACK_LOCKTIME: Final = 0x03
GLOBAL_INPUT_COUNT: Final = 0x04
GLOBAL_OUTPUT_COUNT: Final = 0x05
GLOBAL_TX_MODIFIABLE: Final = 0x06
IN_PREVIOUS_TXID: Final = 0x0E
IN_OUTPUT_INDEX: Final = 0x0F
IN_SEQUENCE: Final = 0x10
IN_REQUIRED_TIME_LOCKTIME: Final = 0x11
IN_REQUIRED_HEIGHT_LOCKTIME: Final = 0x12
OUT_AMOUNT: Final = 0x03
OUT_SCRIPT: Final = 0x04

# Flags that inputs and outputs may be added; cleared by a SIGHASH_ALL signature (BIP-370, "Signer").
_MODIFIABLE: Final = 0x03
_FINAL: Final = 0xFFFF_FFFF
# What a signer or a finaliser adds to an input.
_SIGNED: Final = frozenset({f.IN_PARTIAL_SIG, f.IN_FINAL_SCRIPTSIG, f.IN_FINAL_SCRIPTWITNESS})

_NOTHING: Final = frozenset({0})
_FOUR: Final = frozenset({4})
_COUNT: Final = range(1, 10)
_GLOBALS: Mapping[int, FieldRule] = {
    GLOBAL_TX_VERSION: FieldRule("PSBT_GLOBAL_TX_VERSION", _NOTHING, _FOUR),
    GLOBAL_FALLBACK_LOCKTIME: FieldRule("PSBT_GLOBAL_FALLBACK_LOCKTIME", _NOTHING, _FOUR),
    GLOBAL_INPUT_COUNT: FieldRule("PSBT_GLOBAL_INPUT_COUNT", _NOTHING, _COUNT),
    GLOBAL_OUTPUT_COUNT: FieldRule("PSBT_GLOBAL_OUTPUT_COUNT", _NOTHING, _COUNT),
    GLOBAL_TX_MODIFIABLE: FieldRule("PSBT_GLOBAL_TX_MODIFIABLE", _NOTHING, frozenset({1})),
    f.GLOBAL_VERSION: f.GLOBAL_FIELDS[f.GLOBAL_VERSION],
}
_INPUTS: Mapping[int, FieldRule] = {
    IN_PREVIOUS_TXID: FieldRule("PSBT_IN_PREVIOUS_TXID", _NOTHING, frozenset({32})),
    IN_OUTPUT_INDEX: FieldRule("PSBT_IN_OUTPUT_INDEX", _NOTHING, _FOUR),
    IN_SEQUENCE: FieldRule("PSBT_IN_SEQUENCE", _NOTHING, _FOUR),
    IN_REQUIRED_TIME_LOCKTIME: FieldRule("PSBT_IN_REQUIRED_TIME_LOCKTIME", _NOTHING, _FOUR),
    IN_REQUIRED_HEIGHT_LOCKTIME: FieldRule("PSBT_IN_REQUIRED_HEIGHT_LOCKTIME", _NOTHING, _FOUR),
}
_OUTPUTS: Mapping[int, FieldRule] = {
    OUT_AMOUNT: FieldRule("PSBT_OUT_AMOUNT", _NOTHING, frozenset({8})),
    OUT_SCRIPT: FieldRule("PSBT_OUT_SCRIPT", _NOTHING, range(1 << 32)),
}

Map = dict[bytes, bytes]


@dataclass(frozen=True)
class _Maps:
    globals_: Map
    inputs: tuple[Map, ...]
    outputs: tuple[Map, ...]

    def to_bytes(self) -> bytes:
        return MAGIC + b"".join(_written(each) for each in (self.globals_, *self.inputs, *self.outputs))


@dataclass(frozen=True)
class ReceivedPsbt:
    """A received PSBT of either version. ``psbt`` is its version 0, which is checked, shown and signed."""

    psbt: Psbt
    _maps: _Maps | None = None

    @property
    def version(self) -> int:
        return 0 if self._maps is None else 2

    @classmethod
    def parse(cls, data: bytes | str, limits: PsbtLimits = DEFAULT_LIMITS) -> "ReceivedPsbt":
        """Read a PSBT of version 0 or 2 from its bytes, or from base64 text.

        Raises PsbtTooLarge before anything is parsed, else InvalidPsbt.
        """
        raw = raw_psbt(data, limits)
        with malformed():
            maps = _read(raw, limits)
            older = None if maps is None else _version_0(maps)
        return cls(Psbt.parse(raw, limits)) if older is None else cls(Psbt.parse(older, limits), maps)

    def answer(self, signed: Psbt) -> bytes:
        """What was received, in its version, with the signatures of ``signed`` added; of version 2, with
        every field that it had.

        Raises InvalidPsbt where it is another transaction.
        """
        if signed.tx != self.psbt.tx:
            raise InvalidPsbt("The signed PSBT has another transaction.")
        if self._maps is None:
            added = {index: item.partial_signatures for index, item in enumerate(signed.inputs)}
            return self.psbt.with_signatures(added).to_bytes()
        signed_maps = _read_maps(Reader(signed.to_bytes()[len(MAGIC) :]), signed)
        inputs = tuple(
            {**came, **{key: value for key, value in new.items() if key[0] in _SIGNED}}
            for came, new in zip(self._maps.inputs, signed_maps.inputs, strict=True)
        )
        globals_ = dict(self._maps.globals_)
        modifiable = globals_.get(bytes((GLOBAL_TX_MODIFIABLE,)))
        if modifiable is not None and inputs != self._maps.inputs:
            globals_[bytes((GLOBAL_TX_MODIFIABLE,))] = bytes((modifiable[0] & ~_MODIFIABLE,))
        return replace(self._maps, globals_=globals_, inputs=inputs).to_bytes()


def to_version_2(psbt: Psbt) -> bytes:
    """The same PSBT as version 2 (BIP-370), marked as not modifiable."""
    maps = _read_maps(Reader(psbt.to_bytes()[len(MAGIC) :]), psbt)
    tx = psbt.tx
    globals_ = {key: value for key, value in maps.globals_.items() if key[0] != f.GLOBAL_UNSIGNED_TX} | {
        bytes((GLOBAL_TX_VERSION,)): _u32(tx.version),
        bytes((GLOBAL_INPUT_COUNT,)): compact_size(len(tx.inputs)),
        bytes((GLOBAL_OUTPUT_COUNT,)): compact_size(len(tx.outputs)),
        bytes((f.GLOBAL_VERSION,)): _u32(2),
    }
    if tx.locktime:
        globals_[bytes((GLOBAL_FALLBACK_LOCKTIME,))] = _u32(tx.locktime)
    inputs = tuple(
        fields
        | {
            bytes((IN_PREVIOUS_TXID,)): bytes.fromhex(item.outpoint.txid)[::-1],
            bytes((IN_OUTPUT_INDEX,)): _u32(item.outpoint.vout),
            bytes((IN_SEQUENCE,)): _u32(item.sequence),
        }
        for fields, item in zip(maps.inputs, tx.inputs, strict=True)
    )
    outputs = tuple(
        fields
        | {
            bytes((OUT_AMOUNT,)): output.amount.to_bytes(8, "little"),
            bytes((OUT_SCRIPT,)): output.script_pubkey,
        }
        for fields, output in zip(maps.outputs, tx.outputs, strict=True)
    )
    return _Maps(globals_, inputs, outputs).to_bytes()


def _read(raw: bytes, limits: PsbtLimits) -> _Maps | None:
    """None if it is not a PSBT of version 2: the parser of version 0 then reports what is wrong."""
    reader = Reader(raw)
    if reader.take(min(len(MAGIC), reader.remaining)) != MAGIC:
        return None
    globals_ = read_map(reader, limits.max_fields_per_map)
    if globals_.get(bytes((f.GLOBAL_VERSION,))) != _u32(2):
        return None
    if bytes((f.GLOBAL_UNSIGNED_TX,)) in globals_:
        raise InvalidPsbt("The PSBT is of version 2 but carries an unsigned transaction.")
    check_fields(globals_, _GLOBALS, frozenset())
    counts = []
    for kind, most in ((GLOBAL_INPUT_COUNT, limits.max_inputs), (GLOBAL_OUTPUT_COUNT, limits.max_outputs)):
        number = Reader(_needed(globals_, kind, _GLOBALS))
        count = number.compact_size()
        number.finish()
        if count > most:
            raise PsbtTooLarge(f"The PSBT has {count} inputs or outputs; at most {most} are accepted.")
        counts.append(count)
    inputs = tuple(read_map(reader, limits.max_fields_per_map) for _ in range(counts[0]))
    outputs = tuple(read_map(reader, limits.max_fields_per_map) for _ in range(counts[1]))
    reader.finish()
    return _Maps(globals_, inputs, outputs)


def _read_maps(reader: Reader, psbt: Psbt) -> _Maps:
    """From bytes that this package wrote."""
    most = f.MAX_FIELDS_PER_MAP
    globals_ = read_map(reader, most)
    inputs = tuple(read_map(reader, most) for _ in psbt.inputs)
    return _Maps(globals_, inputs, tuple(read_map(reader, most) for _ in psbt.outputs))


def _version_0(maps: _Maps) -> bytes:
    """Raises InvalidPsbt for a field that is missing or wrong."""
    for fields in maps.inputs:
        check_fields(fields, _INPUTS, frozenset())
    for fields in maps.outputs:
        check_fields(fields, _OUTPUTS, frozenset())
    version = int.from_bytes(_needed(maps.globals_, GLOBAL_TX_VERSION, _GLOBALS), "little")
    tx = Transaction(
        version=version,
        inputs=tuple(_tx_in(fields) for fields in maps.inputs),
        outputs=tuple(_tx_out(fields) for fields in maps.outputs),
        locktime=lock_time(maps.globals_, maps.inputs),
    )
    unsigned = {bytes((f.GLOBAL_UNSIGNED_TX,)): tx.serialize(include_witness=False)}
    return _Maps(
        unsigned | _without(maps.globals_, frozenset(_GLOBALS)),
        tuple(_without(fields, frozenset(_INPUTS)) for fields in maps.inputs),
        tuple(_without(fields, frozenset(_OUTPUTS)) for fields in maps.outputs),
    ).to_bytes()


def lock_time(globals_: Mapping[bytes, bytes], inputs: tuple[Map, ...]) -> int:
    """The transaction's lock time, by what its inputs require (BIP-370, "Determining Lock Time").

    Raises InvalidPsbt where they contradict each other.
    """
    required = []
    for fields in inputs:
        height = _number(fields, IN_REQUIRED_HEIGHT_LOCKTIME)
        time = _number(fields, IN_REQUIRED_TIME_LOCKTIME)
        if height is not None and not 0 < height < LOCKTIME_THRESHOLD:
            raise InvalidPsbt("The height that an input requires is out of range.")
        if time is not None and time < LOCKTIME_THRESHOLD:
            raise InvalidPsbt("The time that an input requires is out of range.")
        if height is not None or time is not None:
            required.append((height, time))
    if not required:
        return _number(globals_, GLOBAL_FALLBACK_LOCKTIME) or 0
    # A height is preferred where every input that requires a lock time allows one.
    for kind in (0, 1):
        wanted = [each[kind] for each in required]
        known = [number for number in wanted if number is not None]
        if len(known) == len(wanted):
            return max(known)
    raise InvalidPsbt("One input requires a height before it may be spent, and another one a time.")


def _tx_in(fields: Map) -> TxIn:
    txid = _needed(fields, IN_PREVIOUS_TXID, _INPUTS)[::-1].hex()
    vout = int.from_bytes(_needed(fields, IN_OUTPUT_INDEX, _INPUTS), "little")
    sequence = _number(fields, IN_SEQUENCE)
    return TxIn(OutPoint(txid, vout), sequence=_FINAL if sequence is None else sequence)


def _tx_out(fields: Map) -> TxOut:
    amount = int.from_bytes(_needed(fields, OUT_AMOUNT, _OUTPUTS), "little", signed=True)
    return TxOut(sats(amount), _needed(fields, OUT_SCRIPT, _OUTPUTS))


def _needed(fields: Mapping[bytes, bytes], kind: int, rules: Mapping[int, FieldRule]) -> bytes:
    value = fields.get(bytes((kind,)))
    if value is None:
        raise InvalidPsbt(f"The PSBT is of version 2 and has no {rules[kind].name}.")
    return value


def _number(fields: Mapping[bytes, bytes], kind: int) -> int | None:
    value = fields.get(bytes((kind,)))
    return None if value is None else int.from_bytes(value, "little")


def _without(fields: Map, kinds: frozenset[int]) -> Map:
    return {key: value for key, value in fields.items() if key[0] not in kinds}


def _written(fields: Map) -> bytes:
    """Sorted by key. BIP-174 does not require an order."""
    parts = (with_length(key) + with_length(fields[key]) for key in sorted(fields))
    return b"".join(parts) + SEPARATOR


def _u32(number: int) -> bytes:
    return number.to_bytes(4, "little")

"""Changes a PSBT by its structure: random byte flips rarely leave lengths, hashes and counts consistent.

Half of the changes attack the outer form: fields dropped, doubled, moved to another map, given another type.
The other half change the transaction or the coins, and then what depends on them, as an attacker would: the
number of maps, and the outpoints, which are hashes of the previous transactions. Only those pass the first
checks.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from fuzz.psbt_maps import Map, put_together, take_apart
from fuzz.target import Change
from multisig import MultisigError, OutPoint, Transaction, TxIn, TxOut
from multisig.units import MAX_MONEY, sats

_UNSIGNED_TX = b"\x00"
_PREVIOUS_TX = b"\x00"
# Types of BIP-174, BIP-370 and BIP-371, and some undefined ones.
_TYPES = (*range(0x1A), 0x7F, 0xFA, 0xFB, 0xFC, 0xFD, 0xFF)
_NUMBERS = (0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFD, 0xFFFFFFFE, 0xFFFFFFFF)
_AMOUNTS = (0, 1, 546, 50_000, 99_000, 100_000, MAX_MONEY)

Step = Callable[[list[Map], Random, Change], None]


def mutate(data: bytes, random: Random, change: Change) -> bytes:
    maps = take_apart(data)
    # Sometimes plain bytes, for lengths and magic bytes, which the structure keeps valid.
    if not maps or random.random() < 0.1:
        return change(data)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        random.choice(_STEPS)(maps, random, change)
    return put_together(maps)


def _place(maps: list[Map], random: Random) -> tuple[Map, int] | None:
    fields = random.choice(maps)
    return (fields, random.randrange(len(fields))) if fields else None


def _drop(maps: list[Map], random: Random, _change: Change) -> None:
    if place := _place(maps, random):
        del place[0][place[1]]


def _copy(maps: list[Map], random: Random, _change: Change) -> None:
    """Copies a field to another map, or twice into the same one."""
    if place := _place(maps, random):
        target = random.choice(maps)
        target.insert(random.randint(0, len(target)), place[0][place[1]])


def _retype(maps: list[Map], random: Random, _change: Change) -> None:
    if place := _place(maps, random):
        fields, index = place
        key, value = fields[index]
        fields[index] = bytes((random.choice(_TYPES),)) + key[1:], value


def _change_key(maps: list[Map], random: Random, change: Change) -> None:
    if place := _place(maps, random):
        fields, index = place
        key, value = fields[index]
        fields[index] = key[:1] + change(key[1:]), value


def _change_value(maps: list[Map], random: Random, change: Change) -> None:
    if place := _place(maps, random):
        fields, index = place
        key, value = fields[index]
        fields[index] = key, change(value)


def _exchange_values(maps: list[Map], random: Random, _change: Change) -> None:
    one, other = _place(maps, random), _place(maps, random)
    if one and other:
        (first, i), (second, j) = one, other
        (key, value), (other_key, other_value) = first[i], second[j]
        first[i], second[j] = (key, other_value), (other_key, value)


def _exchange_maps(maps: list[Map], random: Random, _change: Change) -> None:
    i, j = random.randrange(len(maps)), random.randrange(len(maps))
    maps[i], maps[j] = maps[j], maps[i]


def _change_transaction(maps: list[Map], random: Random, change: Change) -> None:
    """Another input or output, a number, or a script; the maps follow."""
    found = _transaction(dict(maps[0]).get(_UNSIGNED_TX), witness=False)
    if found is None:
        return
    try:
        changed = _another(found, random, change)
    except MultisigError:
        return
    _set(maps[0], _UNSIGNED_TX, changed.serialize(include_witness=False))
    _follow(maps, found, changed)


def _another(tx: Transaction, random: Random, change: Change) -> Transaction:
    inputs, outputs = list(tx.inputs), list(tx.outputs)
    match random.randrange(8):
        case 0:
            return replace(tx, version=random.choice(_NUMBERS))
        case 1:
            return replace(tx, locktime=random.choice((*_NUMBERS, 499_999_999, 500_000_000)))
        case 2 if inputs:
            index = random.randrange(len(inputs))
            inputs[index] = replace(inputs[index], sequence=random.choice(_NUMBERS))
        case 3 if inputs:
            inputs.append(random.choice(inputs))
        case 4 if inputs:
            inputs.pop()
        case 5 if outputs:
            index = random.randrange(len(outputs))
            outputs[index] = replace(outputs[index], amount=sats(random.choice(_AMOUNTS)))
        case 6 if outputs:
            index = random.randrange(len(outputs))
            outputs[index] = replace(outputs[index], script_pubkey=change(outputs[index].script_pubkey))
        case 7 if outputs:
            outputs.append(random.choice(outputs))
        case _:
            outputs = outputs[:-1]
    return replace(tx, inputs=tuple(inputs), outputs=tuple(outputs))


def _follow(maps: list[Map], before: Transaction, after: Transaction) -> None:
    """Adjusts the number of input and output maps to the transaction; a new one is a copy of the last."""
    first = 1 + len(before.inputs)
    ours, theirs = maps[1:first], maps[first : first + len(before.outputs)]
    maps[1:] = _resized(ours, len(after.inputs)) + _resized(theirs, len(after.outputs))


def _resized(maps: list[Map], count: int) -> list[Map]:
    more = [list(maps[-1] if maps else []) for _ in range(count - len(maps))]
    return maps[:count] + more


def _change_coin(maps: list[Map], random: Random, change: Change) -> None:
    """Changes a previous transaction, and the outpoint to its hash."""
    tx = _transaction(dict(maps[0]).get(_UNSIGNED_TX), witness=False)
    if tx is None or not tx.inputs:
        return
    index = random.randrange(len(tx.inputs))
    fields = maps[1 + index] if len(maps) > 1 + index else []
    previous = _transaction(dict(fields).get(_PREVIOUS_TX), witness=True)
    if previous is None:
        return
    spent = tx.inputs[index]
    try:
        coin = _another(previous, random, change)
        rebound = TxIn(OutPoint(coin.txid, random.choice((spent.outpoint.vout, 0, 1))), spent.sequence)
        coin_bytes = coin.serialize()
    except MultisigError:
        return
    inputs = (*tx.inputs[:index], rebound, *tx.inputs[index + 1 :])
    _set(maps[0], _UNSIGNED_TX, replace(tx, inputs=inputs).serialize(include_witness=False))
    _set(fields, _PREVIOUS_TX, coin_bytes)
    _follow_coin(fields, coin, rebound.outpoint.vout, random)


def _follow_coin(fields: Map, coin: Transaction, vout: int, random: Random) -> None:
    """Usually keeps the witness UTXO consistent with the previous transaction."""
    output: TxOut | None = coin.outputs[vout] if vout < len(coin.outputs) else None
    if output is not None and random.random() < 0.8:
        _set(fields, b"\x01", output.serialize())


def _transaction(data: bytes | None, *, witness: bool) -> Transaction | None:
    try:
        return None if data is None else Transaction.parse(data, witness=witness)
    except MultisigError:
        return None


def _set(fields: Map, key: bytes, value: bytes) -> None:
    for index, (known, _) in enumerate(fields):
        if known == key:
            fields[index] = key, value


_STEPS: tuple[Step, ...] = (
    _drop,
    _copy,
    _retype,
    _change_key,
    _change_value,
    _change_value,
    _exchange_values,
    _exchange_maps,
    _change_transaction,
    _change_transaction,
    _change_coin,
    _change_coin,
)

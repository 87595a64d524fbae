"""Coins of a policy, payments of them, and the same payments falsified. The same arguments always give the
same bytes.
"""

import hashlib
from dataclasses import replace
from functools import cache

from multisig import (
    RECEIVE,
    ChangeTo,
    CoinToSpend,
    OutPoint,
    Policy,
    Psbt,
    PsbtInput,
    PsbtOutput,
    Transaction,
    TxIn,
    TxOut,
    build_psbt,
    p2wpkh,
    sats,
    secp256k1,
)


@cache
def foreign_script(label: str = "shop") -> bytes:
    """A P2WPKH script outside the wallet."""
    return p2wpkh(secp256k1.public_key_of(hashlib.sha256(label.encode()).digest()))


def fund(
    policy: Policy, amount: int, *, index: int = 0, chain: int = RECEIVE, salt: int = 0, outputs: int = 2
) -> CoinToSpend:
    """A coin of the policy, in the second of the `outputs` of a transaction that looks like one from
    outside.
    """
    origin = hashlib.sha256(f"coin {chain} {index} {salt}".encode()).hexdigest()
    previous = Transaction(
        version=2,
        inputs=(TxIn(OutPoint(origin, 1), 0xFFFFFFFD, b"", (b"\x30" * 71, b"\x02" * 33)),),
        outputs=(
            TxOut(sats(12_345), foreign_script("change of the payer")),
            TxOut(sats(amount), policy.script_pubkey(chain, index)),
            *(pay(600 + number) for number in range(outputs - 2)),
        ),
        locktime=0,
    )
    return CoinToSpend(OutPoint(previous.txid, 1), sats(amount), chain, index, previous)


def pay(amount: int, label: str = "shop") -> TxOut:
    return TxOut(sats(amount), foreign_script(label))


def make_spend(policy: Policy, *, n_inputs: int = 2, fee: int = 1_000, locktime: int = 0) -> Psbt:
    """Coins of 100,000 sat each; 50,000 sat are paid outside (output 0), the rest comes back (output 1)."""
    coins = [fund(policy, 100_000, index=index) for index in range(n_inputs)]
    change = n_inputs * 100_000 - 50_000 - fee
    return build_psbt(policy, coins, [pay(50_000), ChangeTo(sats(change), 1, 7)], locktime)


def with_input(psbt: Psbt, index: int, **fields: object) -> Psbt:
    """The PSBT with fields of one input replaced, as an attacker would."""
    inputs = list(psbt.inputs)
    inputs[index] = replace(inputs[index], **fields)
    return replace(psbt, inputs=tuple(inputs))


def with_output(psbt: Psbt, index: int, **fields: object) -> Psbt:
    """The PSBT with fields of one output replaced; amount and script change in the transaction too."""
    outputs = list(psbt.outputs)
    outputs[index] = replace(outputs[index], **fields)
    return with_outputs(psbt, *outputs)


def with_inputs(psbt: Psbt, *inputs: PsbtInput) -> Psbt:
    """The PSBT with exactly these inputs, in the transaction too."""
    tx = replace(psbt.tx, inputs=tuple(TxIn(item.outpoint, item.sequence) for item in inputs))
    return replace(psbt, tx=tx, inputs=inputs)


def with_outputs(psbt: Psbt, *outputs: PsbtOutput) -> Psbt:
    """The PSBT with exactly these outputs, in the transaction too."""
    tx = replace(psbt.tx, outputs=tuple(TxOut(item.amount, item.script_pubkey) for item in outputs))
    return replace(psbt, tx=tx, outputs=outputs)

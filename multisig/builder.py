"""Building a PSBT that every vendor's device accepts (BIP-174, creator and updater).

Each input carries its previous transaction (which proves the amount to a device), the output it spends, the
witness script and the origins of all keys; each change output carries its script and origins. The account
xpubs stand in the global map: a Trezor and a Ledger recognise the quorum by them.

This module also computes the size of a spend before it is signed.
"""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from multisig.errors import InvalidPsbt
from multisig.proofs import Place, derive, policy_keys
from multisig.psbt import Psbt, PsbtInput, PsbtOutput
from multisig.script import MAX_COSIGNERS
from multisig.shown import ByMember
from multisig.transaction import SIGHASH_ALL, OutPoint, Transaction, TxIn, TxOut
from multisig.units import Sats
from multisig.vault import Policy, Vault
from multisig.wire import compact_size

# Signals replacement (BIP-125) and lets nLockTime hold; Bitcoin Core's wallet uses the same.
SEQUENCE = 0xFFFFFFFD


@dataclass(frozen=True, slots=True, repr=False)
class CoinToSpend(ByMember):
    """A coin of the policy: where it is, what it holds, and the transaction that made it."""

    outpoint: OutPoint
    amount: Sats
    chain: int
    index: int
    previous_transaction: Transaction


@dataclass(frozen=True, slots=True, repr=False)
class ChangeTo(ByMember):
    """An output back to the policy itself."""

    amount: Sats
    chain: int
    index: int


class Built(NamedTuple):
    """A PSBT and the bytes it was parsed back from."""

    psbt: Psbt
    raw: bytes

    @property
    def base64(self) -> str:
        return b64encode(self.raw).decode("ascii")


def build_psbt(
    policy: Policy,
    coins: Sequence[CoinToSpend],
    outputs: Sequence[TxOut | ChangeTo],
    locktime: int,
    sequence: int = SEQUENCE,
    version: int = 2,
) -> Psbt:
    """The unsigned PSBT that spends these coins into these outputs, in the given order. Raises as
    `built_psbt`.
    """
    return built_psbt(policy, coins, outputs, locktime, sequence, version).psbt


def built_psbt(
    policy: Policy,
    coins: Sequence[CoinToSpend],
    outputs: Sequence[TxOut | ChangeTo],
    locktime: int,
    sequence: int = SEQUENCE,
    version: int = 2,
) -> Built:
    """As `build_psbt`, with the bytes of the PSBT.

    Raises InvalidPsbt for a coin that its previous transaction contradicts, a coin given twice, and
    outputs beyond the coins; WrongNetwork and the like come from the policy.
    """
    if len({coin.outpoint for coin in coins}) != len(coins):
        raise InvalidPsbt("A coin is spent twice.")
    spent = tuple(spent_input(policy, coin, sequence) for coin in coins)
    made = tuple(_output(policy, item) for item in outputs)
    if not made:
        raise InvalidPsbt("The transaction has no outputs.")
    if sum(item.amount for item in made) > sum(coin.amount for coin in coins):
        raise InvalidPsbt("The outputs are more than the coins hold.")
    tx = Transaction(
        version=version,
        inputs=tuple(TxIn(coin.outpoint, sequence, b"", ()) for coin in coins),
        outputs=tuple(TxOut(item.amount, item.script_pubkey) for item in made),
        locktime=locktime,
    )
    psbt = Psbt(
        tx=tx,
        inputs=spent,
        outputs=made,
        xpubs=tuple((key.xpub, key.origin) for key in policy_keys(policy)),
    )
    # A PSBT that we build passes the same parser as one that we receive.
    raw = psbt.to_bytes()
    return Built(Psbt.parse(raw), raw)


def spent_input(policy: Policy, coin: CoinToSpend, sequence: int) -> PsbtInput:
    """The input that spends this coin, with every field that devices need. Raises InvalidPsbt."""
    previous, vout = coin.previous_transaction, coin.outpoint.vout
    if previous.txid != coin.outpoint.txid or vout >= len(previous.outputs):
        raise InvalidPsbt(f"The previous transaction given is not that of the coin {coin.outpoint}.")
    ours = derive(policy, Place(coin.chain, coin.index))
    if previous.outputs[vout] != TxOut(coin.amount, ours.script_pubkey):
        raise InvalidPsbt(f"The coin {coin.outpoint} has another amount or script than stated.")
    return PsbtInput(
        outpoint=coin.outpoint,
        sequence=sequence,
        non_witness_utxo=previous,
        witness_utxo=previous.outputs[vout],
        witness_script=ours.witness_script,
        derivations=ours.derivations,
        sighash_type=SIGHASH_ALL,
    )


def _output(policy: Policy, item: TxOut | ChangeTo) -> PsbtOutput:
    if isinstance(item, TxOut):
        return PsbtOutput(amount=item.amount, script_pubkey=item.script_pubkey)
    ours = derive(policy, Place(item.chain, item.index))
    return PsbtOutput(
        amount=item.amount,
        script_pubkey=ours.script_pubkey,
        witness_script=ours.witness_script,
        derivations=ours.derivations,
    )


# Low S but any R, and the sighash byte: what a device that does not grind for a low R returns at most.
SIGNATURE_BYTES = 72
_KEY_BYTES = 33

# version and locktime, then marker and flag, which weigh a quarter.
_OVERHEAD_WEIGHT = 4 * 8 + 2
# Outpoint, empty script, sequence.
_INPUT_BASE_BYTES = 41


def vault_input_weight(m: int, n: int) -> int:
    """Weight units of an input that spends m-of-n P2WSH, with its witness."""
    if not 1 <= m <= n <= MAX_COSIGNERS:
        raise ValueError(f"no quorum of {m} out of {n}")
    script = 3 + n * (1 + _KEY_BYTES)
    dummy = 1
    signatures = m * (1 + SIGNATURE_BYTES)
    items = len(compact_size(m + 2))
    return 4 * _INPUT_BASE_BYTES + items + dummy + signatures + len(compact_size(script)) + script


def profile_input_weight() -> int:
    """Weight units of an input that spends P2WPKH, with its witness."""
    return 4 * _INPUT_BASE_BYTES + 1 + (1 + SIGNATURE_BYTES) + (1 + _KEY_BYTES)


def input_weight(policy: Policy) -> int:
    """Weight units of an input that spends from `policy`."""
    if isinstance(policy, Vault):
        return vault_input_weight(policy.threshold, len(policy.cosigners))
    return profile_input_weight()


def output_weight(script: bytes) -> int:
    """Weight units of an output with that script."""
    return 4 * (8 + len(compact_size(len(script))) + len(script))


def estimate_vsize(policy: Policy, n_inputs: int, output_scripts: Iterable[bytes]) -> int:
    """Virtual bytes of a transaction with `n_inputs` from `policy` and those outputs, rounded up."""
    scripts = list(output_scripts)
    counts = 4 * (len(compact_size(n_inputs)) + len(compact_size(len(scripts))))
    outputs = sum(output_weight(script) for script in scripts)
    return -(-(_OVERHEAD_WEIGHT + counts + n_inputs * input_weight(policy) + outputs) // 4)

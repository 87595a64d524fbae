"""What devices do not sign, and how long they work: the shapes of both, filled in `firmware_bridge.makers`.
`why_not` is asked before the device is, because some say no only after the person's yes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from multisig import CHANGE, Policy, Psbt, ScriptKind, Transaction, classify
from multisig.proofs import Prover


@dataclass(frozen=True)
class SigningPace:
    """How long a device works on a transaction, in seconds: `item` for each input and each output, `key` for
    each key of the quorum in each of them, `kilobyte` for each 1,000 bytes of the PSBT.

    The defaults are allowances for hardware, which is slower than the emulators that figures come from.
    """

    item: float = 0.5
    key: float = 0.1
    kilobyte: float = 0.05

    def seconds(self, inputs: int, outputs: int, keys: int, size: int) -> float:
        """`keys`: of the quorum; `size`: of the PSBT, in bytes. No less for more of any of them."""
        return (inputs + outputs) * (self.item + self.key * keys) + self.kilobyte * size / 1000


@dataclass(frozen=True)
class DeviceLimits:
    """The transactions that a device signs. A number is the most; None: no limit is known.

    `inputs`, `outputs`: how many. `change`: how many outputs to the vault's change addresses.
    `previous_output`, `previous_input`: bytes of a scriptPubKey and of a scriptSig of a previous transaction.
    `takes`: whether it takes an output script. `pays_data`: whether an OP_RETURN output may have an amount.
    """

    inputs: int | None = None
    outputs: int | None = None
    change: int | None = None
    previous_output: int | None = None
    previous_input: int | None = None
    takes: Callable[[bytes], bool] = lambda _script: True
    pays_data: bool = True


def why_not(limits: DeviceLimits, psbt: Psbt, policy: Policy) -> str | None:
    """Why the device would not sign this, as a sentence; None if it would."""
    return next(_obstacles(limits, psbt, policy), None)


def _obstacles(limits: DeviceLimits, psbt: Psbt, policy: Policy) -> Iterator[str]:
    for most, count, what in (
        (limits.inputs, len(psbt.inputs), "inputs"),
        (limits.outputs, len(psbt.outputs), "outputs"),
        (limits.change, 0 if limits.change is None else _change(psbt, policy), "change outputs"),
    ):
        if most is not None and count > most:
            yield f"The device signs transactions of up to {most} {what}, and this one has {count}."
    for index, output in enumerate(psbt.outputs):
        if not limits.takes(output.script_pubkey):
            yield f"The device takes no output like output {index} ({_kind(output.script_pubkey)})."
        if output.amount and not limits.pays_data and classify(output.script_pubkey) is ScriptKind.OP_RETURN:
            yield f"The device takes no amount with data, and output {index} has both."
    for index, item in enumerate(psbt.inputs):
        if item.non_witness_utxo is not None and not _holds(limits, item.non_witness_utxo):
            yield f"The device has no room for a script in the transaction that input {index} spends."


def _change(psbt: Psbt, policy: Policy) -> int:
    prover = Prover(policy)
    proven = (prover.prove(output.script_pubkey, output.derivations) for output in psbt.outputs)
    return sum(ours is not None and ours.place.chain == CHANGE for ours in proven)


def _kind(script: bytes) -> str:
    match classify(script):
        case ScriptKind.OP_RETURN:
            return "data in a form that it does not show"
        case ScriptKind.P2TR:
            return "a taproot key that no one could ever spend"
        case _:
            return "no kind of address that it knows"


def _holds(limits: DeviceLimits, previous: Transaction) -> bool:
    most_in, most_out = limits.previous_input, limits.previous_output
    return (most_in is None or all(len(item.script_sig) <= most_in for item in previous.inputs)) and (
        most_out is None or all(len(output.script_pubkey) <= most_out for output in previous.outputs)
    )

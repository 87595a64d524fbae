"""What the played device shows."""

from device_simulators.panel import Prompt
from multisig import (
    MultisigError,
    Policy,
    Psbt,
    PsbtOutput,
    TxOut,
    Vault,
    encode_address,
    format_btc,
    parse_op_return,
)
from multisig.proofs import Prover, proven_output


def transaction(psbt: Psbt, policy: Policy) -> list[Prompt]:
    """Each payment, then the whole; change that the policy proves is shown as little as on the makers' devices."""
    prover = Prover(policy)
    paid = [out for out in psbt.outputs if prover.prove(out.script_pubkey, out.derivations) is None]
    return [*(_payment(out, policy) for out in paid), _total(psbt)]


def _payment(out: PsbtOutput, policy: Policy) -> Prompt:
    data = parse_op_return(out.script_pubkey)
    if data is not None:
        return Prompt("sign-op-return", ("Data in the transaction", data.hex()))
    try:
        place = encode_address(out.script_pubkey, policy.network)
    except MultisigError:
        place = out.script_pubkey.hex()
    return Prompt("sign-output", (f"Send {format_btc(out.amount)} BTC", f"to {place}"))


def _total(psbt: Psbt) -> Prompt:
    coins = [proven_output(item) for item in psbt.inputs]
    spent = sum(coin.amount for coin in coins if isinstance(coin, TxOut))
    fee = spent - sum(out.amount for out in psbt.outputs)
    return Prompt("sign-total", ("Sign the transaction?", f"Fee {fee} sat"))


def message(text: str, path: str) -> Prompt:
    return Prompt("sign-message", ("Sign the message?", text, path))


def enrolment(name: str, policy: Policy) -> Prompt:
    keys = policy.cosigners if isinstance(policy, Vault) else (policy.key,)
    threshold = policy.threshold if isinstance(policy, Vault) else 1
    lines = (f"{threshold} of {len(keys)}", *(str(key.fingerprint) for key in keys))
    return Prompt("enrol-vault", (f"Register {name}?", *lines))


def address(text: str) -> Prompt:
    return Prompt("address", ("Is this the address?", text))


def greeting() -> Prompt:
    return Prompt("identify", ("Is this the device you mean?",))

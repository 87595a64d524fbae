"""A vault or a single-signature account as a Ledger knows it: a wallet policy (BIP-388), and the proof that a person approved it.

HWI makes such a policy anew for each order of keys it meets in a script; for sorted keys every address has its own order,
and to the device each is another wallet. Here the keys come in one order, that of the vault's verification code, always.
"""

from collections.abc import Mapping
from typing import Any, Final

from hwilib.common import AddressType
from hwilib.devices.ledger_bitcoin.wallet import MultisigWallet, WalletPolicy
from hwilib.psbt import PSBT

from firmware_bridge.enrolment import MAX_NAMES, takes_name
from firmware_bridge.errors import NotEnrolled, Unsupported
from firmware_bridge.model import Family
from firmware_bridge.port import DeviceFailure

Policy = Mapping[str, Any]

# MAX_N_KEYS_IN_WALLET_POLICY, MAX_N_INPUTS_CAN_SIGN, MAX_N_OUTPUTS_CAN_SIGN and
# MAX_OUTPUT_SCRIPTPUBKEY_LEN of the Bitcoin app.
MAX_KEYS: Final = 15
MAX_INPUTS: Final = 512
MAX_OUTPUTS: Final = 512
MAX_OUTPUT_SCRIPT: Final = 83

# The default policy of a single-signature account is known to the app without a registration: no name, no proof.
_SINGLE_SIGNATURE: Final = "wpkh(@0/**)"


def is_vault(policy: Policy) -> bool:
    return bool(policy["kind"] == "vault")


def wallet_of(policy: Policy) -> WalletPolicy:
    """:raises DeviceFailure: the vault or its name is more than the app takes."""
    keys = [ledger_key(key) for key in policy["keys"]]
    if not is_vault(policy):
        return WalletPolicy("", _SINGLE_SIGNATURE, keys)
    name = policy["name"]
    if not takes_name(Family.LEDGER, name):
        raise DeviceFailure(
            Unsupported.code,
            f"a Ledger takes names of 1 to {MAX_NAMES[Family.LEDGER]} printable ASCII characters",
        )
    if len(keys) > MAX_KEYS:
        raise DeviceFailure(
            Unsupported.code,
            f"a Ledger takes vaults of at most {MAX_KEYS} keys, and this one has {len(keys)}",
        )
    return MultisigWallet(name, AddressType.WIT, policy["threshold"], keys)


def proof_of(policy: Policy) -> bytes | None:
    """What goes with the policy to the device.

    :raises DeviceFailure: the vault is not enrolled.
    """
    if not is_vault(policy):
        return None
    if policy["hmac"] is None:
        raise DeviceFailure(NotEnrolled.code, None)
    return bytes.fromhex(policy["hmac"])


def legacy_address_wallet(policy: Policy, chain: int, index: int) -> WalletPolicy:
    """One address of the account: the old protocol takes the path of the address itself for a wallet's key."""
    origin = ledger_key(policy["keys"][0]).partition("]")[0]
    return WalletPolicy("", _SINGLE_SIGNATURE, [f"{origin}/{chain}/{index}]"])


def ledger_key(expression: str) -> str:
    """A key expression with its origin in the app's spelling: an apostrophe after hardened levels."""
    origin, bracket, xpub = expression.partition("]")
    return origin.replace("h", "'") + bracket + xpub


def ledger_path(path: str) -> str:
    return path.replace("h", "'")


def to_version_2(psbt: PSBT) -> None:
    """Make it what the app reads (BIP-370), with every input's coin stated as a witness UTXO too.

    :raises DeviceFailure: it is larger than the app takes.
    """
    if len(psbt.inputs) > MAX_INPUTS or len(psbt.outputs) > MAX_OUTPUTS:
        raise DeviceFailure(
            Unsupported.code,
            f"a Ledger signs at most {MAX_INPUTS} inputs and {MAX_OUTPUTS} outputs in one transaction",
        )
    for index, output in enumerate(psbt.outputs):
        if not 0 < len(output.script) <= MAX_OUTPUT_SCRIPT:
            raise DeviceFailure(
                Unsupported.code,
                f"a Ledger takes output scripts of up to {MAX_OUTPUT_SCRIPT} bytes, and output {index} has another one",
            )
    psbt.convert_to_v2()
    for item in psbt.inputs:
        if item.non_witness_utxo is not None:
            item.witness_utxo = item.non_witness_utxo.vout[item.prev_out]

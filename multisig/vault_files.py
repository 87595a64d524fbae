"""A vault taken from the account keys of a PSBT, and exported as a BSMS record or a wallet policy.

A PSBT is not trusted: its scripts are derived again from the keys beside them, and where the two disagree, an
error is raised. Files of other programs are read by `multisig.coordinator_files`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from multisig.coordinator_files import BSMS_VERSION, RESTRICTIONS, TEMPLATE
from multisig.errors import InvalidPsbt, InvalidTransaction, MultisigError
from multisig.keys import OriginKey
from multisig.network import Network
from multisig.proofs import Prover, Unproven, proven_output
from multisig.psbt import Psbt, PsbtInput
from multisig.script import parse_multisig_script
from multisig.vault import RECEIVE, Vault


def vault_of_psbt(psbt: Psbt, network: Network) -> Vault:
    """From the account keys in its global map (BIP-174, PSBT_GLOBAL_XPUB) and the scripts of the coins that
    it spends.

    Every cosigner's account key must be there and no other; every input must carry a multisig script of one
    threshold, and be a coin of exactly these keys: its output, proven by its previous transaction, is derived
    again.

    Raises InvalidPsbt, InvalidDescriptor, InvalidKey, WrongNetwork.
    """
    quorums = {_quorum_of_input(index, item) for index, item in enumerate(psbt.inputs)}
    if len(quorums) != 1:
        raise InvalidPsbt("The PSBT spends coins of different quorums.")
    threshold, signers = quorums.pop()
    if len(psbt.xpubs) != signers:
        raise InvalidPsbt(
            f"The PSBT carries {len(psbt.xpubs)} account keys, and its scripts have {signers} cosigners.",
            hint="Export it with every cosigner's xpub, or take the vault from its descriptor.",
        )
    vault = Vault(network, threshold, tuple(OriginKey(origin, xpub) for xpub, origin in psbt.xpubs))
    prover = Prover(vault)
    for index, item in enumerate(psbt.inputs):
        _require_coin(prover, index, item)
    return vault


def _quorum_of_input(index: int, item: PsbtInput) -> tuple[int, int]:
    if item.witness_script is None:
        raise InvalidPsbt(f"Input {index} does not show its script, so its threshold is not known.")
    try:
        threshold, keys = parse_multisig_script(item.witness_script)
    except InvalidTransaction as error:
        raise InvalidPsbt(f"The script of input {index} is not a multisig script.") from error
    return threshold, len(keys)


def _require_coin(prover: Prover, index: int, item: PsbtInput) -> None:
    spent = proven_output(item)
    if isinstance(spent, Unproven):
        raise InvalidPsbt(f"Input {index} does not prove which coin it spends: its transaction is missing.")
    try:
        ours = prover.prove(spent.script_pubkey, item.derivations)
    except MultisigError as error:
        raise InvalidPsbt(f"The place of input {index} cannot be derived.") from error
    if ours is None or ours.witness_script != item.witness_script:
        raise InvalidPsbt(f"Input {index} is not a coin of the account keys in the PSBT.")


@dataclass(frozen=True)
class WalletPolicy:
    """A vault as BIP-388 writes it. `keys`: the vector of key information, in the order of the verification
    code: a Ledger's registration is of this text and no other.
    """

    template: str
    keys: tuple[str, ...]

    def __str__(self) -> str:
        """The template, and below it a key on each line."""
        return "\n".join((self.template, *self.keys))


def wallet_policy(vault: Vault) -> WalletPolicy:
    """The same for every order of the cosigners."""
    places = ",".join(f"@{place}{TEMPLATE}" for place in range(len(vault.cosigners)))
    keys = tuple(_with_apostrophes(key) for key in _in_order(vault))
    return WalletPolicy(f"wsh(sortedmulti({vault.threshold},{places}))", keys)


def caravan_file(vault: Vault, name: str, registrations: Mapping[str, str]) -> str:
    """Caravan's configuration of a wallet, whose policy is `wallet_policy` under `name`. `registrations`: by
    fingerprint, what Ledgers returned for that name, in hexadecimal. Caravan registers there no more.
    """
    keys = [
        {
            "name": str(key.fingerprint),
            "bip32Path": _apostrophes(str(key.origin.path)),
            "xpub": str(key.xpub),
            "xfp": str(key.fingerprint),
            "method": "ledger" if str(key.fingerprint) in registrations else "text",
        }
        for key in _in_order(vault)
    ]
    written = {
        "name": name,
        "addressType": "P2WSH",
        "network": "testnet" if vault.network is Network.TESTNET4 else str(vault.network),
        "client": {"type": "public"},
        "quorum": {"requiredSigners": vault.threshold, "totalSigners": len(keys)},
        "extendedPublicKeys": keys,
        "startingAddressIndex": 0,
        "ledgerPolicyHmacs": [{"xfp": xfp, "policyHmac": hmac} for xfp, hmac in registrations.items()],
    }
    return json.dumps(written, indent=2)


def bsms_record(vault: Vault) -> str:
    """The descriptor record of BIP-129, second round, not encrypted: version, template, paths, first address.

    Lines end in LF, the last one in nothing.
    """
    keys = ",".join(f"{_with_apostrophes(key)}{TEMPLATE}" for key in vault.cosigners)
    template = f"wsh(sortedmulti({vault.threshold},{keys}))"
    return "\n".join((BSMS_VERSION, template, RESTRICTIONS, vault.address(RECEIVE, 0)))


def _in_order(vault: Vault) -> list[OriginKey]:
    """That of the verification code: a registration is of one order."""
    return sorted(vault.cosigners, key=str)


def _with_apostrophes(key: OriginKey) -> str:
    return f"[{_apostrophes(str(key.origin))}]{key.xpub}"


def _apostrophes(path: str) -> str:
    # Both marks are allowed; the vectors of the BIP have this one, and so has what old firmware reads.
    return path.replace("h", "'")

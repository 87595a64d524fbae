"""Coins and outputs that name the policy's devices but are not the policy's: another wallet's, or a false
claim.

A wallet program that holds a vault and its signer's own keys (a Bitcoin Core wallet with both descriptors)
writes key origins beside every coin and output of its own. Such an output is refused as a false claim is, for
a device that believes an origin may not show it. The person is told what it is.
"""

from multisig.errors import InvalidTransaction
from multisig.hashes import hash160
from multisig.keys import KeyOrigin
from multisig.proofs import Derivations, Prover, policy_keys
from multisig.script import p2pkh, p2sh, p2wpkh, p2wsh, parse_multisig_script

_COMPRESSED_BYTES = 33
# What helps: without origins beside it, an output is a payment, which every device shows.
ADVICE = (
    "A device that believes this might not show it. Make the transaction in a wallet that holds nothing "
    "but the descriptors of the "
    "coins that it spends (in Bitcoin Core: a wallet of its own, into which only they are imported)."
)


def other_wallet(
    script_pubkey: bytes, witness_script: bytes | None, derivations: Derivations, prover: Prover
) -> str | None:
    """What wallet the PSBT claims it for, in words; None where the key origins do not fit the script, or are
    false.

    That the script is of exactly the keys named is proven. That these keys lie at the paths named is proven
    where the paths lead into the policy's own accounts; of any other account of the same devices nothing is
    known here.
    """
    kind = _kind_of(script_pubkey, witness_script, derivations)
    if kind is None or not all(_may_be(key, origin, prover) for key, origin in derivations.items()):
        return None
    ours = {bytes(key.fingerprint) for key in policy_keys(prover.policy)}
    named = sorted(str(origin) for origin in derivations.values() if bytes(origin.fingerprint) in ours)
    return f"{kind} of {', '.join(named)}" if named else None


def _kind_of(script_pubkey: bytes, witness_script: bytes | None, derivations: Derivations) -> str | None:
    """Which script of exactly these keys it is."""
    if witness_script is not None:
        try:
            threshold, keys = parse_multisig_script(witness_script)
        except InvalidTransaction:
            return None
        fits = script_pubkey == p2wsh(witness_script) and set(keys) == set(derivations)
        return f"a {threshold}-of-{len(keys)} multisig" if fits else None
    if len(derivations) != 1:
        return None
    (key,) = derivations
    if len(key) != _COMPRESSED_BYTES:
        return None
    kinds = {
        p2wpkh(key): "a P2WPKH address",
        p2sh(hash160(p2wpkh(key))): "a P2SH-P2WPKH address",
        p2pkh(hash160(key)): "a P2PKH address",
    }
    return kinds.get(script_pubkey)


def _may_be(key: bytes, origin: KeyOrigin, prover: Prover) -> bool:
    """False where the key is said to lie in an account of the policy, and does not."""
    for place in prover.claimed_places({key: origin}):
        account = prover.policy.cosigner_for(origin.fingerprint)
        if (
            place.is_absurd
            or account is None
            or account.xpub.derive_public_key(place.chain, place.index) != key
        ):
            return False
    return True

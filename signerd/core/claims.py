"""What the platform says about a vault, and how it differs from the pinned one (S16)."""

import hashlib
from functools import lru_cache

from custody.common.text import count, foreign, said
from multisig import RECEIVE, MultisigError, Network, OriginKey, Vault
from signerd.core.keys import made_with_former
from signerd.core.text import canonical
from signerd.core.values import FormerKey, OwnKey, Pin, VaultClaim

# BIP-173's bound; a longer text is cut where it is shown.
_LONGEST_ADDRESS = 90

NO_KEY_OF_OURS = "None of its keys is a registered key of your device."


# Raises leaves of MultisigError. Cached, because a vault keeps the branch nodes from which every derivation
# starts: more than the platform may show (``quota.MOST``), all of which are read again in one order.
vault_of = lru_cache(maxsize=2_560)(Vault.from_descriptor)


def code_of(descriptor: str, network: Network) -> str | None:
    """The verification code of a descriptor; None where it cannot be parsed."""
    try:
        return vault_of(descriptor, network).verification_code
    except MultisigError:
        return None


@lru_cache(maxsize=2_560)
def contradictions(claim: VaultClaim, vault: Vault) -> tuple[str, ...]:
    """How the record's figures differ from ``vault``: that of its descriptor, or the pinned one. Cached: a
    status looks at every vault that the platform ever showed.
    """
    first = vault.address(RECEIVE, 0)
    counted = (
        ("signatures needed", claim.threshold, vault.threshold),
        ("cosigners", claim.signers, len(vault.cosigners)),
    )
    differences = [
        f"Its record counts {n} {what}, not {ours}." for what, n, ours in counted if n not in {None, ours}
    ]
    if claim.first_address not in {None, first}:
        shown = foreign(claim.first_address or "")[:_LONGEST_ADDRESS]
        differences.append(f"Its first address is shown as {shown}; the keys give {first}.")
    return tuple(differences)


def changes(pin: Pin, claim: VaultClaim) -> tuple[str, ...]:
    """A sentence for each difference from the pinned vault. A name is only a label and does not count."""
    pinned, sentences = pin.vault, []
    if claim.workspace_id != pin.workspace_id:
        sentences.append(
            f"It was pinned in workspace {pin.workspace_id}, and is shown in {claim.workspace_id}."
        )
    try:
        shown = Vault.from_descriptor(claim.descriptor, pinned.network)
    except MultisigError as error:
        sentences.append(f"Its descriptor cannot be used any more: {said(error)}")
    else:
        sentences += differences(pinned, shown)
    return (*sentences, *contradictions(claim, pinned))


def differences(known: Vault, shown: Vault, whose: str = "the pinned vault") -> tuple[str, ...]:
    """Sentences for the differences of two quorums, of which ``shown`` is the platform's record. The order of
    keys does not count.
    """
    sentences = []
    if known.threshold != shown.threshold:
        needed = count(shown.threshold, "signature", "signatures")
        sentences.append(f"The record needs {needed}, {whose} {known.threshold}.")
    was, now = frozenset(known.cosigners), frozenset(shown.cosigners)
    sentences += [_gone(key, shown, whose) for key in known.cosigners if key not in now]
    sentences += [
        f"A cosigner is only in the record: {key.origin}."
        for key in shown.cosigners
        if key not in was
        and known.cosigner_for(key.fingerprint) is None
        and key.xpub not in {ours.xpub for ours in was}
    ]
    return tuple(sentences)


def _gone(key: OriginKey, shown: Vault, whose: str) -> str:
    same = next((one for one in shown.cosigners if one.xpub == key.xpub), None)
    if same is not None:
        return f"A cosigner's key is the same, labelled {same.origin} in the record, {key.origin} in {whose}."
    other = shown.cosigner_for(key.fingerprint)
    if other is None:
        return f"A cosigner is only in {whose}: {key.origin}."
    if other.origin != key.origin:
        return f"A cosigner has another account: {other.origin} in the record, {key.origin} in {whose}."
    return f"A cosigner's key is another one, under the same label {key.origin}."


def fingerprint_of_change(claim: VaultClaim, network: Network) -> str:
    """A hash of the record without the name and the order of keys."""
    quorum = code_of(claim.descriptor, network) or claim.descriptor
    said_of_it = [claim.workspace_id, quorum, claim.threshold, claim.signers, claim.first_address]
    return hashlib.sha256(canonical(said_of_it)).hexdigest()


def impostor(vault: Vault, own_keys: tuple[OwnKey, ...]) -> OriginKey | None:
    """A cosigner with our device's fingerprint whose key our device did not export (S15)."""
    known = {own.key for own in own_keys}
    labels = {own.key.fingerprint for own in own_keys}
    return next((key for key in vault.cosigners if key.fingerprint in labels and key not in known), None)


def same_quorum(one: Vault, other: Vault) -> bool:
    """Whether network, threshold and keys are equal; the order of keys does not count (BIP-67)."""
    first, second = ((each.network, each.threshold, frozenset(each.cosigners)) for each in (one, other))
    return first == second


def own_key_of(vault: Vault, own_keys: tuple[OwnKey, ...]) -> OwnKey | None:
    """The one registered key that is a cosigner: fingerprint, path and extended key all equal."""
    keys = [own for own in own_keys if own.purpose == "vault" and own.key in vault.cosigners]
    return keys[0] if len(keys) == 1 else None


def former_key_of(vault: Vault, former_keys: tuple[FormerKey, ...]) -> FormerKey | None:
    """As ``own_key_of``, for keys whose devices were replaced."""
    own = own_key_of(vault, tuple(former.own for former in former_keys))
    return next((former for former in former_keys if former.own == own), None)


def without_our_key(vault: Vault, former_keys: tuple[FormerKey, ...]) -> str:
    """The sentence for a vault without a registered key of ours."""
    former = former_key_of(vault, former_keys)
    return NO_KEY_OF_OURS if former is None else made_with_former(former)


def fault_of_pinned(
    vault: Vault,
    differences: tuple[str, ...],
    own_keys: tuple[OwnKey, ...],
    former_keys: tuple[FormerKey, ...],
    lost: str | None = None,
) -> str | None:
    """Why a pinned vault must not be used. ``differences``: the changes that the person has not looked at.
    ``lost``: the sentence where our key was lost.
    """
    if differences:
        listed = " ".join(differences)
        return f"ALARM: the platform has shown another vault than the one that was pinned here. {listed}"
    return lost if own_key_of(vault, own_keys) is not None else without_our_key(vault, former_keys)

"""Signatures are verified when they arrive, and only verified ones are ever combined or finalised.

One bad partial signature spoils the finalisation of a PSBT even beside enough good ones, so none is accepted:
strict DER, low S, SIGHASH_ALL, by a key of the policy, over this transaction and a proven amount.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from multisig.ecdsa import verify_ecdsa
from multisig.errors import BadSignature, ForeignSignature, NotFinalisable, PsbtMismatch
from multisig.hashes import hash160
from multisig.keys import Fingerprint
from multisig.proofs import OurScript, Prover, Unproven, policy_threshold, proven_output
from multisig.psbt import Psbt, PsbtInput
from multisig.script import p2pkh
from multisig.shown import ByMember
from multisig.transaction import SIGHASH_ALL, SighashCache, Transaction
from multisig.units import Sats
from multisig.vault import Policy


@dataclass(frozen=True, slots=True, repr=False)
class InputSignatures(ByMember):
    """The verified signatures of one input, by public key with its device, and the signers still missing."""

    valid: Mapping[bytes, Fingerprint]
    missing: tuple[Fingerprint, ...]


@dataclass(frozen=True, slots=True)
class SignatureReport:
    """One entry for each input, in order."""

    inputs: tuple[InputSignatures, ...]

    @property
    def progress(self) -> int:
        """How many signatures every input has at least."""
        return min(len(item.valid) for item in self.inputs)

    def of_signer(self, signer: Fingerprint) -> "SignerProgress":
        """Which inputs this signer has signed."""
        return SignerProgress.of([signer in item.valid.values() for item in self.inputs])


@dataclass(frozen=True, slots=True)
class SignerProgress:
    """The inputs one signer has signed, and those still missing."""

    signed: tuple[int, ...]
    missing: tuple[int, ...]

    @classmethod
    def of(cls, is_signed: Sequence[bool]) -> Self:
        """By whether each input is signed, in order."""
        by_state = [
            tuple(at for at, done in enumerate(is_signed) if done is state) for state in (True, False)
        ]
        return cls(*by_state)

    @property
    def is_complete(self) -> bool:
        return not self.missing


@dataclass(frozen=True, slots=True, repr=False)
class SigningInput(ByMember):
    """One input as the policy sees it: the digest to sign, and whose keys may sign it.

    `signers` is in script order. `witness_script` is None for a single-signature profile.
    """

    index: int
    digest: bytes
    witness_script: bytes | None
    signers: Mapping[bytes, Fingerprint]

    def is_valid(self, public_key: bytes, signature: bytes) -> bool:
        """Whether it is this key's signature with SIGHASH_ALL, strict DER, low S."""
        return (
            public_key in self.signers
            and signature[-1:] == bytes((SIGHASH_ALL,))
            and verify_ecdsa(public_key, self.digest, signature[:-1])
        )


class ProvenSpend:
    """A PSBT whose every input is proven to be a coin of the policy. The proof is computed once and used by
    all later steps; only `accept` changes the PSBT.
    """

    __slots__ = ("_inputs", "_policy", "_psbt")

    def __init__(self, psbt: Psbt, policy: Policy) -> None:
        """Raises PsbtMismatch where an amount or the ownership is not proven."""
        self._psbt, self._policy = psbt, policy
        self._inputs = signing_inputs(psbt, policy)

    @property
    def psbt(self) -> Psbt:
        return self._psbt

    def accept(self, returned: Psbt, signer: Fingerprint | None) -> "ProvenSpend":
        """As `accept_signatures`, with this as the base."""
        _require_same_transaction(self._psbt, returned)
        new = {
            signing.index: _new_signatures(ours, theirs, signing, signer)
            for ours, theirs, signing in zip(self._psbt.inputs, returned.inputs, self._inputs, strict=True)
        }
        spend = object.__new__(ProvenSpend)
        # The transaction and its coins are the same, so the proof still holds.
        spend._psbt = self._psbt.with_signatures(new)
        spend._policy, spend._inputs = self._policy, self._inputs
        return spend

    def report(self) -> SignatureReport:
        """As `verify_signatures`."""
        inputs = zip(self._psbt.inputs, self._inputs, strict=True)
        return SignatureReport(tuple([_verified_input(item, signing) for item, signing in inputs]))

    def finalise(self) -> Transaction:
        """As `finalise`."""
        needed, tx = policy_threshold(self._policy), self._psbt.tx
        witnesses = [
            _witness(item, signing, needed)
            for item, signing in zip(self._psbt.inputs, self._inputs, strict=True)
        ]
        inputs = (replace(item, witness=witness) for item, witness in zip(tx.inputs, witnesses, strict=True))
        return replace(tx, inputs=tuple(inputs))


def signing_inputs(psbt: Psbt, policy: Policy) -> tuple[SigningInput, ...]:
    """Every input of the PSBT, proven to be a coin of the policy.

    Raises PsbtMismatch where an amount or the ownership is not proven.
    """
    cache, prover = SighashCache(psbt.tx), Prover(policy)
    return tuple(
        signing_input(index, *_proven_coin(item, index, prover), cache)
        for index, item in enumerate(psbt.inputs)
    )


def signing_input(index: int, ours: OurScript, amount: Sats, cache: SighashCache) -> SigningInput:
    """The input that spends a coin with this amount and script (BIP-143)."""
    signers = ours.signers
    script_code = ours.witness_script
    if script_code is None:
        (key,) = signers
        script_code = p2pkh(hash160(key))
    digest = cache.segwit_v0(index, script_code, amount, SIGHASH_ALL)
    return SigningInput(index, digest, ours.witness_script, signers)


def _proven_coin(item: PsbtInput, index: int, prover: Prover) -> tuple[OurScript, Sats]:
    spent = proven_output(item)
    if isinstance(spent, Unproven):
        raise PsbtMismatch(
            f"The amount of input {index} is not proven: its previous transaction is missing or wrong."
        )
    ours = prover.prove(spent.script_pubkey, item.derivations)
    if ours is None:
        raise PsbtMismatch(f"Input {index} does not spend a coin of this vault.")
    return ours, spent.amount


def claimed_signatures(item: PsbtInput, signing: SigningInput) -> dict[bytes, bytes]:
    """The signatures of an input, also from the witness of a finalised one; not verified.

    Raises BadSignature for a final witness that does not spend this coin.
    """
    if item.final_script_witness is None:
        return dict(item.partial_signatures)
    return {**_witness_signatures(item.final_script_witness, signing), **item.partial_signatures}


def _witness_signatures(stack: Sequence[bytes], signing: SigningInput) -> dict[bytes, bytes]:
    if signing.witness_script is None:
        return _single_witness_signature(stack, signing)
    if len(stack) < 2 or stack[0] or stack[-1] != signing.witness_script:
        raise BadSignature(
            f"The final witness of input {signing.index} is not for this vault.", signing.index
        )
    signatures: dict[bytes, bytes] = {}
    keys = iter(signing.signers)
    for signature in stack[1:-1]:
        # OP_CHECKMULTISIG takes signatures in the order of the keys, so skipped keys cannot match a later
        # signature.
        key = next((key for key in keys if signing.is_valid(key, signature)), None)
        if key is None:
            raise BadSignature(
                f"A signature in the final witness of input {signing.index} is invalid.", signing.index
            )
        signatures[key] = signature
    return signatures


def _single_witness_signature(stack: Sequence[bytes], signing: SigningInput) -> dict[bytes, bytes]:
    if len(stack) != 2 or stack[1] not in signing.signers:
        raise BadSignature(f"The final witness of input {signing.index} is not for this key.", signing.index)
    return {stack[1]: stack[0]}


def verify_signatures(psbt: Psbt, policy: Policy) -> SignatureReport:
    """Who has signed each input, and who is missing.

    Raises BadSignature with the input's index for any signature that is invalid, foreign, not SIGHASH_ALL,
    high S or not strict DER; PsbtMismatch where an input is not proven to be the policy's.
    """
    return ProvenSpend(psbt, policy).report()


def _verified_input(item: PsbtInput, signing: SigningInput) -> InputSignatures:
    claimed = claimed_signatures(item, signing)
    for key, signature in claimed.items():
        _require_valid(signing, key, signature)
    valid = {key: fingerprint for key, fingerprint in signing.signers.items() if key in claimed}
    missing = tuple(fingerprint for key, fingerprint in signing.signers.items() if key not in claimed)
    return InputSignatures(valid, missing)


def _require_valid(signing: SigningInput, key: bytes, signature: bytes) -> None:
    if key not in signing.signers:
        raise ForeignSignature(
            f"Input {signing.index} carries the signature of a key that is not in this vault.", signing.index
        )
    if not signing.is_valid(key, signature):
        raise BadSignature(
            f"The signature by {signing.signers[key]} on input {signing.index} is invalid: not over this "
            "transaction, or not with SIGHASH_ALL, in strict DER and with a low S.",
            signing.index,
        )


def accept_signatures(base: Psbt, returned: Psbt, policy: Policy, signer: Fingerprint | None) -> Psbt:
    """`base` with the new signatures of one signer; everything else in `returned` is ignored.

    Amounts and scripts come from `base`. With `signer` None, any key of the policy may have signed. A
    signature that `base` already has is skipped, and so is a second one by the same key. Inputs may be left
    unsigned. Raises PsbtMismatch for another unsigned transaction; BadSignature with the input's index for
    any signature that does not verify, ForeignSignature for one by another key. No signature is then
    accepted.
    """
    return ProvenSpend(base, policy).accept(returned, signer).psbt


def _require_same_transaction(base: Psbt, other: Psbt) -> None:
    if base.tx.serialize(include_witness=False) != other.tx.serialize(include_witness=False):
        raise PsbtMismatch("The PSBT that came back is not about the transaction that was proposed.")


def _new_signatures(
    ours: PsbtInput, theirs: PsbtInput, signing: SigningInput, signer: Fingerprint | None
) -> dict[bytes, bytes]:
    held = ours.partial_signatures
    new: dict[bytes, bytes] = {}
    for key, signature in claimed_signatures(theirs, signing).items():
        if held.get(key) == signature:
            continue
        _require_valid(signing, key, signature)
        if key in held:
            continue
        if signer is not None and signing.signers[key] != signer:
            raise ForeignSignature(
                f"Input {signing.index} has a signature by {signing.signers[key]}, not by {signer}.",
                signing.index,
            )
        new[key] = signature
    return new


def signed_by(psbt: Psbt, policy: Policy, signer: Fingerprint) -> Psbt:
    """The same PSBT with the partial signatures of one signer alone, which are not verified.

    Raises PsbtMismatch where an input is not proven to be the policy's.
    """
    inputs = []
    for item, signing in zip(psbt.inputs, signing_inputs(psbt, policy), strict=True):
        own = {k: s for k, s in item.partial_signatures.items() if signing.signers.get(k) == signer}
        inputs.append(replace(item, partial_signatures=own))
    return replace(psbt, inputs=tuple(inputs))


def signer_progress(psbt: Psbt, policy: Policy, signer: Fingerprint) -> SignerProgress:
    """Which inputs this signer has signed. Raises as `verify_signatures`."""
    return verify_signatures(psbt, policy).of_signer(signer)


def progress_of(psbt: Psbt, policy: Policy, signer: Fingerprint) -> SignerProgress:
    """Which inputs carry a valid signature of this signer; other signatures are ignored.

    Raises PsbtMismatch where an input is not proven to be the policy's.
    """
    inputs = zip(psbt.inputs, signing_inputs(psbt, policy), strict=True)
    return SignerProgress.of([_is_signed_by(item, signing, signer) for item, signing in inputs])


def _is_signed_by(item: PsbtInput, signing: SigningInput, signer: Fingerprint) -> bool:
    witness = item.final_script_witness or ()
    return any(
        signing.is_valid(key, signature)
        for key, fingerprint in signing.signers.items()
        if fingerprint == signer
        for signature in (*witness, item.partial_signatures.get(key, b""))
    )


def progress(psbt: Psbt, policy: Policy) -> int:
    """How many signatures every input has at least. Raises as `verify_signatures`."""
    return verify_signatures(psbt, policy).progress


def combine(psbts: Sequence[Psbt], policy: Policy) -> Psbt:
    """The first PSBT with the verified signatures of all (BIP-174, combiner).

    The order does not matter: of two signatures by one key the smaller in byte order is kept. Raises
    PsbtMismatch for different unsigned transactions or where there is nothing to combine, BadSignature as
    `verify_signatures`.
    """
    if not psbts:
        raise PsbtMismatch("There is no PSBT to combine.")
    base = psbts[0].without_signatures()
    each = [accept_signatures(base, psbt, policy, None) for psbt in psbts]
    return base.with_signatures(
        {index: _smallest(psbt.inputs[index] for psbt in each) for index in range(len(base.inputs))}
    )


def _smallest(inputs: Iterable[PsbtInput]) -> dict[bytes, bytes]:
    kept: dict[bytes, bytes] = {}
    for item in inputs:
        for key, signature in item.partial_signatures.items():
            kept[key] = min(signature, kept.get(key, signature))
    return kept


def finalise(psbt: Psbt, policy: Policy) -> Transaction:
    """The complete transaction, from verified signatures: the first M in script order (BIP-174, finalizer).

    Raises NotFinalisable where an input has too few; else as `verify_signatures`.
    """
    return ProvenSpend(psbt, policy).finalise()


def _witness(item: PsbtInput, signing: SigningInput, needed: int) -> tuple[bytes, ...]:
    verified = _verified_input(item, signing)
    if len(verified.valid) < needed:
        raise NotFinalisable(f"Input {signing.index} has {len(verified.valid)} of {needed} signatures.")
    claimed = claimed_signatures(item, signing)
    if signing.witness_script is None:
        (key,) = verified.valid
        return (claimed[key], key)
    chosen = [claimed[key] for key in verified.valid][:needed]
    # CHECKMULTISIG pops one item too many; it must be empty (BIP-147).
    return (b"", *chosen, signing.witness_script)

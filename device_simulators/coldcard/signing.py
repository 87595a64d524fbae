"""Making the signatures, once the person has agreed."""

from device_simulators.coldcard.review import Review
from device_simulators.faults import Faults
from device_simulators.seed import Seed
from multisig import SIGHASH_ALL, Psbt, SighashCache


def sign(review: Review, seed: Seed, faults: Faults) -> Psbt:
    """The reviewed PSBT with one more signature on every input that is ours to sign.

    Faults may leave a signature out, or make it over another digest, as a broken device would.
    """
    cache = SighashCache(review.psbt.tx)
    signatures: dict[int, dict[bytes, bytes]] = {}
    for use in review.uses:
        if use.index in faults.missing_signatures:
            continue
        digest = cache.segwit_v0(use.index, use.script_code, use.amount, SIGHASH_ALL)
        if use.index in faults.wrong_signatures:
            digest = digest[::-1]
        signatures[use.index] = {use.public_key: seed.sign(use.path, digest) + bytes([SIGHASH_ALL])}
    return review.psbt.with_signatures(signatures)

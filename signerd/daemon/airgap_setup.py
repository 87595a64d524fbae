"""Registering a device without a cable, and enrolling a vault on it.

The keys are in files, the proof is a signed message; both are checked as for a connected device. No state is
kept between the steps: each request has all data, and the digest that the person confirmed.
"""

from collections.abc import Sequence

from custody.common.text import said
from custody.schemas.keys import KeyDevice
from firmware_bridge import BridgeError
from firmware_bridge.airgap import (
    EnrolmentForm,
    enrolment_file,
    message_request,
    parse_signer_keys,
    signature_of,
)
from multisig import MultisigError
from multisig.coordinator_files import conversions
from signerd.account.registration import Offer, ask_challenge, require_challenge
from signerd.account.vaults import pinnable
from signerd.daemon.airgap import refusing
from signerd.daemon.devices import FIRST, written_on
from signerd.daemon.service import Daemon
from signerd.daemon.views import airgap_preview
from signerd.errors import AnswerRefused, RegistrationStale
from signerd.shapes import AirgapChallenge, EnrolmentFile, Registered, RegistrationPreview


async def preview(daemon: Daemon, exports: Sequence[str]) -> RegistrationPreview:
    """The keys in these files; nothing is sent. Raises AnswerRefused."""
    return airgap_preview(_offer(daemon, exports), conversions("\n".join(exports)))


async def challenge(daemon: Daemon, exports: Sequence[str], digest: str) -> AirgapChallenge:
    """The platform's challenge for these keys, which the device has to sign within ten minutes.

    Raises:
        SignedOut, AnswerRefused, RegistrationStale; leaves of PlatformError.
    """
    offer = _offer(daemon, exports)
    text = await ask_challenge(offer, digest, await daemon.user_id(), daemon.platform)
    return AirgapChallenge(
        challenge=text,
        path=str(offer.proof_path),
        file_name="challenge.txt",
        file=message_request(text, offer.proof_path),
    )


async def register(
    daemon: Daemon,
    exports: Sequence[str],
    digest: str,
    challenge: str,
    signature: str,
    *,
    replace: bool = False,
) -> Registered:
    """Register exactly what the preview with this digest showed, by the device's signature.

    Raises:
        SignedOut, AnswerRefused, RegistrationStale; leaves of PlatformError.
    """
    offer = _offer(daemon, exports)
    if offer.digest != digest:
        raise RegistrationStale("these files hold other keys than those that were shown")
    require_challenge(challenge, offer, await daemon.user_id(), daemon.platform.host)
    with refusing():
        proof = signature_of(signature)
    offer.require_proof(challenge, proof)
    return await daemon.register_proven(offer, challenge, proof, replace=replace, device=KeyDevice())


async def enrolment(daemon: Daemon, vault_id: str, form: str = "coldcard") -> EnrolmentFile:
    """The file that enrols the vault on the device. Raises as ``account.vaults.pinnable``, and
    AnswerRefused for an unsupported form.
    """
    wanted = pinnable(daemon.journal, vault_id)
    with refusing():
        name, text = enrolment_file(wanted.vault, wanted.name, EnrolmentForm(form))
    return EnrolmentFile(
        vault_id=vault_id,
        network=str(daemon.journal.network),
        first_address=written_on(wanted.vault, FIRST),
        file_name=name,
        text=text,
    )


def _offer(daemon: Daemon, exports: Sequence[str]) -> Offer:
    try:
        *vault_keys, profile = parse_signer_keys(exports, daemon.journal.network)
    except (BridgeError, MultisigError) as error:
        hint = (
            "Export the keys on the device once more: Coldcard's Generic JSON, or lines of "
            "[fingerprint/path]xpub."
        )
        raise AnswerRefused(said(error), hint=error.hint or hint) from error
    return Offer(daemon.journal.network, tuple(vault_keys), profile)

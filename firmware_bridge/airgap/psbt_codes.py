"""Requests as QR codes, for whichever of the two formats a device reads."""

from collections.abc import Iterator

from firmware_bridge.airgap import bbqr, ur
from firmware_bridge.airgap.handoff import request_bytes
from firmware_bridge.airgap.outcomes import TooMuchForCodes
from firmware_bridge.airgap.transfer import Content
from multisig import Policy, Psbt


def psbt_bbqr(
    psbt: Psbt, policy: Policy, *, max_characters: int = bbqr.DEFAULT_CHARACTERS
) -> tuple[str, ...]:
    """The request as a BBQr series (Coldcard Q): show it round and round, each text for a quarter of a second.

    :raises MultisigError: an input is not proven to be a coin of the policy, or a signature in it is bad (S4, S5).
    :raises TooMuchForCodes: it takes more parts than a series has.
    """
    content = request_bytes(psbt, policy)
    try:
        return bbqr.split(content, Content.PSBT, max_characters=max_characters)
    except ValueError as error:
        raise TooMuchForCodes(detail=str(error)) from error


def psbt_ur(psbt: Psbt, policy: Policy, *, max_fragment: int = ur.DEFAULT_FRAGMENT) -> Iterator[str]:
    """The request as a UR 2 series without end (Jade, Keystone, Passport, SeedSigner): show one text after the other.

    :raises MultisigError: an input is not proven to be a coin of the policy, or a signature in it is bad (S4, S5).
    :raises TooMuchForCodes: it takes more parts than a series has.
    """
    content = request_bytes(psbt, policy)
    try:
        return ur.split(content, Content.PSBT, max_fragment=max_fragment)
    except ValueError as error:
        raise TooMuchForCodes(detail=str(error)) from error

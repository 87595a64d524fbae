"""A newer list from outside: taken only if whoever the caller trusts has signed these very bytes.

Who that is, is the caller's to say: no key comes with the package. The signature is Ed25519 (RFC 8032) over the whole file,
so that nothing is read of a file that is not theirs.
"""

from typing import Final

from firmware_bridge.advisories.advisory import Advisories
from firmware_bridge.advisories.reading import (
    MAX_BYTES,
    AdvisoryListError,
    MalformedList,
    packaged,
    parse_list,
)

KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64


class BadListSignature(AdvisoryListError):
    """It is not signed by this key."""


class OlderList(AdvisoryListError):
    """It would take the place of a newer one: who can do that can hide a flaw that is known by now."""


def load_list(data: bytes, signature: bytes, public_key: bytes, held: Advisories | None = None) -> Advisories:
    """The list in `data`. `public_key` has 32 bytes, `signature` 64; `held` is the list that it replaces, else the packaged one.

    :raises ValueError: the key is none.
    :raises AdvisoryListError: too large, not signed by the key, malformed, or older than what is held.
    """
    if len(data) > MAX_BYTES:
        raise MalformedList(f"the list has {len(data)} bytes; {MAX_BYTES} is the most")
    _require_signature(data, signature, public_key)
    return _require_newer(parse_list(data), packaged() if held is None else held)


def _require_signature(data: bytes, signature: bytes, public_key: bytes) -> None:
    # Only who takes lists from outside pays for the import.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if len(public_key) != KEY_BYTES:
        raise ValueError(f"an Ed25519 key has {KEY_BYTES} bytes, not {len(public_key)}")
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, data)
    except InvalidSignature as error:
        raise BadListSignature("the list is not signed by this key") from error


def _require_newer(listed: Advisories, held: Advisories) -> Advisories:
    if listed.serial < held.serial:
        raise OlderList(f"the list has the serial {listed.serial}, and {held.serial} is held")
    if listed.serial == held.serial and listed != held:
        raise OlderList(f"the list has the serial {listed.serial} of another one that is held")
    return listed

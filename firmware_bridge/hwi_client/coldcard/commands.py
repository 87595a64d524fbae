"""Requests to a Coldcard: addresses, whether it knows a vault, and questions to the person."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import xor
from typing import Any, Final

from firmware_bridge.hwi_client.base import apostrophes, cosigner_keys
from firmware_bridge.hwi_client.coldcard import library
from firmware_bridge.operations import PolicyText, ShowAddress
from multisig import RECEIVE, DerivationPath, Network, OriginKey, multisig_script
from multisig.vault import profile_account_path

# Models before the Mk4 have less memory for a transaction.
_SMALL: Final = frozenset({"mk1", "mk2", "mk3"})


@dataclass(frozen=True)
class Versions:
    """The versions that the device reports. `label` is its model; None for models before the Mk4."""

    firmware: str | None = None
    label: str | None = None

    @property
    def model(self) -> str:
        return "Coldcard" if self.label is None else f"Coldcard {self.label.capitalize()}"

    @property
    def max_psbt_bytes(self) -> int:
        small = self.label is None or self.label in _SMALL
        return int(library.MAX_TXN_LEN if small else library.MAX_TXN_LEN_MK4)


def address_command(request: ShowAddress, fingerprint: str, network: Network) -> bytes:
    """For a vault, which the device must know, or for a profile, whose path is enough.

    :raises BridgeError: the device with this fingerprint has no key in the policy.
    """
    policy, chain, index = request.policy, request.chain, request.index
    keys, own = cosigner_keys(policy, fingerprint, network)
    if policy.is_vault:
        return _script_command(policy.threshold, keys, (chain, index))
    return _path_command(DerivationPath((*own.origin.path, chain, index)))


# The error by which the device shows that it knows the vault.
KNOWN: Final = "wrong m/n in script"


def question_command(policy: PolicyText, network: Network) -> bytes:
    """A request that shows nothing on the screen and tells whether the device has a wallet with these
    fingerprints and paths.

    The device looks for the wallet first, and then rejects the script, which has another number of keys. The
    command for this purpose (`msck`) compares fingerprints only, and takes all vaults of the same devices for
    one.
    """
    keys = [OriginKey.parse(text, network) for text in policy.keys]
    count = 1 if len(keys) > 1 else 2
    others = [keys[0].xpub.derive_public_key(RECEIVE, index) for index in range(count)]
    origins = [_origin(key, (RECEIVE, 0)) for key in keys]
    script = multisig_script(1, others)
    return bytes(
        library.Packer.show_p2sh_address(policy.threshold, origins, script, addr_fmt=library.AF_P2WSH)
    )


def quorum_command(policy: PolicyText, network: Network) -> bytes:
    """Asks whether the device has a wallet of this quorum: it goes by the XOR of the fingerprints, read as
    little-endian numbers.
    """
    keys = [OriginKey.parse(text, network) for text in policy.keys]
    fingerprints = (int.from_bytes(bytes(key.fingerprint), "little") for key in keys)
    return bytes(library.Packer.multisig_check(policy.threshold, len(keys), reduce(xor, fingerprints)))


def greeting_command(network: Network) -> bytes:
    """Shows the first address of the profile's first account until a button is pressed."""
    return _path_command(DerivationPath((*profile_account_path(network), 0, 0)))


def _path_command(path: DerivationPath) -> bytes:
    return bytes(library.Packer.show_address(apostrophes(str(path)), library.AF_P2WPKH))


def _script_command(threshold: int, keys: Sequence[OriginKey], suffix: tuple[int, int]) -> bytes:
    """With the origins in the order of the script's keys (BIP-67)."""
    derived = sorted((key.xpub.derive_public_key(*suffix), key) for key in keys)
    script = multisig_script(threshold, [public_key for public_key, _key in derived])
    origins = [_origin(key, suffix) for _public_key, key in derived]
    return bytes(library.Packer.show_p2sh_address(threshold, origins, script, addr_fmt=library.AF_P2WSH))


def _origin(key: OriginKey, suffix: tuple[int, int]) -> list[int]:
    return [struct.unpack("<I", bytes(key.fingerprint))[0], *key.origin.path, *suffix]


ANSWER_MS: Final = 30_000
# The device does not answer while it reads, checks and signs. The bridge keeps the deadline, which grows with
# transaction and quorum; this one is longer than any, for a connection that the bridge has left.
_WORK_MS: Final = 3_600_000
# The error after the person has answered, yes or no.
_NOTHING_OPEN: Final = "no active request"


def is_nothing_open(error: library.CCProtoError) -> bool:
    return _NOTHING_OPEN in str(error).lower()


class PolledQuestion:
    """A question to the person. `poll` is the command that asks for the result.

    `packet`: the command that makes the device ask. If it arrives in the pause after a refused enrolment, the
    firmware forgets it at the end of the pause but still shows it, and the answer is lost. Then it is sent
    once more.
    """

    def __init__(self, ckcc: Any, poll: bytes, packet: bytes | None = None) -> None:
        self._ckcc = ckcc
        self._poll = poll
        self._packet = packet

    def ask(self) -> None:
        self._ckcc.send_recv(self._packet, timeout=_WORK_MS)

    def look(self) -> Any:
        """The answer, or None while there is none. Returns when the device has done its own work and shows
        the question.

        :raises RuntimeError: refused, failed, or the question has gone.
        """
        try:
            return self._ckcc.send_recv(self._poll, timeout=_WORK_MS)
        except library.CCProtoError as over:
            if self._packet is None or not is_nothing_open(over):
                raise
        self.ask()
        self._packet = None
        return None

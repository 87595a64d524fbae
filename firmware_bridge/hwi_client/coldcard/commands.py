"""An address of a policy as a Coldcard is asked for it, and how it is asked whether it knows a vault."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hwilib.devices.ckcc.constants import AF_P2WPKH, AF_P2WSH, MAX_TXN_LEN, MAX_TXN_LEN_MK4
from hwilib.devices.ckcc.protocol import CCProtocolPacker as Packer
from hwilib.devices.ckcc.protocol import CCProtoError

from firmware_bridge.errors import WrongDevice
from firmware_bridge.protocol import DeviceFailure
from multisig import RECEIVE, DerivationPath, Network, OriginKey, multisig_script
from multisig.vault import profile_account_path

# FOLDED from firmware_bridge/hwi_client/coldcard/question.py: What a Coldcard asks its person, and what becomes of it.
# FOLDED from firmware_bridge/hwi_client/coldcard/releases.py: What firmware releases of a Coldcard do differently, as data: read from the maker's source, tag by tag, and seen on 5.4.5 and 5.6.1.


# Before the Mk4 there was less memory for a transaction.
_SMALL: Final = frozenset({"mk1", "mk2", "mk3"})


@dataclass(frozen=True)
class Release:
    """`since`: the first version that does so. `unique_names`: it keeps no two wallets of one name. `collects_later`: a result is
    handed over to a later connection too, and not only on the one on which the person approved it.
    """

    since: tuple[int, ...]
    unique_names: bool
    collects_later: bool


# The newest first. In 5.6.1 both changed (`multisig.py`, `name_is_used`; `usb.py`, `ALLOWED_DOWNLOAD`); 5.6.0 is as 5.4.5.
_RELEASES: Final = (
    Release((5, 6, 1), unique_names=True, collects_later=False),
    Release((), unique_names=False, collects_later=True),
)


def release_of(firmware: str | None) -> Release:
    """What this version does; one that does not tell its version is older than all that is listed."""
    parts = (firmware or "").split(".")
    version = tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else ()
    return next(release for release in _RELEASES if release.since <= version)


@dataclass(frozen=True)
class Versions:
    """What the device tells about itself. `label` is its own word for its model; without one it is older than the Mk4."""

    firmware: str | None = None
    label: str | None = None

    @property
    def model(self) -> str:
        return "Coldcard" if self.label is None else f"Coldcard {self.label.capitalize()}"

    @property
    def max_psbt_bytes(self) -> int:
        small = self.label is None or self.label in _SMALL
        return int(MAX_TXN_LEN if small else MAX_TXN_LEN_MK4)

    @property
    def release(self) -> Release:
        return release_of(self.firmware)


def address_command(
    policy: Mapping[str, Any], chain: int, index: int, fingerprint: str, network: Network
) -> bytes:
    """For a vault the device has to know it; for a profile the path is enough.

    :raises DeviceFailure: the device with this fingerprint has no key in the policy.
    """
    keys = [OriginKey.parse(text, network) for text in policy["keys"]]
    if not any(key.fingerprint.hex == fingerprint for key in keys):
        raise DeviceFailure(WrongDevice.code, f"the device ({fingerprint}) is no signer here")
    if policy["kind"] == "vault":
        return _script_command(policy["threshold"], keys, (chain, index))
    return _path_command(DerivationPath((*keys[0].origin.path, chain, index)))


# What it says to the command below where it knows the vault.
KNOWN: Final = "wrong m/n in script"


def question_command(policy: Mapping[str, Any], network: Network) -> bytes:
    """Whether it has a wallet with these fingerprints and paths, without anything on its screen.

    It looks for the wallet first, and only then at the script, which is one of another number of keys. What it is there for
    (`msck`) compares the fingerprints alone: every vault of the same devices is the same to it.
    """
    keys = [OriginKey.parse(text, network) for text in policy["keys"]]
    count = 1 if len(keys) > 1 else 2
    others = [keys[0].xpub.derive_public_key(RECEIVE, index) for index in range(count)]
    origins = [_origin(key, (RECEIVE, 0)) for key in keys]
    script = multisig_script(1, others)
    return bytes(Packer.show_p2sh_address(policy["threshold"], origins, script, addr_fmt=AF_P2WSH))


def greeting_command(network: Network) -> bytes:
    """The first address of the first account: on the screen until a button is pressed, and known to nobody but its owner."""
    return _path_command(DerivationPath((*profile_account_path(network), 0, 0)))


def _path_command(path: DerivationPath) -> bytes:
    return bytes(Packer.show_address(spelled(str(path)), AF_P2WPKH))


def _script_command(threshold: int, keys: list[OriginKey], suffix: tuple[int, int]) -> bytes:
    """Origins in the order of the script's keys, which BIP-67 sorts."""
    derived = sorted((key.xpub.derive_public_key(*suffix), key) for key in keys)
    script = multisig_script(threshold, [public_key for public_key, _key in derived])
    origins = [_origin(key, suffix) for _public_key, key in derived]
    return bytes(Packer.show_p2sh_address(threshold, origins, script, addr_fmt=AF_P2WSH))


def _origin(key: OriginKey, suffix: tuple[int, int]) -> list[int]:
    return [struct.unpack("<I", bytes(key.fingerprint))[0], *key.origin.path, *suffix]


def spelled(path: str) -> str:
    """A path as a Coldcard reads it."""
    return path.replace("h", "'")


# The device reads, checks and signs without answering anybody meanwhile, and large transactions take minutes. How long that may
# be is the bridge's to decide: this only ends a conversation that it forgot.
ANSWER_MS: Final = 30_000
_ANSWER_MS_PER_BYTE: Final = 0.5
# What it says where it asks nothing any more: the person is done with the question, whatever came of it.
_NOTHING_OPEN: Final = "no active request"


def answer_ms(size: int) -> int:
    """How long the device may work on so many bytes without answering, in milliseconds."""
    return ANSWER_MS + int(_ANSWER_MS_PER_BYTE * size)


def is_nothing_open(error: CCProtoError) -> bool:
    return _NOTHING_OPEN in str(error).lower()


class Question:
    """`poll` is the command that asks what became of it.

    `packet`: the command that has made the device ask. It may have come in the pause after a refused enrolment, at whose end the firmware
    forgets its active request and still shows it: what is answered then is lost. It is sent once more, in the place of itself.
    """

    def __init__(self, ckcc: Any, poll: bytes, packet: bytes | None = None, size: int = 0) -> None:
        self._ckcc = ckcc
        self._poll = poll
        self._packet = packet
        self._patience = answer_ms(size)

    def ask(self) -> None:
        self._ckcc.send_recv(self._packet, timeout=self._patience)

    def look(self) -> Any:
        """The answer, or None while there is none. It comes when the device has done its own work, and shows the question.

        :raises RuntimeError: refused, failed, or nothing is asked there any more.
        """
        try:
            return self._ckcc.send_recv(self._poll, timeout=self._patience)
        except CCProtoError as over:
            if self._packet is None or not is_nothing_open(over):
                raise
        self.ask()
        self._packet = None
        return None

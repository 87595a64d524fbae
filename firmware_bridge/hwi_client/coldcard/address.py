"""An address of a policy as a Coldcard is asked for it, and how it is asked whether it knows a vault."""

import struct
from collections.abc import Mapping
from typing import Any, Final

from hwilib.devices.ckcc.constants import AF_P2WPKH, AF_P2WSH
from hwilib.devices.ckcc.protocol import CCProtocolPacker as Packer

from firmware_bridge.errors import WrongDevice
from firmware_bridge.port import DeviceFailure
from multisig import RECEIVE, DerivationPath, Network, OriginKey, multisig_script
from multisig.vault import profile_account_path


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

"""The registration of a device without a cable: its keys in UR 2 (BCR-2020-007, BCR-2020-015), and the
signature of a challenge.
"""

import base64
from itertools import islice

import cbor2

from firmware_bridge.airgap import fountain, ur
from firmware_bridge.airgap.cbor import Item, Tag
from multisig import (
    HARDENED,
    DerivationPath,
    Network,
    OriginKey,
    message_hash,
    profile_account_path,
    secp256k1,
)
from tests.support.wallets import ALICE, Signer


def cbor_of(item: Item) -> bytes:
    """Encodes the item in its shortest form."""
    return cbor2.dumps(item, default=lambda into, tag: into.encode(cbor2.CBORTag(tag.number, tag.item)))


def hdkey(key: OriginKey, *, source: bool = True) -> dict[int, Item]:
    levels = [(index % HARDENED, index >= HARDENED) for index in key.origin.path]
    origin: dict[int, Item] = {1: tuple(part for level in levels for part in level)}
    if source:
        origin[2] = int.from_bytes(bytes(key.fingerprint))
    return {
        3: key.xpub.public_key,
        4: key.xpub.chain_code,
        6: Tag(304, origin),
        8: int.from_bytes(bytes(key.xpub.parent_fingerprint)),
    }


def account_of(signer: Signer, network: Network = Network.REGTEST) -> dict[int, Item]:
    """The keys for vaults and for the profile."""
    vault, own = (hdkey(key, source=False) for key in keys_of(signer, network))
    outputs = (Tag(401, Tag(303, vault)), Tag(404, Tag(303, own)))
    return {1: int.from_bytes(bytes(signer.fingerprint)), 2: outputs}


def keys_of(signer: Signer, network: Network = Network.REGTEST) -> tuple[OriginKey, OriginKey]:
    return signer.vault_key(network), signer.origin_key(profile_account_path(network), network)


def whole(name: str, item: Item) -> str:
    return f"ur:{name}/{ur.encode(cbor_of(item))}"


def animated(name: str, item: Item, *, max_fragment: int = 60, frames: int = 40) -> tuple[str, ...]:
    """The texts of a series of QR codes, in capitals."""
    parts = islice(fountain.parts(cbor_of(item), max_fragment), frames)
    return tuple(
        f"ur:{name}/{part.number}-{part.shape.fragments}/{ur.encode(part.to_cbor())}".upper()
        for part in parts
    )


def proof(text: str, signer: Signer = ALICE, path: DerivationPath | None = None) -> str:
    """In base64, by the first key of the signer's first account for vaults."""
    key = signer.private_node(path or signer.vault_key().origin.path / "0/0").key
    signature, recovery_id = secp256k1.sign_recoverable(key, message_hash(text))
    return base64.b64encode(bytes([39 + recovery_id]) + signature).decode()

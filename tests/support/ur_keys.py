"""Keys as a device shows them: UR 2 of BCR-2020-007 and BCR-2020-015."""

from itertools import islice

from firmware_bridge.airgap import cbor, fountain, ur
from firmware_bridge.airgap.cbor import Item, Tag
from multisig import HARDENED, Network, OriginKey, profile_account_path
from tests.support.wallets import Signer


def cbor_of(item: Item) -> bytes:  # noqa: PLR0911 - one line for each kind of item
    """In the shortest form."""
    match item:
        case bool():
            return b"\xf5" if item else b"\xf4"
        case int():
            return cbor.unsigned(item)
        case bytes():
            return cbor.byte_string(item)
        case str():
            return _as(3, cbor.byte_string(item.encode()))
        case tuple():
            return cbor.array(*map(cbor_of, item))
        case dict():
            pairs = [cbor_of(key) + cbor_of(value) for key, value in item.items()]
            return _as(5, cbor.unsigned(len(pairs))) + b"".join(pairs)
        case Tag():
            return _as(6, cbor.unsigned(item.number)) + cbor_of(item.item)


def _as(major: int, encoded: bytes) -> bytes:
    return bytes([encoded[0] & 0x1F | major << 5]) + encoded[1:]


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
    """The key for vaults and the one of the person's own account."""
    vault, own = (hdkey(key, source=False) for key in keys_of(signer, network))
    outputs = (Tag(401, Tag(303, vault)), Tag(404, Tag(303, own)))
    return {1: int.from_bytes(bytes(signer.fingerprint)), 2: outputs}


def keys_of(signer: Signer, network: Network = Network.REGTEST) -> tuple[OriginKey, OriginKey]:
    return signer.vault_key(network), signer.origin_key(profile_account_path(network), network)


def whole(name: str, item: Item) -> str:
    return f"ur:{name}/{ur.encode(cbor_of(item))}"


def animated(name: str, item: Item, *, max_fragment: int = 60, frames: int = 40) -> tuple[str, ...]:
    """The texts of a series, in capitals as they stand in its codes."""
    parts = islice(fountain.parts(cbor_of(item), max_fragment), frames)
    return tuple(
        f"ur:{name}/{part.number}-{part.shape.fragments}/{ur.encode(part.to_cbor())}".upper()
        for part in parts
    )

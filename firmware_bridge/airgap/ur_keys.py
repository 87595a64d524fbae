"""Public keys as devices show them in UR 2: `crypto-hdkey` and `crypto-account` (BCR-2020-007, BCR-2020-015),
and their second versions `hdkey` and `account-descriptor` (BCR-2023-010, BCR-2023-019).
"""

from collections.abc import Iterator
from typing import Final

from firmware_bridge.airgap.cbor import Item, Tag, item_of
from firmware_bridge.airgap.transfer import BadTransfer
from multisig import (
    HARDENED,
    DerivationPath,
    ExtendedPublicKey,
    Fingerprint,
    KeyOrigin,
    MultisigError,
    NetworkKind,
    OriginKey,
)

_KEYS: Final = frozenset({"crypto-hdkey", "hdkey"})
_ACCOUNTS: Final = frozenset({"crypto-account", "account-descriptor"})
KEY_TYPES: Final = _KEYS | _ACCOUNTS
# The first and the second version's tags.
_KEY_TAGS: Final = frozenset({303, 40303})
_PATH_TAGS: Final = frozenset({304, 40304})
_COIN_TAGS: Final = frozenset({305, 40305})
_DESCRIPTOR_TAG: Final = 40308
# Scripts of the first version: sh, wsh, pkh, wpkh, tr, cosigner (BCR-2020-010).
_SCRIPT_TAGS: Final = frozenset({400, 401, 403, 404, 409, 410})
# A script in a script, with a cosigner's mark.
_MAX_SCRIPTS: Final = 3
# Devices show seven of one account.
_MAX_ACCOUNT_KEYS: Final = 32
# The seven of BCR-2020-015 take 800 bytes.
_MAX_MESSAGE: Final = 16 * 1024
# The second level of a path says which coin and network (SLIP-44).
_KINDS: Final = {HARDENED + kind.coin_type: kind for kind in NetworkKind}
_COIN_LEVEL: Final = 1
_BITCOIN: Final = 0
_FINGERPRINT_BYTES: Final = 4
_TOP: Final = 1 << 8 * _FINGERPRINT_BYTES


def key_lines(name: str, message: bytes) -> str:
    """The key of one UR of a type in `KEY_TYPES`, as a line `[fingerprint/path]xpub`. Of an account's keys,
    which are for many scripts, a line for each that a signer registers: those for vaults in native segwit
    (BIP-48) and the one of the person's own account (BIP-84).

    :raises BadTransfer: not such a message, a private key, or a key that lacks its origin, contradicts itself
        or is of another coin.
    """
    try:
        return _lines(name, message)
    except MultisigError as error:
        raise BadTransfer(str(error)) from error


def _lines(name: str, message: bytes) -> str:
    if len(message) > _MAX_MESSAGE:
        raise BadTransfer(f"This is too large for keys: {_MAX_MESSAGE} bytes at most.")
    item = item_of(message)
    if name in _KEYS:
        return f"{_key(item, None)}\n"
    lines = [f"{key}\n" for key in _of_account(item)]
    if not lines:
        raise BadTransfer(
            "This account has no key for a vault in native segwit: have the device export the account for a "
            "multisignature wallet in native segwit."
        )
    return "".join(lines)


def _is_registered(path: DerivationPath) -> bool:
    match path.indexes:
        case (purpose, _, _, script):
            return (purpose, script) == (HARDENED + 48, HARDENED + 2)
        case (purpose, _, account):
            return (purpose, account) == (HARDENED + 84, HARDENED)
    return False


def _of_account(item: Item) -> Iterator[OriginKey]:
    match item:
        case {1: int() as master, 2: tuple() as outputs} if len(outputs) <= _MAX_ACCOUNT_KEYS:
            for key in map(_key_of_output, outputs):
                _refuse_private(key)
                match key:
                    case {6: origin} if _is_registered(_path(origin)[0]):
                        yield _key(key, master)
        case _:
            raise _unknown()


def _key_of_output(output: Item) -> Item:
    match output:
        case Tag(number=number, item={2: (Tag() as key,)}) if number == _DESCRIPTOR_TAG:
            return _untagged(key, _KEY_TAGS)
    for _ in range(_MAX_SCRIPTS):
        match output:
            case Tag(number=number, item=inner) if number in _SCRIPT_TAGS:
                output = inner
    return _untagged(output, _KEY_TAGS)


def _untagged(found: object, numbers: frozenset[int]) -> Item:
    match found:
        case Tag(number=number, item=item) if number in numbers:
            return item
    raise _unknown()


def _key(item: Item, master: int | None) -> OriginKey:
    _refuse_private(item)
    match item:
        case {3: bytes() as public_key, 4: bytes() as chain_code, 6: origin, 8: int() as parent, **rest}:
            path, source = _path(origin)
            master = _agreed(master, source)
        case {3: bytes()}:
            raise BadTransfer(
                "This key comes without its path, its chain code or its parent's fingerprint: have the "
                "device export it for a multisignature wallet, or export a file."
            )
        case _:
            raise _unknown()
    kind = _KINDS.get(path.indexes[_COIN_LEVEL]) if len(path) > _COIN_LEVEL else None
    if kind is None:
        raise BadTransfer(f"The key at {path} is not one for Bitcoin.")
    _require_coin(rest.get(5), kind)
    xpub = ExtendedPublicKey(
        kind=kind,
        depth=len(path),
        parent_fingerprint=_fingerprint(parent),
        child_number=path.indexes[-1],
        chain_code=chain_code,
        public_key=public_key,
    )
    return OriginKey(KeyOrigin(_fingerprint(master), path), xpub)


def _refuse_private(item: Item) -> None:
    match item:
        case {1: True} | {2: True}:
            raise BadTransfer(
                "This QR code holds a private key. Close it, and show it to no camera again: a person who "
                "has it can spend."
            )


def _path(origin: Item) -> tuple[DerivationPath, int | None]:
    """The path from the master key, and the master fingerprint that it states."""
    match _untagged(origin, _PATH_TAGS):
        case {1: tuple() as levels, **rest}:
            path = DerivationPath(tuple(_levels(levels)))
            if rest.get(3, len(path)) != len(path):
                raise BadTransfer(
                    "This key's depth is not its path's: the path does not begin at the master key."
                )
            match rest.get(2):
                case None | int() as source:
                    return path, source
    raise _unknown()


def _levels(components: tuple[Item, ...]) -> Iterator[int]:
    if len(components) % 2:
        raise _unknown()
    for index, hardened in zip(components[::2], components[1::2], strict=True):
        # bool is an int: a level of its own type only.
        if type(index) is not int or not isinstance(hardened, bool) or index >= HARDENED:
            raise _unknown()
        yield index + HARDENED if hardened else index


def _agreed(master: int | None, source: int | None) -> int:
    stated = {one for one in (master, source) if one is not None}
    if len(stated) != 1:
        raise BadTransfer(
            "This key names two master fingerprints." if stated else "This key names no master fingerprint."
        )
    return stated.pop()


def _require_coin(coin: object, kind: NetworkKind) -> None:
    """Its coin and network, if stated, must be those of its path: devices omit them even on test networks."""
    if coin is None:
        return
    match _untagged(coin, _COIN_TAGS):
        case dict() as use if use.get(1, _BITCOIN) == _BITCOIN and use.get(2, 0) == kind.coin_type:
            return
    raise BadTransfer("This key is for another coin or network than its path.")


def _fingerprint(number: int) -> Fingerprint:
    if not 0 <= number < _TOP:
        raise _unknown()
    return Fingerprint(number.to_bytes(_FINGERPRINT_BYTES))


def _unknown() -> BadTransfer:
    return BadTransfer("This QR code holds no public key of a supported form.")

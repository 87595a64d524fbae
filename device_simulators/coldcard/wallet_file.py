"""A file by which a multisig wallet is enrolled: the simple text form, or a descriptor.
Text form, one `label: value` a line, `#` starts a comment:

    Name: Treasury
    Policy: 2 of 3
    Derivation: m/48h/1h/0h/2h
    Format: P2WSH
    0F056943: tpub…

`Derivation` holds for the keys that follow it. A descriptor alone has no name: it gets that of its file on
the card, or "2-of-3". Source: Coldcard firmware 5.6.1,
`from_file` in `shared/multisig.py`.
"""

import re
from collections.abc import Iterator
from typing import Final

from device_simulators.coldcard.arguments import ascii_text, path
from device_simulators.coldcard.replies import CommandRefused
from device_simulators.coldcard.wallet import ColdcardWallet, shown_fingerprint
from device_simulators.seed import Seed
from multisig import (
    ExtendedPublicKey,
    Fingerprint,
    InvalidDescriptor,
    KeyOrigin,
    MultisigError,
    Network,
    OriginKey,
    SortedMulti,
    WrongNetwork,
)

# One of them anywhere in the text, and the firmware takes it for a descriptor.
DESCRIPTOR_WORDS: Final = ("pk(", "pkh(", "tr(", "addr(", "raw(", "combo(", "sh(", "multi(", "multi_a(")
_FINGERPRINT: Final = re.compile(r"[0-9a-fA-F]{8}")
# A # with a digit behind it is a part of a name.
COMMENT: Final = re.compile(r"^#|#(?![0-9])")
_POLICY: Final = re.compile(r"(\d+)\D+(\d+)")


def parse_wallet_file(content: bytes, seed: Seed, network: Network, stem: str = "") -> ColdcardWallet:
    """The wallet a file describes, checked to be one that this device takes part in. `stem`: the file's name
    on the card, up to its first dot.

    Raises CommandRefused in the firmware's words.
    """
    try:
        text = content.decode("utf-8")
        is_descriptor = any(word in text for word in DESCRIPTOR_WORDS)
        named, threshold, keys = (_from_descriptor if is_descriptor else _from_lines)(text, network)
    except UnicodeDecodeError as error:
        raise CommandRefused("must be ascii printable") from error
    except WrongNetwork as error:
        raise CommandRefused("wrong chain") from error
    except InvalidDescriptor as error:
        raise CommandRefused(str(error)) from error
    except MultisigError as error:
        raise CommandRefused("unable to parse xpub") from error
    name = ascii_text((named or stem).encode())
    wallet = ColdcardWallet(name or f"{threshold}-of-{len(keys)}", threshold, keys)
    check_membership(wallet, seed)
    return wallet


def _from_descriptor(text: str, network: Network) -> tuple[str, int, tuple[OriginKey, ...]]:
    descriptor = SortedMulti.parse(text.strip(), network, strict="#" in text)
    return "", descriptor.threshold, descriptor.keys


def _from_lines(text: str, network: Network) -> tuple[str, int, tuple[OriginKey, ...]]:
    lines = list(_labelled(text))
    fields = {"format": "p2sh", "name": "", "policy": "", **dict(lines)}
    if fields["format"].lower() != "p2wsh":
        raise CommandRefused("bad format line")  # the real device knows more formats; this one P2WSH only
    policy = _POLICY.search(fields["policy"])
    if policy is None:
        raise CommandRefused("bad policy line")
    at, keys = "", []
    for label, value in lines:
        at = value if label == "derivation" else at
        if _FINGERPRINT.fullmatch(label):
            xpub = ExtendedPublicKey.parse(value, network)
            keys.append(OriginKey(KeyOrigin(Fingerprint.from_hex(label), path(at)), xpub))
    if len(keys) != int(policy[2]):
        raise CommandRefused(f"wrong # of xpubs, expect {policy[2]}")
    return fields["name"], int(policy[1]), tuple(keys)


def _labelled(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        label, colon, value = COMMENT.split(line, maxsplit=1)[0].partition(":")
        if colon:
            yield label.strip().lower(), value.strip()


def check_membership(wallet: ColdcardWallet, seed: Seed) -> None:
    """Is this device's own key among the cosigners, and is it really its own?"""
    mine = next((key for key in wallet.cosigners if key.origin.fingerprint == seed.fingerprint), None)
    if mine is None:
        raise CommandRefused("my key not included")
    if seed.public_key(mine.origin.path) != mine.xpub.public_key:
        where = f"{shown_fingerprint(mine.origin.fingerprint)}{str(mine.origin.path).removeprefix('m')}"
        raise CommandRefused(f"[{where}] wrong pubkey")

"""Where a multisig wallet comes from: a file by which it is enrolled, or the xpubs that a transaction brings
along (BIP-174, PSBT_GLOBAL_XPUB).

A file is the simple text form, a descriptor, or a descriptor in JSON. Text form, one `label: value` a line,
`#` starts a comment:

    Name: Treasury
    Policy: 2 of 3
    Derivation: m/48h/1h/0h/2h
    Format: P2WSH
    0F056943: tpub…

`Derivation` holds for the keys that follow it. A descriptor alone has no name: it gets that of its file on
the card, or "2-of-3"; JSON of the form {"name": …, "desc": …} gives it one. Source: Coldcard firmware 5.4.5
and 5.6.1, `from_file` in `shared/multisig.py`.
"""

import json
import re
from dataclasses import dataclass, replace
from typing import Final

from device_simulators.coldcard.arguments import ascii_text, path
from device_simulators.coldcard.replies import CommandRefused, TransactionRefused
from device_simulators.coldcard.wallet import Wallet, WalletStore, XpubPolicy, shown_fingerprint
from device_simulators.coldcard.wire import MAX_COSIGNERS
from device_simulators.seed import Seed
from multisig import (
    DerivationPath,
    ExtendedPublicKey,
    Fingerprint,
    InvalidDescriptor,
    KeyOrigin,
    MultisigError,
    Network,
    OriginKey,
    Psbt,
    SortedMulti,
    WrongNetwork,
    parse_multisig_script,
)

ACCEPTED_FORMAT: Final = "p2wsh"
# One of them anywhere in the text, and the firmware takes it for a descriptor.
DESCRIPTOR_WORDS: Final = ("pk(", "pkh(", "tr(", "addr(", "raw(", "combo(", "sh(", "multi(", "multi_a(")
_FINGERPRINT: Final = re.compile(r"[0-9a-fA-F]{8}")
# A # with a digit behind it is a part of a name.
COMMENT: Final = re.compile(r"^#|#(?![0-9])")
_POLICY: Final = re.compile(r"(\d+)\D+(\d+)")


def parse_wallet_file(content: bytes, seed: Seed, network: Network, stem: str = "") -> Wallet:
    """The wallet a file describes, checked to be one that this device takes part in. `stem`: the file's name
    on the card, up to its first dot.

    Raises CommandRefused in the firmware's words.
    """
    text = _decode(content)
    name, text = _unwrap_json(text)
    is_descriptor = any(word in text for word in DESCRIPTOR_WORDS)
    draft = _from_descriptor(text, network) if is_descriptor else _from_lines(text, network)
    return _finish(replace(draft, name=name or draft.name or stem), seed)


@dataclass(frozen=True)
class _Draft:
    """What has been read so far. `policy` (0, 0) means that the file named none: all keys must sign."""

    name: str = ""
    policy: tuple[int, int] = (0, 0)
    script_format: str = "p2sh"
    path: DerivationPath | None = None
    cosigners: tuple[OriginKey, ...] = ()


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CommandRefused("must be ascii printable") from error


def _unwrap_json(text: str) -> tuple[str, str]:
    """Name and descriptor of the JSON form; any other text comes back unchanged."""
    try:
        wrapped = json.loads(text)
    except ValueError:
        return "", text
    if not isinstance(wrapped, dict) or not isinstance(wrapped.get("desc"), str):
        raise CommandRefused("'desc' key required")
    name = wrapped.get("name", "")
    if not isinstance(name, str):
        raise CommandRefused("'name' length")
    return name, wrapped["desc"]


def _from_descriptor(text: str, network: Network) -> _Draft:
    try:
        descriptor = SortedMulti.parse(text.strip(), network, strict="#" in text)
    except WrongNetwork as error:
        raise CommandRefused("wrong chain") from error
    except InvalidDescriptor as error:
        raise CommandRefused(f"{error}") from error
    policy = (descriptor.threshold, len(descriptor.keys))
    return _Draft(policy=policy, script_format=ACCEPTED_FORMAT, cosigners=descriptor.keys)


def _from_lines(text: str, network: Network) -> _Draft:
    draft = _Draft()
    for line in text.splitlines():
        label, colon, value = COMMENT.split(line, maxsplit=1)[0].partition(":")
        if colon:
            draft = _read_line(draft, label.strip().lower(), value.strip(), network)
    return draft


def _read_line(draft: _Draft, label: str, value: str, network: Network) -> _Draft:
    if label == "name":
        return replace(draft, name=value)
    if label == "policy":
        return replace(draft, policy=_read_policy(value))
    if label == "derivation":
        return replace(draft, path=_read_path(value))
    if label == "format":
        return replace(draft, script_format=value.lower())
    if _FINGERPRINT.fullmatch(label):
        key = _read_key(Fingerprint.from_hex(label), value, draft.path, network)
        return replace(draft, cosigners=(*draft.cosigners, key))
    return draft  # the firmware too ignores labels it does not know


def _read_policy(value: str) -> tuple[int, int]:
    match = _POLICY.search(value)
    threshold, count = (int(part) for part in match.groups()) if match else (0, 0)
    if not 1 <= threshold <= count <= MAX_COSIGNERS:
        raise CommandRefused("bad policy line")
    return threshold, count


def _read_path(value: str) -> DerivationPath:
    if not value:
        raise CommandRefused("bad derivation line: blank")
    try:
        return path(value)
    except CommandRefused as error:
        raise CommandRefused(f"bad derivation line: {error}") from error


def _read_key(fingerprint: Fingerprint, value: str, at: DerivationPath | None, network: Network) -> OriginKey:
    try:
        xpub = ExtendedPublicKey.parse(value, network)
    except WrongNetwork as error:
        raise CommandRefused("wrong chain") from error
    except MultisigError as error:
        raise CommandRefused("unable to parse xpub") from error
    if at is None:
        raise CommandRefused("empty deriv")
    return OriginKey(KeyOrigin(fingerprint, at), xpub)


def _finish(draft: _Draft, seed: Seed) -> Wallet:
    if not draft.cosigners:
        raise CommandRefused("need xpubs")
    if draft.script_format != ACCEPTED_FORMAT:
        raise CommandRefused("bad format line")  # the real device knows more formats; this one P2WSH only
    count = len(draft.cosigners)
    threshold, expected = draft.policy if draft.policy != (0, 0) else (count, count)
    if count != expected:
        raise CommandRefused(f"wrong # of xpubs, expect {expected}")
    wallet = Wallet(ascii_text(draft.name.encode()) or f"{threshold}-of-{count}", threshold, draft.cosigners)
    check_membership(wallet, seed)
    return wallet


def check_membership(wallet: Wallet, seed: Seed) -> None:
    """Is this device's own key among the cosigners, once, and is it really its own? Are the depths as
    claimed?
    """
    mine = False
    for key in wallet.cosigners:
        _check_depth(key)
        if key.origin.fingerprint == seed.fingerprint:
            mine = True
            _check_own(key, seed)
    if not mine:
        raise CommandRefused("my key not included")


def _check_depth(key: OriginKey) -> None:
    depth, steps = key.xpub.depth, len(key.origin.path)
    if depth != steps:
        shown = shown_fingerprint(key.origin.fingerprint)
        raise CommandRefused(f"deriv {steps} != {depth} xpub depth (xfp={shown})")


def _check_own(key: OriginKey, seed: Seed) -> None:
    if seed.public_key(key.origin.path) != key.xpub.public_key:
        where = f"{shown_fingerprint(key.origin.fingerprint)}{str(key.origin.path).removeprefix('m')}"
        raise CommandRefused(f"[{where}] wrong pubkey")


INVALID = "Invalid PSBT"  # all that the firmware says over the wire when one of its assertions fails


@dataclass(frozen=True)
class Choice:
    """`wallet` is None where the transaction names none. `needs_approval`: not on record, the person is to be
    asked.
    """

    wallet: Wallet | None
    needs_approval: bool = False


def choose_wallet(psbt: Psbt, seed: Seed, store: WalletStore, policy: XpubPolicy) -> Choice:
    """Raises TransactionRefused in the firmware's words."""
    if not psbt.xpubs:
        return Choice(None)
    keys = tuple(OriginKey(origin, xpub) for xpub, origin in psbt.xpubs)
    if not any(key.fingerprint == seed.fingerprint for key in keys):
        raise TransactionRefused("My XFP not involved")
    known = _known(psbt, keys, store)
    if known is not None:
        if frozenset(known.cosigners) != frozenset(keys):
            raise TransactionRefused(INVALID)
        return Choice(known)
    threshold = _guess_threshold(psbt, len(keys))
    if threshold is None:
        return Choice(None)
    return _propose(threshold, keys, seed, store, policy)


def _known(psbt: Psbt, keys: tuple[OriginKey, ...], store: WalletStore) -> Wallet | None:
    """One wallet with these fingerprints and paths, or of several the one with the script's threshold."""
    candidates = store.candidates(key.origin for key in keys)
    if len(candidates) == 1:
        return candidates[0]
    threshold = _guess_threshold(psbt, len(keys))
    return next((wallet for wallet in candidates if wallet.threshold == threshold), None)


def _guess_threshold(psbt: Psbt, count: int) -> int | None:
    """M of the first witness script that has as many keys as there are xpubs."""
    for item in psbt.inputs:
        if item.witness_script is None or not item.derivations:
            continue
        try:
            threshold, keys = parse_multisig_script(item.witness_script)
        except MultisigError:
            continue
        if len(keys) == count:
            return threshold
    return None


def _propose(
    threshold: int, keys: tuple[OriginKey, ...], seed: Seed, store: WalletStore, policy: XpubPolicy
) -> Choice:
    verify_only = policy is XpubPolicy.VERIFY or (policy is XpubPolicy.FACTORY and len(store) > 0)
    if verify_only:
        raise TransactionRefused("XPUBs in PSBT do not match any existing wallet")
    try:
        wallet = Wallet(f"PSBT-{threshold}-of-{len(keys)}", threshold, keys)
        check_membership(wallet, seed)
    except CommandRefused as error:
        raise TransactionRefused(INVALID) from error
    return Choice(wallet, needs_approval=policy is not XpubPolicy.TRUST)

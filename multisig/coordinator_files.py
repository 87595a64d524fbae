"""A vault read from another program's file: one table of the forms that are known, and the names of those
that hold no vault.

No file is trusted. A descriptor's checksum must be right, a record's first address is derived again, and all
descriptors of a file must be of one vault. Sizes are bounded before anything is parsed.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from multisig.canonical_json import JsonError, parse_json
from multisig.descriptor import other_form, strip_checksum
from multisig.errors import InvalidDescriptor, MultisigError
from multisig.keys import DerivationPath, ExtendedPublicKey, Fingerprint, KeyOrigin, OriginKey, plain_form
from multisig.network import Network
from multisig.script import MAX_COSIGNERS
from multisig.vault import RECEIVE, Vault

# Bitcoin Core's list of a wallet with several descriptors of 15 keys; larger files are refused.
MAX_FILE_CHARACTERS = 65_536
# Of objects and lists together, so also of levels.
_MAX_NESTED = 1_000

BSMS_VERSION = "BSMS 1.0"
_RECORD_LINES = 4
# BIP-129: `/**` in the template stands for what the third line allows. Receiving and change, as everywhere
# here.
TEMPLATE, RESTRICTIONS, NO_RESTRICTIONS = "/**", "/0/*,/1/*", "No path restrictions"

# How the keys of a descriptor end, behind the account: BIP-389, an older spelling of it, a chain alone, the
# two of BIP-129 and BIP-388, and Nunchuk's.
_ENDING = re.compile(r"/(<0;1>/\*|\{0,1\}/\*|0/\*|1/\*|\*\*|\*)(?=[,)])")
_BOTH, _RECEIVING, _CHANGE, _OPEN = "<0;1>/*", "0/*", "1/*", "*"
_IN_DESCRIPTORS = (_BOTH, "{0,1}/*", _RECEIVING, _CHANGE)
_SORTED_MULTI = "wsh(sortedmulti("
_SLIP132 = re.compile(r"\b[zvZV]pub[1-9A-HJ-NP-Za-km-z]{107}\b", re.ASCII)
_OF_P2WSH = ("Zpub", "Vpub")
_XFP = re.compile(r"[0-9a-f]{8}", re.ASCII)
_POLICY = re.compile(r"([0-9]{1,2})\D+([0-9]{1,2})", re.ASCII)
_PLACE = re.compile(r"@[0-9]+", re.ASCII)
_SCRIPTS = {"P2SH-P2WSH": "sh(wsh(", "P2WSH-P2SH": "sh(wsh(", "P2SH": "sh(", "P2TR": "tr("}

CONVERTED = (
    "Keys in it have a prefix of SLIP-132, such as Zpub or vpub. The same keys are written here as xpub or "
    "tpub, whose prefix says nothing of the script."
)
_CHANGE_TAKEN = (
    "it does not say which addresses are for change: those at /1/* are taken, as all vaults here do."
)
ADDRESS_PROVES = f"Its first address proves /0/* for receiving, but {_CHANGE_TAKEN}"
RECEIVING_ALONE = f"It has the receiving addresses alone, at /0/*; {_CHANGE_TAKEN}"

_EXPORT = (
    "Export the descriptor with its checksum, a BSMS record or a wallet policy. The files of Sparrow, "
    "Nunchuk, Caravan, Specter, Coldcard and Bitcoin Core are read as well."
)
_WHOLE = "Export the vault from the program that made it, with every key and the threshold."
# What holds no vault, by the text or a name in the JSON object.
_OTHERS: tuple[tuple[re.Pattern[str] | str, str, str], ...] = (
    (re.compile(r"\A(cHNidP|70736274ff)"), "a PSBT", "Give it where a PSBT is asked for."),
    (
        re.compile(r"\A(\[[^\]{]*\])?[A-Za-z]pub[1-9A-HJ-NP-Za-km-z]"),
        "one signer's key",
        _WHOLE,
    ),
    (re.compile(r"\Ap1of[0-9]"), "Specter-DIY's own series of QR codes", _WHOLE),
    (re.compile(r"\A[0-9a-fA-F]{64,}\Z"), "an encrypted record", "Export it without encryption."),
    ("xfp", "a Coldcard's export of one signer's keys", _WHOLE),
    ("wallet_type", "Electrum's own wallet file", _WHOLE),
)


@dataclass(frozen=True)
class VaultFile:
    """`form`: what the file is. `notes`: sentences on what was converted or taken for granted."""

    vault: Vault
    form: str
    notes: tuple[str, ...]


def read_vault_file(text: str, network: Network) -> VaultFile:
    """Raises InvalidDescriptor, InvalidKey, InvalidPath, WrongNetwork."""
    if len(text) > MAX_FILE_CHARACTERS:
        raise InvalidDescriptor("The file is too long for a vault's descriptor.")
    text = text.removeprefix("\ufeff").strip()
    if not text:
        raise InvalidDescriptor("The file is empty.", hint=_EXPORT)
    found = _document(text)
    for form in _FORMS:
        if _has(form.mark, found):
            vault, notes = form.read(found, network)
            return VaultFile(vault, form.name, (*notes, *conversions(text)))
    for mark, words, hint in _OTHERS:
        if _has(mark, found):
            raise InvalidDescriptor(f"This is {words}, and no vault.", hint=hint)
    raise InvalidDescriptor("The file is of no form that is read here.", hint=_EXPORT)


def conversions(text: str) -> tuple[str, ...]:
    """What to say of the keys' prefixes in a text of keys that was read."""
    return (CONVERTED,) if _SLIP132.search(text) else ()


def _document(text: str) -> Any:
    """The JSON value in it, a list as Core's answer has it; else the text."""
    # A Coldcard writes the command with it.
    inside = text.removeprefix("importdescriptors").strip(" '\n")
    if not inside.startswith("{") and not re.match(r"\[\s*\{", inside):
        return text
    if inside.count("{") + inside.count("[") > _MAX_NESTED:
        raise InvalidDescriptor("This JSON has too many parts for a vault's file.", hint=_EXPORT)
    try:
        value = parse_json(inside.encode())
    except (JsonError, UnicodeEncodeError) as error:
        raise InvalidDescriptor(f"This JSON is damaged: {error}.", hint=_EXPORT) from error
    return {"descriptors": value} if isinstance(value, list) else value


def _has(mark: re.Pattern[str] | str, found: Any) -> bool:
    if isinstance(found, str):
        return isinstance(mark, re.Pattern) and mark.search(found) is not None
    return mark in found


_Read = tuple[Vault, tuple[str, ...]]


def _of_record(text: str, network: Network) -> _Read:
    """A descriptor record of BIP-129, second round, not encrypted. Its first address must follow from it."""
    lines = text.splitlines()
    if lines[0] != BSMS_VERSION:
        raise InvalidDescriptor(f"Only {BSMS_VERSION} is read, and this record begins otherwise.")
    if len(lines) > 2 and lines[2].startswith("["):
        raise InvalidDescriptor("This is the record of one signer's key, and no vault.", hint=_WHOLE)
    if len(lines) != _RECORD_LINES:
        raise InvalidDescriptor(
            f"A descriptor record of {BSMS_VERSION} has {_RECORD_LINES} lines; this one has {len(lines)}."
        )
    _version, descriptor, restrictions, first_address = lines
    if restrictions != RESTRICTIONS and (TEMPLATE in descriptor or restrictions != NO_RESTRICTIONS):
        raise InvalidDescriptor(
            f"The record allows other paths than {RESTRICTIONS}: receiving and change addresses."
        )
    # Its own checksum covers the template as it is written; BIP-129 has records with it and without. Sparrow
    # writes <0;1>/*, Nunchuk /*.
    vault, ending = _read(descriptor, network, (_BOTH, TEMPLATE[1:], _OPEN, _RECEIVING), strict=False)
    ours = vault.address(RECEIVE, 0)
    if first_address != ours:
        raise InvalidDescriptor(
            f"The record says that the first address is {first_address}; its own keys give {ours}.",
            hint="One of the two was changed, or the record is for another network. Ask its coordinator "
            "again.",
        )
    return vault, (ADDRESS_PROVES,) if ending in {_OPEN, _RECEIVING} else ()


def _of_lines(text: str, network: Network) -> _Read:
    """Descriptors, each on a line or, as a Coldcard prints one, broken at its commas. # begins a comment."""
    found, parts, depth = [], [], 0
    for line in map(str.strip, text.splitlines()):
        if line and not line.startswith("#"):
            parts.append(line)
            depth += line.count("(") - line.count(")")
            if depth <= 0:
                found.append("".join(parts))
                parts, depth = [], 0
    return _joined([*found, *(["".join(parts)] if parts else ())], network)


def _of_policy(text: str, network: Network) -> _Read:
    """A wallet policy (BIP-388): its template, and a key on each line below, up to an empty one."""
    template, *keys = text.partition("\n\n")[0].splitlines()
    if _PLACE.findall(template) != [f"@{place}" for place in range(len(keys))]:
        raise InvalidDescriptor("The policy does not name each of its keys once, in order.", hint=_WHOLE)
    left = iter(keys)
    return _read(_PLACE.sub(lambda _: next(left), template), network, (TEMPLATE[1:],), strict=False)[0], ()


def _of_json(document: Any, network: Network) -> _Read:
    """Core's rows, or descriptors by name. Specter and Coldcard write the receiving one alone, and derive the
    other.
    """
    rows, alone = document.get("descriptors"), ("descriptor", "desc")
    found = [document.get(name) for name in (*alone, "recv_descriptor", "change_descriptor")]
    if isinstance(rows, list):
        found = [row.get("desc") for row in rows if isinstance(row, dict)]
    texts = [text for text in found if isinstance(text, str)]
    return _joined(texts, network, receiving_alone=not document.keys().isdisjoint(alone))


def _joined(texts: Sequence[str], network: Network, *, receiving_alone: bool = False) -> _Read:
    """The one vault of a file's descriptors, for receiving and change in one or in two. Other descriptors
    beside them, as a wallet of Core's has, are passed over.
    """
    if not texts:
        raise InvalidDescriptor("There is no descriptor in the file.", hint=_EXPORT)
    ours = [text for text in texts if text.startswith(_SORTED_MULTI)] or texts[:1]
    read = [_read(text, network, _IN_DESCRIPTORS) for text in ours]
    vault, others = read[0][0], len({vault.verification_code for vault, _ in read})
    if others > 1:
        raise InvalidDescriptor(f"The file has {others} vaults.", hint="Export the one alone.")
    endings = {ending for _, ending in read}
    if _BOTH in endings or {_RECEIVING, _CHANGE} <= endings:
        return vault, ()
    if receiving_alone and endings == {_RECEIVING}:
        return vault, (RECEIVING_ALONE,)
    # Says which addresses it gives.
    return Vault.from_descriptor(ours[0], network), ()


def _read(text: str, network: Network, endings: tuple[str, ...], *, strict: bool = True) -> tuple[Vault, str]:
    """The vault, and how its keys end."""
    body = strip_checksum(text.strip(), strict=False)
    found = set(_ENDING.findall(body))
    ending = found.pop() if len(found) == 1 else ""
    plain = _SLIP132.sub(lambda key: plain_form(key[0], *_OF_P2WSH), body)
    if ending in endings:
        plain = _ENDING.sub(f"/{_BOTH}", plain)
    vault = Vault.from_descriptor(plain, network, strict=False)
    # A missing checksum is said last, as in a descriptor alone.
    strip_checksum(text.strip(), strict=strict)
    return vault, ending.replace("{0,1}", "<0;1>")


def _of_setup_file(text: str, network: Network) -> _Read:
    """A Coldcard's "simple text", which most devices read and BlueWallet and Sparrow write too."""
    fields, keys, path = {"format": "P2SH"}, [], ""
    for line in text.splitlines():
        label, _colon, value = (part.strip() for part in line.partition(":"))
        # Sparrow has the paths in comments where they differ.
        label = label.lower().replace("# derivation", "derivation")
        if label == "derivation":
            path = value
        elif _XFP.fullmatch(label):
            keys.append((label, path, value))
        else:
            fields[label] = value
    _require_p2wsh(fields["format"])
    policy = _POLICY.match(fields["policy"])
    if policy is None:
        raise InvalidDescriptor("The file's line Policy does not say how many of how many sign.")
    return _of_parts(int(policy[1]), int(policy[2]), keys, network), ()


def _of_caravan(document: Any, network: Network) -> _Read:
    match document:
        case {
            "addressType": str() as script,
            "quorum": {"requiredSigners": int() as threshold, "totalSigners": int() as total},
            "extendedPublicKeys": list() as rows,
        }:
            _require_p2wsh(script)
            keys = [
                tuple(str(row.get(name, "")) for name in ("xfp", "bip32Path", "xpub"))
                for row in rows[: MAX_COSIGNERS + 1]
                if isinstance(row, dict)
            ]
            return _of_parts(threshold, total, keys, network), ()
    raise InvalidDescriptor("The file lacks addressType, quorum or extendedPublicKeys.", hint=_WHOLE)


def _require_p2wsh(script: str) -> None:
    kind = script.upper().replace("_", "-")
    if kind in _SCRIPTS:
        raise other_form(_SCRIPTS[kind])
    if kind != "P2WSH":
        raise InvalidDescriptor(f"A vault's script is P2WSH here, and the file's {script[:20]!a}.")


def _of_parts(threshold: int, total: int, keys: Sequence[Sequence[str]], network: Network) -> Vault:
    if len(keys) != total or total > MAX_COSIGNERS:
        raise InvalidDescriptor(
            f"The file says that there are {total} keys and has {len(keys)}; {MAX_COSIGNERS} are the most.",
            hint=_WHOLE,
        )
    return Vault(network, int(threshold), tuple(_key(number, *key) for number, key in enumerate(keys, 1)))


def _key(number: int, xfp: str, path: str, xpub: str) -> OriginKey:
    try:
        origin = KeyOrigin(Fingerprint.from_hex(xfp), DerivationPath.parse(path))
        return OriginKey(origin, ExtendedPublicKey.parse(plain_form(xpub, *_OF_P2WSH)))
    except MultisigError as error:
        raise InvalidDescriptor(
            f"Key {number} of the file is not usable: {error}", hint=error.hint
        ) from error


@dataclass(frozen=True)
class _Form:
    """`mark`: what its text has, or a name in its JSON object."""

    name: str
    mark: re.Pattern[str] | str
    read: Callable[[Any, Network], _Read]


_FORMS = (
    _Form("a record of BSMS 1.0", re.compile(r"\ABSMS"), _of_record),
    _Form("a Coldcard's setup file", re.compile(r"(?im)^policy[ \t]*:"), _of_setup_file),
    _Form("Caravan's file", "extendedPublicKeys", _of_caravan),
    _Form("Bitcoin Core's list of descriptors", "descriptors", _of_json),
    _Form("Specter's backup", "recv_descriptor", _of_json),
    _Form("Specter's file", "descriptor", _of_json),
    _Form("a Coldcard's JSON", "desc", _of_json),
    _Form("a wallet policy", re.compile(r"\A[^\n]*@[0-9]"), _of_policy),
    _Form("a descriptor", re.compile(r"(?m)^[^#\n]*\("), _of_lines),
)

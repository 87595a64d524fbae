"""Labels of transactions, addresses, coins and keys as wallets exchange them (BIP-329): JSON lines, a record
each.

A line that is damaged spoils no other. What a label may be called is for who takes it.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from custody.common.terminal import aside, give, table
from custody.common.text import LONGEST_TEXT, count
from multisig import MultisigError, Network, Vault, decode_address, encode_address
from multisig.canonical_json import JsonError, parse_json

MAX_BYTES: Final = 16 * 1024 * 1024
MAX_LINES: Final = 50_000
# The origin of a vault of 15 keys has 400 characters, and a label six bytes each where it is escaped.
_MAX_LINE: Final = 16_384
_KEY_ORIGIN: Final = re.compile(r"\[[^]]*\]")
_HEX32 = r"[0-9a-fA-F]{64}"
_REFS: Final = {
    "tx": re.compile(_HEX32),
    "addr": re.compile(r"[0-9A-Za-z]{14,120}"),
    "pubkey": re.compile(rf"{_HEX32}|0[23]{_HEX32}|04{_HEX32}{_HEX32}"),
    "input": re.compile(rf"{_HEX32}:[0-9]{{1,10}}"),
    "output": re.compile(rf"{_HEX32}:[0-9]{{1,10}}"),
    "xpub": re.compile(r"[A-Za-z]pub[1-9A-HJ-NP-Za-km-z]{107,108}"),
}


@dataclass(frozen=True)
class Label:
    """``origin``: the descriptor of the wallet without keys, as `origin_of` writes it. ``spendable``: of an
    output; None says nothing of it.
    """

    type: str
    ref: str
    label: str | None = None
    origin: str | None = None
    spendable: bool | None = None

    def __str__(self) -> str:
        """Its line."""
        present = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(present, ensure_ascii=False)


# In the place of a line that cannot be read.
_NOTHING: Final = Label("", "")
_SHOWN_FIELDS: Final = 8
_SHOWN_NAME: Final = 40


@dataclass(frozen=True)
class LabelFile:
    """By number of the line: the records, and why another line is none. ``unread``: fields that are not of
    a label, such as a fee.
    """

    records: dict[int, Label]
    faults: dict[int, str]
    unread: tuple[str, ...]


def write_labels(labels: Iterable[Label]) -> bytes:
    return "".join(f"{label}\n" for label in labels).encode()


def written_words(known: Sequence[Label], file: Path) -> str:
    return f"{count(len(known), 'label is', 'labels are')} in {file}. Whoever has it knows whom you pay."


def read_labels(content: bytes) -> LabelFile:
    """Raises ValueError for a file that is too large."""
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if len(content) > MAX_BYTES or len(lines) > MAX_LINES:
        raise ValueError(f"has more than {MAX_BYTES:,} bytes or {MAX_LINES:,} lines: split it")
    records: dict[int, Label] = {}
    faults: dict[int, str] = {}
    unread: dict[str, None] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            records[number], others = _label(line)
            unread |= others
        except ValueError as error:
            faults[number] = f"{error}"
    return LabelFile(records, faults, tuple(unread))


def _label(line: bytes) -> tuple[Label, dict[str, None]]:
    """And the names of the other fields. Raises ValueError."""
    if len(line) > _MAX_LINE:
        raise ValueError("the line is too long for a label")
    found = parse_json(line, fractions=True)
    if not isinstance(found, dict):
        raise JsonError("it is no JSON object")
    spendable = found.pop("spendable", None)
    kind, ref, label, origin = (_text(found, name) for name in ("type", "ref", "label", "origin"))
    form = _REFS.get(kind or "")
    if form is None:
        raise ValueError("its type is none of " + ", ".join(_REFS))
    if form.fullmatch(ref or "") is None:
        raise ValueError(f"its ref is no {kind}")
    if spendable is not None and (kind != "output" or not isinstance(spendable, bool)):
        raise ValueError("spendable is true or false, and of an output alone")
    is_hex = kind not in {"addr", "xpub"}
    txid, colon, number = (str(ref).lower() if is_hex else str(ref)).partition(":")
    # One spelling: two lines may be of one output.
    read = Label(str(kind), f"{txid}:{int(number)}" if colon else txid, label, origin, spendable)
    return read, dict.fromkeys(name[:40] for name in found)


def _text(found: dict[str, Any], name: str) -> str | None:
    """Takes it out. Raises ValueError."""
    value = found.pop(name, None)
    if value is not None and (not isinstance(value, str) or len(value) > LONGEST_TEXT):
        raise ValueError(f"its {name} is no text of at most {LONGEST_TEXT} characters")
    if value is not None and any("\ud800" <= each <= "\udfff" for each in value):
        raise ValueError(f"its {name} has half a surrogate pair")
    return value


def origin_of(vault: Vault) -> str:
    """The vault's descriptor with the origins of its keys alone."""
    keys = (f"[{key.origin}]" for key in vault.cosigners)
    return f"wsh(sortedmulti({vault.threshold},{','.join(keys)}))"


def _compared(origin: str) -> tuple[str, list[str]]:
    """Without what wallets write in different ways: hardened levels, and the order of sorted keys."""
    text = "".join(origin.lower().replace("'", "h").partition("#")[0].split())
    return _KEY_ORIGIN.sub("", text), sorted(_KEY_ORIGIN.findall(text))


def sorted_out(
    known: Iterable[Label], records: Mapping[int, Label], network: Network, vault: Vault | None = None
) -> tuple[dict[int, str], dict[int, Label]]:
    """What is to be said of lines that nobody need look at: what has a name here, or got one from an earlier
    line, keeps it; and where it is for one ``vault``, what is another wallet's is none of it. And the others:
    an address in its canonical spelling.
    """
    ours = None if vault is None else _compared(origin_of(vault))
    names = {(each.type, each.ref): each.label for each in known}
    said: dict[int, str] = {}
    new: dict[int, Label] = {}
    earlier: dict[tuple[str, str], int] = {}
    for number, record in records.items():
        ref = record.ref
        try:
            if record.type == "addr":
                ref = encode_address(decode_address(ref, network), network) or ref
        except MultisigError as error:
            said[number] = f"not taken: {error}"
            continue
        here = names.get((record.type, ref))
        if ours is not None and record.origin and _compared(record.origin) != ours:
            said[number] = f"not taken: it is of another wallet, by its origin {record.origin}"
        elif not record.label and record.spendable is not False:
            said[number] = "not taken: it has no name"
        elif here is not None:
            said[number] = "named so already" if here == record.label else f"not taken: here it is '{here}'"
        elif (record.type, ref) in earlier:
            said[number] = f"not taken: the line {earlier[record.type, ref]} names it, too"
        else:
            new[number], earlier[record.type, ref] = replace(record, ref=ref), number
    return said, new


def report(found: LabelFile, said: Mapping[int, str], *, as_json: bool) -> None:
    """Say of each line what it is and what became of it; ``said``: of the records."""
    results = dict(said) | {number: f"not read: {fault}" for number, fault in found.faults.items()}
    lines = [
        {"line": number, "result": result, **vars(found.records.get(number, _NOTHING))}
        for number, result in sorted(results.items())
    ]
    if found.unread:
        aside(f"Fields that are no labels are not read: {', '.join(found.unread[:_SHOWN_FIELDS])}.")
    if as_json:
        give(lines, as_json=True)
    elif not lines:
        aside("The file has no labels.")
    else:
        rows = [
            (f"{one['line']}", one["ref"][:20], (one["label"] or "")[:_SHOWN_NAME], one["result"])
            for one in lines
        ]
        table(("LINE", "WHAT", "NAME", "RESULT"), rows)

"""The address book of the configuration as labels of other wallets (BIP-329), and new names in its file."""

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from custody.common.labels import Label, origin_of
from custody.common.recipients import alike_words
from custody.common.text import name_key
from multisig import Network, resembled
from signerd.account.config import FILE, MAX_CONFIG_BYTES, MOST_ADDRESSES, Config, labels_of, read_config
from signerd.errors import ConfigInvalid
from signerd.journal.books import read_resembled
from signerd.journal.storage import read_from, read_pins

_TABLE: Final = re.compile(r"^[ \t]*\[[ \t]*addresses[ \t]*\][ \t]*(#.*)?\r?$\n?", re.MULTILINE)


def known_labels(config: Config, state: Path) -> list[Label]:
    """The payees, and this signer's key in each pinned vault, by the device's name."""
    payees = zip(config.book, config.labels.values(), strict=True)
    keys = [
        Label("xpub", str(pin.own_key.xpub), config.label, origin_of(pin.vault))
        for pin in read_pins(state, config.network)
    ]
    return [*(Label("addr", address, name) for address, name in payees), *keys]


def alike_faults(config: Config, state: Path, records: Iterable[Label]) -> Mapping[str, str]:
    """Of the addresses that would get a name, why one that only resembles a known address gets none."""
    new, network, book = {each.ref for each in records if each.type == "addr"}, config.network, config.book
    by_name = resembled(new, (), book)
    alike = read_from(state, lambda journal: read_resembled(journal, network, new, book), by_name)
    hint = f"If it is right, name it in {FILE} yourself."
    return {address: f"{alike_words(address, known)} {hint}" for address, known in alike.items()}


def fault_of(record: Label, present: Mapping[str, str], network: Network) -> str | None:
    """Why a new name cannot be taken. ``present``: addresses by `name_key`."""
    name = (record.label or "").strip()
    if record.type != "addr":
        return "no such names are kept here"
    if len(present) >= MOST_ADDRESSES:
        return f"{MOST_ADDRESSES:,} names are kept at most"
    if name_key(name) in present:
        return "another address has this name"
    try:
        labels_of({name: record.ref}, network)
    except ValueError as error:
        return str(error)
    return None


def with_names(path: Path, names: Mapping[str, str]) -> str:
    """The configuration with the names. Raises ConfigInvalid."""
    text = path.read_text(encoding="utf-8-sig")
    lines = "".join(
        f"{json.dumps(name, ensure_ascii=False)} = {json.dumps(address)}\n" for name, address in names.items()
    )
    header = _TABLE.search(text)
    before, after = (
        (f"{text.rstrip()}\n\n[addresses]\n", "")
        if header is None
        else (text[: header.end()], text[header.end() :])
    )
    text = f"{before}{lines}{after}"
    if len(text.encode()) > MAX_CONFIG_BYTES:
        raise ConfigInvalid(f"{path} would get longer than {MAX_CONFIG_BYTES:,} bytes")
    return text


def require_read(path: Path, text: str, addresses: Mapping[str, str]) -> None:
    """Raises ConfigInvalid where the text does not have exactly these."""
    with suppress(ConfigInvalid):
        if read_config(path, text).addresses == addresses:
            return
    raise ConfigInvalid(
        f"{path} has its addresses in another form than a table [addresses]",
        hint="Write them below [addresses], one a line, and import the file again.",
    )

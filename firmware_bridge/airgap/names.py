"""Names of files on a card: what FAT takes, what a person recognises, and what a Coldcard makes of them."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from multisig import Psbt

# A Coldcard's screen shows little more, and it appends `-part-12.psbt`.
MAX_LABEL: Final = 24
_TXID_DIGITS: Final = 8
_NOT_SAFE = re.compile(r"[^A-Za-z0-9]+", re.ASCII)
# Names that DOS gave to things: Windows opens the thing, with any ending.
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])", re.ASCII | re.IGNORECASE)
_NAMELESS: Final = "vault"


def safe_label(label: str) -> str:
    """ASCII letters, digits and single hyphens, from whatever a person wrote: "Miete März / Q1" becomes "Miete-Marz-Q1"."""
    # Twice the length, and some: what is folded may take several characters for one.
    plain = unicodedata.normalize("NFKD", label[: 4 * MAX_LABEL]).encode("ascii", "ignore").decode()
    name = _NOT_SAFE.sub("-", plain)[:MAX_LABEL].strip("-")
    return f"{name}-{_NAMELESS}" if _DEVICES.fullmatch(name) else name or _NAMELESS


def request_name(label: str, psbt: Psbt) -> str:
    """The label, and the beginning of the transaction's id: the same request has the same name, and no other one has it."""
    return f"{safe_label(label)}-{psbt.tx.txid[:_TXID_DIGITS]}.psbt"


def answers_among(names: Iterable[str], request: str) -> tuple[str, ...]:
    """Those that a Coldcard gives to answers to this request, the latest first.

    `-part` while signatures are missing, `-signed` when it has them all, and a number where that was taken. Its clock is not
    right, if it has one, so nothing but the name tells which is later. FAT keeps no case.
    """
    base = request.rpartition(".")[0] or request
    # A Coldcard takes `-part` out of the name before it appends it, wherever it stands.
    bases = "|".join(map(re.escape, (base, base.replace("-part", ""))))
    pattern = re.compile(rf"(?:{bases})-(part|signed)(?:-([0-9]{{1,4}}))?\.psbt", re.ASCII | re.IGNORECASE)
    ranked = [
        (match[1].lower() == "signed", int(match[2] or 1), name)
        for name in names
        if (match := pattern.fullmatch(name))
    ]
    return tuple(name for _, _, name in sorted(ranked, reverse=True))

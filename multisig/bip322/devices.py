"""Which devices sign the PSBT of a message (BIP-322), by maker, model and firmware, as the makers' sources
have it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_Numbers = tuple[int, int, int]
_VERSION: Final = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})", re.ASCII)


@dataclass(frozen=True)
class ProofSigning:
    """How the models whose name begins with ``model`` treat the PSBT of a signed message (BIP-322), from
    firmware ``since`` to ``until`` (of a Ledger: of its Bitcoin app).

    ``control``: it signs for an address. ``funds``: it also signs for coins, with a screen that a person can
    check. ``shows``: what its screen says, or why it does not sign.
    """

    maker: str
    model: str
    since: _Numbers
    until: _Numbers
    control: bool
    funds: bool
    shows: str
    source: str


_NO_EMPTY_DATA: Final = (
    "it cannot make an output that is OP_RETURN and nothing more: it would sign another one"
)

# A device without a row is not asked to sign.
PROOF_SIGNING: Final[tuple[ProofSigning, ...]] = (
    ProofSigning(
        "trezor",
        "Trezor One",
        (1, 8, 3),
        (1, 14, 1),
        control=False,
        funds=False,
        shows=_NO_EMPTY_DATA,
        source="read: legacy/firmware/transaction.c, op_return_to_script_pubkey, which always pushes "
        "(1.14.1)",
    ),
    ProofSigning(
        "trezor",
        "Trezor",
        (2, 3, 0),
        (2, 12, 4),
        control=False,
        funds=False,
        shows=_NO_EMPTY_DATA,
        source="read: core/src/apps/bitcoin/scripts.py, output_script_paytoopreturn, which always pushes "
        "(2026-08-21)",
    ),
    ProofSigning(
        "coldcard",
        "Coldcard",
        (5, 4, 4),
        (5, 4, 5),
        control=False,
        funds=False,
        shows="it takes no transaction of version 0",
        source="read: shared/psbt.py, validate: txn too short, bad txn version (5.4.5)",
    ),
    ProofSigning(
        "coldcard",
        "Coldcard",
        (5, 5, 0),
        (5, 5, 0),
        control=False,
        funds=False,
        shows="it wants the message typed or read on the device itself, and says nothing of it over USB",
        source="read: shared/auth.py, por322_msg_verify (5.5.0)",
    ),
    ProofSigning(
        "coldcard",
        "Coldcard",
        (5, 5, 1),
        (5, 6, 1),
        control=True,
        funds=True,
        shows="the whole message, the address, and the sum of the coins",
        source="read: shared/psbt.py, validate_bip322_input0; shared/auth.py (5.5.1, 5.6.0, 5.6.1)",
    ),
    # It would show all coins of a proof of funds as a fee: users must not get used to approving that.
    ProofSigning(
        "ledger",
        "Ledger",
        (2, 1, 3),
        (2, 4, 6),
        control=True,
        funds=False,
        shows="a payment of 0 to OP_RETURN with a fee of 0, and not the message",
        source="read: src/common/script.c, format_opscript_script: a naked OP_RETURN is signed for BIP-322; "
        "src/handler/sign_psbt.c, display_transaction (2.1.3, 2.2.0, 2.3.0, 2.4.0, 2.4.6)",
    ),
)


def proof_signing(maker: str, model: str, firmware: str | None) -> ProofSigning | None:
    """None if it is not known for this model and version. ``maker``: a word such as ``coldcard``."""
    version = _numbers(firmware)
    if version is None:
        return None
    return next((row for row in _rows(maker, model) if row.since <= version <= row.until), None)


def why_no_proof(maker: str, model: str, firmware: str | None, *, coins: int) -> str:
    """Why this device cannot sign a proof with this many coins, in words; empty if it can."""
    known = proof_signing(maker, model, firmware)
    if known is None:
        return "it is not known whether it signs messages of a vault (BIP-322), so it is not asked"
    if not known.control:
        return known.shows
    if coins and not known.funds:
        return "its screen would show all of the coins as a fee: prove the addresses alone"
    return ""


def may_sign_proof(maker: str, model: str, firmware: str | None, *, coins: int) -> bool:
    """Whether this firmware, or a newer one in the table, signs it: the device may have been updated
    since.
    """
    version = _numbers(firmware) or (0, 0, 0)
    return any(version <= row.until for row in _rows(maker, model) if _signs(row, coins))


def signing_devices(*, coins: int) -> str:
    """The devices that sign a proof with this many coins: ``Coldcard 5.5.1 to 5.6.1, …``."""
    able = (row for row in PROOF_SIGNING if _signs(row, coins))
    return ", ".join(f"{row.model} {_dotted(row.since)} to {_dotted(row.until)}" for row in able)


def _signs(row: ProofSigning, coins: int) -> bool:
    return row.funds or (row.control and not coins)


def _dotted(numbers: _Numbers) -> str:
    return ".".join(map(str, numbers))


def _rows(maker: str, model: str) -> Iterator[ProofSigning]:
    return (row for row in PROOF_SIGNING if row.maker == maker and model.startswith(row.model))


def _numbers(firmware: str | None) -> _Numbers | None:
    found = _VERSION.fullmatch(firmware or "")
    return None if found is None else (int(found[1]), int(found[2]), int(found[3]))

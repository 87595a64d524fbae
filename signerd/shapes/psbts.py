"""PSBTs that an app, or the person at the terminal, brings: looked at, asked about, handed back signed."""

from typing import Annotated

from pydantic import Field, StringConstraints

from signerd.shapes.common import Answer, Request
from signerd.shapes.proposals import CheckView, MoneyView

# The largest PSBT that is parsed at all: multisig's PsbtLimits, which a command that only lists would have to load for it.
MAX_PSBT_BYTES = 2 * 1024 * 1024
# Four characters of base64 carry three bytes.
MAX_PSBT_TEXT = (MAX_PSBT_BYTES + 2) // 3 * 4
# That, and the JSON around it.
MAX_PSBT_BODY = MAX_PSBT_TEXT + 1024
# RFC 4648, section 4, with its padding: nothing that two readers could read differently, no line break.
PsbtText = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9+/]+={0,2}$", min_length=8, max_length=MAX_PSBT_TEXT)
]


class PsbtRequest(Request):
    """``psbt``: version 0 (BIP-174), in base64, with the previous transaction and the key origins of every input."""

    psbt: PsbtText = Field(repr=False)


class PsbtReview(Answer):
    """What would be asked about a PSBT. Nothing is stored.

    ``vault_id`` is None where its coins are no pinned vault's. ``allowed``: nothing refuses; what refuses is in ``checks``.
    ``proposal_id``: the platform proposes this very transaction, and the person is asked about that proposal only.
    """

    network: str
    vault_id: str | None
    vault_name: str | None
    allowed: bool
    to_acknowledge: tuple[str, ...]
    money: MoneyView | None
    checks: tuple[CheckView, ...]
    proposal_id: str | None


class BroughtLine(Answer):
    """A PSBT that was brought. ``expires_at``: RFC 3339 UTC, until when the person may decide. ``state``: as a proposal's."""

    psbt_id: str
    network: str
    brought_by: str
    state: str
    reason: str
    vault_id: str | None
    vault_name: str | None
    paid_sats: int | None
    fee_sats: int | None
    expires_at: str


class BroughtView(BroughtLine):
    """``review``: what the person is shown now. ``signed_psbt`` (base64): with this device's signatures, once they are there.

    ``final``: the complete transaction as hex, where its signatures are enough; nobody here sends it.
    """

    review: PsbtReview
    signed_psbt: str | None
    final: str | None

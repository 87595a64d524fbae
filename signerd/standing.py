"""How a proposal stands, in words: its state, and the person's own part in it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from signerd.core.states import ASKED, STOPPED, State, state_words

if TYPE_CHECKING:
    from signerd.shapes import DeviceView, ProposalLine

# What the others' signatures, or the platform's word, lead to.
_BY_OTHERS = frozenset({"broadcast", "confirmed", "expired", "superseded", "withdrawn"})
_ENDED_THERE = frozenset({"REJECTED", "CANCELLED", "INVALIDATED", "FAILED"})


def is_proof(line: "ProposalLine") -> bool:
    """Whether it is proven to be a message (BIP-322), which moves no money and pays no fee."""
    return line.paid_sats is not None and line.fee_sats is None


def is_left_open(line: "ProposalLine") -> bool:
    """Whether the person declined it, and the others may still sign it."""
    is_open = line.imported_by is None and line.platform_status == "PENDING"
    return is_open and line.state == State.DECLINED


def line_words(line: "ProposalLine") -> str:
    """Of its state; of what the platform ended, its word as the console has it."""
    if line.state == State.WITHDRAWN and line.platform_status in _ENDED_THERE:
        return line.platform_status.lower()
    if line.state == State.INTERRUPTED and line.reason.startswith(STOPPED):
        return "perhaps signed; you may approve it again"
    if line.held and line.state in ASKED:
        return "held: read why before you decide"
    return "proven" if line.state == State.CONFIRMED and is_proof(line) else state_words(line.state)


def own_words(line: "ProposalLine") -> str:
    """The person's own part in what went on, or ended; empty where the state says it."""
    if line.imported_by is not None or line.state not in _BY_OTHERS:
        return ""
    if line.declined is not None:
        did = "signed it, and declined it" if line.signed_here else "declined it"
        return f"You {did}: “{line.declined}”." if line.declined else f"You {did}."
    if line.exported_here and not line.signed_here:
        return "You exported it, and imported no signature."
    return "You signed it." if line.signed_here else "You did not sign it here."


def device_words(there: "Sequence[DeviceView]", ours: str | None) -> str:
    """What keeps the registered device from being asked, and what to do; empty where nothing does. One that
    shows an old question does not say which it is.
    """
    needs = {one.fingerprint: " ".join(filter(None, (one.detail, one.advice))) for one in there}
    do = needs.get(None) or f"Connect your device, the one with the fingerprint {ours}, and unlock it."
    return "" if ours is None else needs.get(ours, do)

"""Why a proposal's transaction does not confirm, as the platform says, and what helps."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from custody.schemas.proposals import Advice, TroubleKind


@dataclass(frozen=True)
class Trouble:
    """``words``: the platform's. ``since``: RFC 3339 UTC. ``txid``: the transaction that spends one of its
    coins; ``psbt_id``: its proposal, if there is one.
    """

    kind: TroubleKind
    advice: Advice
    words: str
    since: str
    txid: str | None = None
    psbt_id: str | None = None

    @property
    def sentence(self) -> str:
        return f"{KINDS[self.kind]} {ADVICE[self.advice]}"


KINDS: Mapping[TroubleKind, str] = MappingProxyType(
    {
        TroubleKind.CONFLICT: "Another transaction spends a coin of it: only one of the two can confirm.",
        TroubleKind.DOUBLE_SPENT: "Another transaction has spent a coin of it: it can never confirm.",
        TroubleKind.NOT_IN_MEMPOOL: "It was sent, and the mempool has dropped it.",
        TroubleKind.FEE_TOO_LOW: "Its fee is below what nodes take now.",
        TroubleKind.SLOW: "It has waited for hours, and its fee is low.",
    }
)
ADVICE: Mapping[Advice, str] = MappingProxyType(
    {
        "bump": "A new version with a higher fee helps: you are asked as soon as it is proposed.",
        "wait": "No new version can be made of it now: wait.",
        "resend": "The platform sends it again by itself.",
        "none": "If it still has to be paid, it is proposed anew.",
    }
)

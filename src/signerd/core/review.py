"""What the person is shown about one proposal, and the hash that an approval of it is bound to."""

import hashlib
from dataclasses import dataclass

from custody.schemas.proposals import TxType
from multisig import FeeLimits, Inspection, MultisigError, Psbt, Severity, inspect
from signerd.core.checks import (
    AFTER_INSPECTION,
    BEFORE_INSPECTION,
    FORWARD_AFTER_INSPECTION,
    FORWARD_BEFORE_INSPECTION,
    Case,
    InspectedCase,
)
from signerd.core.checks.table import lower
from signerd.core.rules.judge import judge
from signerd.core.signing import signing_of
from signerd.core.text import canonical, plain, said
from signerd.core.values import Pin, Snapshot, Surroundings
from signerd.core.verdicts import Outcome, Verdict, allow, refuse, warn

DOMAIN = b"signerd-review-v1"
# The inspection's own ceilings stand above whatever is configured; the fee's share is told once, by ``fee-share``.
HARD_LIMITS = FeeLimits(warn_share_percent=100)


@dataclass(frozen=True)
class Review:
    """Every figure comes from the PSBT's bytes and the pinned vault (S13); the rest is marked as the platform's."""

    snapshot: Snapshot
    pin: Pin | None
    inspection: Inspection | None
    verdicts: tuple[Verdict, ...]
    digest: str

    @property
    def refusals(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if verdict.outcome is Outcome.REFUSE)

    @property
    def allowed(self) -> bool:
        """Nothing refuses, and the transaction was inspected: an absent inspection allows nothing."""
        return self.inspection is not None and not self.refusals

    @property
    def to_acknowledge(self) -> frozenset[str]:
        return frozenset(verdict.name for verdict in self.verdicts if verdict.acknowledge)


def review(snapshot: Snapshot, around: Surroundings) -> Review:
    """Judge a proposal. Never raises for what the platform sent: what cannot be read is refused with the reason."""
    try:
        psbt = Psbt.parse(snapshot.psbt)
    except MultisigError as error:
        unreadable = refuse("psbt-readable", f"The PSBT cannot be read: {said(error)}", code=error.code)
        return _sealed(snapshot, around, None, (unreadable,))
    case = Case(snapshot, psbt, around)
    forward = snapshot.kind is TxType.FORWARD
    before = (*BEFORE_INSPECTION, *(FORWARD_BEFORE_INSPECTION if forward else ()))
    verdicts: tuple[Verdict, ...] = tuple(check(case) for check in before)
    signing = signing_of(snapshot, around)
    if signing is None or around.pin is None or any(v.outcome is Outcome.REFUSE for v in verdicts):
        return _sealed(snapshot, around, None, verdicts)
    inspection = inspect(psbt, signing.policy, network=around.network, limits=HARD_LIMITS)
    inspected = InspectedCase(snapshot, psbt, around, around.pin, inspection, signing)
    after = (*AFTER_INSPECTION, *(FORWARD_AFTER_INSPECTION if forward else ()))
    verdicts += (_provenance(inspection, forward=forward), *_findings(inspection))
    verdicts += tuple(check(inspected) for check in after)
    verdicts += judge(inspected)
    return _sealed(snapshot, around, inspection, verdicts)


def _provenance(inspection: Inspection, *, forward: bool) -> Verdict:
    name, whose = "transaction", "your own profile's" if forward else "the vault's"
    if inspection.ok:
        return allow(
            name, f"Every input is {whose}, every amount is proven, and all change comes back to it."
        )
    return refuse(name, "The transaction's bytes do not prove what they claim.")


def _findings(inspection: Inspection) -> tuple[Verdict, ...]:
    """S1–S5, S8–S10, S17: what the bytes themselves show, under the finding's own stable code."""
    return tuple(
        (refuse if finding.severity is Severity.REFUSE else warn)(
            finding.code, finding.sentence, subject=finding.subject
        )
        for finding in inspection.findings
    )


def _sealed(
    snapshot: Snapshot, around: Surroundings, inspection: Inspection | None, judged: tuple[Verdict, ...]
) -> Review:
    """S24: the hash covers the transaction, the vault, the words of every check and what the platform added."""
    pin, verdicts = around.pin, lower(judged, around.lowered)
    shown = {
        "created_by": plain(snapshot.created_by),
        "description": plain(snapshot.description),
        "inspection": None if inspection is None else inspection.digest,
        "proposal": snapshot.psbt_id,
        "vault": None if pin is None else [pin.vault_id, pin.name, pin.vault.descriptor],
        "verdicts": [[v.name, v.outcome.value, v.sentence, v.acknowledge] for v in verdicts],
        "workspace": snapshot.workspace_id,
    }
    digest = hashlib.sha256(DOMAIN + canonical(shown)).hexdigest()
    return Review(snapshot, pin, inspection, verdicts, digest)

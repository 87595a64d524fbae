"""What the person is shown about one proposal, and the hash that an approval of it is bound to."""

import hashlib
from dataclasses import dataclass

from multisig import FeeLimits, Inspection, MultisigError, Psbt, Severity, inspect
from multisig.bip322 import inspect_proof
from multisig.tokens import Bytecode, Deploy, Payload, bytecode_hash
from signerd.core.checks.case import InspectedCase, Outcome, Verdict, refuse, warn
from signerd.core.checks.proofs import is_mislabelled
from signerd.core.checks.rules import judge
from signerd.core.checks.table import KIND, PROOFS, READABLE, Stage, case_of, kind_of, lower, run
from signerd.core.checks.tokens import ListedAddress, listed_at_first, token_of_payload
from signerd.core.signing import signing_of
from signerd.core.text import canonical, plain, said
from signerd.core.tokens import Screen
from signerd.core.values import Pin, ReviewContext, Snapshot

DOMAIN = b"signerd-review-v1"
# The inspection's own ceilings stand above whatever is configured; the fee's share is told once, by
# ``fee-share``.
HARD_LIMITS = FeeLimits(warn_share_percent=100)


@dataclass(frozen=True)
class Review:
    """Every figure comes from the PSBT's bytes and the pinned vault (S13); the rest is marked as the
    platform's.

    ``token``: that of its payload, where bytes have proven it. ``listed``: all whom a deployment of it lists
    from the start. ``screen``: that of the signer's device, as far as this machine knows it.
    """

    snapshot: Snapshot
    pin: Pin | None
    inspection: Inspection | None
    verdicts: tuple[Verdict, ...]
    digest: str
    token: Bytecode | None = None
    listed: tuple[ListedAddress, ...] = ()
    screen: Screen | None = None

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


def review(snapshot: Snapshot, around: ReviewContext) -> Review:
    """Judge a proposal. Never raises for what the platform sent: what cannot be read is refused with the
    reason.
    """
    try:
        psbt = Psbt.parse(snapshot.psbt)
    except MultisigError as error:
        unreadable = refuse(f"The PSBT cannot be read: {said(error)}", code=error.code)
        return _sealed(snapshot, around, None, (unreadable.under(READABLE),))
    verdicts = run(Stage.BEFORE, case_of(snapshot, psbt, around))
    signing = signing_of(snapshot, around)
    # What is called a message and is a payment, or the other way round, is refused, and shown as what it is.
    other = KIND if is_mislabelled(snapshot, psbt) else None
    if signing is None or any(v.outcome is Outcome.REFUSE and v.name != other for v in verdicts):
        return _sealed(snapshot, around, None, verdicts)
    assert around.pin is not None or snapshot.is_of_profile, "a vault that is not pinned is refused above"
    if kind_of(snapshot, psbt) in PROOFS:
        inspection = inspect_proof(psbt, signing.policy, network=around.network)
    else:
        inspection = inspect(psbt, signing.policy, network=around.network, limits=HARD_LIMITS)
    inspected = InspectedCase(snapshot, psbt, around, around.pin, inspection, signing)
    verdicts += (*run(Stage.INSPECTION, inspected), *_findings(inspection))
    verdicts += (*run(Stage.AFTER, inspected), *judge(inspected))
    if inspection.proof is not None and not inspection.ok:
        # It has a message's form, and may be a payment all the same: no figure of it is shown.
        return _sealed(snapshot, around, None, verdicts)
    return _sealed(snapshot, around, inspection, verdicts)


def _findings(inspection: Inspection) -> tuple[Verdict, ...]:
    """S1–S5, S8–S10, S17: what the bytes themselves show, under the finding's own stable code."""
    return tuple(
        (refuse if finding.severity is Severity.REFUSE else warn)(
            finding.sentence, subject=finding.subject
        ).under(finding.code)
        for finding in inspection.findings
    )


def _sealed(
    snapshot: Snapshot, around: ReviewContext, inspection: Inspection | None, judged: tuple[Verdict, ...]
) -> Review:
    """S24: the hash covers the transaction, the vault, the words of every check and what the
    platform added.
    """
    pin, verdicts, payload = around.pin, lower(judged, around.lowered), _payload(inspection)
    # In its own decimals, and never in those of a token that the payload is not of.
    token = None if payload is None else token_of_payload(payload, around.token)
    deployed = token if isinstance(payload, Deploy) else None
    listed = () if deployed is None else listed_at_first(deployed, around)
    shown = {
        "created_by": plain(snapshot.created_by),
        "description": plain(snapshot.description),
        "inspection": None if inspection is None else inspection.digest,
        "proposal": snapshot.psbt_id,
        "vault": None if pin is None else [pin.vault_id, pin.name, pin.vault.descriptor],
        "verdicts": [[v.name, v.outcome.value, v.sentence, v.acknowledge] for v in verdicts],
        "workspace": snapshot.workspace_id,
        **({"created_by_name": plain(snapshot.created_by_name)} if snapshot.created_by_name else {}),
        **({} if snapshot.brought is None else {"brought": plain(snapshot.brought.by)}),
        **({} if token is None else {"token": bytecode_hash(token.blob).hex()}),
        **({"listed": [[one.address, one.name] for one in listed]} if listed else {}),
    }
    digest = hashlib.sha256(DOMAIN + canonical(shown)).hexdigest()
    return Review(snapshot, pin, inspection, verdicts, digest, token, listed, around.screen)


def _payload(inspection: Inspection | None) -> Payload | None:
    """The first; what carries a second one is refused."""
    output = None if inspection is None else inspection.token_output
    return None if output is None else output.token

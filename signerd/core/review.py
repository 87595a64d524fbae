"""The review of a proposal, and the digest to which an approval is bound."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from zoneinfo import ZoneInfo

from custody._version import __version__
from custody.common.text import plain, said
from multisig import FeeLimits, Inspection, MultisigError, Network, Severity, inspect
from multisig.bip322 import inspect_proof
from multisig.tokens import Bytecode, Deploy, Payload, bytecode_hash
from signerd.core.checks.before import is_mislabelled
from signerd.core.checks.case import InspectedCase, Outcome, Verdict, refuse, warn
from signerd.core.checks.rules import judge
from signerd.core.checks.table import KIND, OF_OUR_KEY, PROOFS, READABLE, Stage, case_of, kind_of, lower, run
from signerd.core.checks.tokens import KnownAddress, listed_at_first, token_of_payload
from signerd.core.signing import signing_of
from signerd.core.text import canonical
from signerd.core.tokens import ModelScreen
from signerd.core.values import Pin, ReviewContext, Snapshot, psbt_of

DOMAIN = b"signerd-review-v1"
# The hard limits of the inspection; ``fee-share`` alone reports the fee's share.
HARD_LIMITS = FeeLimits(warn_share_percent=100)


@dataclass(frozen=True)
class ProposalReview:
    """Figures come from the PSBT's bytes and the pinned vault (S13); the platform's claims are marked as
    such.

    ``token``: the proven token of its payload. ``listed``: the initial whitelist of a deployment. ``screen``:
    that of the signer's device, if known.
    """

    snapshot: Snapshot
    pin: Pin | None
    network: Network
    inspection: Inspection | None
    verdicts: tuple[Verdict, ...]
    digest: str
    token: Bytecode | None = None
    listed: tuple[KnownAddress, ...] = ()
    screen: ModelScreen | None = None

    @property
    def refusals(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if verdict.outcome is Outcome.REFUSE)

    @property
    def allowed(self) -> bool:
        """Whether no check refuses, and the transaction was inspected."""
        return self.inspection is not None and not self.refusals

    @property
    def to_acknowledge(self) -> frozenset[str]:
        return frozenset(verdict.name for verdict in self.verdicts if verdict.acknowledge)


def review(snapshot: Snapshot, context: ReviewContext) -> ProposalReview:
    """Review a proposal. Never raises for what the platform sent: malformed data is refused with the
    reason.
    """
    try:
        psbt = psbt_of(snapshot.psbt)
    except MultisigError as error:
        unreadable = refuse(f"The PSBT cannot be read: {said(error)}", code=error.code)
        return _with_digest(snapshot, context, None, (unreadable.under(READABLE),))
    verdicts = run(Stage.BEFORE, case_of(snapshot, psbt, context))
    signing = signing_of(snapshot, context)
    # A message that is called a payment, or the reverse, is refused, but inspected as what it is; so is what
    # a former key of ours would sign, or signed.
    beside = {*OF_OUR_KEY, KIND} if is_mislabelled(snapshot, psbt) else OF_OUR_KEY
    if signing is None or any(v.outcome is Outcome.REFUSE and v.name not in beside for v in verdicts):
        return _with_digest(snapshot, context, None, verdicts)
    assert context.pin is not None or snapshot.is_of_profile, "a vault that is not pinned is refused above"
    if kind_of(snapshot, psbt) in PROOFS:
        inspection = inspect_proof(psbt, signing.policy, network=context.network)
    else:
        inspection = inspect(psbt, signing.policy, network=context.network, limits=HARD_LIMITS)
    inspected = InspectedCase(snapshot, psbt, context, inspection, signing.policy)
    verdicts += (*run(Stage.INSPECTION, inspected), *_findings(inspection))
    verdicts += (*run(Stage.AFTER, inspected), *judge(inspected))
    if inspection.proof is not None and not inspection.ok:
        # It may be a payment after all: no figures are shown.
        return _with_digest(snapshot, context, None, verdicts)
    return _with_digest(snapshot, context, inspection, verdicts)


def _findings(inspection: Inspection) -> tuple[Verdict, ...]:
    """S1–S5, S8–S10, S17: the inspection's findings, under their codes."""
    return tuple(
        (refuse if finding.severity is Severity.REFUSE else warn)(
            finding.sentence, subject=finding.subject
        ).under(finding.code)
        for finding in inspection.findings
    )


def _with_digest(
    snapshot: Snapshot, context: ReviewContext, inspection: Inspection | None, judged: tuple[Verdict, ...]
) -> ProposalReview:
    """S24: the digest covers the transaction, the vault, every verdict and the platform's additions."""
    pin, verdicts, payload = context.pin, lower(judged, context.lowered), payload_in(inspection)
    # None where the payload is not of the known token: its decimals must not be used.
    token = None if payload is None else token_of_payload(payload, context.token)
    deployed = token if isinstance(payload, Deploy) else None
    listed = () if deployed is None else listed_at_first(deployed, context)
    shown = {
        "created_by": plain(snapshot.created_by),
        "description": plain(snapshot.description),
        "inspection": None if inspection is None else inspection.digest,
        "proposal": snapshot.psbt_id,
        "vault": None if pin is None else [pin.vault_id, pin.name, pin.vault.descriptor],
        "verdicts": [[v.name, v.outcome.value, v.sentence, v.acknowledge] for v in verdicts],
        "workspace": snapshot.workspace_id,
        **({"declines": [[one.by, one.reason] for one in snapshot.declines]} if snapshot.declines else {}),
        **({"created_by_name": plain(snapshot.created_by_name)} if snapshot.created_by_name else {}),
        **({} if snapshot.imported is None else {"imported": plain(snapshot.imported.by)}),
        **({} if token is None else {"token": bytecode_hash(token.blob).hex()}),
        **({"listed": [[one.address, one.name] for one in listed]} if listed else {}),
    }
    digest = hashlib.sha256(DOMAIN + canonical(shown)).hexdigest()
    return ProposalReview(
        snapshot, pin, context.network, inspection, verdicts, digest, token, listed, context.screen
    )


def verdict_key(snapshot: Snapshot, context: ReviewContext) -> bytes | None:
    """A hash of all that ``review`` depends on: where it is the same, so is the review. None where a value
    has no one form, for nothing may be left out.
    """
    try:
        text = json.dumps(_form([__version__, snapshot, context]), separators=(",", ":"))
    except TypeError:
        return None
    return hashlib.sha256(b"signerd-verdict-v1" + text.encode()).digest()


def _form(value: object) -> object:  # noqa: PLR0911 - a row for each type
    """A value in JSON, by its type and its fields."""
    match value:
        case Enum():
            return [type(value).__name__, value.name]
        case None | bool() | int() | str():
            return value
        case bytes():
            return ["bytes", value.hex()]
        case datetime() | ZoneInfo():
            return [type(value).__name__, str(value)]
        case timedelta():
            return ["timedelta", value.total_seconds()]
        case frozenset():
            return ["frozenset", sorted(json.dumps(_form(item)) for item in value)]
        case tuple() | list():
            return [_form(item) for item in value]
        case Mapping():
            return ["mapping", sorted(json.dumps([_form(name), _form(item)]) for name, item in value.items())]
        case _ if is_dataclass(value):
            return [type(value).__name__, *(_form(getattr(value, each.name)) for each in fields(value))]
        case _:
            raise TypeError(f"a {type(value).__name__} has no one form")


def payload_in(inspection: Inspection | None) -> Payload | None:
    """The first payload; a transaction with a second one is refused."""
    output = None if inspection is None else inspection.token_output
    return None if output is None else output.token

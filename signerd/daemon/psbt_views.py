"""From what was brought to its shapes. An app is told of its PSBT, and of nobody else's doings."""

from collections.abc import Callable
from datetime import UTC, datetime

from multisig import Network
from signerd.core.review import Review
from signerd.core.rules.values import RULE_NAMES
from signerd.core.states import State
from signerd.core.text import plain
from signerd.core.verdicts import Verdict
from signerd.daemon.views import check_view, money_view
from signerd.journal.imported import ImportedEntry
from signerd.shapes import BroughtLine, CheckView, ProposalView, PsbtReview

# These speak of other proposals, of other apps' PSBTs, of what was spent and where it came back to: an app is told how they ended, and no more.
BETWEEN_US = frozenset({"change-index", "conflict", "paid-twice", *RULE_NAMES})
NOT_TOLD = "What this check found is for the person alone."


def imported_line(
    entry: ImportedEntry, vault_name: str | None, network: Network, *, whole: bool
) -> BroughtLine:
    """Nothing is judged for it. ``vault_name``: of the pinned vault; ``whole``: as of ``psbt_review``."""
    until = datetime.fromtimestamp(entry.brought.expires_at, UTC)
    return BroughtLine(
        psbt_id=entry.psbt_id,
        network=str(network),
        brought_by=plain(entry.brought.by),
        state=entry.state.value,
        reason=plain(entry.reason) if whole or entry.state is not State.REFUSED else NOT_TOLD,
        vault_id=entry.vault_id or None,
        vault_name=None if vault_name is None else plain(vault_name),
        paid_sats=entry.brought.paid,
        fee_sats=entry.brought.fee,
        expires_at=f"{until:%Y-%m-%dT%H:%M:%SZ}",
    )


def psbt_review(found: Review, network: Network, proposal_id: str | None, *, whole: bool) -> PsbtReview:
    """``whole``: for the person; an app is not told what else was signed and spent."""
    return PsbtReview(
        network=str(network),
        vault_id=found.snapshot.vault_id or None,
        vault_name=None if found.pin is None else plain(found.pin.name),
        allowed=found.allowed,
        to_acknowledge=tuple(sorted(found.to_acknowledge)),
        money=None if found.inspection is None else money_view(found.inspection),
        checks=tuple(check if whole else _for_an_app(check) for check in map(check_view, found.verdicts)),
        proposal_id=proposal_id,
    )


def refusal_words(found: Review, *, whole: bool) -> str:
    """What refuses, each in its sentence with its name; ``whole`` as of ``psbt_review``."""
    checks = [check if whole else _for_an_app(check) for check in map(check_view, found.refusals)]
    return " ".join(f"{check.sentence} [{check.name}]" for check in checks)


def for_an_app(view: ProposalView, found: Review, hides: Callable[[str], bool]) -> ProposalView:
    """L13: what a check found of another app's PSBT, and of what it pays, is for the person alone.

    By the checks' own lists, not by what is shown of them, which is cut where it is long. ``found``: what ``view`` shows.
    """
    told = zip(found.verdicts, view.checks, strict=True)
    checks = tuple(_not_told(check) if _names_any(verdict, hides) else check for verdict, check in told)
    return view.model_copy(update={"checks": checks})


def _names_any(verdict: Verdict, hides: Callable[[str], bool]) -> bool:
    named = verdict.figures.get("proposals")
    return named is not None and any(map(hides, str(named).split(", ")))


def _for_an_app(check: CheckView) -> CheckView:
    return _not_told(check) if check.name in BETWEEN_US else check


def _not_told(check: CheckView) -> CheckView:
    return check.model_copy(update={"sentence": NOT_TOLD, "figures": {}})

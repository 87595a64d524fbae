"""The corpus itself: complete, and each attack that a check names meets it."""

from dataclasses import replace
from functools import cache

import pytest

from signerd.core.checks.case import Outcome
from signerd.core.checks.table import CHECKS, IMPORTS
from signerd.core.review import review
from signerd.core.signing import imported_snapshot
from signerd.core.values import Imported
from tests.attacks.cases import Proposal, proposals
from tests.attacks.recipes.absurd import DAMAGES

# The review lifts the limit of this finding: `fee-share` tells the fee's share.
NEVER_TOLD = {"fee-high"}


@cache
def met() -> frozenset[tuple[str, str]]:
    """(check, attack's number) wherever a case of that number is refused, held or warned of by the check."""
    found = {("psbt-readable", "S23") for damage in DAMAGES if damage.outcome}
    for proposal in proposals():
        names = {*proposal.refusals, *proposal.held, *proposal.warned, *told_of_an_import(proposal)}
        found |= {(name, proposal.number) for name in names}
        # It sums up the findings.
        found |= {("transaction", proposal.number) for _code in proposal.codes}
    return frozenset(found)


def told_of_an_import(proposal: Proposal) -> set[str]:
    """What the checks of imported PSBTs alone say where an app imports its bytes; too late, where they
    changed later.
    """
    around = replace(proposal.review_context(), lapsed=proposal.later is not None)
    imported = Imported("App", "app-1", expires_at=0)
    pins = () if around.pin is None else (around.pin,)
    snapshot = imported_snapshot("i-1", proposal.raw, imported, pins, around.own_keys, around.network)
    verdicts = review(snapshot, around if snapshot.vault_id else replace(around, pin=None)).verdicts
    of_imports = {check.name for check in CHECKS.values() if check.of <= IMPORTS}
    return of_imports & {verdict.name for verdict in verdicts if verdict.outcome is not Outcome.ALLOW}


@pytest.mark.parametrize(
    ("name", "number"),
    [(name, n) for name in sorted(CHECKS.keys() - NEVER_TOLD) for n in CHECKS[name].attacks],
)
def test_every_check_meets_a_case_of_every_attack_that_its_row_names(name, number):
    assert (name, number) in met(), (
        f"the check {name!r} names {number}, and no case of {number} in tests/attacks is refused, held or "
        f"warned of by it: add a Recipe of {number} to tests/attacks/recipes (docs/build/adding/check.md)"
    )

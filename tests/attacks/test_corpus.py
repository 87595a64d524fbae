"""The corpus itself: reproducible byte for byte, complete, and each attack beside an honest neighbour."""

import re
from dataclasses import replace
from functools import cache

import pytest

from multisig import Psbt
from signerd.core.checks.case import Outcome
from signerd.core.checks.table import CHECKS, IMPORTS
from signerd.core.review import review
from signerd.core.signing import imported_snapshot
from signerd.core.values import Imported
from tests.attacks.cases import Proposal, attacks, entries, proposals
from tests.attacks.guards import GUARDS
from tests.attacks.make import CORPUS, files

# The other numbers are no single transaction.
NUMBERS = [f"S{number}" for number in (*range(1, 31), 32, 33)]


def test_the_generator_makes_these_very_files():
    made = files()
    assert made.keys() == {path.name for path in CORPUS.iterdir()}
    for name, text in made.items():
        assert (CORPUS / name).read_bytes() == text.encode("ascii"), name


def test_every_number_is_there():
    assert [attack.number for attack in attacks()] == [*NUMBERS, "F-bomb", "F-number"]


GUARDED = ("misbehaviours", "copies", "damages", "vaults", "numbers", "bodies")
PARTS = ("vaults", "misbehaviours", "firmware", "answers", "copies", "damages", "links", "numbers", "bodies")


def test_every_guard_is_switched_off_for_some_attack():
    used = {case.off for case in (*proposals(), *(entry for part in GUARDED for entry in entries(part)))}
    assert GUARDS.keys() <= used


# The review lifts the limit of this finding: `fee-share` tells the fee's share.
NEVER_TOLD = {"fee-high"}


@cache
def met() -> frozenset[tuple[str, str]]:
    """(check, attack's number) wherever a case of that number is refused, held or warned of by the check."""
    found = {("psbt-readable", damage.attack.number) for damage in entries("damages") if damage.outcome}
    for proposal in proposals():
        number = proposal.attack.number
        names = {*proposal.refusals, *proposal.held, *proposal.warned, *told_of_an_import(proposal)}
        found |= {(name, number) for name in names}
        # It sums up the findings.
        found |= {("transaction", number) for _code in proposal.codes}
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
        f"the check {name!r} names {number}, and no case of {number} in tests/attacks/corpus is refused, "
        "held or "
        f"warned of by it: add a Recipe of {number} to tests/attacks/recipes (docs/build/adding/check.md)"
    )


def test_nothing_in_it_is_secret_or_of_mainnet():
    for path in CORPUS.iterdir():
        assert not re.search(r"[xtuvyz]prv", path.read_text(encoding="ascii"))
    for proposal in proposals():
        assert all(key.xpub.kind == proposal.attack.network.kind for key in proposal.attack.pinned.cosigners)
        assert Psbt.parse(proposal.raw).inputs


def test_every_hostile_proposal_has_a_guard_that_is_taken_away():
    """Those that change between two looks have theirs in `test_sequence.py`."""
    unguarded = [str(p) for p in proposals() if not (p.honest or p.off or p.later)]
    assert unguarded == []

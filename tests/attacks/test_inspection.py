"""The corpus through the inspection and through signerd's review: what is refused, by which name, and what
not; and S15 to S17, a quorum that a platform shows to be pinned, with our key in it.
"""

from dataclasses import replace

import pytest
from embit.psbt import PSBT as EmbitPsbt  # noqa: N811 - a class named like a constant

from multisig import FeeLimits, MultisigError, Psbt, Severity, Vault, inspect
from signerd.account.vaults import pinnable
from signerd.cli.words import psbt_text
from signerd.core.audit import Note
from signerd.core.checks.case import Outcome
from signerd.core.review import ProposalReview, review
from signerd.core.values import OwnKey, VaultClaim
from signerd.daemon.proposal_views import Names, psbt_review
from signerd.errors import SignerdError, VaultDiffers
from signerd.journal import Journal
from tests.attacks.cases import ALLOWED_WITHOUT_LOOK, Proposal, proposals
from tests.attacks.people import ALICE, NAME, VAULT_ID, WORKSPACE
from tests.attacks.recipes.quorum import VAULTS
from tests.conformance.rigs import NETWORK

HONEST = proposals(lambda p: p.honest)
HOSTILE = proposals(lambda p: not p.honest and p.later is None)


def refusals(found: ProposalReview) -> set[str]:
    return {verdict.name for verdict in found.refusals} - {ALLOWED_WITHOUT_LOOK}


def held(found: ProposalReview) -> set[str]:
    return set(found.to_acknowledge)


def warned(found: ProposalReview) -> set[str]:
    """Told, and not to be acknowledged."""
    warnings = (v for v in found.verdicts if v.outcome is Outcome.WARN and not v.acknowledge)
    return {verdict.name for verdict in warnings}


def judged(proposal: Proposal) -> ProposalReview:
    return review(proposal.snapshot(), proposal.review_context())


@pytest.mark.parametrize("proposal", proposals(), ids=str)
def test_what_the_bytes_alone_give_away(proposal):
    limits = FeeLimits(warn_share_percent=100)
    seen = inspect(proposal.parsed, proposal.policy, network=NETWORK, limits=limits)
    refused = [(f.code, f.subject) for f in seen.findings if f.severity is Severity.REFUSE]
    assert sorted(refused) == sorted(map(tuple, proposal.findings))
    assert seen.ok is not bool(proposal.findings)


@pytest.mark.parametrize("proposal", HONEST, ids=str)
def test_an_honest_one_passes(proposal):
    found = judged(proposal)
    assert found.allowed
    assert held(found) == set()
    assert warned(found) == set(proposal.warned)


@pytest.mark.parametrize("proposal", HOSTILE, ids=str)
def test_a_hostile_one_is_refused_or_held_by_exactly_these_checks(proposal):
    found = judged(proposal)
    assert refusals(found) == proposal.refusals
    assert held(found) == set(proposal.held)
    told = psbt_text(psbt_review(found, None, Names(), whole=True))
    assert all(f"[{name}]" in told for name in refusals(found) | held(found))
    assert set(proposal.warned) <= warned(found)
    assert found.allowed is not bool(proposal.refusals)
    assert proposal.refusals | held(found) | warned(found), "an attack that nobody is told of"


@pytest.mark.parametrize("proposal", HOSTILE, ids=str)
def test_no_approval_of_an_honest_one_counts_for_it(proposal):
    """S24: its digest is its own, also where the platform gives it the honest one's id."""
    honest = next(p for p in HONEST if p.number == proposal.number)
    same_id = replace(proposal.snapshot(), psbt_id=honest.psbt_id)
    assert review(same_id, proposal.review_context()).digest != judged(honest).digest


@pytest.mark.parametrize("proposal", proposals(), ids=str)
def test_s13_every_figure_is_that_of_the_bytes(proposal):
    """Beside a reader that others wrote: each output is shown once, with its amount, whatever the platform
    says.
    """
    seen = judged(proposal).inspection
    if seen is None:
        assert proposal.checks, "only a check of the vault keeps the figures back"
        return
    bytes_say = EmbitPsbt.parse(proposal.raw).tx.vout
    shown = {p.output_index: p.amount for p in (*seen.payments, *seen.change)}
    data = {item.output_index for item in seen.op_returns}
    assert shown.keys() | data == set(range(len(bytes_say)))
    assert all(bytes_say[index].value == amount for index, amount in shown.items())
    ours = proposal.policy
    for back in seen.change:
        assert bytes_say[back.output_index].script_pubkey.data == ours.script_pubkey(back.chain, back.index)


def test_s23_each_is_read_back_as_it_was_written():
    for proposal in proposals():
        assert Psbt.parse(proposal.raw).to_bytes() == proposal.raw


@pytest.fixture
def journal(tmp_path):
    with Journal(tmp_path, network=NETWORK) as found:
        keys = (OwnKey(ALICE.vault_key(), "vault", 0),)
        found.add_own_keys(keys, "key-1", Note("registered", "key-1"))
        yield found


def outcome(journal, entry) -> str | None:
    """How it ends when the person wants to pin what the platform shows."""
    journal.learn(VaultClaim(VAULT_ID, WORKSPACE, NAME, entry.descriptor))
    try:
        pinnable(journal, VAULT_ID)
    except (SignerdError, MultisigError) as error:
        return error.code
    return None


def readable(entry) -> str | None:
    """What is wrong with the descriptor itself."""
    try:
        Vault.from_descriptor(entry.descriptor, NETWORK)
    except MultisigError as error:
        return error.code
    return None


@pytest.mark.parametrize("entry", VAULTS, ids=str)
def test_s15_s16_s17_what_may_be_pinned(journal, entry):
    wrong = readable(entry)
    assert outcome(journal, entry) == (VaultDiffers.code if wrong else entry.outcome)
    assert wrong in {None, entry.outcome}

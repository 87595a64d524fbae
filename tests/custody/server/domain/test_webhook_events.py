"""Every kind says what it carries, and no status of a proposal is without one."""

import pytest

from custody.schemas.proposals import ProposalStatus
from custody.schemas.webhooks import EventKind
from custody.server.domain.webhooks import CARRIES, TOLD_BY_AUDIT, carried, kind_of_status, wants


def test_every_kind_says_what_it_carries() -> None:
    assert set(CARRIES) == set(EventKind)


@pytest.mark.parametrize("status", [each for each in ProposalStatus if each is not ProposalStatus.PENDING])
def test_every_status_that_a_proposal_comes_to_has_its_kind(status: ProposalStatus) -> None:
    assert kind_of_status(status) == f"proposal.{status.lower()}"


def test_nothing_that_a_kind_does_not_name_leaves_the_platform() -> None:
    assert carried(EventKind.VAULT_CREATED, {"vault_id": "1", "name": "Cold", "psbt": "cHNi"}) == {
        "vault_id": "1"
    }
    words = {"description", "psbt", "name", "address", "email", "label"}
    assert not any(words & set(fields) for fields in CARRIES.values())


def test_what_a_teller_leaves_out_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        carried(EventKind.MEMBER_ADDED, {"user_id": 1})


def test_a_webhook_wants_its_kinds_or_all() -> None:
    assert wants(["vault.created"], EventKind.VAULT_CREATED)
    assert wants(["*"], EventKind.VAULT_CREATED)
    assert not wants(["vault.limit_changed"], EventKind.VAULT_CREATED)


def test_what_the_log_tells_of_is_told_of_by_nothing_else() -> None:
    """A status is told by the lifecycle; an action of the log that stood for one would tell of it twice."""
    statuses = {kind_of_status(each) for each in ProposalStatus if each is not ProposalStatus.PENDING}
    assert not statuses & set(TOLD_BY_AUDIT.values())

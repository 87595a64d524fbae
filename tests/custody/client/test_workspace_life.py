"""Invitations, the address book and requests for organisations through the SDK, against the real platform."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from custody.client import ApiError, Client
from custody.schemas.address_book import (
    AddWhitelistAddressRequest,
    RemoveWhitelistAddressRequest,
    RenameWhitelistAddressRequest,
)
from custody.schemas.invitations import InvitationStatus, InviteToWorkspaceRequest, RevokeInviteRequest
from custody.schemas.onboarding import OnboardingStatus, ReviewOnboardingRequest, SubmitOnboardingRequest
from custody.server.store.models import User
from tests.support.custody import SHOP
from tests.support.onboarding import REQUEST as ANAS
from tests.support.platform import World, open_world
from tests.support.sdk import sdk

ADMIN, GUEST = "admin@example.org", "guest@example.net"
REQUEST = SubmitOnboardingRequest(**ANAS, referral_source_detail="over lunch")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Two organisations: the administrator's, whose roles are 1 and 2, and the guest's."""
    with open_world(tmp_path) as opened:
        opened.organisation("Acme", ADMIN)
        opened.organisation("Elsewhere", GUEST)
        yield opened


@pytest.fixture
def admin(world: World) -> Client:
    return sdk(world, ADMIN)


@pytest.fixture
def guest(world: World) -> Client:
    return sdk(world, GUEST)


def offer() -> InviteToWorkspaceRequest:
    return InviteToWorkspaceRequest(invited_email=GUEST, workspace_context=1, org_id=1, role_id=2)


class TestInvitations:
    def test_are_offered_seen_and_accepted(self, admin: Client, guest: Client) -> None:
        invite_id = admin.invite_to_workspace(offer(), idempotency_key="k").invite_id
        assert admin.invite_to_workspace(offer(), idempotency_key="k").invite_id == invite_id
        (seen,) = guest.own_invitations()
        assert (seen.invite_uid, seen.org_name, seen.status) == (invite_id, "Acme", InvitationStatus.PENDING)
        assert admin.workspace_invitations(1) == [seen]
        assert guest.accept_invite(invite_id, accept=True).status is InvitationStatus.ACCEPTED
        assert guest.own_invitations() == []
        assert [member.email for member in admin.members(1)] == [ADMIN, GUEST]
        with pytest.raises(ApiError, match="accepted already"):
            guest.accept_invite(invite_id, accept=False)

    def test_are_declined(self, admin: Client, guest: Client) -> None:
        invite_id = admin.invite_to_workspace(offer()).invite_id
        assert guest.accept_invite(invite_id, accept=False).status is InvitationStatus.DECLINED
        assert len(admin.members(1)) == 1

    def test_are_revoked(self, admin: Client, guest: Client) -> None:
        body = RevokeInviteRequest(invite_id=admin.invite_to_workspace(offer()).invite_id, workspace_id=1)
        assert admin.revoke_invite(body).status is InvitationStatus.REVOKED
        assert guest.own_invitations() == []


def test_the_address_book(admin: Client) -> None:
    body = AddWhitelistAddressRequest(workspace_id=1, name="Shop", address=SHOP.upper())
    added = admin.add_whitelist_address(body, idempotency_key="k")
    assert (added.uid, added.name, added.address, added.network) == (1, "Shop", SHOP, "testnet")
    assert admin.whitelist_addresses(1) == [added]
    renaming = RenameWhitelistAddressRequest(workspace_id=1, uid=added.uid, name="Corner shop")
    assert admin.rename_whitelist_address(renaming).name == "Corner shop"
    removal = RemoveWhitelistAddressRequest(workspace_id=1, uid=added.uid)
    assert admin.remove_whitelist_address(removal).success
    assert admin.whitelist_addresses(1) == []
    with pytest.raises(ApiError, match="no such entry"):
        admin.remove_whitelist_address(removal)


def test_requests_for_organisations(admin: Client, guest: Client, world: World) -> None:
    with world.platform.services.store.write() as db:
        db.execute(update(User).where(User.email == ADMIN).values(is_operator=True))
    asked = [guest.submit_onboarding_request(REQUEST, idempotency_key=key) for key in ("a", "b", "b")]
    assert [request.uid for request in asked] == [1, 2, 2]
    assert asked[0].referral_source_detail.value == "over lunch"
    assert guest.onboarding_requests(limit=1) == asked[:1]
    assert admin.onboarding_requests(after=1) == asked[1:2]
    note = ReviewOnboardingRequest(decision="reject", review_note="Twice.")
    assert admin.review_onboarding_request(2, note).status is OnboardingStatus.REJECTED
    approved = admin.review_onboarding_request(
        1, ReviewOnboardingRequest(decision="approve"), idempotency_key="k"
    )
    assert (approved.was_created, approved.created_org_uid.value) == (True, 3)
    assert approved.approved_by_email.value == ADMIN
    assert guest.onboarding_requests(status=OnboardingStatus.APPROVED) == [approved]
    with pytest.raises(ApiError, match="not an operator"):
        guest.review_onboarding_request(1, note)

"""People, roles and workspaces through the SDK, against the real platform. Sign-in through the SDK, against
the real platform.
"""

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from custody.client import ApiError, Client, SignedOut
from custody.schemas.changes import (
    ChangeRequest,
    ChangeStatus,
    DeclineChangeRequest,
    SecondPersonRuleRequest,
)
from custody.schemas.members import (
    AddWorkspaceToUserRequest,
    ChangeUserRoleRequest,
    LeaveWorkspaceRequest,
    RemoveUserRequest,
)
from custody.schemas.permissions import PermissionName
from custody.schemas.roles import (
    AddPermissionRequest,
    CreateRoleRequest,
    DeleteRoleRequest,
    RemovePermissionRequest,
    UpdateRoleRequest,
)
from custody.schemas.users import SetDefaultWorkspaceRequest, UpdateUserInfoRequest
from custody.schemas.workspaces import CreateWorkspaceRequest, UpdateWorkspaceRequest
from tests.support.accounts import CAROL, NEW_PASSWORD, Phone, mailed_token, register
from tests.support.platform import PASSWORD, World, open_world
from tests.support.sdk import connect, sdk

ALICE, BOB = "alice@example.org", "bob@example.org"
BOB_ID = 2


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as opened:
        opened.organisation("Acme", ALICE)
        opened.member(1, BOB)
        yield opened


@pytest.fixture
def alice(world: World) -> Client:
    return sdk(world, ALICE)


def test_a_role_from_its_making_to_its_end(alice: Client) -> None:
    made = alice.create_role(
        CreateRoleRequest(
            workspace_id=1,
            name="Clerk",
            permissions=(PermissionName.PAYMENT_INIT,),
            transaction_limit="0.1",
            cycle_period="W",
            cycle_day=1,
        ),
        idempotency_key="once",
    )
    assert (made.transaction_limit, made.members) == ("0.10000000", 0)
    which = {"role_id": made.role_id, "workspace_id": 1}
    assert alice.update_role(UpdateRoleRequest(**which, name="Teller")).name == "Teller"
    wider = alice.add_permission_to_role(
        AddPermissionRequest(**which, rule_name=PermissionName.VIEW_BALANCES)
    )
    assert [each.rule_name for each in wider.perm] == ["PAYMENT_INIT", "VIEW_BALANCES"]
    alice.remove_permission_from_role(RemovePermissionRequest(**which, rule_name=PermissionName.PAYMENT_INIT))
    assert [role.name for role in alice.roles(1)] == ["Administrator", "Signer", "Teller"]
    alice.delete_role(DeleteRoleRequest(**which))
    assert len(alice.roles(1)) == 2


def test_a_member_through_another_role_to_another_workspace(world: World, alice: Client) -> None:
    bob = sdk(world, BOB)
    changed = alice.change_user_role(ChangeUserRoleRequest(workspace_id=1, user_uuid=BOB_ID, role_id=1))
    assert changed.role.name == "Administrator"
    founded = alice.create_workspace(
        CreateWorkspaceRequest(workspace_id=1, org_id=1, name="Second", network="testnet")
    )
    second = founded.workspace_info.uid
    assert alice.update_workspace(UpdateWorkspaceRequest(workspace_id=second, name="Two")).name == "Two"
    addition = AddWorkspaceToUserRequest(
        workspace_id=second, user_uuid=BOB_ID, role_uid=4, creator_workspace_id=1, creator_org_uuid=1
    )
    assert alice.add_workspace_to_user(addition).allocation_id
    assert (
        bob.set_default_workspace(SetDefaultWorkspaceRequest(workspace_id=second)).default_workspace == second
    )
    alice.remove_user_from_workspace(RemoveUserRequest(workspace_id=1, user_uuid=BOB_ID))
    assert bob.leave_workspace(LeaveWorkspaceRequest(workspace_id=second)).success
    assert bob.user_info().default_workspace == 0


def test_the_last_administrator_hears_why(alice: Client) -> None:
    """P27."""
    with pytest.raises(ApiError) as refused:
        alice.leave_workspace(LeaveWorkspaceRequest(workspace_id=1, force=True))
    assert refused.value.problem.code == "LAST_ADMIN"
    assert "Give it to another member first" in refused.value.problem.detail


def test_an_empty_text_takes_away_and_what_is_left_out_stays(alice: Client) -> None:
    """None is not sent at all."""
    alice.update_user_info(UpdateUserInfoRequest(first_name="Alice", surname="Ng"))
    told = alice.update_user_info(UpdateUserInfoRequest(surname=""))
    assert (told.first_name.value, told.surname.value) == ("Alice", None)


@pytest.fixture
def mailed(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as opened:
        register(opened)
        yield opened


def signed_in_by_mail(mailed: World, password: str = PASSWORD) -> Client:
    client = connect(mailed)
    waiting = client.login(CAROL, password, device="desk", location="Riga")
    assert (waiting.requires_2fa, waiting.two_factor_method) == (True, "email")
    assert client.otp_validate(waiting.token_2fa, mailed.mail.newest_code()).token
    return client


def test_what_a_call_takes_is_shown_by_help(mailed: World) -> None:
    client = connect(mailed)
    assert list(inspect.signature(client.login).parameters) == ["email", "password", "device", "location"]
    assert list(inspect.signature(client.logout).parameters) == []
    assert inspect.getdoc(Client.login) == inspect.getdoc(client.login)


def test_an_authenticator_from_enrolment_to_recovery(mailed: World) -> None:
    client = signed_in_by_mail(mailed)
    offered = client.totp_enrol(PASSWORD)
    assert offered.otpauth_uri.startswith("otpauth://totp/")
    phone = Phone(mailed, offered.secret)
    confirmed = client.totp_confirm(phone.code)
    assert len(confirmed.recovery_codes) == 10
    assert not any(
        secret in repr((offered, confirmed)) for secret in [offered.secret, *confirmed.recovery_codes]
    )
    for code in (phone.next_code(), confirmed.recovery_codes[0]):
        waiting = connect(mailed)
        asked = waiting.login(CAROL, PASSWORD)
        assert asked.two_factor_method == "totp"
        assert waiting.otp_validate(asked.token_2fa, code).user_info.email == CAROL
    assert client.two_factor(password=PASSWORD, method="email").method == "email"
    assert client.two_factor(password=PASSWORD, enabled=False).enabled is False


def test_a_password_lost_and_a_password_changed(mailed: World) -> None:
    other = signed_in_by_mail(mailed)
    assert connect(mailed).request_password_reset(CAROL).success
    assert connect(mailed).reset_password(mailed_token(mailed), NEW_PASSWORD).success
    with pytest.raises(SignedOut):
        other.user_info()
    client, second = signed_in_by_mail(mailed, NEW_PASSWORD), signed_in_by_mail(mailed, NEW_PASSWORD)
    with pytest.raises(ApiError, match="password is wrong"):
        client.change_password("a guess", PASSWORD)
    assert client.change_password(NEW_PASSWORD, PASSWORD).success
    assert client.user_info().email == CAROL
    with pytest.raises(SignedOut):
        second.user_info()


def test_sessions_are_listed_and_ended(mailed: World) -> None:
    first, second, third = (signed_in_by_mail(mailed) for _ in range(3))
    sessions = first.sessions()
    assert [each.current for each in sessions] == [False, False, True]
    assert {(each.device.value, each.location.value) for each in sessions} == {("desk", "Riga")}
    assert first.revoke_session(sessions[0].session_id).ended == 1
    with pytest.raises(SignedOut):
        third.user_info()
    assert second.user_info().email == CAROL
    assert first.revoke_other_sessions().ended == 1
    assert len(first.sessions()) == 1


def test_a_change_that_two_make(world: World, alice: Client) -> None:
    world.member(1, "dora@example.org", "Administrator")
    dora = sdk(world, "dora@example.org")
    rule = SecondPersonRuleRequest(workspace_id=1, is_on=True, confirming_role_id=1)
    assert alice.update_second_person_rule(rule) == dora.second_person_rule(1)
    role = CreateRoleRequest(
        workspace_id=1, name="Clerk", transaction_limit="1", cycle_period="M", cycle_day=1
    )
    with pytest.raises(ApiError, match="SECOND_PERSON_NEEDED"):
        alice.create_role(role)
    change = alice.request_change(1, "/api/v1/create-role", role)
    assert dora.changes(1) == [change]
    applied = dora.confirm_change(ChangeRequest(workspace_id=1, change_id=change.change_id))
    assert applied.answer["Name"] == "Clerk"
    again = alice.request_change(1, "/api/v1/delete-role", DeleteRoleRequest(workspace_id=1, role_id=3))
    declined = dora.decline_change(DeclineChangeRequest(workspace_id=1, change_id=again.change_id))
    assert declined.status is ChangeStatus.DECLINED

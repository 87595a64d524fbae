"""The client's methods of the declared calls. Written by ``tools/client_calls.py``: do not edit."""

from datetime import datetime

from custody.client.flow import Sent, sends
from custody.schemas.address_book import (
    ADD_WHITELIST_ADDRESS,
    REMOVE_WHITELIST_ADDRESS,
    RENAME_WHITELIST_ADDRESS,
    WHITELIST_ADDRESSES,
    AddWhitelistAddressRequest,
    RemoveWhitelistAddressRequest,
    RenameWhitelistAddressRequest,
)
from custody.schemas.changes import (
    CHANGES,
    CONFIRM_CHANGE,
    DECLINE_CHANGE,
    REQUEST_CHANGE,
    SECOND_PERSON_RULE,
    UPDATE_SECOND_PERSON_RULE,
    ChangeRequest,
    DeclineChangeRequest,
    RequestChangeRequest,
    SecondPersonRuleRequest,
)
from custody.schemas.history import VAULT_COINS, VAULT_HISTORY, CoinState, MovementKind
from custody.schemas.identity_providers import (
    IDENTITY_LINKS,
    IDENTITY_PROVIDER,
    REMOVE_IDENTITY_PROVIDER,
    UNLINK_IDENTITY,
    UPDATE_IDENTITY_PROVIDER,
    UPDATE_IDENTITY_PROVIDER_SECRET,
    IdentityProviderSecretRequest,
    RemoveIdentityProviderRequest,
    UnlinkIdentityRequest,
    UpdateIdentityProviderRequest,
)
from custody.schemas.invitations import (
    ACCEPT_INVITE,
    INVITE_TO_WORKSPACE,
    OWN_INVITATIONS,
    REVOKE_INVITE,
    WORKSPACE_INVITATIONS,
    InviteToWorkspaceRequest,
    RevokeInviteRequest,
)
from custody.schemas.keys import (
    KEY_CHALLENGE,
    KEYS,
    REGISTER_KEY,
    REVOKE_KEY,
    SIGNING_PROFILE_ADDRESS,
    KeyChallengeRequest,
    RegisterKeyRequest,
    RevokeKeyRequest,
)
from custody.schemas.limits import (
    CHECK_USER_ROLE_LIMIT,
    CHECK_VAULT_LIMIT,
    MY_LIMITS,
    ROLE_LIMIT,
    UPDATE_ROLE_POLICIES,
    UPDATE_VAULT,
    VAULT_LIMITS,
    UpdateRolePoliciesRequest,
    UpdateVaultRequest,
)
from custody.schemas.mail_settings import MAIL_SETTINGS, UPDATE_MAIL_SETTINGS, UpdateMailSettingsRequest
from custody.schemas.members import (
    ADD_WORKSPACE_TO_USER,
    CHANGE_USER_ROLE,
    LEAVE_WORKSPACE,
    MEMBERS,
    REMOVE_USER_FROM_WORKSPACE,
    AddWorkspaceToUserRequest,
    ChangeUserRoleRequest,
    LeaveWorkspaceRequest,
    RemoveUserRequest,
)
from custody.schemas.onboarding import (
    ONBOARDING_REQUESTS,
    REVIEW_ONBOARDING_REQUEST,
    SUBMIT_ONBOARDING_REQUEST,
    OnboardingStatus,
    ReviewOnboardingRequest,
    SubmitOnboardingRequest,
)
from custody.schemas.purchases import PURCHASES
from custody.schemas.roles import (
    ADD_PERMISSION_TO_ROLE,
    CREATE_ROLE,
    DELETE_ROLE,
    REMOVE_PERMISSION_FROM_ROLE,
    ROLES,
    UPDATE_ROLE,
    AddPermissionRequest,
    CreateRoleRequest,
    DeleteRoleRequest,
    RemovePermissionRequest,
    UpdateRoleRequest,
)
from custody.schemas.service_accounts import (
    CREATE_SERVICE_ACCOUNT,
    ISSUE_SERVICE_SECRET,
    OWN_SERVICE_ACCOUNT,
    REVOKE_SERVICE_ACCOUNT,
    SERVICE_ACCOUNTS,
    UPDATE_SERVICE_ACCOUNT,
    CreateServiceAccountRequest,
    IssueServiceSecretRequest,
    ServiceAccountRequest,
    UpdateServiceAccountRequest,
)
from custody.schemas.users import (
    SET_DEFAULT_WORKSPACE,
    UPDATE_USER_INFO,
    USER_INFO,
    SetDefaultWorkspaceRequest,
    UpdateUserInfoRequest,
)
from custody.schemas.vaults import (
    CREATE_WALLET,
    FREEZE_VAULT,
    LIST_WALLETS,
    REPLACE_VAULT,
    UNFREEZE_VAULT,
    UPDATE_VAULT_CONTROLS,
    VAULT_CONTROLS,
    VAULT_EXPORT,
    VAULT_NAMES,
    CreateWalletRequest,
    FreezeVaultRequest,
    ReplaceVaultRequest,
    UnfreezeVaultRequest,
    UpdateVaultControlsRequest,
)
from custody.schemas.webhooks import (
    CREATE_WEBHOOK,
    DELETE_WEBHOOK,
    REDELIVER_WEBHOOK,
    TEST_WEBHOOK,
    UPDATE_WEBHOOK,
    WEBHOOK_DELIVERIES,
    WEBHOOKS,
    CreateWebhookRequest,
    RedeliverWebhookRequest,
    UpdateWebhookRequest,
    WebhookRequest,
)
from custody.schemas.workspaces import (
    CREATE_WORKSPACE,
    UPDATE_WORKSPACE,
    CreateWorkspaceRequest,
    UpdateWorkspaceRequest,
)


class UserCalls:
    @sends(USER_INFO)
    @staticmethod
    def user_info() -> Sent:
        return Sent()

    @sends(UPDATE_USER_INFO)
    @staticmethod
    def update_user_info(body: UpdateUserInfoRequest) -> Sent:
        return Sent(body)

    @sends(SET_DEFAULT_WORKSPACE)
    @staticmethod
    def set_default_workspace(body: SetDefaultWorkspaceRequest) -> Sent:
        return Sent(body)


class MemberCalls:
    @sends(MEMBERS)
    @staticmethod
    def members(workspace_id: int) -> Sent:
        return Sent(query={"workspace_id": workspace_id})

    @sends(ADD_WORKSPACE_TO_USER)
    @staticmethod
    def add_workspace_to_user(body: AddWorkspaceToUserRequest, *, idempotency_key: str | None = None) -> Sent:
        return Sent(body, key=idempotency_key)

    @sends(CHANGE_USER_ROLE)
    @staticmethod
    def change_user_role(body: ChangeUserRoleRequest) -> Sent:
        return Sent(body)

    @sends(REMOVE_USER_FROM_WORKSPACE)
    @staticmethod
    def remove_user_from_workspace(body: RemoveUserRequest) -> Sent:
        return Sent(body)

    @sends(LEAVE_WORKSPACE)
    @staticmethod
    def leave_workspace(body: LeaveWorkspaceRequest) -> Sent:
        return Sent(body)


class WorkspaceCalls:
    @sends(CREATE_WORKSPACE)
    @staticmethod
    def create_workspace(body: CreateWorkspaceRequest, *, idempotency_key: str | None = None) -> Sent:
        return Sent(body, key=idempotency_key)

    @sends(UPDATE_WORKSPACE)
    @staticmethod
    def update_workspace(body: UpdateWorkspaceRequest) -> Sent:
        return Sent(body)


class RoleCalls:
    @sends(ROLES)
    @staticmethod
    def roles(workspace_id: int) -> Sent:
        return Sent(query={"workspace_id": workspace_id})

    @sends(CREATE_ROLE)
    @staticmethod
    def create_role(body: CreateRoleRequest, *, idempotency_key: str | None = None) -> Sent:
        return Sent(body, key=idempotency_key)

    @sends(UPDATE_ROLE)
    @staticmethod
    def update_role(body: UpdateRoleRequest) -> Sent:
        return Sent(body)

    @sends(DELETE_ROLE)
    @staticmethod
    def delete_role(body: DeleteRoleRequest) -> Sent:
        return Sent(body)

    @sends(ADD_PERMISSION_TO_ROLE)
    @staticmethod
    def add_permission_to_role(body: AddPermissionRequest) -> Sent:
        return Sent(body)

    @sends(REMOVE_PERMISSION_FROM_ROLE)
    @staticmethod
    def remove_permission_from_role(body: RemovePermissionRequest) -> Sent:
        return Sent(body)


class MailSettingCalls:
    @sends(MAIL_SETTINGS)
    @staticmethod
    def mail_settings() -> Sent:
        return Sent()

    @sends(UPDATE_MAIL_SETTINGS)
    @staticmethod
    def update_mail_settings(body: UpdateMailSettingsRequest) -> Sent:
        return Sent(body)


class LimitCalls:
    @sends(UPDATE_ROLE_POLICIES)
    @staticmethod
    def update_role_policies(body: UpdateRolePoliciesRequest) -> Sent:
        return Sent(body)

    @sends(ROLE_LIMIT)
    @staticmethod
    def role_limit(workspace_id: int, role_id: int) -> Sent:
        return Sent(query={"workspace_id": workspace_id, "role_id": role_id})

    @sends(CHECK_USER_ROLE_LIMIT)
    @staticmethod
    def check_user_role_limit(workspace_id: int, role_id: int, uuid: int, amount_to_check: str) -> Sent:
        return Sent(
            query={
                "workspace_id": workspace_id,
                "role_id": role_id,
                "uuid": uuid,
                "amount_to_check": amount_to_check,
            }
        )

    @sends(MY_LIMITS)
    @staticmethod
    def my_limits(workspace_id: int) -> Sent:
        return Sent(query={"workspace_id": workspace_id})

    @sends(UPDATE_VAULT)
    @staticmethod
    def update_vault(body: UpdateVaultRequest) -> Sent:
        return Sent(body)

    @sends(VAULT_LIMITS)
    @staticmethod
    def vault_limits(workspace_id: int, vault_id: str) -> Sent:
        return Sent(query={"workspace_id": workspace_id, "vault_id": vault_id})

    @sends(CHECK_VAULT_LIMIT)
    @staticmethod
    def check_vault_limit(workspace_id: int, vault_id: str, amount_to_check: str) -> Sent:
        return Sent(
            query={"workspace_id": workspace_id, "vault_id": vault_id, "amount_to_check": amount_to_check}
        )


class AddressBookCalls:
    @sends(WHITELIST_ADDRESSES)
    @staticmethod
    def whitelist_addresses(
        workspace_id: int,
        *,
        search: str | None = None,
        names: list[str] | None = None,
        addresses: list[str] | None = None,
        leads_to: str | None = None,
        after: int | None = None,
        limit: int | None = None,
    ) -> Sent:
        return Sent(
            query={
                "workspace_id": workspace_id,
                "search": search,
                "names": names,
                "addresses": addresses,
                "leads_to": leads_to,
                "after": after,
                "limit": limit,
            }
        )

    @sends(ADD_WHITELIST_ADDRESS)
    @staticmethod
    def add_whitelist_address(
        body: AddWhitelistAddressRequest, *, idempotency_key: str | None = None
    ) -> Sent:
        return Sent(body, key=idempotency_key)

    @sends(RENAME_WHITELIST_ADDRESS)
    @staticmethod
    def rename_whitelist_address(body: RenameWhitelistAddressRequest) -> Sent:
        return Sent(body)

    @sends(REMOVE_WHITELIST_ADDRESS)
    @staticmethod
    def remove_whitelist_address(body: RemoveWhitelistAddressRequest) -> Sent:
        return Sent(body)


class InvitationCalls:
    @sends(INVITE_TO_WORKSPACE)
    @staticmethod
    def invite_to_workspace(body: InviteToWorkspaceRequest, *, idempotency_key: str | None = None) -> Sent:
        return Sent(body, key=idempotency_key)

    @sends(WORKSPACE_INVITATIONS)
    @staticmethod
    def workspace_invitations(workspace_id: int) -> Sent:
        return Sent(query={"workspace_id": workspace_id})

    @sends(OWN_INVITATIONS)
    @staticmethod
    def own_invitations() -> Sent:
        return Sent()

    @sends(ACCEPT_INVITE)
    @staticmethod
    def accept_invite(invite_id: str, *, accept: bool) -> Sent:
        return Sent(query={"invite_id": invite_id, "accept": accept})

    @sends(REVOKE_INVITE)
    @staticmethod
    def revoke_invite(body: RevokeInviteRequest) -> Sent:
        return Sent(body)


class OnboardingCalls:
    @sends(SUBMIT_ONBOARDING_REQUEST)
    @staticmethod
    def submit_onboarding_request(
        body: SubmitOnboardingRequest, *, idempotency_key: str | None = None
    ) -> Sent:
        return Sent(body, key=idempotency_key)

    @sends(ONBOARDING_REQUESTS)
    @staticmethod
    def onboarding_requests(
        *, status: OnboardingStatus | None = None, after: int | None = None, limit: int | None = None
    ) -> Sent:
        return Sent(query={"status": status, "after": after, "limit": limit})

    @sends(REVIEW_ONBOARDING_REQUEST)
    @staticmethod
    def review_onboarding_request(
        uid: int, body: ReviewOnboardingRequest, *, idempotency_key: str | None = None
    ) -> Sent:
        return Sent(body, path={"uid": uid}, key=idempotency_key)


class ServiceAccountCalls:
    @sends(SERVICE_ACCOUNTS)
    @staticmethod
    def service_accounts(workspace_id: int) -> Sent:
        return Sent(query={"workspace_id": workspace_id})

    @sends(OWN_SERVICE_ACCOUNT)
    @staticmethod
    def own_service_account() -> Sent:
        return Sent()

    @sends(CREATE_SERVICE_ACCOUNT)
    @staticmethod
    def create_service_account(
        body: CreateServiceAccountRequest, *, idempotency_key: str | None = None
    ) -> Sent:
        return Sent(body, key=idempotency_key)

    @sends(UPDATE_SERVICE_ACCOUNT)
    @staticmethod
    def update_service_account(body: UpdateServiceAccountRequest) -> Sent:
        return Sent(body)

    @sends(ISSUE_SERVICE_SECRET)
    @staticmethod
    def issue_service_secret(body: IssueServiceSecretRequest) -> Sent:
        return Sent(body)

    @sends(REVOKE_SERVICE_ACCOUNT)
    @staticmethod
    def revoke_service_account(body: ServiceAccountRequest) -> Sent:
        return Sent(body)


class HistoryCalls:
    @sends(VAULT_HISTORY)
    @staticmethod
    def vault_history(
        workspace_id: int,
        vault_id: str,
        *,
        order: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        kind: MovementKind | None = None,
        status: str | None = None,
        from_time: datetime | None = None,
        to_time: datetime | None = None,
        min_sats: int | None = None,
        max_sats: int | None = None,
        address: str | None = None,
        label: str | None = None,
        txid: str | None = None,
        with_replaced: bool | None = None,
    ) -> Sent:
        return Sent(
            query={
                "workspace_id": workspace_id,
                "vault_id": vault_id,
                "order": order,
                "cursor": cursor,
                "limit": limit,
                "kind": kind,
                "status": status,
                "from_time": from_time,
                "to_time": to_time,
                "min_sats": min_sats,
                "max_sats": max_sats,
                "address": address,
                "label": label,
                "txid": txid,
                "with_replaced": with_replaced,
            }
        )

    @sends(VAULT_COINS)
    @staticmethod
    def vault_coins(
        workspace_id: int,
        vault_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        state: CoinState | None = None,
        min_sats: int | None = None,
        max_sats: int | None = None,
        address: str | None = None,
    ) -> Sent:
        return Sent(
            query={
                "workspace_id": workspace_id,
                "vault_id": vault_id,
                "cursor": cursor,
                "limit": limit,
                "state": state,
                "min_sats": min_sats,
                "max_sats": max_sats,
                "address": address,
            }
        )


class VaultCalls:
    @sends(CREATE_WALLET)
    @staticmethod
    def create_wallet(body: CreateWalletRequest, *, idempotency_key: str | None = None) -> Sent:
        return Sent(body, key=idempotency_key)

    @sends(LIST_WALLETS)
    @staticmethod
    def list_wallets(
        workspace_id: int,
        *,
        vault_id: str | None = None,
        name: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> Sent:
        return Sent(
            query={
                "workspace_id": workspace_id,
                "vault_id": vault_id,
                "name": name,
                "after": after,
                "limit": limit,
            }
        )

    @sends(VAULT_NAMES)
    @staticmethod
    def vault_names(
        workspace_id: int,
        *,
        vault_id: str | None = None,
        name: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> Sent:
        return Sent(
            query={
                "workspace_id": workspace_id,
                "vault_id": vault_id,
                "name": name,
                "after": after,
                "limit": limit,
            }
        )

    @sends(VAULT_EXPORT)
    @staticmethod
    def vault_export(workspace_id: int, vault_id: str, *, format: str | None = None) -> Sent:
        return Sent(query={"workspace_id": workspace_id, "vault_id": vault_id, "format": format})

    @sends(VAULT_CONTROLS)
    @staticmethod
    def vault_controls(workspace_id: int, vault_id: str) -> Sent:
        return Sent(query={"workspace_id": workspace_id, "vault_id": vault_id})

    @sends(UPDATE_VAULT_CONTROLS)
    @staticmethod
    def update_vault_controls(body: UpdateVaultControlsRequest) -> Sent:
        return Sent(body)

    @sends(REPLACE_VAULT)
    @staticmethod
    def replace_vault(body: ReplaceVaultRequest) -> Sent:
        return Sent(body)

    @sends(FREEZE_VAULT)
    @staticmethod
    def freeze_vault(body: FreezeVaultRequest) -> Sent:
        return Sent(body)

    @sends(UNFREEZE_VAULT)
    @staticmethod
    def unfreeze_vault(body: UnfreezeVaultRequest) -> Sent:
        return Sent(body)


class KeyCalls:
    @sends(KEY_CHALLENGE)
    @staticmethod
    def key_challenge(body: KeyChallengeRequest) -> Sent:
        return Sent(body)

    @sends(REGISTER_KEY)
    @staticmethod
    def register_key(body: RegisterKeyRequest, *, idempotency_key: str | None = None) -> Sent:
        return Sent(body, key=idempotency_key)

    @sends(REVOKE_KEY)
    @staticmethod
    def revoke_key(body: RevokeKeyRequest) -> Sent:
        return Sent(body)

    @sends(KEYS)
    @staticmethod
    def keys() -> Sent:
        return Sent()

    @sends(SIGNING_PROFILE_ADDRESS)
    @staticmethod
    def signing_profile_address(network: str, *, key_id: str | None = None) -> Sent:
        return Sent(query={"network": network, "key_id": key_id})


class PurchaseCalls:
    @sends(PURCHASES)
    @staticmethod
    def purchases(*, after: str | None = None, limit: int | None = None) -> Sent:
        return Sent(query={"after": after, "limit": limit})


class WebhookCalls:
    @sends(CREATE_WEBHOOK)
    @staticmethod
    def create_webhook(body: CreateWebhookRequest) -> Sent:
        return Sent(body)

    @sends(WEBHOOKS)
    @staticmethod
    def webhooks(workspace_id: int) -> Sent:
        return Sent(query={"workspace_id": workspace_id})

    @sends(UPDATE_WEBHOOK)
    @staticmethod
    def update_webhook(body: UpdateWebhookRequest) -> Sent:
        return Sent(body)

    @sends(DELETE_WEBHOOK)
    @staticmethod
    def delete_webhook(body: WebhookRequest) -> Sent:
        return Sent(body)

    @sends(WEBHOOK_DELIVERIES)
    @staticmethod
    def webhook_deliveries(
        workspace_id: int, webhook_id: str, *, after: str | None = None, limit: int | None = None
    ) -> Sent:
        return Sent(
            query={"workspace_id": workspace_id, "webhook_id": webhook_id, "after": after, "limit": limit}
        )

    @sends(REDELIVER_WEBHOOK)
    @staticmethod
    def redeliver_webhook(body: RedeliverWebhookRequest) -> Sent:
        return Sent(body)

    @sends(TEST_WEBHOOK)
    @staticmethod
    def test_webhook(body: WebhookRequest) -> Sent:
        return Sent(body)


class ChangeCalls:
    @sends(SECOND_PERSON_RULE)
    @staticmethod
    def second_person_rule(workspace_id: int) -> Sent:
        return Sent(query={"workspace_id": workspace_id})

    @sends(UPDATE_SECOND_PERSON_RULE)
    @staticmethod
    def update_second_person_rule(body: SecondPersonRuleRequest) -> Sent:
        return Sent(body)

    @sends(REQUEST_CHANGE)
    @staticmethod
    def request_change(body: RequestChangeRequest) -> Sent:
        return Sent(body)

    @sends(CHANGES)
    @staticmethod
    def changes(workspace_id: int, *, change_id: str | None = None) -> Sent:
        return Sent(query={"workspace_id": workspace_id, "change_id": change_id})

    @sends(CONFIRM_CHANGE)
    @staticmethod
    def confirm_change(body: ChangeRequest) -> Sent:
        return Sent(body)

    @sends(DECLINE_CHANGE)
    @staticmethod
    def decline_change(body: DeclineChangeRequest) -> Sent:
        return Sent(body)


class IdentityProviderCalls:
    @sends(IDENTITY_PROVIDER)
    @staticmethod
    def identity_provider(workspace_id: int) -> Sent:
        return Sent(query={"workspace_id": workspace_id})

    @sends(UPDATE_IDENTITY_PROVIDER)
    @staticmethod
    def update_identity_provider(body: UpdateIdentityProviderRequest) -> Sent:
        return Sent(body)

    @sends(UPDATE_IDENTITY_PROVIDER_SECRET)
    @staticmethod
    def update_identity_provider_secret(body: IdentityProviderSecretRequest) -> Sent:
        return Sent(body)

    @sends(REMOVE_IDENTITY_PROVIDER)
    @staticmethod
    def remove_identity_provider(body: RemoveIdentityProviderRequest) -> Sent:
        return Sent(body)

    @sends(IDENTITY_LINKS)
    @staticmethod
    def identity_links(workspace_id: int) -> Sent:
        return Sent(query={"workspace_id": workspace_id})

    @sends(UNLINK_IDENTITY)
    @staticmethod
    def unlink_identity(body: UnlinkIdentityRequest) -> Sent:
        return Sent(body)

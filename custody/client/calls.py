"""The client's methods of the declared calls. Written by ``tools/client_calls.py``: do not edit."""

from datetime import date, datetime

from custody.client.flow import Sent, keyed, nothing, of_vault, of_workspace, posts, sends
from custody.schemas.address_book import (
    ADD_WHITELIST_ADDRESS,
    REMOVE_WHITELIST_ADDRESS,
    RENAME_WHITELIST_ADDRESS,
    WHITELIST_ADDRESSES,
)
from custody.schemas.asset_tokens import (
    ADD_TO_CONTRACT_WHITELIST,
    CALL_CONTRACT,
    CONTRACT,
    CONTRACT_CALLS,
    CONTRACTS,
    CREATE_TOKEN,
    PREVIEW_CALL,
    REMOVE_FROM_CONTRACT_WHITELIST,
    RESUBMIT_CONTRACT_CALL,
    TOKEN_HISTORY,
    TOKENS,
    WORKSPACE_CONTRACTS,
    WORKSPACE_WHITELIST,
)
from custody.schemas.auth import (
    CHANGE_PASSWORD,
    LOGIN,
    LOGOUT,
    OTP_VALIDATE,
    REGISTER,
    REQUEST_PASSWORD_RESET,
    RESET_PASSWORD,
    REVOKE_SESSIONS,
    SESSIONS,
    TOTP_CONFIRM,
    TOTP_ENROL,
    TWO_FACTOR,
)
from custody.schemas.changes import (
    CHANGES,
    CONFIRM_CHANGE,
    DECLINE_CHANGE,
    REQUEST_CHANGE,
    SECOND_PERSON_RULE,
    UPDATE_SECOND_PERSON_RULE,
)
from custody.schemas.history import VAULT_COINS, VAULT_HISTORY, CoinState, MovementKind
from custody.schemas.identity_providers import (
    IDENTITY_LINKS,
    IDENTITY_PROVIDER,
    REMOVE_IDENTITY_PROVIDER,
    UNLINK_IDENTITY,
    UPDATE_IDENTITY_PROVIDER,
    UPDATE_IDENTITY_PROVIDER_SECRET,
)
from custody.schemas.invitations import (
    ACCEPT_INVITE,
    INVITE_TO_WORKSPACE,
    OWN_INVITATIONS,
    REVOKE_INVITE,
    WORKSPACE_INVITATIONS,
)
from custody.schemas.keys import KEY_CHALLENGE, KEYS, REGISTER_KEY, REVOKE_KEY, SIGNING_PROFILE_ADDRESS
from custody.schemas.limits import (
    CHECK_USER_ROLE_LIMIT,
    CHECK_VAULT_LIMIT,
    MY_LIMITS,
    ROLE_LIMIT,
    UPDATE_ROLE_POLICIES,
    UPDATE_VAULT,
    VAULT_LIMITS,
)
from custody.schemas.logs import EXPORT_AUDIT_LOGS, LOGS
from custody.schemas.members import (
    ADD_WORKSPACE_TO_USER,
    CHANGE_USER_ROLE,
    LEAVE_WORKSPACE,
    MEMBERS,
    REMOVE_USER_FROM_WORKSPACE,
)
from custody.schemas.onboarding import (
    ONBOARDING_REQUESTS,
    REVIEW_ONBOARDING_REQUEST,
    SUBMIT_ONBOARDING_REQUEST,
    OnboardingStatus,
    ReviewOnboardingRequest,
)
from custody.schemas.proofs import CREATE_PROOF, PROOF
from custody.schemas.proposals import CANCEL_PSBT, CREATE_PSBT, PREVIEW_PSBT, SIGN_PSBT
from custody.schemas.purchases import PURCHASES
from custody.schemas.roles import (
    ADD_PERMISSION_TO_ROLE,
    CREATE_ROLE,
    DELETE_ROLE,
    REMOVE_PERMISSION_FROM_ROLE,
    ROLES,
    UPDATE_ROLE,
)
from custody.schemas.sending import FORWARD_TO_VAULT, MAX_SEND, PREVIEW_FORWARD, SWEEP_VAULT
from custody.schemas.service_accounts import (
    CREATE_SERVICE_ACCOUNT,
    ISSUE_SERVICE_SECRET,
    OWN_SERVICE_ACCOUNT,
    REVOKE_SERVICE_ACCOUNT,
    SERVICE_ACCOUNTS,
    UPDATE_SERVICE_ACCOUNT,
)
from custody.schemas.users import (
    CREATE_WORKSPACE,
    MAIL_SETTINGS,
    SET_DEFAULT_WORKSPACE,
    UPDATE_MAIL_SETTINGS,
    UPDATE_USER_INFO,
    UPDATE_WORKSPACE,
    USER_INFO,
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
)
from custody.schemas.webhooks import (
    CREATE_WEBHOOK,
    DELETE_WEBHOOK,
    REDELIVER_WEBHOOK,
    TEST_WEBHOOK,
    UPDATE_WEBHOOK,
    WEBHOOK_DELIVERIES,
    WEBHOOKS,
)


class Calls:
    register = posts(REGISTER)
    login = posts(LOGIN)
    otp_validate = posts(OTP_VALIDATE)
    logout = sends(LOGOUT)(nothing)
    request_password_reset = posts(REQUEST_PASSWORD_RESET)
    reset_password = posts(RESET_PASSWORD)
    change_password = posts(CHANGE_PASSWORD)
    two_factor = posts(TWO_FACTOR)
    totp_enrol = posts(TOTP_ENROL)
    totp_confirm = posts(TOTP_CONFIRM)
    sessions = sends(SESSIONS)(nothing)
    revoke_sessions = posts(REVOKE_SESSIONS)
    user_info = sends(USER_INFO)(nothing)
    update_user_info = posts(UPDATE_USER_INFO)
    set_default_workspace = posts(SET_DEFAULT_WORKSPACE)
    mail_settings = sends(MAIL_SETTINGS)(nothing)
    update_mail_settings = posts(UPDATE_MAIL_SETTINGS)
    create_workspace = sends(CREATE_WORKSPACE)(keyed(CREATE_WORKSPACE))
    update_workspace = posts(UPDATE_WORKSPACE)
    members = sends(MEMBERS)(of_workspace)
    add_workspace_to_user = sends(ADD_WORKSPACE_TO_USER)(keyed(ADD_WORKSPACE_TO_USER))
    change_user_role = posts(CHANGE_USER_ROLE)
    remove_user_from_workspace = posts(REMOVE_USER_FROM_WORKSPACE)
    leave_workspace = posts(LEAVE_WORKSPACE)
    roles = sends(ROLES)(of_workspace)
    create_role = sends(CREATE_ROLE)(keyed(CREATE_ROLE))
    update_role = posts(UPDATE_ROLE)
    delete_role = posts(DELETE_ROLE)
    add_permission_to_role = posts(ADD_PERMISSION_TO_ROLE)
    remove_permission_from_role = posts(REMOVE_PERMISSION_FROM_ROLE)
    key_challenge = posts(KEY_CHALLENGE)
    register_key = sends(REGISTER_KEY)(keyed(REGISTER_KEY))
    revoke_key = posts(REVOKE_KEY)
    keys = sends(KEYS)(nothing)

    @sends(SIGNING_PROFILE_ADDRESS)
    @staticmethod
    def signing_profile_address(network: str, *, key_id: str | None = None) -> None: ...

    create_wallet = sends(CREATE_WALLET)(keyed(CREATE_WALLET))

    @sends(LIST_WALLETS)
    @staticmethod
    def list_wallets(
        workspace_id: int,
        *,
        vault_id: str | None = None,
        name: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> None: ...

    @sends(VAULT_NAMES)
    @staticmethod
    def vault_names(
        workspace_id: int,
        *,
        vault_id: str | None = None,
        name: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> None: ...

    @sends(VAULT_EXPORT)
    @staticmethod
    def vault_export(workspace_id: int, vault_id: str, *, format: str | None = None) -> None: ...

    vault_controls = sends(VAULT_CONTROLS)(of_vault)
    update_vault_controls = posts(UPDATE_VAULT_CONTROLS)
    replace_vault = posts(REPLACE_VAULT)
    freeze_vault = posts(FREEZE_VAULT)
    unfreeze_vault = posts(UNFREEZE_VAULT)
    update_role_policies = posts(UPDATE_ROLE_POLICIES)

    @sends(ROLE_LIMIT)
    @staticmethod
    def role_limit(workspace_id: int, role_id: int) -> None: ...

    @sends(CHECK_USER_ROLE_LIMIT)
    @staticmethod
    def check_user_role_limit(workspace_id: int, role_id: int, uuid: int, amount_to_check: str) -> None: ...

    my_limits = sends(MY_LIMITS)(of_workspace)
    update_vault = posts(UPDATE_VAULT)
    vault_limits = sends(VAULT_LIMITS)(of_vault)

    @sends(CHECK_VAULT_LIMIT)
    @staticmethod
    def check_vault_limit(workspace_id: int, vault_id: str, amount_to_check: str) -> None: ...

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
    ) -> None: ...

    add_whitelist_address = sends(ADD_WHITELIST_ADDRESS)(keyed(ADD_WHITELIST_ADDRESS))
    rename_whitelist_address = posts(RENAME_WHITELIST_ADDRESS)
    remove_whitelist_address = posts(REMOVE_WHITELIST_ADDRESS)
    invite_to_workspace = sends(INVITE_TO_WORKSPACE)(keyed(INVITE_TO_WORKSPACE))
    workspace_invitations = sends(WORKSPACE_INVITATIONS)(of_workspace)
    own_invitations = sends(OWN_INVITATIONS)(nothing)

    @sends(ACCEPT_INVITE)
    @staticmethod
    def accept_invite(invite_id: str, *, accept: bool) -> None: ...

    revoke_invite = posts(REVOKE_INVITE)
    submit_onboarding_request = sends(SUBMIT_ONBOARDING_REQUEST)(keyed(SUBMIT_ONBOARDING_REQUEST))

    @sends(ONBOARDING_REQUESTS)
    @staticmethod
    def onboarding_requests(
        *, status: OnboardingStatus | None = None, after: int | None = None, limit: int | None = None
    ) -> None: ...

    @sends(REVIEW_ONBOARDING_REQUEST)
    @staticmethod
    def review_onboarding_request(
        uid: int, body: ReviewOnboardingRequest, *, idempotency_key: str | None = None
    ) -> Sent:
        return Sent(body, path={"uid": uid}, key=idempotency_key)

    create_psbt = sends(CREATE_PSBT)(keyed(CREATE_PSBT))
    preview_psbt = posts(PREVIEW_PSBT)
    cancel_psbt = posts(CANCEL_PSBT)
    sign_psbt = posts(SIGN_PSBT)
    create_proof = sends(CREATE_PROOF)(keyed(CREATE_PROOF))

    @sends(PROOF)
    @staticmethod
    def proof(workspace_id: int, psbt_id: str) -> None: ...

    @sends(MAX_SEND)
    @staticmethod
    def max_send(
        workspace_id: int,
        wallet_id: str,
        recipients: list[str],
        *,
        op_return: str | None = None,
        priority: str | None = None,
        fee_rate: str | None = None,
    ) -> None: ...

    sweep_vault = posts(SWEEP_VAULT)
    forward_to_vault = sends(FORWARD_TO_VAULT)(keyed(FORWARD_TO_VAULT))
    preview_forward = posts(PREVIEW_FORWARD)

    @sends(CONTRACT)
    @staticmethod
    def contract(workspace_id: int, contract_uid: int) -> None: ...

    @sends(CONTRACTS)
    @staticmethod
    def contracts(
        workspace_id: int, vault_id: str, *, after: int | None = None, limit: int | None = None
    ) -> None: ...

    @sends(WORKSPACE_CONTRACTS)
    @staticmethod
    def workspace_contracts(
        workspace_id: int, *, after: int | None = None, limit: int | None = None
    ) -> None: ...

    @sends(CONTRACT_CALLS)
    @staticmethod
    def contract_calls(
        workspace_id: int,
        *,
        contract_uid: int | None = None,
        vault_id: str | None = None,
        order: str | None = None,
        after: int | None = None,
        limit: int | None = None,
    ) -> None: ...

    tokens = sends(TOKENS)(of_vault)

    @sends(WORKSPACE_WHITELIST)
    @staticmethod
    def workspace_whitelist(workspace_id: int, *, contract_uid: int | None = None) -> None: ...

    resubmit_contract_call = posts(RESUBMIT_CONTRACT_CALL)
    create_token = sends(CREATE_TOKEN)(keyed(CREATE_TOKEN))
    call_contract = sends(CALL_CONTRACT)(keyed(CALL_CONTRACT))
    preview_call = posts(PREVIEW_CALL)
    add_to_contract_whitelist = sends(ADD_TO_CONTRACT_WHITELIST)(keyed(ADD_TO_CONTRACT_WHITELIST))
    remove_from_contract_whitelist = sends(REMOVE_FROM_CONTRACT_WHITELIST)(
        keyed(REMOVE_FROM_CONTRACT_WHITELIST)
    )

    @sends(TOKEN_HISTORY)
    @staticmethod
    def token_history(
        workspace_id: int,
        vault_id: str,
        *,
        contract_uid: int | None = None,
        order: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> None: ...

    @sends(LOGS)
    @staticmethod
    def logs(
        org_uid: int,
        workspace_uid: int,
        *,
        from_day: date | None = None,
        to_day: date | None = None,
        category: str | None = None,
        user_uuid: int | None = None,
        page: int | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
        order: str | None = None,
    ) -> None: ...

    @sends(EXPORT_AUDIT_LOGS)
    @staticmethod
    def export_audit_logs(
        org_uid: int,
        workspace_uid: int,
        *,
        from_day: date | None = None,
        to_day: date | None = None,
        category: str | None = None,
        user_uuid: int | None = None,
    ) -> None: ...

    @sends(PURCHASES)
    @staticmethod
    def purchases(*, after: str | None = None, limit: int | None = None) -> None: ...

    create_webhook = posts(CREATE_WEBHOOK)
    webhooks = sends(WEBHOOKS)(of_workspace)
    update_webhook = posts(UPDATE_WEBHOOK)
    delete_webhook = posts(DELETE_WEBHOOK)

    @sends(WEBHOOK_DELIVERIES)
    @staticmethod
    def webhook_deliveries(
        workspace_id: int, webhook_id: str, *, after: str | None = None, limit: int | None = None
    ) -> None: ...

    redeliver_webhook = posts(REDELIVER_WEBHOOK)
    test_webhook = posts(TEST_WEBHOOK)
    second_person_rule = sends(SECOND_PERSON_RULE)(of_workspace)
    update_second_person_rule = posts(UPDATE_SECOND_PERSON_RULE)
    request_change = posts(REQUEST_CHANGE)

    @sends(CHANGES)
    @staticmethod
    def changes(workspace_id: int, *, change_id: str | None = None) -> None: ...

    confirm_change = posts(CONFIRM_CHANGE)
    decline_change = posts(DECLINE_CHANGE)
    service_accounts = sends(SERVICE_ACCOUNTS)(of_workspace)
    own_service_account = sends(OWN_SERVICE_ACCOUNT)(nothing)
    create_service_account = sends(CREATE_SERVICE_ACCOUNT)(keyed(CREATE_SERVICE_ACCOUNT))
    update_service_account = posts(UPDATE_SERVICE_ACCOUNT)
    issue_service_secret = posts(ISSUE_SERVICE_SECRET)
    revoke_service_account = posts(REVOKE_SERVICE_ACCOUNT)

    @sends(VAULT_HISTORY)
    @staticmethod
    def vault_history(
        workspace_id: int,
        vault_id: str,
        *,
        limit: int | None = None,
        min_sats: int | None = None,
        max_sats: int | None = None,
        address: str | None = None,
        order: str | None = None,
        cursor: str | None = None,
        kind: MovementKind | None = None,
        status: str | None = None,
        from_time: datetime | None = None,
        to_time: datetime | None = None,
        label: str | None = None,
        txid: str | None = None,
        with_replaced: bool | None = None,
    ) -> None: ...

    @sends(VAULT_COINS)
    @staticmethod
    def vault_coins(
        workspace_id: int,
        vault_id: str,
        *,
        limit: int | None = None,
        min_sats: int | None = None,
        max_sats: int | None = None,
        address: str | None = None,
        cursor: str | None = None,
        state: CoinState | None = None,
    ) -> None: ...

    identity_provider = sends(IDENTITY_PROVIDER)(of_workspace)
    update_identity_provider = posts(UPDATE_IDENTITY_PROVIDER)
    update_identity_provider_secret = posts(UPDATE_IDENTITY_PROVIDER_SECRET)
    remove_identity_provider = posts(REMOVE_IDENTITY_PROVIDER)
    identity_links = sends(IDENTITY_LINKS)(of_workspace)
    unlink_identity = posts(UNLINK_IDENTITY)

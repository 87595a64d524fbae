"""The client's methods of the declared calls. Written by ``tools/client_calls.py``: do not edit."""

from custody.client.flow import Sent, keyed, nothing, of_vault, of_workspace, posts, sends
from custody.schemas import address_book as _address_book
from custody.schemas import asset_tokens as _asset_tokens
from custody.schemas import auth as _auth
from custody.schemas import changes as _changes
from custody.schemas import history as _history
from custody.schemas import identity_providers as _identity_providers
from custody.schemas import keys as _keys
from custody.schemas import limits as _limits
from custody.schemas import logs as _logs
from custody.schemas import onboarding as _onboarding
from custody.schemas import proofs as _proofs
from custody.schemas import proposals as _proposals
from custody.schemas import purchases as _purchases
from custody.schemas import roles as _roles
from custody.schemas import sending as _sending
from custody.schemas import service_accounts as _service_accounts
from custody.schemas import users as _users
from custody.schemas import vaults as _vaults
from custody.schemas import webhooks as _webhooks


class Calls:
    register = posts(_auth.REGISTER)
    login = posts(_auth.LOGIN)
    otp_validate = posts(_auth.OTP_VALIDATE)
    logout = sends(_auth.LOGOUT)(nothing)
    request_password_reset = posts(_auth.REQUEST_PASSWORD_RESET)
    reset_password = posts(_auth.RESET_PASSWORD)
    change_password = posts(_auth.CHANGE_PASSWORD)
    two_factor = posts(_auth.TWO_FACTOR)
    totp_enrol = posts(_auth.TOTP_ENROL)
    totp_confirm = posts(_auth.TOTP_CONFIRM)
    sessions = sends(_auth.SESSIONS)(nothing)
    revoke_sessions = posts(_auth.REVOKE_SESSIONS)
    user_info = sends(_users.USER_INFO)(nothing)
    update_user_info = posts(_users.UPDATE_USER_INFO)
    set_default_workspace = posts(_users.SET_DEFAULT_WORKSPACE)
    mail_settings = sends(_users.MAIL_SETTINGS)(nothing)
    update_mail_settings = posts(_users.UPDATE_MAIL_SETTINGS)
    create_workspace = sends(_users.CREATE_WORKSPACE)(keyed(_users.CREATE_WORKSPACE))
    update_workspace = posts(_users.UPDATE_WORKSPACE)
    members = sends(_users.MEMBERS)(of_workspace)
    add_workspace_to_user = sends(_users.ADD_WORKSPACE_TO_USER)(keyed(_users.ADD_WORKSPACE_TO_USER))
    change_user_role = posts(_users.CHANGE_USER_ROLE)
    remove_user_from_workspace = posts(_users.REMOVE_USER_FROM_WORKSPACE)
    leave_workspace = posts(_users.LEAVE_WORKSPACE)
    invite_to_workspace = sends(_users.INVITE_TO_WORKSPACE)(keyed(_users.INVITE_TO_WORKSPACE))
    workspace_invitations = sends(_users.WORKSPACE_INVITATIONS)(of_workspace)
    own_invitations = sends(_users.OWN_INVITATIONS)(nothing)
    accept_invite = sends(_users.ACCEPT_INVITE)(_users.AcceptInviteQuery)
    revoke_invite = posts(_users.REVOKE_INVITE)
    roles = sends(_roles.ROLES)(of_workspace)
    create_role = sends(_roles.CREATE_ROLE)(keyed(_roles.CREATE_ROLE))
    update_role = posts(_roles.UPDATE_ROLE)
    delete_role = posts(_roles.DELETE_ROLE)
    add_permission_to_role = posts(_roles.ADD_PERMISSION_TO_ROLE)
    remove_permission_from_role = posts(_roles.REMOVE_PERMISSION_FROM_ROLE)
    key_challenge = posts(_keys.KEY_CHALLENGE)
    register_key = sends(_keys.REGISTER_KEY)(keyed(_keys.REGISTER_KEY))
    revoke_key = posts(_keys.REVOKE_KEY)
    keys = sends(_keys.KEYS)(nothing)
    signing_profile_address = sends(_keys.SIGNING_PROFILE_ADDRESS)(_keys.ProfileQuery)
    create_wallet = sends(_vaults.CREATE_WALLET)(keyed(_vaults.CREATE_WALLET))
    list_wallets = sends(_vaults.LIST_WALLETS)(_vaults.VaultsQuery)
    vault_names = sends(_vaults.VAULT_NAMES)(_vaults.VaultsQuery)
    vault_export = sends(_vaults.VAULT_EXPORT)(_vaults.VaultExportQuery)
    vault_controls = sends(_vaults.VAULT_CONTROLS)(of_vault)
    update_vault_controls = posts(_vaults.UPDATE_VAULT_CONTROLS)
    replace_vault = posts(_vaults.REPLACE_VAULT)
    freeze_vault = posts(_vaults.FREEZE_VAULT)
    unfreeze_vault = posts(_vaults.UNFREEZE_VAULT)
    update_role_policies = posts(_limits.UPDATE_ROLE_POLICIES)
    role_limit = sends(_limits.ROLE_LIMIT)(_limits.RoleQuery)
    check_user_role_limit = sends(_limits.CHECK_USER_ROLE_LIMIT)(_limits.CheckRoleQuery)
    my_limits = sends(_limits.MY_LIMITS)(of_workspace)
    update_vault = posts(_limits.UPDATE_VAULT)
    vault_limits = sends(_limits.VAULT_LIMITS)(of_vault)
    check_vault_limit = sends(_limits.CHECK_VAULT_LIMIT)(_limits.CheckVaultQuery)
    whitelist_addresses = sends(_address_book.WHITELIST_ADDRESSES)(_address_book.AddressBookQuery)
    add_whitelist_address = sends(_address_book.ADD_WHITELIST_ADDRESS)(
        keyed(_address_book.ADD_WHITELIST_ADDRESS)
    )
    rename_whitelist_address = posts(_address_book.RENAME_WHITELIST_ADDRESS)
    remove_whitelist_address = posts(_address_book.REMOVE_WHITELIST_ADDRESS)
    submit_onboarding_request = sends(_onboarding.SUBMIT_ONBOARDING_REQUEST)(
        keyed(_onboarding.SUBMIT_ONBOARDING_REQUEST)
    )
    onboarding_requests = sends(_onboarding.ONBOARDING_REQUESTS)(_onboarding.OnboardingQuery)

    @sends(_onboarding.REVIEW_ONBOARDING_REQUEST)
    @staticmethod
    def review_onboarding_request(
        uid: int, body: _onboarding.ReviewOnboardingRequest, *, idempotency_key: str | None = None
    ) -> Sent:
        return Sent(body, path={"uid": uid}, key=idempotency_key)

    create_psbt = sends(_proposals.CREATE_PSBT)(keyed(_proposals.CREATE_PSBT))
    preview_psbt = posts(_proposals.PREVIEW_PSBT)
    cancel_psbt = posts(_proposals.CANCEL_PSBT)
    sign_psbt = posts(_proposals.SIGN_PSBT)
    create_proof = sends(_proofs.CREATE_PROOF)(keyed(_proofs.CREATE_PROOF))
    proof = sends(_proofs.PROOF)(_proofs.ProofQuery)
    max_send = sends(_sending.MAX_SEND)(_sending.MaxSendQuery)
    consolidation = sends(_sending.CONSOLIDATION)(_sending.ConsolidationQuery)
    sweep_vault = posts(_sending.SWEEP_VAULT)
    forward_to_vault = sends(_sending.FORWARD_TO_VAULT)(keyed(_sending.FORWARD_TO_VAULT))
    preview_forward = posts(_sending.PREVIEW_FORWARD)
    contract = sends(_asset_tokens.CONTRACT)(_asset_tokens.ContractQuery)
    contracts = sends(_asset_tokens.CONTRACTS)(_asset_tokens.ContractsQuery)
    workspace_contracts = sends(_asset_tokens.WORKSPACE_CONTRACTS)(_asset_tokens.WorkspaceContractsQuery)
    contract_calls = sends(_asset_tokens.CONTRACT_CALLS)(_asset_tokens.ContractCallsQuery)
    tokens = sends(_asset_tokens.TOKENS)(of_vault)
    workspace_whitelist = sends(_asset_tokens.WORKSPACE_WHITELIST)(_asset_tokens.WorkspaceWhitelistQuery)
    resubmit_contract_call = posts(_asset_tokens.RESUBMIT_CONTRACT_CALL)
    create_token = sends(_asset_tokens.CREATE_TOKEN)(keyed(_asset_tokens.CREATE_TOKEN))
    call_contract = sends(_asset_tokens.CALL_CONTRACT)(keyed(_asset_tokens.CALL_CONTRACT))
    preview_call = posts(_asset_tokens.PREVIEW_CALL)
    add_to_contract_whitelist = sends(_asset_tokens.ADD_TO_CONTRACT_WHITELIST)(
        keyed(_asset_tokens.ADD_TO_CONTRACT_WHITELIST)
    )
    remove_from_contract_whitelist = sends(_asset_tokens.REMOVE_FROM_CONTRACT_WHITELIST)(
        keyed(_asset_tokens.REMOVE_FROM_CONTRACT_WHITELIST)
    )
    token_history = sends(_asset_tokens.TOKEN_HISTORY)(_asset_tokens.TokenHistoryQuery)
    logs = sends(_logs.LOGS)(_logs.LogsQuery)
    export_audit_logs = sends(_logs.EXPORT_AUDIT_LOGS)(_logs.ExportLogsQuery)
    purchases = sends(_purchases.PURCHASES)(_purchases.PurchasesQuery)
    create_webhook = sends(_webhooks.CREATE_WEBHOOK)(keyed(_webhooks.CREATE_WEBHOOK))
    webhooks = sends(_webhooks.WEBHOOKS)(of_workspace)
    update_webhook = sends(_webhooks.UPDATE_WEBHOOK)(keyed(_webhooks.UPDATE_WEBHOOK))
    delete_webhook = posts(_webhooks.DELETE_WEBHOOK)
    webhook_deliveries = sends(_webhooks.WEBHOOK_DELIVERIES)(_webhooks.WebhookDeliveriesQuery)
    redeliver_webhook = posts(_webhooks.REDELIVER_WEBHOOK)
    test_webhook = posts(_webhooks.TEST_WEBHOOK)
    second_person_rule = sends(_changes.SECOND_PERSON_RULE)(of_workspace)
    update_second_person_rule = posts(_changes.UPDATE_SECOND_PERSON_RULE)
    request_change = posts(_changes.REQUEST_CHANGE)
    changes = sends(_changes.CHANGES)(_changes.ChangesQuery)
    confirm_change = posts(_changes.CONFIRM_CHANGE)
    decline_change = posts(_changes.DECLINE_CHANGE)
    service_accounts = sends(_service_accounts.SERVICE_ACCOUNTS)(of_workspace)
    own_service_account = sends(_service_accounts.OWN_SERVICE_ACCOUNT)(nothing)
    create_service_account = sends(_service_accounts.CREATE_SERVICE_ACCOUNT)(
        keyed(_service_accounts.CREATE_SERVICE_ACCOUNT)
    )
    update_service_account = posts(_service_accounts.UPDATE_SERVICE_ACCOUNT)
    issue_service_secret = sends(_service_accounts.ISSUE_SERVICE_SECRET)(
        keyed(_service_accounts.ISSUE_SERVICE_SECRET)
    )
    revoke_service_account = posts(_service_accounts.REVOKE_SERVICE_ACCOUNT)
    vault_history = sends(_history.VAULT_HISTORY)(_history.VaultHistoryQuery)
    vault_statement = sends(_history.VAULT_STATEMENT)(_history.VaultStatementQuery)
    vault_coins = sends(_history.VAULT_COINS)(_history.VaultCoinsQuery)
    set_coin_aside = posts(_history.SET_COIN_ASIDE)
    release_coin = posts(_history.RELEASE_COIN)
    identity_provider = sends(_identity_providers.IDENTITY_PROVIDER)(of_workspace)
    update_identity_provider = posts(_identity_providers.UPDATE_IDENTITY_PROVIDER)
    update_identity_provider_secret = posts(_identity_providers.UPDATE_IDENTITY_PROVIDER_SECRET)
    remove_identity_provider = posts(_identity_providers.REMOVE_IDENTITY_PROVIDER)
    identity_links = sends(_identity_providers.IDENTITY_LINKS)(of_workspace)
    unlink_identity = posts(_identity_providers.UNLINK_IDENTITY)

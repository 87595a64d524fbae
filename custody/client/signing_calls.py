"""The client's methods of the declared calls. Written by ``tools/client_calls.py``: do not edit."""

from custody.client.flow import Sent, sends
from custody.schemas.asset_tokens import (
    ADD_TO_CONTRACT_WHITELIST,
    CALL_CONTRACT,
    CONTRACT,
    CONTRACT_CALLS,
    CONTRACTS,
    CREATE_TOKEN,
    REMOVE_FROM_CONTRACT_WHITELIST,
    RESUBMIT_CONTRACT_CALL,
    TOKEN_HISTORY,
    TOKENS,
    WORKSPACE_CONTRACTS,
    WORKSPACE_WHITELIST,
    CallContractRequest,
    ContractWhitelistRequest,
    CreateTokenRequest,
    ResubmitCallRequest,
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
    ChangePasswordRequest,
    LoginRequest,
    OtpValidateRequest,
    PasswordResetRequest,
    RegisterRequest,
    ResetPasswordRequest,
    RevokeSessionsRequest,
    TotpConfirmRequest,
    TotpEnrolRequest,
    TwoFactorRequest,
)


class SignInCalls:
    @sends(REGISTER)
    @staticmethod
    def register(body: RegisterRequest) -> Sent:
        return Sent(body)

    @sends(LOGIN)
    @staticmethod
    def login(body: LoginRequest) -> Sent:
        return Sent(body)

    @sends(OTP_VALIDATE)
    @staticmethod
    def otp_validate(body: OtpValidateRequest) -> Sent:
        return Sent(body)

    @sends(LOGOUT)
    @staticmethod
    def logout() -> Sent:
        return Sent()

    @sends(REQUEST_PASSWORD_RESET)
    @staticmethod
    def request_password_reset(body: PasswordResetRequest) -> Sent:
        return Sent(body)

    @sends(RESET_PASSWORD)
    @staticmethod
    def reset_password(body: ResetPasswordRequest) -> Sent:
        return Sent(body)

    @sends(CHANGE_PASSWORD)
    @staticmethod
    def change_password(body: ChangePasswordRequest) -> Sent:
        return Sent(body)

    @sends(TWO_FACTOR)
    @staticmethod
    def two_factor(body: TwoFactorRequest) -> Sent:
        return Sent(body)

    @sends(TOTP_ENROL)
    @staticmethod
    def totp_enrol(body: TotpEnrolRequest) -> Sent:
        return Sent(body)

    @sends(TOTP_CONFIRM)
    @staticmethod
    def totp_confirm(body: TotpConfirmRequest) -> Sent:
        return Sent(body)

    @sends(SESSIONS)
    @staticmethod
    def sessions() -> Sent:
        return Sent()

    @sends(REVOKE_SESSIONS)
    @staticmethod
    def revoke_sessions(body: RevokeSessionsRequest) -> Sent:
        return Sent(body)


class TokenCalls:
    @sends(CONTRACT)
    @staticmethod
    def contract(workspace_id: int, contract_uid: int) -> Sent:
        return Sent(query={"workspace_id": workspace_id, "contract_uid": contract_uid})

    @sends(CONTRACTS)
    @staticmethod
    def contracts(
        workspace_id: int, vault_id: str, *, after: int | None = None, limit: int | None = None
    ) -> Sent:
        return Sent(
            query={"workspace_id": workspace_id, "after": after, "limit": limit, "vault_id": vault_id}
        )

    @sends(WORKSPACE_CONTRACTS)
    @staticmethod
    def workspace_contracts(workspace_id: int, *, after: int | None = None, limit: int | None = None) -> Sent:
        return Sent(query={"workspace_id": workspace_id, "after": after, "limit": limit})

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
    ) -> Sent:
        return Sent(
            query={
                "workspace_id": workspace_id,
                "contract_uid": contract_uid,
                "vault_id": vault_id,
                "order": order,
                "after": after,
                "limit": limit,
            }
        )

    @sends(TOKENS)
    @staticmethod
    def tokens(workspace_id: int, vault_id: str) -> Sent:
        return Sent(query={"workspace_id": workspace_id, "vault_id": vault_id})

    @sends(WORKSPACE_WHITELIST)
    @staticmethod
    def workspace_whitelist(workspace_id: int, *, contract_uid: int | None = None) -> Sent:
        return Sent(query={"workspace_id": workspace_id, "contract_uid": contract_uid})

    @sends(RESUBMIT_CONTRACT_CALL)
    @staticmethod
    def resubmit_contract_call(body: ResubmitCallRequest) -> Sent:
        return Sent(body)

    @sends(CREATE_TOKEN)
    @staticmethod
    def create_token(body: CreateTokenRequest, *, idempotency_key: str | None = None) -> Sent:
        return Sent(body, key=idempotency_key)

    @sends(CALL_CONTRACT)
    @staticmethod
    def call_contract(body: CallContractRequest, *, idempotency_key: str | None = None) -> Sent:
        return Sent(body, key=idempotency_key)

    @sends(ADD_TO_CONTRACT_WHITELIST)
    @staticmethod
    def add_to_contract_whitelist(
        body: ContractWhitelistRequest, *, idempotency_key: str | None = None
    ) -> Sent:
        return Sent(body, key=idempotency_key)

    @sends(REMOVE_FROM_CONTRACT_WHITELIST)
    @staticmethod
    def remove_from_contract_whitelist(
        body: ContractWhitelistRequest, *, idempotency_key: str | None = None
    ) -> Sent:
        return Sent(body, key=idempotency_key)

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
    ) -> Sent:
        return Sent(
            query={
                "workspace_id": workspace_id,
                "vault_id": vault_id,
                "contract_uid": contract_uid,
                "order": order,
                "cursor": cursor,
                "limit": limit,
            }
        )

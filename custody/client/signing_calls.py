"""The client's methods of the declared calls. Written by ``tools/client_calls.py``: do not edit."""

from custody.client.flow import Sent, keyed, posts, sends
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
from custody.schemas.keys import KEY_CHALLENGE, KEYS, REGISTER_KEY, REVOKE_KEY, SIGNING_PROFILE_ADDRESS
from custody.schemas.proofs import CREATE_PROOF, PROOF
from custody.schemas.proposals import CANCEL_PSBT, CREATE_PSBT, PREVIEW_PSBT, SIGN_PSBT


class SignInCalls:
    register = posts(REGISTER)
    login = posts(LOGIN)
    otp_validate = posts(OTP_VALIDATE)

    @sends(LOGOUT)
    @staticmethod
    def logout() -> Sent:
        return Sent()

    request_password_reset = posts(REQUEST_PASSWORD_RESET)
    reset_password = posts(RESET_PASSWORD)
    change_password = posts(CHANGE_PASSWORD)
    two_factor = posts(TWO_FACTOR)
    totp_enrol = posts(TOTP_ENROL)
    totp_confirm = posts(TOTP_CONFIRM)

    @sends(SESSIONS)
    @staticmethod
    def sessions() -> None: ...

    revoke_sessions = posts(REVOKE_SESSIONS)


class KeyCalls:
    key_challenge = posts(KEY_CHALLENGE)
    register_key = sends(REGISTER_KEY)(keyed(REGISTER_KEY))
    revoke_key = posts(REVOKE_KEY)

    @sends(KEYS)
    @staticmethod
    def keys() -> None: ...

    @sends(SIGNING_PROFILE_ADDRESS)
    @staticmethod
    def signing_profile_address(network: str, *, key_id: str | None = None) -> None: ...


class ProposalCalls:
    create_psbt = sends(CREATE_PSBT)(keyed(CREATE_PSBT))
    preview_psbt = posts(PREVIEW_PSBT)
    cancel_psbt = posts(CANCEL_PSBT)
    sign_psbt = posts(SIGN_PSBT)


class ProofCalls:
    create_proof = sends(CREATE_PROOF)(keyed(CREATE_PROOF))

    @sends(PROOF)
    @staticmethod
    def proof(workspace_id: int, psbt_id: str) -> None: ...


class TokenCalls:
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

    @sends(TOKENS)
    @staticmethod
    def tokens(workspace_id: int, vault_id: str) -> None: ...

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

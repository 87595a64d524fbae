"""Every call, described once. ``Client`` and ``AsyncClient`` inherit these as plain and as awaitable methods."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import httpx
from pydantic import SecretStr, TypeAdapter

from custody.client.flow import Core, Plan, attempt, call, checked, read
from custody.client.session import Session
from custody.schemas.auth import (
    REFRESH_COOKIE,
    LoginRequest,
    LoginResponse,
    OtpValidateRequest,
    RegisterRequest,
    TwoFactorRequest,
    TwoFactorResponse,
)
from custody.schemas.common import Done
from custody.schemas.keys import (
    Key,
    KeyChallenge,
    KeyChallengeRequest,
    RegisterKeyRequest,
    SigningProfileAddress,
)
from custody.schemas.proposals import (
    CreatePsbtRequest,
    CreatePsbtResponse,
    Proposal,
    ProposalStatus,
    SignPsbtRequest,
    SignPsbtResponse,
)
from custody.schemas.users import AddWorkspaceToUserRequest, AllocationResponse, Member, User
from custody.schemas.vaults import CreateWalletRequest, Vault

if TYPE_CHECKING:
    from custody.client.clients import AsyncClient, Client

P = ParamSpec("P")
R = TypeVar("R")

# A long poll waits at the platform; the transport must not give up first.
LONG_POLL_MARGIN_SECONDS = 10.0


class method(Generic[P, R]):  # noqa: N801 - reads as the decorator that it is
    """A plan as a method: plain on ``Client``, awaitable on ``AsyncClient``, typed on both."""

    def __init__(self, plan: Callable[Concatenate[Core, P], Plan[R]]) -> None:
        self._plan = plan
        self.__doc__ = plan.__doc__

    @overload
    def __get__(self, client: "Client", owner: type | None = None) -> Callable[P, R]: ...
    @overload
    def __get__(
        self, client: "AsyncClient", owner: type | None = None
    ) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, client: Any, owner: type | None = None) -> Any:
        def bound(*args: P.args, **kwargs: P.kwargs) -> Any:
            return client.run(self._plan(client.core, *args, **kwargs))

        bound.__doc__ = self.__doc__
        return bound


@dataclass(frozen=True)
class ProposalList:
    """``not_modified``: the platform says that nothing changed since ``etag``; ``items`` is then empty."""

    items: tuple[Proposal, ...]
    etag: str | None
    not_modified: bool = False


_KEYS = TypeAdapter(list[Key])
_MEMBERS = TypeAdapter(list[Member])
_VAULTS = TypeAdapter(list[Vault])
_PROPOSALS = TypeAdapter(list[Proposal])


def _signed_in(core: Core, response: httpx.Response) -> LoginResponse:
    answer = read(checked(response), LoginResponse)
    if not answer.requires_2fa:
        refresh_token = response.cookies.get(REFRESH_COOKIE) or ""
        core.set_session(
            Session(answer.sid, answer.token, refresh_token, core.now() + (answer.expires_in or 0))
        )
    return answer


def _key(idempotency_key: str | None) -> dict[str, str]:
    return {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}


class Api:
    """The calls. Each raises ``ApiError``, ``Unreachable``, ``BadAnswer`` or ``SignedOut``."""

    # --- sign-in -----------------------------------------------------------------------------------------------

    @method
    @staticmethod
    def register(core: Core, request: RegisterRequest) -> Plan[Done]:
        """``POST /auth/register``."""
        return read(
            checked(
                (yield from attempt(core, core.build("POST", "/auth/register", request), repeatable=False))
            ),
            Done,
        )

    @method
    @staticmethod
    def login(core: Core, email: str, password: str, *, device: str | None = None) -> Plan[LoginResponse]:
        """``POST /auth/login``. Where ``requires_2fa``, go on with ``otp_validate``."""
        body = LoginRequest(email=email, password=SecretStr(password), device=device)
        response = yield from attempt(core, core.build("POST", "/auth/login", body), repeatable=False)
        return _signed_in(core, response)

    @method
    @staticmethod
    def otp_validate(core: Core, token_2fa: str, otp: str) -> Plan[LoginResponse]:
        """``POST /auth/otp-validate``. Not repeated: each try counts."""
        body = OtpValidateRequest(token_2fa=token_2fa, otp=otp)
        response = yield from attempt(core, core.build("POST", "/auth/otp-validate", body), repeatable=False)
        return _signed_in(core, response)

    @method
    @staticmethod
    def logout(core: Core) -> Plan[Done]:
        """``POST /auth/logout``: the session is forgotten here whatever the platform answers."""
        request = core.build("POST", "/auth/logout")
        try:
            return read((yield from call(core, request, repeatable=True)), Done)
        finally:
            core.set_session(None)

    @method
    @staticmethod
    def two_factor(core: Core, *, enabled: bool, password: str) -> Plan[TwoFactorResponse]:
        """``POST /auth/two-factor``."""
        body = TwoFactorRequest(enabled=enabled, password=SecretStr(password))
        return read(
            (yield from call(core, core.build("POST", "/auth/two-factor", body), repeatable=False)),
            TwoFactorResponse,
        )

    # --- people ------------------------------------------------------------------------------------------------

    @method
    @staticmethod
    def user_info(core: Core) -> Plan[User]:
        """``GET /api/v1/get-user-info``."""
        return read(
            (yield from call(core, core.build("GET", "/api/v1/get-user-info"), repeatable=True)), User
        )

    @method
    @staticmethod
    def members(core: Core, workspace_id: int) -> Plan[list[Member]]:
        """``GET /api/v1/get-users-from-workspace``."""
        request = core.build("GET", "/api/v1/get-users-from-workspace", query={"workspace_id": workspace_id})
        return read((yield from call(core, request, repeatable=True)), _MEMBERS)

    @method
    @staticmethod
    def add_workspace_to_user(core: Core, body: AddWorkspaceToUserRequest) -> Plan[AllocationResponse]:
        """``POST /api/v1/add-workspace-to-user``."""
        request = core.build("POST", "/api/v1/add-workspace-to-user", body)
        return read((yield from call(core, request, repeatable=False)), AllocationResponse)

    # --- keys --------------------------------------------------------------------------------------------------

    @method
    @staticmethod
    def key_challenge(core: Core, body: KeyChallengeRequest) -> Plan[KeyChallenge]:
        """``POST /api/v1/key-challenge``. Repeatable: a challenge that is not used just expires."""
        return read(
            (yield from call(core, core.build("POST", "/api/v1/key-challenge", body), repeatable=True)),
            KeyChallenge,
        )

    @method
    @staticmethod
    def register_key(
        core: Core, body: RegisterKeyRequest, *, idempotency_key: str | None = None
    ) -> Plan[Key]:
        """``POST /api/v1/register-key``."""
        request = core.build("POST", "/api/v1/register-key", body, headers=_key(idempotency_key))
        return read((yield from call(core, request, repeatable=idempotency_key is not None)), Key)

    @method
    @staticmethod
    def keys(core: Core) -> Plan[list[Key]]:
        """``GET /api/v1/keys``: the caller's own, revoked ones too."""
        return read((yield from call(core, core.build("GET", "/api/v1/keys"), repeatable=True)), _KEYS)

    @method
    @staticmethod
    def signing_profile_address(core: Core, network: str) -> Plan[SigningProfileAddress]:
        """``GET /api/v1/signing-profile-address``."""
        request = core.build("GET", "/api/v1/signing-profile-address", query={"network": network})
        return read((yield from call(core, request, repeatable=True)), SigningProfileAddress)

    # --- vaults ------------------------------------------------------------------------------------------------

    @method
    @staticmethod
    def create_wallet(
        core: Core, body: CreateWalletRequest, *, idempotency_key: str | None = None
    ) -> Plan[Vault]:
        """``POST /api/v1/create_wallet``."""
        request = core.build("POST", "/api/v1/create_wallet", body, headers=_key(idempotency_key))
        return read((yield from call(core, request, repeatable=idempotency_key is not None)), Vault)

    @method
    @staticmethod
    def list_wallets(core: Core, workspace_id: int) -> Plan[list[Vault]]:
        """``GET /api/v1/list-wallets``."""
        request = core.build("GET", "/api/v1/list-wallets", query={"workspace_id": workspace_id})
        return read((yield from call(core, request, repeatable=True)), _VAULTS)

    # --- proposals ---------------------------------------------------------------------------------------------

    @method
    @staticmethod
    def create_psbt(
        core: Core, body: CreatePsbtRequest, *, idempotency_key: str | None = None
    ) -> Plan[CreatePsbtResponse]:
        """``POST /api/v1/create-psbt``."""
        request = core.build("POST", "/api/v1/create-psbt", body, headers=_key(idempotency_key))
        return read(
            (yield from call(core, request, repeatable=idempotency_key is not None)), CreatePsbtResponse
        )

    @method
    @staticmethod
    def proposal(core: Core, psbt_id: str) -> Plan[Proposal]:
        """``GET /api/v1/psbt?psbt_id=``."""
        request = core.build("GET", "/api/v1/psbt", query={"psbt_id": psbt_id})
        return read((yield from call(core, request, repeatable=True)), Proposal)

    @method
    @staticmethod
    def proposals(
        core: Core,
        workspace_id: int,
        *,
        status: ProposalStatus | None = None,
        awaiting_me: bool = False,
        after: str | None = None,
        limit: int | None = None,
        etag: str | None = None,
        wait_seconds: int | None = None,
    ) -> Plan[ProposalList]:
        """``GET /api/v1/psbt?workspace_id=``, newest last. With ``etag`` and ``wait_seconds`` a long poll (RFC 7240)."""
        query = {
            "workspace_id": workspace_id,
            "status": status,
            "awaiting": "me" if awaiting_me else None,
            "after": after,
            "limit": limit,
        }
        headers = {} if etag is None else {"If-None-Match": etag}
        timeout = None
        if wait_seconds:
            headers["Prefer"] = f"wait={wait_seconds}"
            timeout = wait_seconds + LONG_POLL_MARGIN_SECONDS
        request = core.build("GET", "/api/v1/psbt", query=query, headers=headers, timeout=timeout)
        response = yield from call(core, request, repeatable=True)
        new_etag = response.headers.get("etag", etag)
        if response.status_code == httpx.codes.NOT_MODIFIED:
            return ProposalList((), new_etag, not_modified=True)
        items = read(response, _PROPOSALS)
        return ProposalList(tuple(items), new_etag)

    @method
    @staticmethod
    def sign_psbt(
        core: Core, body: SignPsbtRequest, *, idempotency_key: str | None = None
    ) -> Plan[SignPsbtResponse]:
        """``POST /api/v1/sign-psbt``. Repeatable: the same signature again changes nothing."""
        request = core.build("POST", "/api/v1/sign-psbt", body, headers=_key(idempotency_key))
        return read((yield from call(core, request, repeatable=True)), SignPsbtResponse)

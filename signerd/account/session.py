"""The session with the platform: signing in and out, and storing the session across restarts.

The client renews the access token by itself. Every new refresh token comes through ``_changed`` and is stored
after the call that renewed it. If the process is killed in between, the previous refresh token is still
valid: the platform accepts it until its successor is first used.
"""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable

import httpx
from pydantic import SecretStr, ValidationError

from custody.client import ApiError, ClientError, Session, Unreachable
from custody.client.awaiting import AsyncClient
from custody.common.session_store import SecretStore
from custody.common.text import said
from custody.schemas.auth import LoginRequest, LoginResponse, OtpValidateRequest
from custody.schemas.errors import fault_sentence
from signerd.account.config import Config
from signerd.errors import PlatformAnswersWrongly, PlatformUnreachable, SecretsError, SignInFailed
from signerd.runtime import USUAL, DaemonDependencies

SAVE_AGAIN_SECONDS = 30.0


class Account:
    """One account at one platform. ``client`` is signed in after ``restore`` or ``login`` returned true.

    ``keep`` must run as a task while the account is used: it stores renewed sessions.
    """

    def __init__(self, config: Config, store: SecretStore, outside: DaemonDependencies = USUAL) -> None:
        self._url = config.platform.url
        self._store = store
        self._email = ""
        # Who is signing in, and the token with which the platform wants the one-time code.
        self._otp: tuple[str, str] | None = None
        self._unsaved = asyncio.Event()
        self._saving = asyncio.Lock()
        self._sleep = outside.sleep
        self.trouble: str | None = None
        self.signed_in = asyncio.Event()
        self.client = AsyncClient(
            self._url,
            on_session=self._changed,
            transport=outside.transport,
            ca_file=config.platform.ca_file,
            now=outside.now,
            sleep=outside.sleep,
        )

    @property
    def mode(self) -> str:
        """How the session's secret is stored."""
        return self._store.mode

    @property
    def email(self) -> str | None:
        return self._email if self.signed_in.is_set() else None

    async def restore(self) -> bool:
        """Resume the stored session, if there is one for this platform. Raises leaves of SecretsError."""
        stored = _read(await asyncio.to_thread(self._store.load))
        # A refresh token is only sent to the address that issued it.
        if stored is None or stored["url"] != self._url:
            return False
        self._email = stored["email"]
        self.client.core.session = Session(stored["sid"], refresh_token=stored["refresh_token"])
        self.signed_in.set()
        return True

    async def login(self, email: str, password: str) -> bool:
        """Sign in. False: the platform wants a one-time code; call ``confirm`` next.

        Raises:
            SignInFailed, PlatformUnreachable, PlatformAnswersWrongly; leaves of SecretsError.
        """
        answer = await self._ask(
            lambda: self.client.login(
                LoginRequest(email=email, password=SecretStr(password), device="signerd")
            )
        )
        if answer.requires_2fa:
            self._otp = email, answer.token_2fa
            return False
        await self._finish(email)
        return True

    async def confirm(self, otp: str) -> None:
        """Finish a sign-in with the code: mailed, the authenticator's, or a recovery code. Raises as
        ``login``.
        """
        if self._otp is None:
            raise SignInFailed("no sign-in is waiting for a code", hint="Start again with `signerd login`.")
        email, token = self._otp
        await self._ask(lambda: self.client.otp_validate(OtpValidateRequest(token_2fa=token, otp=otp)))
        await self._finish(email)

    async def logout(self) -> None:
        """End the session here, and at the platform if it can be reached."""
        with contextlib.suppress(ClientError):
            await self.client.logout()
        await self._save()

    async def keep(self) -> None:
        """Store every renewed session, until cancelled.

        A locked keyring is reported in the status and tried again.
        """
        while True:
            await self._unsaved.wait()
            try:
                await self._save()
                self.trouble = None
            except SecretsError as error:
                self.trouble = said(error)
                await self._sleep(SAVE_AGAIN_SECONDS)

    async def close(self) -> None:
        """Store an unsaved session, and close the connections."""
        try:
            if self._unsaved.is_set():
                await self._save()
        finally:
            await self.client.aclose()

    async def _finish(self, email: str) -> None:
        self._email, self._otp = email, None
        self._unsaved.set()
        await self._save()

    def _changed(self, session: Session | None) -> None:
        if session is None:
            self.signed_in.clear()
        else:
            self.signed_in.set()
        self._unsaved.set()

    async def _save(self) -> None:
        async with self._saving:
            # Another call may have stored it meanwhile; storing may start a program of the keyring.
            if not self._unsaved.is_set():
                return
            self._unsaved.clear()
            try:
                session = self.client.core.session
                if session is None:
                    await asyncio.to_thread(self._store.clear)
                else:
                    secret = {
                        "email": self._email,
                        "refresh_token": session.refresh_token,
                        "sid": session.sid,
                        "url": self._url,
                    }
                    await asyncio.to_thread(self._store.save, json.dumps(secret))
            except Exception:
                # Tried again by ``keep``.
                self._unsaved.set()
                raise

    @staticmethod
    async def _ask(call: Callable[[], Awaitable[LoginResponse]]) -> LoginResponse:
        try:
            return await call()
        except ValidationError as error:
            what = error.errors(include_url=False, include_input=False)[0]
            raise SignInFailed(fault_sentence(what)) from None
        except Unreachable as error:
            raise PlatformUnreachable(f"the platform gave no answer: {said(error)}") from error
        except ApiError as error:
            if error.problem.status >= httpx.codes.INTERNAL_SERVER_ERROR:
                raise PlatformUnreachable(f"the platform cannot do it now: {said(error)}") from error
            raise SignInFailed(said(error)) from error
        except ClientError as error:
            raise PlatformAnswersWrongly(said(error)) from error


def _read(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    try:
        stored = json.loads(text)
    except ValueError:
        return None
    wanted = ("email", "refresh_token", "sid", "url")
    if not isinstance(stored, dict) or not all(isinstance(stored.get(name), str) for name in wanted):
        return None
    return {name: stored[name] for name in wanted}

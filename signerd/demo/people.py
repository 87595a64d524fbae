"""The users of the demo: an account with its mailbox, and a daemon with its device."""

import asyncio
import contextlib
import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from email import message_from_bytes
from email.policy import SMTP
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pydantic import SecretStr

from custody.client import AsyncClient
from custody.schemas.auth import LoginRequest, OtpValidateRequest
from signerd.account.config import MAX_PERSON_MINUTES
from signerd.client import AsyncDaemonClient
from signerd.core.states import ASKED, DELIVERED, ON_THE_WAY
from signerd.demo.devices import NETWORK, DemoDevice
from signerd.demo.programs import STEP_SECONDS, DemoFailed, Program, Programs
from signerd.errors import UnknownProposal
from signerd.shapes import ProposalView, VaultView
from signerd.standing import is_left_open

Found = TypeVar("Found")
_CODE = re.compile(r"\b[0-9]{6}\b")


@dataclass(frozen=True)
class DemoAccount:
    """One person's sign-in. The password is made for this run and not stored."""

    first_name: str
    surname: str
    password: str = field(default_factory=lambda: secrets.token_urlsafe(18), repr=False)

    @property
    def email(self) -> str:
        return f"{self.first_name.lower()}@demo.example"

    async def sign_in(self, platform: AsyncClient, mailbox: "Mailbox") -> None:
        seen = mailbox.seen()
        password = SecretStr(self.password)
        answer = await platform.login(LoginRequest(email=self.email, password=password, device="demo"))
        if answer.requires_2fa:
            code = mailbox.codes(self.email, seen)[0]
            await platform.otp_validate(OtpValidateRequest(token_2fa=answer.token_2fa, otp=code))


@dataclass(frozen=True)
class Mailbox:
    """The folder into which the platform writes its mail instead of sending it."""

    folder: Path

    def seen(self) -> frozenset[str]:
        return frozenset(path.name for path in self.folder.glob("*.eml"))

    def codes(self, email: str, seen: frozenset[str] = frozenset()) -> list[str]:
        """The six digits of each new mail to this address, the newest last. The platform has sent them before
        it asks for them.

        Raises:
            DemoFailed: there is no such mail.
        """
        found = []
        for path in sorted(self.folder.glob("*.eml")):
            mail = message_from_bytes(path.read_bytes(), policy=SMTP)
            if path.name not in seen and mail["To"] == email:
                found += _CODE.findall(str(mail.get_content()))[:1]
        if not found:
            raise DemoFailed(f"no mail with a code for {email} came")
        return found


INSTEAD = " Another signer who was not asked may approve it on their page; then try again."


class NotSigned(Exception):
    """The proposal was not signed: the message says why. It may be approved again."""


@dataclass
class DemoSigner:
    """One signer's desktop. ``daemon`` is the SDK client of their ``signerd``. ``patience``: seconds to wait
    for the signer; None where a person decides.
    """

    name: str
    account: DemoAccount
    state: Path
    device: DemoDevice
    programs: Programs
    patience: float | None = STEP_SECONDS
    page_url: str | None = None

    def prepare(self, platform_url: str) -> None:
        """Write the configuration, and the passphrase of the secrets file as systemd would hand it over."""
        self.state.mkdir(mode=0o700)
        self._credentials.mkdir(mode=0o700)
        self._credentials.joinpath("signerd-passphrase").write_text(secrets.token_urlsafe(24))
        self.state.joinpath("config.toml").write_text(
            f'network = "{NETWORK}"\n'
            f'label = "{self.device.title}"\n'
            f'[platform]\nurl = "{platform_url}"\n'
            f'[devices]\nusb = false\nendpoints = ["{self.device.endpoint}"]\n'
            # A first-time reader needs time.
            f"person_minutes = {MAX_PERSON_MINUTES}\n"
            '[secrets]\nstore = "file"\n'
            # Several daemons run on one machine: let the system choose a port.
            "[loopback]\nport = 0\n"
            # The terminal says what waits; three sets of desktop notifications would be noise.
            '[notifications]\nshow = "off"\n'
        )

    @property
    def page(self) -> str:
        return f"Open the page of {self.name}"

    @property
    def _credentials(self) -> Path:
        return self.state.with_name(f"{self.state.name}-credentials")

    @property
    def environment(self) -> dict[str, str]:
        return {"CREDENTIALS_DIRECTORY": str(self._credentials), "SIGNERD_STATE": str(self.state)}

    @cached_property
    def daemon(self) -> AsyncDaemonClient:
        """Available once the daemon serves."""
        return AsyncDaemonClient(self.state)

    async def leave(self) -> None:
        if "daemon" in vars(self):
            await self.daemon.aclose()
            del self.daemon

    async def start_daemon(self) -> Program:
        """Start ``signerd run`` and wait until it answers and sees its device ready."""
        program = await self.programs.start(
            f"signerd of {self.name}", "signerd", ["run"], env=self.environment
        )
        await program.until_said(re.compile(r"signerd: serves "))

        async def look() -> bool:
            return any(device.state == "ready" for device in await self.daemon.devices())

        await self.until("sees its device", look)
        return program

    async def sign_in(self, mailbox: Mailbox) -> None:
        seen = mailbox.seen()
        done = await self.daemon.sign_in(self.account.email, self.account.password)
        if done.code_needed:
            await self.daemon.confirm_sign_in(mailbox.codes(self.account.email, seen)[0])

    async def register(self) -> None:
        preview = await self.daemon.preview_registration()
        await self.daemon.register(preview.device_id, preview.digest)

    async def sees_vault(self, vault_id: str) -> VaultView:
        """As the platform shows it to this signer."""

        async def look() -> VaultView | None:
            return next((one for one in await self.daemon.vaults() if one.vault_id == vault_id), None)

        return await self.until("sees the vault", look)

    async def approve(self, psbt_id: str, acknowledged: tuple[str, ...] = ()) -> None:
        """Approve, and wait until the device has signed and the platform has the signature.

        Raises:
            NotSigned: the device did not sign. SignerdError: it may not be approved.
        """
        view = await self.daemon.proposal(psbt_id)
        await self.daemon.approve(psbt_id, view.digest, frozenset(acknowledged))
        await self.signs(psbt_id)

    async def signs(self, psbt_id: str) -> None:
        """Wait until the device has signed what was approved, and the platform has the signature.

        Raises:
            NotSigned: the device did not sign.
        """
        outcome = await self._until_state(
            "signs the proposal", psbt_id, lambda state: state not in ON_THE_WAY, self.patience
        )
        if outcome.state not in DELIVERED:
            instead = INSTEAD if is_left_open(outcome) else ""
            raise NotSigned(f"{self.name} did not sign: {outcome.reason}{instead}")

    async def decides(self, psbt_id: str) -> None:
        """Wait until the proposal no longer needs this signer's decision, wherever they made it."""
        await self._until_state("decides", psbt_id, lambda state: state not in ASKED, self.patience)

    async def is_asked(self, psbt_id: str) -> None:
        """Wait until this signer is asked about a proposal, or the checks refuse it."""
        await self._until_state(
            "is asked about the proposal", psbt_id, lambda state: state in {*ASKED, "refused"}, STEP_SECONDS
        )

    async def _until_state(
        self, what: str, psbt_id: str, fits: Callable[[str], bool], seconds: float | None
    ) -> ProposalView:
        async def look() -> ProposalView | None:
            with contextlib.suppress(UnknownProposal):
                view = await self.daemon.proposal(psbt_id)
                return view if fits(view.state) else None
            return None

        return await self.until(what, look, seconds)

    async def until(
        self, what: str, look: Callable[[], Awaitable[Found | None]], seconds: float | None = STEP_SECONDS
    ) -> Found:
        """The first result of ``look`` that is true. It is called now and at each event and heartbeat of the
        daemon's feed.

        Raises:
            DemoFailed: the daemon ends first, or it takes too long.
        """
        try:
            async with asyncio.timeout(seconds), self.daemon.follow() as happenings:
                while not (result := await look()):
                    await anext(happenings)
                return result
        except TimeoutError:
            raise DemoFailed(f"{self.name}: it took more than {seconds or 0:.0f} s until it {what}") from None
        except StopAsyncIteration:
            raise DemoFailed(f"the signerd of {self.name} ended before it {what}") from None

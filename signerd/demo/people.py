"""The three signers of the demo: an account, a device, a state folder and a daemon for each."""

import json
import re
import secrets
from dataclasses import dataclass
from email import message_from_bytes
from email.policy import SMTP
from pathlib import Path
from typing import Any

import anyio

from signerd.demo.buttons import DemoDevice
from signerd.demo.programs import DemoFailed, Programs

MAIL_SECONDS = 300.0
READY_SECONDS = 300.0
_CODE = re.compile(r"\b[0-9]{6}\b")


@dataclass(frozen=True)
class Account:
    """Somebody's sign-in. The password is made for this run and kept nowhere."""

    email: str
    password: str

    def __repr__(self) -> str:
        return f"Account({self.email!r})"


def new_account(name: str) -> Account:
    return Account(f"{name}@demo.example", secrets.token_urlsafe(18))


@dataclass(frozen=True)
class Mailbox:
    """The folder into which the platform writes its mail instead of sending it."""

    folder: Path

    def seen(self) -> frozenset[str]:
        return frozenset(path.name for path in self.folder.glob("*.eml"))

    async def code_for(self, email: str, seen: frozenset[str]) -> str:
        """The six digits of the first new mail to this address.

        Raises:
            DemoFailed: none comes in time.
        """
        with anyio.move_on_after(MAIL_SECONDS):
            while True:
                for path in sorted(self.folder.glob("*.eml")):
                    mail = message_from_bytes(path.read_bytes(), policy=SMTP)
                    if path.name in seen or mail["To"] != email:
                        continue
                    if code := _CODE.search(str(mail.get_content())):
                        return code.group()
                await anyio.sleep(0.05)
        raise DemoFailed(f"no mail with a code for {email} came within {MAIL_SECONDS:.0f} s")


@dataclass
class Signer:
    """One signer's desktop: every step is a command of ``signerd``."""

    name: str
    account: Account
    state: Path
    device: DemoDevice
    programs: Programs

    def prepare(self, platform_url: str) -> None:
        """Write the configuration, and the passphrase of the secrets file as systemd would hand it over."""
        self.state.mkdir(mode=0o700)
        self._credentials.mkdir(mode=0o700)
        self._credentials.joinpath("signerd-passphrase").write_text(secrets.token_urlsafe(24))
        self.state.joinpath("config.toml").write_text(
            'network = "regtest"\n'
            f'label = "{self.device.title}"\n'
            f'[platform]\nurl = "{platform_url}"\n'
            f'[devices]\nusb = false\nendpoints = ["{self.device.endpoint}"]\n'
            '[secrets]\nstore = "file"\n'
            # Two signers on one machine, beside whatever signerd runs there.
            "[loopback]\nport = 0\n"
        )

    @property
    def _credentials(self) -> Path:
        return self.state.with_name(f"{self.state.name}-credentials")

    @property
    def environment(self) -> dict[str, str]:
        return {"CREDENTIALS_DIRECTORY": str(self._credentials), "SIGNERD_STATE": str(self.state)}

    async def run(self, what: str, *args: str) -> Any:
        """A command of this signer's, its answer as JSON."""
        said = await self.programs.command(
            f"{self.name}: {what}", "signerd", [*args, "--json"], env=self.environment
        )
        try:
            return json.loads(said)
        except ValueError:
            raise DemoFailed(f"{self.name}: {what}: the answer is no JSON: {said[:200]!r}") from None

    async def sign_in(self, mailbox: Mailbox) -> None:
        seen = mailbox.seen()

        async def code() -> str:
            return await mailbox.code_for(self.account.email, seen)

        await self.programs.command(
            f"{self.name}: sign in",
            "signerd",
            ["login", "--json"],
            answers=[self.account.email, self.account.password, code],
            env=self.environment,
        )

    async def start_daemon(self) -> None:
        """Start ``signerd run`` and wait until it answers and sees its device ready."""
        daemon = await self.programs.start(
            f"signerd of {self.name}", "signerd", ["run"], env=self.environment
        )
        last = "it does not answer"
        with anyio.move_on_after(READY_SECONDS):
            while True:
                daemon.check_alive()
                try:
                    devices = await self.run("look at the devices", "devices")
                except DemoFailed as error:
                    last = str(error)
                else:
                    if any(device["state"] == "ready" for device in devices):
                        return
                    last = f"its device is {[device['state'] for device in devices] or 'not there'}"
                await anyio.sleep(0.1)
        raise DemoFailed(f"{self.name}'s signerd was not ready within {READY_SECONDS:.0f} s: {last}")

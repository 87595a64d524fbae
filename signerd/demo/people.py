"""The people of the demo: an account with its mailbox, a daemon and the virtual devices with the finger on
their buttons.
"""

import asyncio
import contextlib
import json
import re
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from email import message_from_bytes
from email.policy import SMTP
from pathlib import Path
from typing import Any

import anyio

from signerd.demo.programs import DemoFailed, Program, Programs

# Shown the device's name and the lines of its screen; true presses yes.
Finger = Callable[[str, list[str]], bool]


@dataclass
class DemoDevice:
    """A virtual device in a process of its own, with its endpoint for ``signerd`` and its fingerprint."""

    title: str
    endpoint: str
    fingerprint: str
    program: Program
    _watching: asyncio.Task[None]

    async def stop(self) -> None:
        self._watching.cancel()
        await self.program.stop()


async def start_device(
    programs: Programs, family: str, title: str, listen: str, seed_file: Path, finger: Finger
) -> DemoDevice:
    """Start a virtual device and answer its prompts with ``finger``."""
    args = ["device", "virtual", family, "--listen", listen, "--seed-file", str(seed_file), "--json"]
    program = await programs.start(title, "signerd", args, talk=True)
    lines = program.lines()
    try:
        ready = json.loads(await asyncio.wait_for(anext(lines), READY_SECONDS))
    except (TimeoutError, StopAsyncIteration, ValueError):
        await program.stop()
        raise DemoFailed(f"{title} did not start; its log is {program.log}") from None

    async def watch() -> None:
        async for line in lines:
            event = json.loads(line)
            if event.get("event") == "prompt":
                pressed = await _pressed(finger, title, event["lines"])
                await program.say(f"{'yes' if pressed else 'no'} {event['id']}")

    return DemoDevice(title, ready["endpoint"], ready["fingerprint"], program, asyncio.create_task(watch()))


async def _pressed(finger: Finger, title: str, lines: list[str]) -> bool:
    """The finger's decision, in a thread that is not waited for: a person who stops the demo never answers
    the question.
    """
    loop = asyncio.get_running_loop()
    decided: asyncio.Future[bool] = loop.create_future()

    def decide(pressed: bool) -> None:
        if not decided.done():
            decided.set_result(pressed)

    def ask() -> None:
        pressed = finger(title, lines)
        # The demo may have ended meanwhile.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(decide, pressed)

    threading.Thread(target=ask, name=title, daemon=True).start()
    return await decided


MAIL_SECONDS = 300.0
READY_SECONDS = 300.0
_CODE = re.compile(r"\b[0-9]{6}\b")


@dataclass(frozen=True)
class Account:
    """One person's sign-in. The password is made for this run and kept nowhere."""

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

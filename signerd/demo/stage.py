"""Sets up the demo: the platform, three virtual devices with a signerd each, and their users."""

import contextlib
import json
import re
import socket
import sys
import textwrap
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from random import SystemRandom

from pydantic import SecretStr

from custody.client import AsyncClient
from custody.schemas.auth import RegisterRequest
from custody.schemas.users import InviteToWorkspaceRequest
from device_simulators.page import DeviceScreen, SimulatorDesk
from signerd.demo.devices import NETWORK, ButtonPress, DemoDevice, a_person_at, start_device
from signerd.demo.people import DemoAccount, DemoSigner, Mailbox
from signerd.demo.programs import STEP_SECONDS, DemoFailed, Programs, side_by_side
from signerd.demo.steps import END, LEFT_OUT, STEPS
from signerd.demo.terminal import Question, Terminal
from signerd.errors import SignerdError
from signerd.loopback.page.entering import entry_form

SIGNERS = (("first", "ledger"), ("second", "coldcard"), ("third", "trezor"))
# Below the ephemeral range: the system gives the chosen port to no other program before the platform listens.
PORTS = range(20_000, 32_768)


BLOCK_SECONDS = 5
CONSOLE = "Open the platform's console, as the treasurer"
CONSOLE_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>The console of the demo</title>
<meta name="viewport" content="width=device-width">
<style>:root {{ color-scheme: light dark; }} button {{ font: inherit; padding: 0.6rem 1.2rem }}
body {{ font: 1rem/1.6 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem }}</style>
<h1>The console of the demo</h1>
<p>Sign in as <b>{email}</b> with the password <b>{password}</b>.
<p>Then a code is mailed to you. Load this page again to read it. Mailed since you opened it: <b>{code}</b>.
<form action="{url}/console/" target="_blank"><button>Open the console</button></form></html>
"""


@dataclass
class Demo:
    """State shared by the steps. ``auto``: every button is pressed by the script. ``tokens``: include the
    token steps. ``finished``: the steps are done and the programs keep running.
    """

    root: Path
    programs: Programs
    auto: bool
    tokens: bool = False
    finished: bool = False
    terminal: Terminal = field(default_factory=Terminal)
    desk: SimulatorDesk = field(default_factory=lambda: SimulatorDesk("The demo"))
    url: str = ""
    organisation_id: int = 0
    workspace_id: int = 0
    owner: DemoAccount = field(default_factory=lambda: DemoAccount("Owner", "of the demo"))
    signers: list[DemoSigner] = field(default_factory=list)
    user_ids: list[int] = field(default_factory=list)
    _questions: int = 0
    _old_codes: int = 0

    @property
    def platform_state(self) -> Path:
        return self.root / "platform"

    @property
    def platform_settings(self) -> dict[str, str]:
        """Includes the public URL, for the links in its mails."""
        chain = f"CUSTODY_CHAIN_{NETWORK.name}"
        settings = {chain: "embedded", "CUSTODY_PUBLIC_URL": self.url}
        # Interactive runs mine at an interval; the unattended run mines explicitly.
        return settings if self.auto else {**settings, f"{chain}_BLOCK_SECONDS": str(BLOCK_SECONDS)}

    @property
    def mailbox(self) -> Mailbox:
        return Mailbox(self.platform_state / "mail")

    def __post_init__(self) -> None:
        self.desk.story.steps, self.desk.story.end = tuple(STEPS), END
        self.desk.reply, self.desk.follow, self.terminal.asks = self.terminal.reply, self._follow, self._ask

    def begin(self, step: int) -> None:
        """Step ``step`` of the story, counted from 1, is played from now on."""
        story = self.desk.story
        story.step, story.log = step, ()
        title, why = story.steps[step - 1]
        self.terminal.say(
            f"\nStep {step} of {len(story.steps)}: {title}\n{textwrap.fill(why, 100)}", doing=title
        )
        self.desk.changed()

    def end(self) -> None:
        self.finished = True
        self.desk.story.step = len(self.desk.story.steps) + 1

    def end_here(self) -> None:
        """The person left out a step: those after it are not told."""
        self.desk.story.steps = self.desk.story.steps[: self.desk.story.step]
        self.desk.story.end = LEFT_OUT

    def tell(self, text: str) -> None:
        """Of what is done in this step."""
        self.terminal.tell(text)
        self._note(text)

    def say(self, text: str) -> None:
        """As ``tell``, without the time."""
        self.terminal.say(text)
        self._note(text)

    def _note(self, text: str) -> None:
        self.desk.story.log += (text.strip("\n"),)
        self.desk.changed()

    def _ask(self, question: Question | None) -> None:
        """Show on the page what the terminal asks. The devices' questions have their own buttons there."""
        story = self.desk.story
        story.number, self._questions = 0, self._questions + 1
        if question is not None and question.gives_way:
            story.question, story.answers = question.asked, tuple(dict.fromkeys(question.answers.values()))
            story.shown = question.above.strip()
            story.number = self._questions
        self.desk.changed()

    async def _follow(self, link: str) -> str:
        """The document behind a link of the page."""
        if link == CONSOLE:
            owner, codes = self.owner, self.mailbox.codes(self.owner.email)
            self._old_codes = self._old_codes or len(codes)
            code = codes[-1] if len(codes) > self._old_codes else "none"
            return CONSOLE_PAGE.format(url=self.url, email=owner.email, password=owner.password, code=code)
        signer = next(signer for signer in self.signers if signer.page == link)
        try:
            return entry_form(await signer.daemon.enter_page())
        except SignerdError as error:
            return f"<p>{escape(f'The page of {signer.name} cannot be opened: {error}. {error.hint}')}</p>"

    async def custody(self, what: str, *args: str, given: str = "") -> str:
        """Run an operator's command."""
        state = ["--state", str(self.platform_state)]
        return await self.programs.command(
            what, "custody.server", [*args, *state], given=given, env=self.platform_settings
        )


async def set_up(demo: Demo) -> None:
    """Start the platform, create the organisation, and start the devices with their daemons, all
    concurrently.
    """
    demo.tell("Starting the platform, served from SQLite, and three virtual devices with a signerd each")
    demo.url = free_url()
    await side_by_side(start_platform(demo), organise(demo), _desks(demo))


def free_url() -> str:
    """The platform's address, chosen before it serves so that the daemons can start at once. Raises
    DemoFailed.
    """
    for port in SystemRandom().sample(PORTS, 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return f"http://127.0.0.1:{port}"
    raise DemoFailed("No port of 127.0.0.1 is free for the platform.")


async def start_platform(demo: Demo) -> None:
    listen = demo.url.removeprefix("http://")
    args = ["serve", "--state", str(demo.platform_state), "--listen", listen]
    server = await demo.programs.start("platform", "custody.server", args, env=demo.platform_settings)
    await server.until_said(re.compile(r"Serving on http://"))
    demo.tell(f"    the platform serves {demo.url}; its console is at {demo.url}/console/")


async def organise(demo: Demo) -> None:
    """Create the first organisation with the operator's command."""
    placed = json.loads(
        await demo.custody(
            "create the organisation",
            "admin", "bootstrap", "--organisation", "Demo", "--workspace", "Treasury",
            "--chain", str(NETWORK), "--email", demo.owner.email,
            "--first-name", demo.owner.first_name, "--surname", demo.owner.surname, "--json",
            given=demo.owner.password,
        )
    )  # fmt: skip
    demo.organisation_id, demo.workspace_id = placed["organisation_id"], placed["workspace_id"]
    demo.tell("    the operator has made an organisation with a workspace (custody admin bootstrap)")


async def _desks(demo: Demo) -> None:
    devices = await side_by_side(*(_device(demo, name, maker) for name, maker in SIGNERS))
    for device in devices:
        demo.desk.add(device.stand)
    patience = STEP_SECONDS if demo.auto else None
    demo.signers = [
        DemoSigner(
            f"the {name} signer",
            DemoAccount(name.capitalize(), "signer"),
            demo.root / name,
            device,
            demo.programs,
            patience,
        )
        for (name, _), device in zip(SIGNERS, devices, strict=True)
    ]
    await side_by_side(*(_desk(demo, signer) for signer in demo.signers))
    demo.desk.story.links = (*(signer.page for signer in demo.signers if signer.page_url), CONSOLE)


async def _device(demo: Demo, name: str, maker: str) -> DemoDevice:
    title = f"{maker.capitalize()} of the {name} signer"
    finger = _script(demo) if demo.auto else a_person_at(demo.terminal)
    device = await start_device(demo.programs, maker, title, demo.root / name, demo.desk, finger)
    demo.tell(f"    {title} is switched on")
    return device


def _script(demo: Demo) -> ButtonPress:
    async def press(title: str, screen: DeviceScreen) -> bool:
        demo.tell(f"    {title} shows: {' / '.join(screen.lines)} → yes")
        return True

    return press


async def _desk(demo: Demo, signer: DemoSigner) -> None:
    signer.prepare(demo.url)
    await signer.start_daemon()
    signer.page_url = (await signer.daemon.status()).page_url
    page = f"{command_of(signer)} open" if signer.page_url else "not served here"
    demo.tell(f"    the signerd of {signer.name} sees its device; its page: {page}")


def command_of(signer: DemoSigner) -> str:
    """How a person calls this signer's daemon."""
    return f"{Path(sys.executable).parent / 'signerd'} --state {signer.state}"


async def members(demo: Demo, owner: AsyncClient) -> None:
    demo.tell("Inviting the signers: each makes an account, accepts, and signs in (signerd login)")
    roles = await owner.roles(demo.workspace_id)
    role_id = next(role.role_id for role in roles if role.name == "Signer")
    demo.user_ids = await side_by_side(*(join(demo, owner, signer, role_id) for signer in demo.signers))


async def join(demo: Demo, owner: AsyncClient, signer: DemoSigner, role_id: int) -> int:
    """The user's id, once they are a member and their signerd is signed in."""
    account = signer.account
    await owner.invite_to_workspace(
        InviteToWorkspaceRequest(
            invited_email=account.email,
            workspace_context=demo.workspace_id,
            org_id=demo.organisation_id,
            role_id=role_id,
        ),
        idempotency_key=f"demo-{account.email}",
    )
    async with AsyncClient(demo.url) as person:
        await person.register(
            RegisterRequest(
                email=account.email,
                password=SecretStr(account.password),
                first_name=account.first_name,
                surname=account.surname,
            )
        )
        await account.sign_in(person, demo.mailbox)
        for invitation in await person.own_invitations():
            await person.accept_invite(invite_id=invitation.invite_uid, accept=True)
        user_id = (await person.user_info()).uuid
        await person.logout()
    await signer.sign_in(demo.mailbox)
    demo.tell(f"    {signer.name} is a member, and signed in")
    return user_id

"""The main job from an empty folder to a confirmed transaction, step by step, each failing loudly."""

import asyncio
import json
import re
import shutil
import signal
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from pydantic import SecretStr

from custody.client import AsyncClient, ClientError
from custody.schemas.auth import RegisterRequest
from custody.schemas.invitations import InviteToWorkspaceRequest
from custody.schemas.proposals import CreatePsbtRequest, Proposal, ProposalStatus
from custody.schemas.vaults import CreateWalletRequest, Vault
from multisig import encode_address, format_btc, p2wpkh, sats
from signerd.demo.people import (
    NETWORK,
    Account,
    DemoDevice,
    Finger,
    Mailbox,
    Signer,
    answered,
    new_account,
    start_device,
)
from signerd.demo.programs import STEP_SECONDS, DemoFailed, Made, Program, Programs, side_by_side
from signerd.demo.tokens import TokenStory
from signerd.errors import SignerdError

LONG_POLL_SECONDS = 20
FUNDED_BTC = "0.5"
PAID_SATS = 12_345_678
# The generator point's public key: no wallet's coins, the same address in every run.
PAYEE_KEY = bytes.fromhex("0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798")
SIGNERS = (("first", "ledger"), ("second", "coldcard"), ("third", "trezor"))
ON_ITS_WAY = {ProposalStatus.PENDING, ProposalStatus.SIGNED, ProposalStatus.BROADCASTING}
EXIT_FAILED = 1
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143
PLATFORM_SETTINGS = {f"CUSTODY_CHAIN_{NETWORK.name}": "embedded"}
# The programs live in sessions of their own: what ends the demo does not reach them by itself.
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@dataclass
class Demo:
    """What the steps hand on. ``auto`` presses every button; otherwise a person does. ``tokens``: also the
    life of a token.
    """

    root: Path
    programs: Programs
    auto: bool
    tokens: bool = False
    started: float = field(default_factory=time.monotonic)
    url: str = ""
    organisation_id: int = 0
    workspace_id: int = 0
    owner: Account = field(default_factory=lambda: new_account("owner"))
    signers: list[Signer] = field(default_factory=list)
    user_ids: list[int] = field(default_factory=list)

    @property
    def platform_state(self) -> Path:
        return self.root / "platform"

    @property
    def mailbox(self) -> Mailbox:
        return Mailbox(self.platform_state / "mail")

    def tell(self, text: str) -> None:
        click.echo(f"[{time.monotonic() - self.started:5.1f} s] {text}")

    async def custody(self, what: str, *args: str, given: str = "") -> str:
        """A command of the operator's."""
        state = ["--state", str(self.platform_state)]
        return await self.programs.command(
            what, "custody.server", [*args, *state], given=given, env=PLATFORM_SETTINGS
        )


def main(*, auto: bool, tokens: bool = False) -> int:
    """Run the demo; the exit status. The transaction id is the last line of a run that went well."""
    root = Path(tempfile.mkdtemp(prefix="signerd-demo-"))
    logs = root / "logs"
    logs.mkdir()
    try:
        txid = asyncio.run(_run(Demo(root, Programs(logs), auto, tokens)))
    except (KeyboardInterrupt, asyncio.CancelledError, click.Abort) as end:
        click.echo(f"\nStopped. What was written is in {root}.", err=True)
        return EXIT_TERMINATED if isinstance(end, asyncio.CancelledError) else EXIT_INTERRUPTED
    except (DemoFailed, ClientError, SignerdError) as error:
        # The reason comes last: it is what a person must see on a small screen.
        click.echo(f"\nWhat each program said is in {logs}; delete {root} when you have read it.", err=True)
        click.echo(f"The demo failed: {error}", err=True)
        return EXIT_FAILED
    if auto:
        shutil.rmtree(root)
    else:
        _where_to_look_next(root)
    click.echo(txid)
    return 0


async def _run(demo: Demo) -> str:
    _end_by_signals()
    try:
        await _programs(demo)
        async with AsyncClient(demo.url) as owner:
            await demo.owner.sign_in(owner, demo.mailbox)
            await _members(demo, owner)
            await _keys(demo)
            vault = await _vault(demo, owner)
            await _fund(demo, owner, vault)
            psbt_id = await _propose(demo, owner, vault)
            await _approve(demo, psbt_id)
            txid = await _confirm(demo, owner, psbt_id)
            if demo.tokens:
                await _token(demo, owner, vault)
            return txid
    finally:
        await side_by_side(*(signer.leave() for signer in demo.signers))
        await demo.programs.stop()


def _end_by_signals() -> None:
    """The first signal ends this task, which stops the programs; another one does not cut that short."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def end() -> None:
        for number in ENDING_SIGNALS:
            loop.add_signal_handler(number, lambda: None)
        task.cancel()

    for number in ENDING_SIGNALS:
        loop.add_signal_handler(number, end)


async def _programs(demo: Demo) -> None:
    """The platform and the devices start side by side; then, with the platform's address, a signerd beside
    each device.
    """
    demo.tell("Starting the platform, served from SQLite, and three virtual devices")
    demo.tell(
        f"    its chain is a private one in this process, not the public {NETWORK}: no coin is worth a thing"
    )
    server = await start_platform(demo)
    devices = await side_by_side(*(_device(demo, name, maker) for name, maker in SIGNERS))
    await served(demo, server)
    demo.tell("An organisation with a workspace, and a signerd for each device")
    accounts = [new_account(name) for name, _ in SIGNERS]
    demo.signers = [
        Signer(f"the {name} signer", account, demo.root / name, device, demo.programs)
        for (name, _), account, device in zip(SIGNERS, accounts, devices, strict=True)
    ]
    await side_by_side(organised(demo), *(_desk(demo, signer) for signer in demo.signers))


async def start_platform(demo: Demo) -> Program:
    args = ["serve", "--state", str(demo.platform_state), "--listen", "127.0.0.1:0"]
    return await demo.programs.start("platform", "custody.server", args, env=PLATFORM_SETTINGS)


async def served(demo: Demo, server: Program) -> None:
    """Wait until the platform answers."""
    demo.url = (await server.until_said(re.compile(r"Serving on (http://\S+)")))[1]
    demo.tell(f"    the platform serves {demo.url}")


async def organised(demo: Demo) -> None:
    """The first organisation, which the operator makes beside the platform that serves."""
    placed = json.loads(
        await demo.custody(
            "create the organisation",
            "admin", "bootstrap", "--organisation", "Demo", "--workspace", "Treasury",
            "--chain", str(NETWORK), "--email", demo.owner.email, "--json",
            given=demo.owner.password,
        )
    )  # fmt: skip
    demo.organisation_id, demo.workspace_id = placed["organisation_id"], placed["workspace_id"]


async def _device(demo: Demo, name: str, maker: str) -> DemoDevice:
    title = f"{maker.capitalize()} of the {name} signer"
    listen = str(demo.root / f"{name}.sock") if maker == "coldcard" else "127.0.0.1:0"
    device = await start_device(
        demo.programs, maker, title, listen, demo.root / f"{name}.seed", _finger(demo)
    )
    demo.tell(f"    {title} is switched on")
    return device


async def _desk(demo: Demo, signer: Signer) -> None:
    signer.prepare(demo.url)
    await signer.start_daemon()
    url = (await signer.daemon.status()).page_url
    demo.tell(f"    the signerd of {signer.name} sees its device; its page: {url or 'not served here'}")
    if url and not demo.auto:
        program = Path(sys.executable).parent / "signerd"
        demo.tell(f"      enter it with: {program} --state {signer.state} open")


async def _members(demo: Demo, owner: AsyncClient) -> None:
    demo.tell("Inviting the signers: each makes an account, accepts, and signs in (signerd login)")
    roles = await owner.roles(demo.workspace_id)
    role_id = next(role.role_id for role in roles if role.name == "Signer")
    demo.user_ids = await side_by_side(*(join(demo, owner, signer, role_id) for signer in demo.signers))


async def join(demo: Demo, owner: AsyncClient, signer: Signer, role_id: int) -> int:
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
        await person.register(RegisterRequest(email=account.email, password=SecretStr(account.password)))
        await account.sign_in(person, demo.mailbox)
        for invitation in await person.own_invitations():
            await person.accept_invite(invitation.invite_uid)
        user_id = (await person.user_info()).uuid
        await person.logout()
    await signer.sign_in(demo.mailbox)
    return user_id


def _finger(demo: Demo) -> Finger:
    return _script(demo) if demo.auto else _person


def _script(demo: Demo) -> Finger:
    def press(title: str, lines: list[str]) -> bool:
        demo.tell(f"    {title} shows: {' / '.join(lines)} → yes")
        return True

    return press


def _person(title: str, lines: list[str]) -> bool:
    room = shutil.get_terminal_size().columns - 4
    wrapped = [part for line in lines for part in textwrap.wrap(line, room) or [""]]
    width = min(max(len(line) for line in (title, *wrapped)), room) + 1
    box = [f"┌─{title:─<{width}}┐", *(f"│ {line:<{width}}│" for line in wrapped), f"└{'─' * (width + 1)}┘"]
    click.echo("\n" + "\n".join(box))
    return _confirmed("Press the device's button?")


def _confirmed(question: str) -> bool:
    try:
        return click.confirm(question, default=None)
    except click.Abort:
        return False  # No person is there to answer.


async def _at_each(demo: Demo, do: Callable[[Signer], Coroutine[Any, Any, Made]], signers: int) -> list[Made]:
    """Where no person presses the buttons, none has to read one screen after the other."""
    chosen = demo.signers[:signers]
    if demo.auto:
        return await side_by_side(*(do(signer) for signer in chosen))
    return [await do(signer) for signer in chosen]


async def _keys(demo: Demo) -> None:
    async def register(signer: Signer) -> None:
        demo.tell(
            f"Registering the key of {signer.name} (signerd register): {signer.device.title}, fingerprint "
            f"{signer.device.fingerprint}"
        )
        await signer.register()

    await _at_each(demo, register, len(demo.signers))


async def _vault(demo: Demo, owner: AsyncClient) -> Vault:
    demo.tell("Creating a 2-of-3 vault, and pinning it at each desk (signerd pin)")
    vault = await owner.create_wallet(
        CreateWalletRequest(
            workspace_id=demo.workspace_id,
            name="Cold reserve",
            network="testnet",
            m=2,
            signers=demo.user_ids,
            transaction_limit="1",
            cycle_period="M",
            cycle_day=1,
        ),
        idempotency_key="demo-vault",
    )
    codes = await _at_each(demo, lambda signer: _pin(demo, signer, vault.id), len(demo.signers))
    if len(set(codes)) != 1:
        raise DemoFailed(f"the desks show different verification codes: {codes}")
    demo.tell(f"    every desk shows the verification code {codes[0]}")
    return vault


async def _pin(demo: Demo, signer: Signer, vault_id: str) -> str:
    """Pin the vault at one desk, its device showing the first address; its code, which people compare by
    telephone.
    """
    vault = await signer.sees_vault(vault_id)
    if vault.verification_code is None:
        raise DemoFailed(f"{signer.name} cannot read the vault: {vault.fault}")
    demo.tell(f"    {signer.name.capitalize()} compares the first address {vault.first_address}")
    pinned = await signer.daemon.pin(vault_id, vault.verification_code)
    if not pinned.address_shown:
        raise DemoFailed(f"{signer.device.title} did not show the vault's first address")
    return vault.verification_code


async def _fund(demo: Demo, owner: AsyncClient, vault: Vault) -> None:
    demo.tell(
        f"Funding {vault.receive_address} with {FUNDED_BTC} BTC of the private chain and confirming it "
        "(custody fund, custody mine)"
    )
    await demo.custody("fund the vault", "fund", vault.receive_address, FUNDED_BTC)
    await demo.custody("mine", "mine", "6")
    deadline = time.monotonic() + STEP_SECONDS
    # No call of the platform waits for a deposit: its webhooks tell of them, to servers.
    while not any(v.confirmed_sats for v in await owner.list_wallets(demo.workspace_id) if v.id == vault.id):
        if time.monotonic() > deadline:
            raise DemoFailed("the platform does not see the deposit")
        await asyncio.sleep(0.1)


async def _propose(demo: Demo, owner: AsyncClient, vault: Vault) -> str:
    payee = encode_address(p2wpkh(PAYEE_KEY), NETWORK)
    assert payee is not None
    amount = sats(PAID_SATS)
    demo.tell(f"Proposing to pay {format_btc(amount)} BTC ({amount:,} sat) to {payee}")
    created = await owner.create_psbt(
        CreatePsbtRequest(
            wallet_id=vault.id,
            workspace_id=demo.workspace_id,
            tx_type="send",
            recipients=[payee],
            amounts_sats=[amount],
            description="Invoice of the demo",
        ),
        idempotency_key="demo-proposal",
    )
    return created.psbt_id


async def _token(demo: Demo, owner: AsyncClient, vault: Vault) -> None:
    holder = encode_address(p2wpkh(PAYEE_KEY), NETWORK)
    assert holder is not None

    async def approve(psbt_id: str, acknowledged: tuple[str, ...]) -> None:
        await _approve(demo, psbt_id, acknowledged)

    async def confirm(psbt_id: str) -> str:
        return await _confirm(demo, owner, psbt_id)

    async def fund(address: str, btc: str) -> None:
        await demo.custody("fund the vault's address", "fund", address, btc)
        await demo.custody("mine", "mine", "1")

    story = TokenStory(owner, demo.workspace_id, vault, holder, demo.tell, approve, confirm, fund)
    await story.run()


async def _approve(demo: Demo, psbt_id: str, acknowledged: tuple[str, ...] = ()) -> None:
    await _at_each(demo, lambda signer: _approve_at(demo, signer, psbt_id, acknowledged), 2)


async def _approve_at(demo: Demo, signer: Signer, psbt_id: str, acknowledged: tuple[str, ...]) -> None:
    await signer.is_asked(psbt_id)
    if not demo.auto:
        shown = await demo.programs.command("show", "signerd", ["show", psbt_id], env=signer.environment)
        click.echo(f"\n{signer.name}'s signerd shows:\n{shown}")
        if not await answered(lambda: _confirmed(f"You are {signer.name}. Approve?")):
            await signer.daemon.reject(psbt_id, "declined in the demo")
            raise DemoFailed(f"{signer.name} declined the proposal, so it is not signed")
    demo.tell(f"{signer.name.capitalize()} approves (signerd approve); {signer.device.title} is asked")
    await signer.approve(psbt_id, acknowledged)


async def _confirm(demo: Demo, owner: AsyncClient, psbt_id: str) -> str:
    demo.tell("Two of three have signed: the platform finalises and broadcasts")
    sent = await _until(demo, owner, psbt_id, ProposalStatus.BROADCASTING)
    demo.tell(f"    {sent.txid} is in the mempool; mining a block")
    await demo.custody("mine", "mine", "1")
    done = await _until(demo, owner, psbt_id, ProposalStatus.CONFIRMED)
    if not done.txid or done.txid != done.txid_expected or done.confirmations < 1:
        raise DemoFailed(f"the confirmed proposal is not whole: {done.txid=} {done.txid_expected=}")
    demo.tell(f"Confirmed at height {done.block_height}: fee {done.fee_sats:,} sat ({done.fee_rate} sat/vB)")
    return done.txid


async def _until(demo: Demo, owner: AsyncClient, psbt_id: str, wanted: ProposalStatus) -> Proposal:
    """The proposal in that state, or confirmed. The platform answers when its list of them changes."""
    etag, now = None, "not listed"
    try:
        async with asyncio.timeout(STEP_SECONDS):
            while True:
                listed = await owner.proposals(demo.workspace_id, etag=etag, wait_seconds=LONG_POLL_SECONDS)
                etag = listed.etag
                for proposal in listed.items:
                    if proposal.psbt_id != psbt_id:
                        continue
                    now = proposal.status
                    if now in {wanted, ProposalStatus.CONFIRMED}:
                        return proposal
                    if now not in ON_ITS_WAY:
                        raise DemoFailed(
                            f"the proposal is {now}: {proposal.failure_reason or 'no reason given'}"
                        )
    except TimeoutError:
        raise DemoFailed(f"the proposal is still {now} after {STEP_SECONDS:.0f} s, not {wanted}") from None


def _where_to_look_next(root: Path) -> None:
    programs = Path(sys.executable).parent
    click.echo(
        f"""
Where to look next
  the platform again, with its database; /openapi.json has the API:
      {programs}/custody serve --state {root}/platform
  the first signer's journal, and that its chain of decisions is whole:
      {programs}/signerd --state {root / SIGNERS[0][0]} audit verify
  {root}/logs has what each program said; delete {root} when you have looked: it holds this run's seeds
  docs/architecture.md has how it fits together; README.md, how to go on with real hardware

The transaction, confirmed on the private chain:"""
    )

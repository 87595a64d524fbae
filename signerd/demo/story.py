"""The main job from an empty folder to a confirmed transaction, step by step, each failing loudly."""

import asyncio
import json
import shutil
import signal
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass, field
from pathlib import Path

import click

from custody.client import AsyncClient, ClientError
from custody.schemas.proposals import CreatePsbtRequest, Proposal, ProposalStatus
from custody.schemas.vaults import CreateWalletRequest, Vault
from multisig import Network, encode_address, format_btc, p2wpkh, sats
from signerd.demo.people import Account, Finger, Mailbox, Signer, new_account, start_device
from signerd.demo.programs import DemoFailed, Programs, tail
from signerd.demo.tokens import TokenStory

# As in ``programs``: for what hangs, and not for what is slow.
START_SECONDS = 300.0
STEP_SECONDS = 900.0
FUNDED_BTC = "0.5"
PAID_SATS = 12_345_678
# The generator point's public key: no wallet's coins, the same address in every run.
PAYEE_KEY = bytes.fromhex("0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798")
MAKERS = ("ledger", "coldcard", "trezor")
NAMES = ("first", "second", "third")
EXIT_FAILED = 1
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143
# The programs live in sessions of their own: what ends the demo does not reach them by itself.
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@dataclass
class Demo:
    """What the steps hand on. ``auto`` presses every button; otherwise a person does."""

    root: Path
    programs: Programs
    auto: bool
    started: float = field(default_factory=time.monotonic)
    url: str = ""
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

    async def custody(self, what: str, *args: str, password: str | None = None) -> str:
        answers = [] if password is None else [password]
        state = ["--state", str(self.platform_state)]
        return await self.programs.command(what, "custody.server", [*args, *state], answers=answers)


def main(*, auto: bool) -> int:
    """Run the demo; the exit status. The transaction id is the last line of a run that went well."""
    root = Path(tempfile.mkdtemp(prefix="signerd-demo-"))
    logs = root / "logs"
    logs.mkdir()
    try:
        txid = asyncio.run(_run(Demo(root, Programs(logs), auto)))
    except (KeyboardInterrupt, asyncio.CancelledError, click.Abort) as end:
        click.echo(f"\nStopped. What was written is in {root}.", err=True)
        return EXIT_TERMINATED if isinstance(end, asyncio.CancelledError) else EXIT_INTERRUPTED
    except (DemoFailed, ClientError) as error:
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
        await _platform(demo)
        await _desks(demo)
        async with AsyncClient(demo.url) as owner:
            await _sign_in_owner(demo, owner)
            vault = await _vault(demo, owner)
            await _fund(demo, owner, vault)
            psbt_id = await _propose(demo, owner, vault)
            await _approve(demo, psbt_id)
            txid = await _confirm(demo, owner, psbt_id)
            await _token(demo, owner, vault)
            return txid
    finally:
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


async def _platform(demo: Demo) -> None:
    demo.tell("The platform: an organisation with a workspace on regtest, served from SQLite")
    placed = json.loads(
        await demo.custody(
            "create the organisation",
            "admin", "bootstrap", "--organisation", "Demo", "--workspace", "Treasury", "--chain", "regtest",
            "--email", demo.owner.email, "--json",
            password=demo.owner.password,
        )
    )  # fmt: skip
    demo.workspace_id = placed["workspace_id"]
    port_file = demo.root / "port"
    args = [
        "serve",
        "--state",
        str(demo.platform_state),
        "--listen",
        "127.0.0.1:0",
        "--port-file",
        str(port_file),
    ]
    server = await demo.programs.start("platform", "custody.server", args)
    deadline = time.monotonic() + START_SECONDS
    while not port_file.exists():
        server.check_alive()
        if time.monotonic() > deadline:
            raise DemoFailed(f"the platform did not serve within {START_SECONDS:.0f} s:\n{tail(server.log)}")
        await asyncio.sleep(0.05)
    demo.url = f"http://127.0.0.1:{port_file.read_text().strip()}"
    demo.tell(f"    it serves {demo.url}")


async def _desks(demo: Demo) -> None:
    demo.tell("Three signers: an account, a device and a signerd for each")
    desks = [asyncio.create_task(_desk(demo, name, maker)) for name, maker in zip(NAMES, MAKERS, strict=True)]
    try:
        demo.signers = list(await asyncio.gather(*desks))
    finally:
        # Where one failed the others must start nothing more: it would outlive the demo.
        for desk in desks:
            desk.cancel()
        await asyncio.gather(*desks, return_exceptions=True)
    for signer in demo.signers:
        await _register(demo, signer)
    await _pages(demo)


async def _pages(demo: Demo) -> None:
    """Where each signer's page is while the demo runs. It wants a code, which ``signerd
    open`` fetches.
    """
    program = Path(sys.executable).parent / "signerd"
    for signer in demo.signers:
        status = await signer.run("look at the status", "status")
        demo.tell(f"The page of {signer.name}: {status['page_url'] or 'not served here'}")
        if not demo.auto:
            demo.tell(f"  enter it with: {program} --state {signer.state} open")


async def _desk(demo: Demo, name: str, maker: str) -> Signer:
    account = new_account(name)
    placed = json.loads(
        await demo.custody(
            f"add the {name} signer",
            "admin", "add-member", "--workspace-id", str(demo.workspace_id),
            "--email", account.email, "--json",
            password=account.password,
        )
    )  # fmt: skip
    demo.user_ids.append(placed["user_id"])
    title = f"{maker.capitalize()} of the {name} signer"
    listen = str(demo.root / f"{name}.sock") if maker == "coldcard" else "127.0.0.1:0"
    device = await start_device(
        demo.programs, maker, title, listen, demo.root / f"{name}.seed", _finger(demo)
    )
    signer = Signer(f"the {name} signer", account, demo.root / name, device, demo.programs)
    signer.prepare(demo.url)
    await signer.sign_in(demo.mailbox)
    await signer.start_daemon()
    return signer


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
    try:
        return click.confirm("Press the device's button?", default=None)
    except click.Abort:
        return False  # No person is there to press it.


async def _register(demo: Demo, signer: Signer) -> None:
    demo.tell(
        f"Registering the key of {signer.name}: {signer.device.title}, fingerprint "
        f"{signer.device.fingerprint}"
    )
    await signer.run("register the key", "register", "--yes")


async def _sign_in_owner(demo: Demo, owner: AsyncClient) -> None:
    seen = demo.mailbox.seen()
    answer = await owner.login(demo.owner.email, demo.owner.password, device="demo")
    if answer.requires_2fa:
        await owner.otp_validate(answer.token_2fa, await demo.mailbox.code_for(demo.owner.email, seen))


async def _vault(demo: Demo, owner: AsyncClient) -> Vault:
    demo.tell("Creating a 2-of-3 vault, and pinning it at each desk")
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
    codes = {signer.name: await _pin(demo, signer, vault.id) for signer in demo.signers}
    if len(set(codes.values())) != 1:
        raise DemoFailed(f"the desks show different verification codes: {codes}")
    demo.tell(f"    every desk shows the verification code {next(iter(codes.values()))}")
    return vault


async def _pin(demo: Demo, signer: Signer, vault_id: str) -> str:
    """Pin the vault at one desk, its device showing the first address; its code, which people compare by
    telephone.
    """
    deadline = time.monotonic() + STEP_SECONDS
    while time.monotonic() < deadline:
        for vault in await signer.run("list the vaults", "vaults"):
            if vault["vault_id"] == vault_id:
                demo.tell(
                    f"    {signer.name.capitalize()} compares the first address {vault['first_address']}"
                )
                code: str = vault["verification_code"]
                pinned = await signer.run("pin the vault", "pin", vault_id, "--code", code)
                if not pinned["address_shown"]:
                    raise DemoFailed(f"{signer.device.title} did not show the vault's first address")
                return code
        await asyncio.sleep(0.2)
    raise DemoFailed(f"{signer.name} does not see the vault")


async def _fund(demo: Demo, owner: AsyncClient, vault: Vault) -> None:
    demo.tell(f"Funding {vault.receive_address} with {FUNDED_BTC} BTC (regtest) and confirming it")
    await demo.custody("fund the vault", "fund", vault.receive_address, FUNDED_BTC)
    await demo.custody("mine", "mine", "6")
    deadline = time.monotonic() + STEP_SECONDS
    while not any(v.confirmed_sats for v in await owner.list_wallets(demo.workspace_id) if v.id == vault.id):
        if time.monotonic() > deadline:
            raise DemoFailed("the platform does not see the deposit")
        await asyncio.sleep(0.1)


async def _propose(demo: Demo, owner: AsyncClient, vault: Vault) -> str:
    payee = encode_address(p2wpkh(PAYEE_KEY), Network.REGTEST)
    assert payee is not None
    amount = sats(PAID_SATS)
    demo.tell(f"Proposing to pay {format_btc(amount)} BTC ({amount:,} sat, regtest) to {payee}")
    on_devices = encode_address(p2wpkh(PAYEE_KEY), Network.TESTNET4)
    demo.tell(f"    (every device shows regtest addresses in their test form: {on_devices})")
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
    holder = encode_address(p2wpkh(PAYEE_KEY), Network.REGTEST)
    assert holder is not None

    async def approve(psbt_id: str, acknowledged: tuple[str, ...]) -> None:
        await _approve_side_by_side(demo, psbt_id, acknowledged)

    async def confirm(psbt_id: str) -> str:
        return await _confirm(demo, owner, psbt_id)

    async def fund(address: str, btc: str) -> None:
        await demo.custody("fund the vault's address", "fund", address, btc)
        await demo.custody("mine", "mine", "1")

    story = TokenStory(owner, demo.workspace_id, vault, holder, demo.tell, approve, confirm, fund)
    await story.run()


async def _approve(demo: Demo, psbt_id: str) -> None:
    for signer in demo.signers[:2]:
        await _approve_at(demo, signer, psbt_id)


async def _approve_side_by_side(demo: Demo, psbt_id: str, acknowledged: tuple[str, ...]) -> None:
    """Where no person presses the buttons, none has to read one screen after the other."""
    if not demo.auto:
        for signer in demo.signers[:2]:
            await _approve_at(demo, signer, psbt_id, acknowledged)
        return
    desks = [
        asyncio.create_task(_approve_at(demo, signer, psbt_id, acknowledged)) for signer in demo.signers[:2]
    ]
    try:
        await asyncio.gather(*desks)
    finally:
        for desk in desks:
            desk.cancel()
        await asyncio.gather(*desks, return_exceptions=True)


async def _approve_at(demo: Demo, signer: Signer, psbt_id: str, acknowledged: tuple[str, ...] = ()) -> None:
    await _until_listed(signer, psbt_id)
    if not demo.auto:
        shown = await demo.programs.command("show", "signerd", ["show", psbt_id], env=signer.environment)
        click.echo(f"\n{signer.name}'s signerd shows:\n{shown}")
        if not click.confirm(f"You are {signer.name}. Approve?", default=None):
            await signer.run("reject", "reject", psbt_id, "--reason", "declined in the demo")
            raise DemoFailed(f"{signer.name} declined the proposal, so it is not signed")
    demo.tell(f"{signer.name.capitalize()} approves; {signer.device.title} is asked")
    named = [word for name in acknowledged for word in ("--acknowledge", name)]
    await signer.run("approve", "approve", psbt_id, "--yes", *named)


async def _until_listed(signer: Signer, psbt_id: str) -> None:
    deadline = time.monotonic() + STEP_SECONDS
    while not any(p["psbt_id"] == psbt_id for p in await signer.run("list the proposals", "proposals")):
        if time.monotonic() > deadline:
            raise DemoFailed(f"{signer.name} does not see the proposal")
        await asyncio.sleep(0.2)


async def _confirm(demo: Demo, owner: AsyncClient, psbt_id: str) -> str:
    demo.tell("Two of three have signed: the platform finalises and broadcasts")
    sent = await _until(owner, psbt_id, ProposalStatus.BROADCASTING)
    demo.tell(f"    {sent.txid} is in the mempool; mining a block")
    await demo.custody("mine", "mine", "1")
    done = await _until(owner, psbt_id, ProposalStatus.CONFIRMED)
    if not done.txid or done.txid != done.txid_expected or done.confirmations < 1:
        raise DemoFailed(f"the confirmed proposal is not whole: {done.txid=} {done.txid_expected=}")
    demo.tell(f"Confirmed at height {done.block_height}: fee {done.fee_sats:,} sat ({done.fee_rate} sat/vB)")
    return done.txid


async def _until(owner: AsyncClient, psbt_id: str, wanted: ProposalStatus) -> Proposal:
    deadline = time.monotonic() + STEP_SECONDS
    while True:
        proposal = await owner.proposal(psbt_id)
        if proposal.status in {wanted, ProposalStatus.CONFIRMED}:
            return proposal
        if proposal.status not in {
            ProposalStatus.PENDING,
            ProposalStatus.SIGNED,
            ProposalStatus.BROADCASTING,
        }:
            raise DemoFailed(
                f"the proposal is {proposal.status}: {proposal.failure_reason or 'no reason given'}"
            )
        if time.monotonic() > deadline:
            raise DemoFailed(
                f"the proposal is still {proposal.status} after {STEP_SECONDS:.0f} s, not {wanted}"
            )
        await asyncio.sleep(0.1)


def _where_to_look_next(root: Path) -> None:
    programs = Path(sys.executable).parent
    click.echo(
        f"""
Where to look next
  the platform again, with its database; /openapi.json has the API:
      {programs}/custody serve --state {root}/platform
  the first signer's journal, and that its chain of decisions is whole:
      {programs}/signerd --state {root / NAMES[0]} audit verify
  {root}/logs has what each program said; delete {root} when you have looked: it holds this run's seeds
  docs/architecture.md has how it fits together; README.md, how to go on with real hardware

The transaction, confirmed on the embedded regtest chain:"""
    )

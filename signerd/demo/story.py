"""The main job from an empty folder to a confirmed transaction, step by step.

A person may decline any step; the demo then says what that means and offers the step again.
"""

import asyncio
import shutil
import signal
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import click

from custody.client import AsyncClient, ClientError
from custody.common.exits import Exit
from custody.schemas.proposals import CreatePsbtRequest, Proposal, ProposalStatus
from custody.schemas.vaults import CreateWalletRequest, Vault
from multisig import encode_address, format_btc, p2wpkh, sats
from signerd.demo.asking import StepDeclined, ask_approval, explore, with_retries
from signerd.demo.devices import NETWORK
from signerd.demo.people import DemoSigner, NotSigned
from signerd.demo.programs import STEP_SECONDS, DemoFailed, Made, Programs, side_by_side, tasks_of, until_made
from signerd.demo.stage import Demo, members, set_up
from signerd.demo.steps import SECOND_APPROVAL
from signerd.demo.terminal import InputEnded
from signerd.demo.tokens import TokenSteps
from signerd.errors import SignerdError

LONG_POLL_SECONDS = 20
FUNDED = "0.5BTC"
PAID_SATS = 12_345_678
# The generator point's public key: no wallet's coins, the same address in every run.
PAYEE_KEY = bytes.fromhex("0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798")
ON_ITS_WAY = {ProposalStatus.PENDING, ProposalStatus.SIGNED, ProposalStatus.BROADCASTING}
EXIT_TERMINATED = 143
# The programs run in sessions of their own: a signal to the demo does not reach them.
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)

Rest = Callable[[], Awaitable[None]]


def main(*, auto: bool, tokens: bool = False) -> int:
    """Run the demo and return the exit status. A successful unattended run prints the transaction id last."""
    root = Path(tempfile.mkdtemp(prefix="signerd-demo-"))
    logs = root / "logs"
    logs.mkdir()
    demo = Demo(root, Programs(logs), auto, tokens)
    try:
        txid = asyncio.run(_run(demo))
    except (KeyboardInterrupt, asyncio.CancelledError) as end:
        click.echo(f"\nStopped. What was written is in {root}; delete it when you have looked.", err=True)
        if isinstance(end, asyncio.CancelledError):
            return EXIT_TERMINATED
        return Exit.OK if demo.finished else Exit.INTERRUPTED
    except (DemoFailed, NotSigned, ClientError, SignerdError) as error:
        # The reason comes last: it is what a person must see on a small screen.
        click.echo(f"\nWhat each program said is in {logs}; delete {root} when you have read it.", err=True)
        click.echo(f"The demo has stopped: {error}", err=True)
        return Exit.FAILED
    if auto:
        shutil.rmtree(root)
        click.echo(txid)
    else:
        click.echo(f"Stopped. What was written is in {root}; delete it when you have looked.")
    return 0


async def _run(demo: Demo) -> str:
    _end_by_signals()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(demo.terminal.open())
        stack.push_async_callback(_end, demo)
        if demo.auto:
            txid, rest = await _main_job(demo, stack)
            if demo.tokens:
                await rest()
            return txid
        # An unattended run needs no page, so the web server is not imported.
        from device_simulators.page.serve import serving

        url = await stack.enter_async_context(serving(demo.desk))
        demo.tell(f"The screens and buttons of the virtual devices: {url}")
        demo.tell(
            "    open that in your browser; each question waits there and here, answer it in either place"
        )
        return await _with_a_person(demo, _and_then_explore(demo, stack))


async def _end(demo: Demo) -> None:
    if not demo.auto:
        demo.terminal.say("\nStopping every program …", doing="Stopping every program")
    await side_by_side(*(signer.leave() for signer in demo.signers))
    await demo.programs.stop()


async def _with_a_person(demo: Demo, story: Coroutine[Any, Any, str]) -> str:
    """The result of ``story``, for as long as the terminal's input is open.

    Raises:
        DemoFailed: the input ends first.
    """
    async with tasks_of(story, demo.terminal.ended.wait()) as (telling, gone):
        await asyncio.wait({telling, gone}, return_when=asyncio.FIRST_COMPLETED)
        if telling.done() and not isinstance(telling.exception(), InputEnded):
            return str(telling.result())
        if demo.finished:
            return ""
        raise DemoFailed("the terminal's input has ended. `make demo AUTO=1` runs without a person")


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


async def _and_then_explore(demo: Demo, stack: AsyncExitStack) -> str:
    """The transaction's id; empty where the person refused something for good."""
    txid, rest = "", None
    try:
        txid, rest = await _main_job(demo, stack)
        demo.terminal.say(f"\nThe transaction, confirmed on the private chain:\n{txid}")
        if demo.tokens:
            await rest()
            rest = None
    except StepDeclined:
        demo.end_here()
    await explore(demo, rest)
    return txid


async def _main_job(demo: Demo, stack: AsyncExitStack) -> tuple[str, Rest]:
    """The transaction's id, once it is in a block, and what there is to tell beside. Raises StepDeclined."""
    demo.begin(1)
    await set_up(demo)
    owner = await stack.enter_async_context(AsyncClient(demo.url))
    await demo.owner.sign_in(owner, demo.mailbox)
    demo.begin(2)
    await members(demo, owner)
    demo.begin(3)
    await _keys(demo)
    demo.begin(4)
    vault = await _vault(demo, owner)
    demo.begin(5)
    await _fund(demo, owner, vault)
    demo.begin(6)
    psbt_id = await _propose(demo, owner, vault)
    await _approve(demo, psbt_id)
    demo.begin(9)
    txid = await _confirm(demo, owner, psbt_id)
    return txid, TokenSteps(demo, owner, vault, _payee(), _approve, _confirm).run


async def _at_each(
    demo: Demo, do: Callable[[DemoSigner], Coroutine[Any, Any, Made]], signers: int
) -> list[Made]:
    """Where no person presses the buttons, none has to read one screen after the other."""
    chosen = demo.signers[:signers]
    if demo.auto:
        return await side_by_side(*(do(signer) for signer in chosen))
    return [await do(signer) for signer in chosen]


async def _keys(demo: Demo) -> None:
    async def register(signer: DemoSigner) -> None:
        demo.tell(
            f"Registering the key of {signer.name} (signerd register): {signer.device.title}, fingerprint "
            f"{signer.device.fingerprint}"
        )
        await with_retries(demo, signer.register)

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
    demo.tell("    every desk showed the same verification code")
    return vault


async def _pin(demo: Demo, signer: DemoSigner, vault_id: str) -> str:
    """Pin the vault at one desk, its device showing the first address; its code, which people compare by
    telephone.
    """
    vault = await signer.sees_vault(vault_id)
    if vault.verification_code is None:
        raise DemoFailed(f"{signer.name} cannot read the vault: {vault.fault}")
    code = vault.verification_code
    demo.tell(
        f"    {signer.name.capitalize()} reads the verification code {code}\n"
        f"    and compares the first address {vault.first_address}"
    )
    pinned = await with_retries(demo, lambda: signer.daemon.pin(vault_id, code))
    if not pinned.address_shown:
        raise DemoFailed(f"{signer.device.title} did not show the vault's first address")
    return code


async def _fund(demo: Demo, owner: AsyncClient, vault: Vault) -> None:
    demo.tell(
        f"Funding {vault.receive_address} with {FUNDED} of the private chain and confirming it "
        "(custody chain fund, custody chain mine)"
    )
    await demo.custody("fund the vault", "chain", "fund", vault.receive_address, FUNDED)
    await demo.custody("mine", "chain", "mine", "6")

    # No call of the platform waits for a deposit: its webhooks tell of them, to servers.
    async def deposit() -> bool:
        listed = await owner.list_wallets(workspace_id=demo.workspace_id)
        return any(one.confirmed_sats for one in listed if one.id == vault.id)

    await until_made("the platform does not see the deposit", deposit)


def _payee() -> str:
    payee = encode_address(p2wpkh(PAYEE_KEY), NETWORK)
    assert payee is not None
    return payee


async def _propose(demo: Demo, owner: AsyncClient, vault: Vault) -> str:
    payee, amount = _payee(), sats(PAID_SATS)
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


async def _approve(demo: Demo, psbt_id: str, acknowledged: tuple[str, ...] = ()) -> None:
    await _at_each(demo, lambda signer: _approve_at(demo, signer, psbt_id, acknowledged), 2)


async def _approve_at(demo: Demo, signer: DemoSigner, psbt_id: str, acknowledged: tuple[str, ...]) -> None:
    await signer.is_asked(psbt_id)
    if demo.desk.story.step < SECOND_APPROVAL:
        demo.begin(demo.desk.story.step + 1)
    finished = f"{signer.name.capitalize()} approves (signerd approve); {signer.device.title} is asked"

    async def approve() -> None:
        demo.tell(finished)
        await signer.approve(psbt_id, acknowledged)

    if demo.auto:
        await approve()
        return
    shown = await demo.programs.command("show", "signerd", ["show", psbt_id], env=signer.environment)
    # It is shown on the demo's page, too.
    shown = f"\nThe signerd of {signer.name} shows:\n{shown.replace(': -v shows each', '')}"
    await with_retries(demo, lambda: ask_approval(demo, signer, psbt_id, shown, approve))


async def _confirm(demo: Demo, owner: AsyncClient, psbt_id: str) -> str:
    demo.tell("Two of three have signed: the platform finalises and broadcasts")
    sent = await _until(demo, owner, psbt_id, ProposalStatus.BROADCASTING)
    demo.tell(f"    {sent.txid} is in the mempool; mining a block")
    await demo.custody("mine", "chain", "mine", "1")
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

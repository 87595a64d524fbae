"""What a vault holds, its next receive address, its movements and its tokens, as the platform says.

Every address is derived here. The platform only influences which one is shown; an address that is not one of
the vault's next is not shown. The amount of a payment that this machine knows is from its transaction. Its
confirmation, and everything about a deposit or a token, is the platform's claim: for display only, and not
stored.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, time
from itertools import chain

from custody.common.text import said
from custody.schemas.asset_tokens import ContractCall, TokenBalance
from custody.schemas.common import format_time
from custody.schemas.history import MovementOutput, VaultMovement
from custody.schemas.vaults import Vault as VaultShape
from multisig import MAX_INDEX, RECEIVE, MultisigError, Vault, decode_address
from multisig.tokens import Bytecode, Function, TokenCall, format_units, token_amount
from signerd.account.vaults import seen_vault
from signerd.account.wire import PlatformWorkspace
from signerd.core.addresses import address_on_screen
from signerd.core.places import GAP
from signerd.core.text import moment_of
from signerd.core.titles import memo_of
from signerd.core.values import Pin
from signerd.daemon.service import Daemon
from signerd.daemon.vaults import pinned
from signerd.errors import PlatformAnswersWrongly, PlatformError, PlatformUnreachable, SignedOut, UnknownVault
from signerd.shapes import (
    AddressView,
    HoldingView,
    MovementView,
    ProposalLine,
    TokenCallView,
    VaultFunds,
    VaultMovements,
    VaultTokens,
)
from signerd.shapes.limits import USUAL_MOVEMENTS

# A page must not take longer.
LONGEST_SECONDS = 10.0
MOST_TOKENS = 100
MOST_CALLS = 20
NOT_ASKED = "Which addresses are used is known from what was signed here alone, and nothing of the balance: "
REPLACED = "The platform says that another vault replaces this one: give nobody an address of it any more."
NONE_LEFT = "Every receive address of this vault is used; this is the last one, again. Have a new vault made."
NOT_OURS = (
    "The platform names an address as the next one to be paid to that is none of this vault's first or next "
    f"{GAP:,}. Pay nothing to it, and ask the operator. What stands here was derived on this machine."
)


async def vault_funds(daemon: Daemon, vault_id: str) -> VaultFunds:
    """Without figures where the platform is not reachable. Raises UnknownVault, NotPinned."""
    pin = pinned(daemon, vault_id, "its addresses are not known to be right")
    record, note = await _record_of(daemon, vault_id)
    index = daemon.journal.next_receive_index(pin.vault)
    if record is not None:
        index_of_address = await _index_of(pin.vault, record.receive_address, index)
        index, note = (index, NOT_OURS) if index_of_address is None else (index_of_address, note)
    if index > MAX_INDEX:
        index, note = MAX_INDEX, NONE_LEFT if note is None else f"{note} {NONE_LEFT}"
    claim = daemon.journal.claim(vault_id)
    if claim is not None and claim.replaced_by is not None:
        note = REPLACED if note is None else f"{REPLACED} {note}"
    address = pin.vault.address(RECEIVE, index)
    return VaultFunds(
        vault_id=vault_id,
        network=str(daemon.journal.network),
        confirmed_sats=None if record is None else record.confirmed_sats,
        unconfirmed_sats=None if record is None else record.unconfirmed_sats,
        locked_sats=None if record is None else record.locked_sats,
        fresh=AddressView(
            chain=RECEIVE,
            index=index,
            address=address,
            on_screen=address_on_screen(address, pin.vault.network),
        ),
        note=note,
        fault=seen_vault(daemon.journal, vault_id).fault,
    )


async def _record_of(daemon: Daemon, vault_id: str) -> tuple[VaultShape | None, str | None]:
    """The platform's record of the vault, or why there is none."""
    try:
        async with _in_time():
            return await daemon.platform.vault(_workspace(daemon, vault_id), vault_id), None
    except (PlatformError, SignedOut, UnknownVault) as error:
        return None, NOT_ASKED + said(error)


async def vault_movements(
    daemon: Daemon,
    vault_id: str,
    *,
    cursor: str | None = None,
    since: date | None = None,
    before: date | None = None,
    search: str = "",
    limit: int = USUAL_MOVEMENTS,
) -> VaultMovements:
    """The newest first; ``since`` and ``before`` are days in UTC, the second is left out.

    Raises UnknownVault, NotPinned, SignedOut, and leaves of PlatformError.
    """
    pin = pinned(daemon, vault_id, "what belongs to it is not known")
    query = {
        "cursor": cursor,
        "limit": limit,
        "from_time": _midnight(since),
        "to_time": _midnight(before),
        "label": search.strip() or None,
    }
    async with _in_time():
        listed, following = await daemon.platform.movements(_workspace(daemon, vault_id), vault_id, query)
    return VaultMovements(
        vault_id=vault_id,
        network=str(daemon.journal.network),
        movements=tuple(_view(daemon, one, pin) for one in listed.items),
        next=following,
        left_out=len(listed.unreadable),
    )


def _view(daemon: Daemon, movement: VaultMovement, pin: Pin) -> MovementView:
    known = _known(daemon, movement.txid, pin)
    own, platforms = _names(daemon, movement.outputs, pin)
    return MovementView(
        txid=movement.txid,
        kind=movement.kind.value,
        at=moment_of(movement.at),
        height=movement.height,
        amount_sats=movement.amount_sats if known is None else _amount(known, movement.amount_sats),
        fee_sats=movement.fee_sats if known is None else known.fee_sats,
        balance_sats=movement.balance_sats,
        names=own,
        platform_names=platforms,
        memo=memo_of(movement.title or ""),
        psbt_id=None if known is None else known.psbt_id,
        title=None if known is None else known.title,
    )


def _known(daemon: Daemon, txid: str, pin: Pin) -> ProposalLine | None:
    """The proposal of this transaction, if it is of this vault and was inspected."""
    record = daemon.journal.proposal_of(txid)
    if record is None or record.snapshot.vault_id != pin.vault_id:
        return None
    line = daemon.line(record)
    return None if line.paid_sats is None else line


def _names(
    daemon: Daemon, outputs: list[MovementOutput], pin: Pin
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The address book's names of the addresses, and the platform's for the others."""
    named: list[str] = []
    platform_names: list[str] = []
    for output in outputs:
        try:
            own = daemon.config.labels.get(decode_address(output.address, pin.vault.network))
        except MultisigError:
            own = None
        if own:
            named.append(own)
        elif label := memo_of(output.label or ""):
            platform_names.append(label)
    return tuple(dict.fromkeys(named)), tuple(dict.fromkeys(platform_names))


async def vault_tokens(daemon: Daemon, vault_id: str) -> VaultTokens:
    """Raises UnknownVault, SignedOut, and leaves of PlatformError."""
    workspace = _workspace(daemon, vault_id)
    async with _in_time():
        balances = await daemon.platform.token_balances(workspace, vault_id)
        calls = await daemon.platform.token_calls(workspace, vault_id)
    holdings, all_told = [], True
    for balance in balances.items[:MOST_TOKENS]:
        try:
            holdings.append(_holding(daemon, balance))
        except PlatformAnswersWrongly:
            # Its amounts are malformed.
            all_told = False
    return VaultTokens(
        vault_id=vault_id,
        network=str(daemon.journal.network),
        holdings=tuple(holdings),
        calls=tuple(_call(call) for call in reversed(calls.items[-MOST_CALLS:])),
        more=not all_told
        or bool(balances.unreadable or calls.unreadable)
        or len(balances.items) > MOST_TOKENS
        or len(calls.items) > MOST_CALLS,
    )


def _holding(daemon: Daemon, balance: TokenBalance) -> HoldingView:
    known = _proven(daemon, balance.contract_address)
    decimals = balance.decimals if known is None else known.decimals
    return HoldingView(
        contract=balance.contract_address or None,
        name=balance.name if known is None else known.name,
        balance=_whole(balance.balance, decimals),
        supply=_whole(balance.total_supply, decimals),
        owned=balance.owned,
        proven=known is not None,
    )


def _proven(daemon: Daemon, contract: str) -> Bytecode | None:
    try:
        return daemon.journal.bytecode(TokenCall(contract_id=contract, function=Function.PAUSE))
    except MultisigError:
        return None


def _workspace(daemon: Daemon, vault_id: str) -> PlatformWorkspace:
    """Raises UnknownVault, PlatformUnreachable."""
    claim = seen_vault(daemon.journal, vault_id)
    for workspace in daemon.follower.workspaces:
        if workspace.id == claim.workspace_id:
            return workspace
    raise PlatformUnreachable("the platform has not shown this vault's workspace yet")


@contextlib.asynccontextmanager
async def _in_time() -> AsyncIterator[None]:
    """Raises PlatformUnreachable."""
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            yield
    except TimeoutError:
        raise PlatformUnreachable(f"the platform did not answer within {LONGEST_SECONDS:.0f} s") from None


async def _index_of(vault: Vault, address: str, start: int) -> int | None:
    """The index of the address, but at least ``start``, below which addresses are used.

    Searched near ``start`` and among the first, as the platform may lag behind.
    """
    near = range(max(start - GAP, GAP), min(start + GAP, MAX_INDEX + 1))
    for index in chain(range(GAP), near):
        if vault.address(RECEIVE, index) == address:
            return max(index, start)
        # Let other tasks run.
        await asyncio.sleep(0)
    return None


def _midnight(day: date | None) -> str | None:
    return None if day is None else format_time(datetime.combine(day, time(), UTC))


def _amount(known: ProposalLine, claimed: int) -> int:
    """The change of the vault's balance: payments and fee; a forward's amount is the platform's."""
    if known.from_profile or known.paid_sats is None or known.fee_sats is None:
        return claimed
    return -(known.paid_sats + known.fee_sats)


def _whole(raw: str, decimals: int) -> str:
    try:
        return format_units(token_amount(int(raw)), decimals)
    except (ValueError, MultisigError):
        raise PlatformAnswersWrongly("the platform gives a malformed amount of tokens") from None


def _call(call: ContractCall) -> TokenCallView:
    return TokenCallView(
        uid=call.uid,
        function=call.function_name,
        arguments=tuple(str(argument.value) for argument in call.args),
        status=call.status.value,
        created_at=str(call.created_at),
        psbt_id=call.psbt_id,
        failure=call.failure_reason,
    )

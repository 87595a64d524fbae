"""What the platform says of a vault's tokens, for looking at: nothing is decided by it, and nothing of it is kept."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from custody.schemas.asset_tokens import ContractCall, TokenBalance
from multisig import MultisigError
from multisig.tokens import Bytecode, Call, Function, format_units, token_amount
from signerd.account.follower import Follower
from signerd.account.platform import Platform
from signerd.account.wire import Workspace
from signerd.core.text import plain
from signerd.errors import PlatformAnswersWrongly, PlatformUnreachable, UnknownVault
from signerd.journal import Journal
from signerd.shapes import HoldingView, TokenCallView, VaultTokens

# Somebody looks at a page: longer nobody waits.
LONGEST_SECONDS = 10.0
MOST_TOKENS = 100
MOST_CALLS = 20


@dataclass(frozen=True)
class Holdings:
    """Asks the platform each time. Nothing else uses what it answers."""

    journal: Journal
    platform: Platform
    follower: Follower

    async def of_vault(self, vault_id: str) -> VaultTokens:
        """Raises UnknownVault, SignedOut, and leaves of PlatformError."""
        workspace = self._workspace(vault_id)
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                balances = await self.platform.token_balances(workspace, vault_id)
                calls = await self.platform.token_calls(workspace, vault_id)
        except TimeoutError:
            raise PlatformUnreachable(f"the platform did not answer within {LONGEST_SECONDS:.0f} s") from None
        holdings, told = _each(balances.items[:MOST_TOKENS], self._holding)
        return VaultTokens(
            vault_id=vault_id,
            network=str(self.journal.network),
            holdings=holdings,
            calls=tuple(_call(call) for call in reversed(calls.items[-MOST_CALLS:])),
            more=not told
            or bool(balances.unreadable or calls.unreadable)
            or len(balances.items) > MOST_TOKENS
            or len(calls.items) > MOST_CALLS,
        )

    def _workspace(self, vault_id: str) -> Workspace:
        claim = self.journal.claim(vault_id)
        if claim is None:
            raise UnknownVault(f"the platform has shown no vault '{plain(vault_id)}'")
        for workspace in self.follower.state.workspaces:
            if workspace.id == claim.workspace_id:
                return workspace
        raise PlatformUnreachable("the platform has not told of this vault's workspace yet")

    def _holding(self, balance: TokenBalance) -> HoldingView:
        known = self._proven(balance.contract_address)
        decimals = balance.decimals if known is None else known.decimals
        return HoldingView(
            contract=plain(balance.contract_address) or None,
            name=plain(balance.name if known is None else known.name),
            balance=_whole(balance.balance, decimals),
            supply=_whole(balance.total_supply, decimals),
            owned=balance.owned,
            proven=known is not None,
        )

    def _proven(self, contract: str) -> Bytecode | None:
        try:
            return self.journal.tokens.bytecode(Call(contract_id=contract, function=Function.PAUSE))
        except MultisigError:
            return None


def _each(
    balances: Iterable[TokenBalance], make: Callable[[TokenBalance], HoldingView]
) -> tuple[tuple[HoldingView, ...], bool]:
    """Those whose figures can be told, and whether those are all."""
    shown, all_told = [], True
    for balance in balances:
        try:
            shown.append(make(balance))
        except PlatformAnswersWrongly:
            all_told = False
    return tuple(shown), all_told


def _whole(raw: str, decimals: int) -> str:
    try:
        return format_units(token_amount(int(raw)), decimals)
    except (ValueError, MultisigError):
        raise PlatformAnswersWrongly("the platform gives an amount of tokens that is none") from None


def _call(call: ContractCall) -> TokenCallView:
    return TokenCallView(
        uid=call.uid,
        function=call.function_name,
        arguments=tuple(plain(str(argument.value)) for argument in call.args),
        status=call.status.value,
        created_at=plain(str(call.created_at)),
        psbt_id=plain(call.psbt_id),
        failure=None if call.failure_reason is None else plain(call.failure_reason),
    )

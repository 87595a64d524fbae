"""The demo's token steps: deploy, initialise, transfer, pause and burn."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from custody.client import AsyncClient
from custody.schemas.asset_tokens import (
    CallContractRequest,
    CreateTokenRequest,
    FunctionName,
    NumberArg,
    TextArg,
)
from custody.schemas.vaults import Vault
from signerd.demo.programs import until_made
from signerd.demo.stage import Demo
from signerd.demo.steps import TOKEN

NAME, TICKER, DECIMALS = "Gold of the House", "GOLD", 2
FIRST_SUPPLY, MOST = "100000", "500000"
# Below the vault's limit of one token per transaction, which applies until the token has its own limits.
SENT, BURNT = 40, 10
# Many times the fees of the token's transactions.
COIN = "0.01BTC"


@dataclass(frozen=True)
class TokenSteps:
    """``approve`` has two signers sign a proposal, acknowledging the named checks; ``confirm`` mines it."""

    demo: Demo
    owner: AsyncClient
    vault: Vault
    holder: str
    approve: Callable[[Demo, str, tuple[str, ...]], Awaitable[None]]
    confirm: Callable[[Demo, AsyncClient, str], Awaitable[str]]

    async def run(self) -> None:
        self.demo.desk.story.steps += (TOKEN,)
        self.demo.begin(len(self.demo.desk.story.steps))
        self.demo.tell(f"A coin for the vault's address, which owns its tokens: {self.vault.address}")
        await self.demo.custody("fund the vault's address", "chain", "fund", self.vault.address, COIN)
        await self.demo.custody("mine", "chain", "mine", "1")
        contract_uid = await self._deploy()
        await self._call(contract_uid, "init", "Starting it: the first supply goes to the vault")
        to = TextArg(type="str", value=self.holder)
        sent, burnt = (NumberArg(type="int", value=raw) for raw in (SENT, BURNT))
        await self._call(contract_uid, "transfer", f"Sending 0.40 {TICKER} to {self.holder}", to, sent)
        await self._call(contract_uid, "pause", "Stopping all transfers")
        home = TextArg(type="str", value=self.vault.address)
        await self._call(contract_uid, "burn", f"Destroying 0.10 {TICKER}", home, burnt)
        await self._until_held(contract_uid, str(int(FIRST_SUPPLY) - SENT - BURNT))

    async def _deploy(self) -> int:
        self.demo.tell(f"Making a token: {TICKER}, 1,000.00 at first, never more than 5,000.00")
        body = CreateTokenRequest(
            token_name=NAME,
            ticker=TICKER,
            icon="",
            decimals_num=DECIMALS,
            total_supply=FIRST_SUPPLY,
            max_supply=MOST,
            whitelist_enabled=False,
            vault_id=self.vault.id,
            workspace_id=self.demo.workspace_id,
            network="testnet",
        )
        made = await until_made(
            "the platform does not propose the token",
            lambda: self.owner.create_token(body, idempotency_key="demo-token"),
        )
        contract = await self._confirmed(made.psbt_id, "token-effect")
        self.demo.tell(f"    its contract is {contract}")
        return made.contract_uid

    async def _call(
        self, contract_uid: int, function: FunctionName, what: str, *args: TextArg | NumberArg
    ) -> None:
        self.demo.tell(what)
        body = CallContractRequest(
            contract_uid=contract_uid,
            wallet_id=self.vault.id,
            function_name=function,
            args=list(args),
            workspace_id=self.demo.workspace_id,
        )
        proposed = await until_made(
            f"the platform does not propose {function}", lambda: self.owner.call_contract(body)
        )
        await self._confirmed(proposed.psbt_id)

    async def _confirmed(self, psbt_id: str, *acknowledged: str) -> str:
        await self.approve(self.demo, psbt_id, acknowledged)
        return await self.confirm(self.demo, self.owner, psbt_id)

    async def _until_held(self, contract_uid: int, raw: str) -> None:
        async def held() -> bool:
            tokens = await self.owner.tokens(self.demo.workspace_id, self.vault.id)
            return any(token.balance == raw for token in tokens if token.contract_uid == contract_uid)

        await until_made(f"the vault does not hold {raw} raw units", held)
        self.demo.tell(f"The vault holds 999.50 {TICKER}, as the chain says")

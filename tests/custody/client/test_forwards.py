"""A forward through the SDK, from the balance to the broadcast, and a vault's export: plain and awaited."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from custody.client import ApiError, AsyncClient, Client
from custody.schemas.forwards import ForwardToVaultRequest
from custody.schemas.proposals import ProposalStatus, SignPsbtRequest, TxType
from multisig import Network, Psbt, vault_of_file
from tests.support.custody import Desk, open_desk, sign
from tests.support.platform import PASSWORD
from tests.support.profiles import grant, pay_profile, policy_of


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with open_desk(tmp_path / "state") as opened:
        grant(opened, "Signer", "PAYMENT_INIT")
        pay_profile(opened, "alice", 100_000)
        yield opened


def asked(desk: Desk, **changes: object) -> ForwardToVaultRequest:
    return ForwardToVaultRequest(
        workspace_id=desk.workspace_id,
        vault_id=desk.vault["id"],
        network="testnet",
        fee_sats=1_000,
        **({"sweep": True} | changes),
    )


def signed(desk: Desk, psbt_base64: str) -> str:
    psbt, policy = Psbt.parse(psbt_base64), policy_of(desk.devices["alice"])
    return sign(desk.devices["alice"], psbt, policy).to_base64()


def test_plain(desk: Desk) -> None:
    now = desk.world.clock().timestamp
    with Client("http://127.0.0.1", transport=desk.world.http._transport, now=now) as alice:
        alice.login("alice@example.org", PASSWORD)
        profile = alice.signing_profile_address("testnet")
        assert (profile.confirmed_sats, profile.unconfirmed_sats, profile.locked_sats) == (100_000, 0, 0)
        body = asked(desk, wallet_address=profile.wallet_address)
        made = alice.forward_to_vault(body, idempotency_key="once")
        assert alice.forward_to_vault(body, idempotency_key="once") == made
        (waiting,) = alice.proposals(desk.workspace_id, awaiting_me=True).items
        assert (waiting.psbt_id, waiting.tx_type) == (made.psbt_id, TxType.FORWARD)
        approval = SignPsbtRequest(
            psbt_id=made.psbt_id, workspace_id=desk.workspace_id, psbt_base64=signed(desk, made.psbt_base64)
        )
        assert alice.sign_psbt(approval).status is ProposalStatus.SIGNED
        assert alice.signing_profile_address("testnet", key_id=profile.key_id).locked_sats == 100_000
        exported = alice.vault_export(desk.workspace_id, desk.vault["id"], "bsms")
        assert vault_of_file(exported.text, Network.REGTEST) == desk.policy


@pytest.mark.anyio
async def test_awaited(desk: Desk) -> None:
    transport = httpx.ASGITransport(desk.world.platform.asgi, client=("192.0.2.9", 50_000))
    async with AsyncClient(
        "http://127.0.0.1", transport=transport, now=desk.world.clock().timestamp
    ) as alice:
        await alice.login("alice@example.org", PASSWORD)
        with pytest.raises(ApiError) as refused:
            await alice.forward_to_vault(asked(desk, wallet_address=desk.vault["address"]))
        assert refused.value.problem.code == "WALLET_ADDRESS_MISMATCH"
        made = await alice.forward_to_vault(asked(desk))
        assert (await alice.proposal(made.psbt_id)).amounts_sats == [99_000]
        assert (await alice.vault_export(desk.workspace_id, desk.vault["id"])).text == desk.vault[
            "descriptor"
        ]

"""The limits, a forward and a vault's export through the SDK, against the real platform; and what of its
answers is refused.
"""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from custody.client import ApiError, AsyncClient, BadAnswer, Client
from custody.schemas.auth import LoginRequest
from custody.schemas.forwards import ForwardToVaultRequest
from custody.schemas.limits import (
    AssetLimits,
    LimitError,
    UpdateVaultRequest,
    VaultLimits,
)
from tests.custody.client.test_clients import client, scripted
from tests.support.custody import Desk, open_desk
from tests.support.platform import PASSWORD
from tests.support.policy_store import OUT_OF_REACH, RemotePolicies
from tests.support.profiles import grant, pay_profile
from tests.support.sdk import sdk
from tests.support.token_desk import BOB, TokenDesk


@pytest.fixture
def remote() -> RemotePolicies:
    return RemotePolicies()


@pytest.fixture
def desk(tmp_path: Path, remote: RemotePolicies) -> Iterator[Desk]:
    with open_desk(tmp_path, policies=remote) as opened:
        yield opened


@pytest.fixture
def admin(desk: Desk) -> Client:
    return sdk(desk.world, "admin@example.org")


def test_a_vault(desk: Desk, admin: Client, remote: RemotePolicies) -> None:
    vault_id = desk.vault["id"]
    body = UpdateVaultRequest(
        vault_id=vault_id, workspace_id=1, transaction_limit="2", cycle_period="M", cycle_day=31
    )
    changed = admin.update_vault(body)
    assert isinstance(changed, VaultLimits)
    assert (changed.limit, changed.per_cycle) == ("2.00000000", False)
    assert admin.vault_limits(1, vault_id) == changed == admin.list_wallets(1)[0].detailed_vault_limits
    assert admin.check_vault_limit(1, vault_id, "2").success
    assert not admin.check_vault_limit(1, vault_id, "2.00000001").success
    remote.is_reachable = False
    assert admin.vault_limits(1, vault_id) == LimitError(limit_error=OUT_OF_REACH)
    (vault,) = admin.list_wallets(1)
    assert (vault.detailed_vault_limits, vault.limit_error, vault.assets) == (None, OUT_OF_REACH, None)


def test_a_vaults_tokens(desk: Desk, admin: Client) -> None:
    tokens = TokenDesk(desk)
    tokens.fund(100_000)
    uid = tokens.started()
    assert admin.list_wallets(1)[0].assets == []
    tokens.done(uid, "transfer", BOB, 40)
    (vault,) = admin.list_wallets(1)
    assert vault.detailed_vault_limits is not None
    assert vault.assets == [
        AssetLimits(
            contract_uid=uid, contract_id=admin.contract(1, uid).contract_id, ticker="GOLD", decimals=2,
            limit="10.00", used="0.40", unused="9.60", next_reset=vault.detailed_vault_limits.next_reset,
        )
    ]  # fmt: skip


def test_a_platform_that_is_older_tells_nothing_of_tokens(desk: Desk) -> None:
    """Which is not that none were moved."""
    vault = {name: value for name, value in desk.vault.items() if name != "assets"}
    handler, _ = scripted(httpx.Response(200, json=[vault]))
    (read,) = client(handler).list_wallets(1)
    assert read.assets is None
    assert "assets" not in read.model_dump()


@pytest.mark.parametrize("both", [True, False])
def test_a_vault_with_both_or_neither_is_no_answer(desk: Desk, both: bool) -> None:
    vault = dict(desk.vault)
    if both:
        vault["limit_error"] = "no"
    else:
        del vault["detailed_vault_limits"]
    handler, _ = scripted(httpx.Response(200, json=[vault]))
    with pytest.raises(BadAnswer, match="either detailed_vault_limits or limit_error"):
        client(handler).list_wallets(1)


@pytest.fixture
def funded(tmp_path: Path) -> Iterator[Desk]:
    with open_desk(tmp_path / "state") as opened:
        grant(opened, "Signer", "PAYMENT_INIT")
        pay_profile(opened, "alice", 100_000)
        yield opened


def asked(funded: Desk, **changes: object) -> ForwardToVaultRequest:
    return ForwardToVaultRequest(
        workspace_id=funded.workspace_id, vault_id=funded.vault["id"], network="testnet", fee_sats=1_000,
        **({"sweep": True} | changes),
    )  # fmt: skip


@pytest.mark.anyio
async def test_awaited(funded: Desk) -> None:
    transport = httpx.ASGITransport(funded.world.platform.asgi, client=("192.0.2.9", 50_000))
    async with AsyncClient(
        "http://127.0.0.1", transport=transport, now=funded.world.clock().timestamp
    ) as alice:
        await alice.login(LoginRequest(email="alice@example.org", password=PASSWORD))
        with pytest.raises(ApiError) as refused:
            await alice.forward_to_vault(asked(funded, wallet_address=funded.vault["address"]))
        assert refused.value.problem.code == "WALLET_ADDRESS_MISMATCH"
        made = await alice.forward_to_vault(asked(funded))
        assert (await alice.proposal(made.psbt_id)).amounts_sats == [99_000]
        assert (await alice.vault_export(funded.workspace_id, funded.vault["id"])).text == funded.vault[
            "descriptor"
        ]

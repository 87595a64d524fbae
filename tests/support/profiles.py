"""Members' profiles on the embedded chain: their policies, balances and forwards."""

import httpx

from device_simulators.seed import Seed
from multisig import Profile
from tests.support.custody import Desk, ok
from tests.support.platform import As
from tests.support.staff import add_permission, remove_permission, roles
from tests.support.wallets import Holder

PATH = "/api/v1/signing-profile-address"


def policy_of(device: Seed) -> Profile:
    return Holder(device).profile()


def profile_of(user: As, **query: object) -> dict:
    return ok(user.get(PATH, network="testnet", **query))


def figures(user: As, **query: object) -> tuple[int, int, int]:
    """Confirmed, unconfirmed and locked satoshis."""
    shown = profile_of(user, **query)
    return shown["confirmed_sats"], shown["unconfirmed_sats"], shown["locked_sats"]


def pay_profile(desk: Desk, name: str, *amounts: int, blocks: int = 6) -> list[str]:
    return desk.deposit(*amounts, blocks=blocks, to=policy_of(desk.devices[name]).address(0, 0))


def forward(
    desk: Desk, name: str, amount: int | None = None, fee: int = 1_000, *, user: As | None = None, **changes
) -> httpx.Response:
    """Asks for a forward; ``amount`` None sweeps. ``user``: asks instead of the signer of that name."""
    body = {"vault_id": desk.vault["id"], "network": "testnet", "fee_sats": fee}
    body |= {"sweep": True} if amount is None else {"amount_sats": amount}
    return desk.tell("forward-to-vault", user or desk.signers[name], **body | changes)


def grant(desk: Desk, role: str, permission: str) -> None:
    ok(add_permission(desk.admin, _role_id(desk, role), permission, desk.workspace_id))


def take_away(desk: Desk, role: str, permission: str) -> None:
    """Forced, also where a vault then has too few signers."""
    ok(remove_permission(desk.admin, _role_id(desk, role), permission, desk.workspace_id, force=True))


def _role_id(desk: Desk, role: str) -> int:
    return roles(desk.admin, desk.workspace_id)[role]["RoleId"]

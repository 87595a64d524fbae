"""Members' profiles on the embedded chain: their policies, balances and forwards."""

import httpx

from device_simulators.seed import Seed
from multisig import KeyOrigin, Network, OriginKey, Profile, Psbt, profile_account_path
from tests.support.custody import Desk, ok, sign
from tests.support.platform import As

NETWORK = Network.REGTEST
PATH = "/api/v1/signing-profile-address"


def policy_of(device: Seed) -> Profile:
    path = profile_account_path(NETWORK)
    return Profile(NETWORK, OriginKey(KeyOrigin(device.fingerprint, path), device.xpub(path, NETWORK)))


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
    body = {
        "workspace_id": desk.workspace_id,
        "vault_id": desk.vault["id"],
        "network": "testnet",
        "fee_sats": fee,
        **({"sweep": True} if amount is None else {"amount_sats": amount}),
    }
    return (user or desk.signers[name]).post("/api/v1/forward-to-vault", body | changes)


def signed_forward(desk: Desk, name: str, psbt_id: str) -> Psbt:
    psbt = Psbt.parse(desk.proposal(psbt_id)["psbt_base64"])
    return sign(desk.devices[name], psbt, policy_of(desk.devices[name]))


def approve_forward(desk: Desk, name: str, psbt_id: str) -> dict:
    return ok(desk.submit(name, psbt_id, signed_forward(desk, name, psbt_id)))


def grant(desk: Desk, role: str, permission: str) -> None:
    _change(desk, "add-perm-to-role", role, permission)


def take_away(desk: Desk, role: str, permission: str) -> None:
    """Forced, also where a vault then has too few signers."""
    _change(desk, "remove-perm-from-role", role, permission, force=True)


def _change(desk: Desk, path: str, role: str, permission: str, **more: object) -> None:
    roles = ok(desk.admin.get("/api/v1/get-roles-and-perms-detailed", workspace_id=desk.workspace_id))
    (role_id,) = [each["RoleId"] for each in roles if each["Name"] == role]
    body = {"workspace_id": desk.workspace_id, "role_id": role_id, "rule_name": permission}
    ok(desk.admin.post(f"/api/v1/{path}", body | more))

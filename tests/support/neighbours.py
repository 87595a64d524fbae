"""Another tenant of the same platform, on the same chain."""

from tests.support.custody import SIGNERS, Desk, ok
from tests.support.platform import register_key, seed


def neighbour_of(desk: Desk, name: str = "Umbrella") -> Desk:
    """An organisation with people, devices and a vault of its own."""
    world, place = desk.world, name.lower()
    placed = world.organisation(name, f"admin@{place}.example")
    signers, user_ids, devices = {}, {}, {}
    for number, signer in enumerate(SIGNERS, start=11):
        email = f"{signer}@{place}.example"
        user_ids[signer] = world.member(placed.workspace_id, email).user_id
        signers[signer], devices[signer] = world.as_user(email), seed(number)
        ok(register_key(signers[signer], devices[signer]))
    admin = world.as_user(f"admin@{place}.example")
    found = Desk(world, desk.chain, placed.workspace_id, admin, signers, user_ids, devices)
    found.vault = ok(found.create_vault("Reserve"))
    return found

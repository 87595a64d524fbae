"""A hundred vaults of two groups of signers, with one exposed key each: from an advisory to the list of
exposed vaults, and from the exposed keys to sweeps that await approval. A key joins 101 vaults at most, so
that one group cannot have a hundred and their replacements.
"""

import time

from benchmarks.custody.stage import databases, fill, staged
from tests.support.advisories import Publisher, entry, trust
from tests.support.custody import SIGNERS, Desk, ok
from tests.support.evacuations import add_accounts, ask, confirm, key_of, plan_of, report, staff
from tests.support.platform import register_key, seed

VAULTS, COINS = 100, 10
OTHERS = ("frank", "gina", "hal")


def _stage(desk: Desk) -> None:
    for number, name in enumerate(OTHERS, start=21):
        email = f"{name}@example.org"
        desk.user_ids[name], desk.devices[name] = desk.world.member(1, email).user_id, seed(number)
        desk.signers[name] = desk.world.as_user(email)
        ok(register_key(desk.signers[name], desk.devices[name]))
    add_accounts(desk, VAULTS, *SIGNERS, *OTHERS, "erin")
    made = [desk.vault]
    for number in range(2, VAULTS + 1):
        names = SIGNERS if number <= VAULTS // 2 else OTHERS
        signers = [desk.user_ids[name] for name in names]
        made.append(ok(desk.create_vault(f"Vault {number}", signers=signers)))
    desk.vault = made[-1]
    for each in made:
        fill(desk, COINS, vault_id=each["id"])


def _exposed(desk: Desk) -> int:
    """How many vaults an advisory concerns, where the makes of all devices are unknown."""
    publisher = Publisher()
    trust(desk, publisher.root)
    told = publisher.list(1, entry(), expires="9999-01-01T00:00:00Z").line.decode()
    body = {"workspace_id": 1, "list": told}
    (advisory,) = ok(desk.admin.post("/api/v1/take-advisories", body))["advisories"]
    query = {"workspace_id": 1, "advisory_id": advisory["advisory_id"]}
    return len(ok(desk.admin.get("/api/v1/exposures", **query)))


def evacuation(name: str, url: str) -> None:
    with staged(url) as desk:
        second, keys = staff(desk), [key_of(desk, "carol")]
        _stage(desk)
        keys.append(key_of(desk, "hal"))
        taken = time.perf_counter()
        exposed = _exposed(desk)
        began = time.perf_counter()
        plan = plan_of(desk, keys)
        planned = time.perf_counter()
        change = ask(desk, keys, plan["plan_hash"])
        ok(confirm(second, change))
        confirmed = time.perf_counter()
        desk.outbox.run_due()
        ended = time.perf_counter()
        stages = [each["stage"] for each in report(desk)["vaults"]]
    assert (exposed, stages) == (VAULTS, ["awaiting-approval"] * VAULTS)
    print(
        f"{name:>10}  evacuation of {VAULTS} vaults: advisory to exposed vaults {began - taken:.1f} s, "
        f"plan {planned - began:.1f} s, asked for and confirmed "
        f"{confirmed - planned:.1f} s, replaced and swept {ended - confirmed:.1f} s; "
        f"in all {ended - taken:.1f} s"
    )


def main() -> None:
    with databases() as urls:
        for name, url in urls.items():
            evacuation(name, url)

"""No two vaults share an account, whoever signs in them and however often a device is registered (BIP-48, BIP-388)."""

import tempfile
from itertools import combinations
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from multisig import Network, Vault
from tests.support.custody import SIGNERS, Desk, open_desk, refused
from tests.support.platform import register_key, seed

SUBSETS = [list(some) for size in (1, 2, 3) for some in combinations(SIGNERS, size)]
# A vault of some of them; a device in the place of another one; the same device once more after it was lost.
steps = st.lists(
    st.one_of(
        st.tuples(st.just("vault"), st.sampled_from(SUBSETS)),
        st.tuples(st.just("replace"), st.tuples(st.sampled_from(SIGNERS), st.integers(1, 5))),
        st.tuples(st.just("again"), st.sampled_from(SIGNERS)),
    ),
    min_size=1,
    max_size=8,
)


def take(desk: Desk, number: int, what: str, who) -> None:
    match what:
        case "vault":
            signers = [desk.user_ids[name] for name in who]
            answer = desk.create_vault(f"Vault {number}", m=1, signers=signers)
            if answer.status_code != 200:
                refused(answer, 409, "KEY_ACCOUNTS_EXHAUSTED")
        case "replace":
            name, device = who
            # Refused where the device is another member's.
            answer = register_key(desk.signers[name], seed(device), replace=True)
            assert answer.status_code in {200, 409}, answer.text
        case "again":
            user = desk.signers[who]
            for key in user.get("/api/v1/keys").json():
                user.post("/api/v1/revoke-key", {"key_id": key["ID"], "reason": "lost", "force": True})
            assert register_key(user, desk.devices[who]).status_code in {200, 409}


@settings(max_examples=12, deadline=None)
@given(steps)
def test_no_two_vaults_share_a_key_or_an_address(taken: list) -> None:
    with tempfile.TemporaryDirectory() as folder, open_desk(Path(folder) / "state") as desk:
        for number, (what, who) in enumerate(taken):
            take(desk, number, what, who)
            desk.world.clock.advance(seconds=10)
        vaults = [Vault.from_descriptor(each["descriptor"], Network.REGTEST) for each in desk.wallets()]
    keys = [key.xpub.public_key for vault in vaults for key in vault.cosigners]
    assert len(set(keys)) == len(keys)
    assert len({vault.address(0, 0) for vault in vaults}) == len(vaults)

"""A forward, from the purchase to the vault: the real platform, the real daemon,
a virtual device behind HWI.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from firmware_bridge import Family
from multisig import RECEIVE
from signerd.core.states import State
from tests.conformance.rigs import make_rig, short_folder
from tests.support.custody import Desk, ok, open_desk
from tests.support.daemons import until_state
from tests.support.platform import As
from tests.support.profiles import figures, forward, grant, pay_profile, policy_of, profile_of
from tests.support.purchases import deliver, transaction
from tests.support.real_signer import pin, register, signer

pytestmark = pytest.mark.anyio
BOUGHT = 481_234
# More deposits than a gap limit: the daemon finds the vault's address all the same.
USED_ADDRESS = 25


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with open_desk(tmp_path / "platform") as opened:
        grant(opened, "Signer", "PAYMENT_INIT")
        yield opened


def buys(desk: Desk, user: As) -> None:
    """The provider pays to the profile's address, and says so."""
    (txid,) = pay_profile(desk, "alice", BOUGHT)
    report = {"status": "completed", "quoteCurrencyAmount": 0.00481234, "cryptoTransactionId": txid}
    ok(deliver(desk.world, transaction(profile_of(user)["wallet_address"], **report)))
    (purchase,) = ok(user.get("/api/v1/purchases"))
    assert purchase["crypto_transaction_id"] == txid
    assert figures(user) == (BOUGHT, 0, 0)


async def test_what_was_bought_is_forwarded_into_the_vault(desk: Desk) -> None:
    user = desk.signers["alice"]
    with short_folder() as name:
        folder = Path(name)
        rig = make_rig(Family.TREZOR, folder, seed=desk.devices["alice"])
        async with signer(desk, "alice", rig, folder) as alice:
            # The device that is registered already, from this machine for the first time.
            await register(alice)
            await pin(alice, desk.vault["id"])
            for index in (19, USED_ADDRESS):
                desk.deposit(10_000, to=desk.policy.address(RECEIVE, index))
            buys(desk, user)
            psbt_id = ok(forward(desk, "alice", 300_000, 2_000))["psbt_id"]

            await until_state(alice, psbt_id, State.WAITING_PERSON)
            shown = await alice.proposal(psbt_id)
            assert {check.outcome for check in shown.checks} == {"allow"}
            (told,) = [check.sentence for check in shown.checks if check.name == "forward-destination"]
            assert f"to its address {USED_ADDRESS + 1}" in told
            assert shown.money is not None
            assert [change.amount_sats for change in shown.money.change] == [BOUGHT - 302_000]
            await alice.approve(psbt_id, shown.digest)
            await until_state(alice, psbt_id, State.SUBMITTED, State.BROADCAST)

            desk.settle()
            desk.chain.mine(1)
            desk.settle()
            await until_state(alice, psbt_id, State.CONFIRMED)
            assert (await alice.verify_audit()).fault is None
    assert desk.wallets()[0]["confirmed_sats"] == 300_000 + 2 * 10_000
    assert figures(user) == (BOUGHT - 302_000, 0, 0)
    change = desk.chain.transaction(desk.proposal(psbt_id)["txid"])
    assert change is not None
    own = policy_of(desk.devices["alice"]).script_pubkey(1, 0)
    assert own in {output.script_pubkey for output in change.transaction.outputs}

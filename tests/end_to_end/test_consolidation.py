"""Many small coins become one: proposed in the console, checked by the real daemon from the PSBT's own bytes,
signed on a virtual device behind HWI, and mined.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from firmware_bridge import Family
from signerd.core.states import State
from tests.conformance.rigs import make_rig, short_folder
from tests.support.asgi import asgi_client
from tests.support.console import Visitor
from tests.support.custody import Desk, open_desk
from tests.support.daemons import until_state
from tests.support.history import listed_coins
from tests.support.real_signer import pin, register, signer

pytestmark = pytest.mark.anyio
SMALL = range(3_000, 11_000, 250)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with open_desk(tmp_path / "platform") as opened:
        opened.deposit(*SMALL)
        yield opened


async def test_small_coins_are_proposed_checked_signed_and_one_is_left(desk: Desk) -> None:
    path = f"/console/w/{desk.workspace_id}/vaults/{desk.vault['id']}/consolidate"
    with short_folder() as name, asgi_client(desk.world.platform.asgi) as http:
        rig = make_rig(Family.TREZOR, Path(name), seed=desk.devices["alice"])
        async with signer(desk, "alice", rig, Path(name)) as alice:
            await register(alice)
            await pin(alice, desk.vault["id"])
            person = Visitor(http).sign_in("admin@example.org").open(path).send(path, fee_rate="1")
            psbt_id = person.confirm(path).url.rpartition("/")[2]

            await until_state(alice, psbt_id, State.WAITING_PERSON)
            shown = await alice.proposal(psbt_id)
            assert {check.outcome for check in shown.checks} == {"allow"}
            assert shown.money is not None
            (back,) = shown.money.change
            assert (shown.money.paid_sats, shown.money.inputs) == (0, len(SMALL))
            await alice.approve(psbt_id, shown.digest)
            await until_state(alice, psbt_id, State.SUBMITTED)
            desk.approve("bob", psbt_id)
            desk.settle()
            desk.mine()
            await until_state(alice, psbt_id, State.CONFIRMED)
    (left,) = listed_coins(desk)
    proposal = desk.proposal(psbt_id)
    assert left["amount_sats"] == back.amount_sats == sum(SMALL) - proposal["fee_sats"]
    assert (left["txid"], left["state"]) == (proposal["txid"], "spendable")

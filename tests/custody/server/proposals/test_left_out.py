"""P103: a request that loses fields on its way, or has null in their place, takes no more out of a vault.

The oracle reads the PSBTs by embit, and knows nothing of the product's requests but which are valid.
"""

import pytest
from embit.psbt import PSBT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from custody.schemas.proposals import CreatePsbtRequest
from custody.schemas.sending import ForwardToVaultRequest
from custody.server.store.models import ProposalRow
from tests.support.custody import CAFE, SHOP, ok
from tests.support.examples import examples
from tests.support.history import listed_coins
from tests.support.profiles import grant, pay_profile, policy_of
from tests.support.replacing import finished, made

LINK = f"BITCOIN:{CAFE.upper()}?AMOUNT=.0004&LABEL=x"
FOLLOWING = ("replaces_psbt_id", "cancels_psbt_id")
MORE = {"description": "rent", "contract_ids": ["7"], "op_return": "x", "priority": "high", "fee_rate": "9"}


@pytest.fixture
def requests(desk):
    """Valid bodies of `create-psbt`, which together have every field, beside what else is under way."""
    desk.deposit(300_000, 200_000, 90_000, 80_000)
    sent, waiting = made(desk.propose(50_000, fee_rate="2")), made(desk.propose(60_000, fee_rate="2"))
    finished(desk, sent)
    coin = max(listed_coins(desk, state="spendable"), key=lambda each: each["amount_sats"])
    named = {"coins": [f"{coin['txid']}:{coin['vout']}"]}
    dear = {"fee_rate": "30"}
    place = {"wallet_id": desk.vault["id"], "workspace_id": desk.workspace_id, "tx_type": "send"}
    bodies = [
        {"recipients": [SHOP], "amounts_sats": [20_000]},
        {"recipients": [SHOP, CAFE], "amounts_sats": [20_000, 30_000], **named},
        {"recipients": [LINK]},
        {"recipients": [SHOP, LINK], "amounts_sats": [1_000, 40_000]},
        {"recipients": [SHOP], "sweep": True},
        {"recipients": [f"bitcoin:{SHOP}"], "sweep": True},
        {"recipients": [SHOP], "sweep_coins": True, **named},
        {"op_return": "alone"},
        {"replaces_psbt_id": waiting, **dear},
        {"replaces_psbt_id": sent, **dear},
        {"cancels_psbt_id": waiting, **dear},
        {"cancels_psbt_id": sent, **dear},
    ]
    known = set().union(*bodies, MORE, place)
    assert known == set(CreatePsbtRequest.model_fields), "each field is drawn"
    return [place | body for body in bodies]


def taken(psbt_base64: str) -> tuple[int, int]:
    """What it pays to others, and that with its fee. The platform marks its change for the devices."""
    psbt = PSBT.from_string(psbt_base64)
    ours = [bool(out.bip32_derivations) for out in psbt.outputs]
    others = sum(out.value for out, own in zip(psbt.tx.vout, ours, strict=True) if not own)
    back = sum(out.value for out, own in zip(psbt.tx.vout, ours, strict=True) if own)
    return others, sum(each.witness_utxo.value for each in psbt.inputs) - back


def require_no_more(desk, body, gone, null=()):
    """Previews a valid request, and again without the fields ``gone``, of which ``null`` are null."""
    lost = {name: value for name, value in body.items() if name not in gone} | dict.fromkeys(null)
    answer = desk.admin.post("/api/v1/preview-psbt", lost)
    if answer.status_code != 200:
        assert answer.status_code == 422, answer.text
        return
    whole = ok(desk.admin.post("/api/v1/preview-psbt", body))
    under_way = {row.id: sum(row.amounts_sats) for row in desk.rows(ProposalRow)}

    def leaves(asked, shown):
        """A version counts once with what it replaces. A fee that is left out is the platform's: of a sweep
        the sum with the fee counts, of other payments what others get.
        """
        others, with_fee = taken(shown["psbt_base64"])
        replaced = {asked.get(name) for name in FOLLOWING}
        kept = sum(amount for psbt_id, amount in under_way.items() if psbt_id not in replaced)
        return kept + (with_fee if body.get("sweep") or body.get("sweep_coins") else others)

    assert leaves(lost, answer.json()) <= leaves(body, whole), (body, lost)


def test_p103_a_field_that_is_left_out_never_raises_what_leaves_the_vault(desk, requests):
    for body in requests:
        for name in body:
            require_no_more(desk, body, [name])
            require_no_more(desk, body, [name], [name])


@settings(
    max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_p103_nor_do_several(desk, requests, data):
    body = data.draw(st.sampled_from(requests))
    if not set(body) & set(FOLLOWING):
        more = data.draw(st.sampled_from(("priority", "fee_rate")))
        body = body | {name: MORE[name] for name in ("description", "contract_ids", "op_return", more)}
    fields = sorted(body.keys() - {"wallet_id", "workspace_id", "tx_type"})
    gone = data.draw(st.sets(st.sampled_from(fields), min_size=1))
    require_no_more(desk, body, gone, data.draw(st.sets(st.sampled_from(sorted(gone)))))


@pytest.mark.parametrize("wanted", [{"amount_sats": 50_000}, {"sweep": True}])
def test_p103_nor_what_leaves_a_profile(desk, wanted):
    grant(desk, "Signer", "PAYMENT_INIT")
    pay_profile(desk, "alice", 100_000, 70_000)
    body = {
        "workspace_id": desk.workspace_id, "vault_id": desk.vault["id"], "network": "testnet",
        "fee_sats": 1_000, "allow_unconfirmed": True,
        "wallet_address": policy_of(desk.devices["alice"]).address(0, 0), **wanted,
    }  # fmt: skip
    whole = ok(desk.signers["alice"].post("/api/v1/preview-forward", body))
    body["coins"] = whole["coins"]
    assert set(body) | {"amount_sats", "sweep"} == set(ForwardToVaultRequest.model_fields)
    for name in body:
        for lost in ({key: body[key] for key in body if key != name}, body | {name: None}):
            answer = desk.signers["alice"].post("/api/v1/preview-forward", lost)
            assert answer.status_code in {200, 422}, answer.text
            if answer.status_code == 200:
                assert taken(answer.json()["psbt_base64"])[1] <= taken(whole["psbt_base64"])[1]

"""``assets`` in a vault's record: what it moved of each token in its cycle, by the sums that refuse
(docs/operate/limits.md).
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from sqlalchemy.orm import Session

from custody.server.domain.limits import in_tokens
from custody.server.service.limits.limits import StoredPolicies, assets_of_vaults
from custody.server.service.limits.usage import OutgoingTokens, token_usage_of_vault
from custody.server.store import Store
from custody.server.store.models import ContractCallRow, OrganisationRow, ProposalRow, UserRow, WorkspaceRow
from multisig.tokens import MAX_TOKEN_AMOUNT
from tests.custody.server.service.limits.test_limits import bound_cycle, set_vault
from tests.support.custody import Desk, ok, refused
from tests.support.platform import START, plain_vault
from tests.support.prepared import Story
from tests.support.replacing import bump, made
from tests.support.rows import a_contract, a_proposal
from tests.support.token_desk import BOB, TokenDesk


@pytest.fixture
def beginning() -> Story:
    return many_coins


def many_coins(desk: Desk) -> None:
    TokenDesk(desk).fund(*[50_000] * 7)


@pytest.fixture
def tokens(desk: Desk) -> TokenDesk:
    """With coins enough for calls that wait beside each other."""
    found = TokenDesk(desk)
    found.look()
    return found


def assets(tokens: TokenDesk) -> list[dict]:
    (vault,) = tokens.desk.wallets()
    return vault["assets"]


def figures(tokens: TokenDesk) -> list[tuple[str, str, str]]:
    return [(each["Limit"], each["Used"], each["Unused"]) for each in assets(tokens)]


class TestWhatCounts:
    def test_what_is_transferred_minted_and_burnt(self, tokens):
        assert tokens.desk.vault["assets"] == []
        uid = tokens.started()
        ok(tokens.call(uid, "transfer", tokens.address, 900))
        assert assets(tokens) == [], "of a token that was not moved nothing is there"
        for function, address, amount in (
            ("transfer", BOB, 40),
            ("mint", BOB, 5),
            ("burn", tokens.address, 100),
        ):
            ok(tokens.call(uid, function, address, amount))
        record = ok(tokens.desk.admin.get("/api/v1/contract", workspace_id=1, contract_uid=uid))
        token = {"contract_uid": uid, "contract_id": record["contract_id"], "ticker": "GOLD", "decimals": 2}
        reset = tokens.desk.wallets()[0]["detailed_vault_limits"]["NextReset"]
        shown = {"Limit": "10.00", "Used": "1.45", "Unused": "8.55", "NextReset": reset}
        ok(tokens.call(uid, "pause"))
        assert assets(tokens) == [token | shown]

    def test_each_token_has_its_own_the_oldest_first(self, tokens):
        gold, dust = tokens.started(), tokens.started(ticker="DUST", decimals_num=0)
        ok(tokens.call(dust, "transfer", BOB, 3))
        ok(tokens.call(gold, "transfer", BOB, 3))
        assert [(each["contract_uid"], each["ticker"]) for each in assets(tokens)] == [
            (gold, "GOLD"),
            (dust, "DUST"),
        ]
        assert figures(tokens) == [("10.00", "0.03", "9.97"), ("10", "3", "7")]

    def test_a_call_and_its_bump_count_once(self, tokens):
        uid = tokens.started()
        first = made(tokens.call(uid, "transfer", BOB, 40))
        tokens.finish(made(bump(tokens.desk, first, fee_rate="8")))
        assert figures(tokens) == [("10.00", "0.40", "9.60")]
        declined = made(tokens.call(uid, "transfer", BOB, 100))
        assert figures(tokens) == [("10.00", "1.40", "8.60")]
        set_vault(tokens.desk, "1")
        assert figures(tokens) == [("1.00", "1.40", "0.00")], "lowered under what is used"
        tokens.desk.reject(declined)
        assert figures(tokens) == [("1.00", "0.40", "0.60")], "what never reached the network is given back"


class TestLimit:
    def test_a_refusal_carries_the_same_figures_and_unused_is_what_passes(self, tokens):
        """Of a cycle's sum; a limit that the token cannot be divided into lets through what is below it."""
        for decimals, limit in ((0, "500.9"), (2, "5.00999999"), (18, "0.5")):
            set_vault(tokens.desk, "21000000", per_cycle=False)
            supply = str(MAX_TOKEN_AMOUNT)
            made_anew = {"ticker": f"GOLD{decimals}", "total_supply": supply, "max_supply": supply}
            uid = tokens.started(decimals_num=decimals, **made_anew)
            set_vault(tokens.desk, "21000000")
            ok(tokens.call(uid, "transfer", BOB, 400))
            set_vault(tokens.desk, limit)
            bound_cycle(tokens.desk)
            *_, shown = assets(tokens)
            left = int(shown["Unused"].replace(".", ""))
            problem = refused(tokens.call(uid, "transfer", BOB, left + 1), 403, "VAULT_LIMIT_EXCEEDED")
            assert problem["figures"] == {
                "limit": shown["Limit"],
                "used": shown["Used"],
                "requested": in_tokens(left + 1, decimals),
                "next_reset": shown["NextReset"],
            }
            ok(tokens.call(uid, "transfer", BOB, left))
            *_, shown = assets(tokens)
            assert (shown["Used"], int(shown["Unused"].replace(".", ""))) == (shown["Limit"], 0)


# --- many vaults and tokens ---------------------------------------------------------------------------------

VAULTS, TOKENS, CALLS = [f"v{number}" for number in range(6)], (1, 2), 400
NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
CYCLES = (("W", 1), ("M", 1), ("M", 15))
# Three of the largest are beyond 64 bits.
AMOUNTS = (1, 40, 2**32 - 1, 2**32, MAX_TOKEN_AMOUNT, MAX_TOKEN_AMOUNT)


@dataclass(frozen=True)
class Row:
    vault: str
    token: int
    function: str
    amount: int | None
    status: str
    at: datetime


def random_rows(chance: Random) -> list[Row]:
    return [
        Row(
            chance.choice(VAULTS),
            chance.choice(TOKENS),
            function := chance.choice(["transfer", "mint", "burn", "pause"]),
            None if function == "pause" else chance.choice(AMOUNTS),
            chance.choice(["PENDING", "CONFIRMED", "REPLACED", "EXPIRED", "REJECTED"]),
            NOW - timedelta(hours=chance.randrange(24 * 25)),
        )
        for _ in range(CALLS)
    ]


def store_rows(db: Session, rows: list[Row]) -> None:
    db.add(UserRow(id=1, email="1@example.org", created_at=START))
    db.add(OrganisationRow(id=1, name="Acme", created_at=START))
    db.flush()
    place = {"name": "Main", "description": "", "network": "testnet", "chain": "regtest"}
    db.add(WorkspaceRow(id=1, organisation_id=1, created_at=START, **place))
    db.flush()
    for number, vault_id in enumerate(VAULTS):
        vault = plain_vault(vault_id)
        vault.limit_sats = 150_000_000
        vault.cycle_period, vault.cycle_day = CYCLES[number % len(CYCLES)]
        db.add(vault)
    db.flush()
    for token in TOKENS:
        db.add(proposal_of(f"deployment {token}", Row(VAULTS[0], token, "deploy", None, "CONFIRMED", START)))
        db.flush()
        family_id = f"deployment {token}"
        db.add(a_contract(token, VAULTS[0], family_id, decimals=token, total_supply=0))
    db.flush()
    db.add_all(proposal_of(f"call {number}", row) for number, row in enumerate(rows))
    db.flush()
    db.add_all(a_call(f"call {number}", row) for number, row in enumerate(rows))
    db.flush()


def proposal_of(proposal_id: str, row: Row) -> ProposalRow:
    kind = {"tx_type": "call"}
    if row.function == "deploy":
        kind = {"tx_type": "deploy", "txid": f"txid of {proposal_id}"}
    return a_proposal(
        proposal_id, vault_id=row.vault, status=row.status, op_return_hex="00", at=row.at, **kind
    )


def a_call(family_id: str, row: Row) -> ContractCallRow:
    script = None if row.amount is None else b"somebody"
    return ContractCallRow(
        contract_uid=row.token, workspace_id=1, vault_id=row.vault, function_name=row.function, args=[],
        amount=row.amount, address_script=script, family_id=family_id, created_by=1, created_at=row.at,
    )  # fmt: skip


def expected(rows: list[Row]) -> dict[str, dict[int, int]]:
    """Summed one by one; the cycles of the vaults began on 16, 1 and 15 March."""
    began = [datetime(2026, 3, day, tzinfo=UTC) for day in (16, 1, 15)]
    found: dict[str, dict[int, int]] = {vault_id: defaultdict(int) for vault_id in VAULTS}
    for row in rows:
        since = began[VAULTS.index(row.vault) % len(began)]
        if row.amount is not None and row.at >= since and row.status not in {"EXPIRED", "REJECTED"}:
            found[row.vault][row.token] += row.amount
    return found


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_vaults_figures_are_those_that_a_movement_is_measured_by(store: Store, seed: int) -> None:
    rows = random_rows(Random(seed))
    with store.write() as db:
        store_rows(db, rows)
        policies = StoredPolicies().of_vaults(db, VAULTS)
        shown = assets_of_vaults(db, policies, NOW)
        wanted = expected(rows)
        assert max(max(each.values()) for each in wanted.values()) > 2**64
        assert {vault_id: [each.contract_uid for each in found] for vault_id, found in shown.items()} == {
            vault_id: sorted(each) for vault_id, each in wanted.items()
        }
        for vault_id, found in shown.items():
            since = policies[vault_id].cycle.start(NOW)
            for each in found:
                token = each.contract_uid
                assert (each.ticker, each.contract_id) == (f"T{token}", f"txid of deployment {token}")
                movement = OutgoingTokens(
                    token, each.ticker, each.decimals, 1, for_role=True, proposed_at=NOW
                )
                measured = token_usage_of_vault(db, vault_id, since, movement).used
                assert measured == wanted[vault_id][each.contract_uid]
                assert each.used == in_tokens(measured, each.decimals)

"""Calling a token: what is asked is checked, judged behind what waits, built, and done on the chain. Tokens
go to the vault's token address or to another owner: from the vault's other addresses they could not be moved
again.
"""

from sqlalchemy import select

from custody.server.store.models import ContractCallRow, ContractRow, TokenBlockRow, TokenTransactionRow
from custody.server.tokens.call_checks import waiting_calls
from multisig import CHANGE, RECEIVE, Network, Psbt, Vault
from multisig.tokens import Function
from tests.support.custody import neighbour_of, ok, refused
from tests.support.profiles import grant
from tests.support.replacing import meanwhile
from tests.support.token_desk import BOB, BOB_SCRIPT, EVE

MAINNET = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"


def own_script(tokens):
    return tokens.desk.policy.script_pubkey(RECEIVE, 0)


def fault(problem):
    (found,) = problem["errors"]
    return found["pointer"], found["code"]


def typed(amount):
    return [{"type": "str", "value": BOB}, {"type": "int", "value": amount}]


def several_coins(tokens, count=3):
    tokens.fund(*[50_000] * count)


def test_every_function_from_init_to_a_change_of_owner(tokens):
    """Of a token with a list (P32), whose former owner does no more (P34)."""
    uid = tokens.deployed(whitelist_enabled=True)
    assert tokens.done(uid, "init")["tx_type"] == "call"
    own = own_script(tokens)
    assert tokens.balance(own) == 900
    problem = refused(tokens.call(uid, "transfer", BOB, 1), 422, "VALIDATION")
    assert fault(problem) == ("/args/0/value", "not-listed")
    listing = {"contract_uid": uid, "wallet_id": tokens.desk.vault["id"], "workspace_id": 1, "address": BOB}

    def through(path: str, code: str) -> None:
        made = ok(tokens.desk.admin.post(f"/api/v1/{path}", listing))
        assert tokens.finish(made["psbt_id"])["status"] == "CONFIRMED"
        problem = refused(tokens.desk.admin.post(f"/api/v1/{path}", listing), 422, "VALIDATION")
        assert fault(problem) == ("/address", code)

    through("add-to-contract-whitelist", "already-listed")
    tokens.done(uid, "transfer", BOB, 40)
    assert (tokens.balance(own), tokens.balance(BOB_SCRIPT)) == (860, 40)
    through("remove-from-contract-whitelist", "not-listed")
    tokens.done(uid, "disable_whitelist")
    tokens.done(uid, "mint", tokens.address, 100)
    tokens.done(uid, "burn", tokens.address, 60)
    tokens.done(uid, "pause")
    assert fault(refused(tokens.call(uid, "transfer", BOB, 1), 409, "STATE_CONFLICT"))[1] == "paused"
    refused(tokens.call(uid, "pause"), 409, "ALREADY_PAUSED")
    tokens.done(uid, "unpause")
    refused(tokens.call(uid, "unpause"), 409, "NOT_PAUSED")
    tokens.done(uid, "enable_whitelist")
    tokens.done(uid, "add_to_whitelist", BOB)
    tokens.done(uid, "transfer", BOB, 1)
    tokens.done(uid, "transfer_ownership", BOB)
    assert tokens.balance(own) == 899
    tokens.check()
    assert {row.failure for row in tokens.desk.rows(TokenTransactionRow)} == {None}
    called = {row.function_name for row in tokens.desk.rows(ContractCallRow)}
    assert called == {function.wire_name for function in Function}
    refused(tokens.call(uid, "pause"), 422, "VALIDATION")
    problem = refused(tokens.call(uid, "mint", BOB, 1), 422, "VALIDATION")
    assert fault(problem) == ("/wallet_id", "not-the-owner")
    ok(tokens.call(uid, "transfer", BOB, 1))


def test_the_record_holds_what_was_asked_and_the_next_call_waits_for_its_change(tokens, uid):
    made = ok(tokens.call(uid, "transfer", BOB, 40, recipients=[BOB], priority="high"))
    first = made["psbt_id"]
    (call,) = tokens.desk.rows(ContractCallRow, ContractCallRow.uid == made["call_uid"])
    assert call.args == [{"type": "str", "value": BOB}, {"type": "int", "value": 40}]
    assert (call.amount, call.address_script, call.family_id) == (40, BOB_SCRIPT, first)
    record = tokens.desk.proposal(first)
    assert (record["recipients"], record["amounts_sats"]) == ([BOB], [])
    psbt = Psbt.parse(made["psbt_base64"])
    assert psbt.inputs[0].witness_utxo.script_pubkey == own_script(tokens)
    assert len(psbt.outputs) == 2, "the data, and what returns to the address"

    tokens.finish(first, blocks=0)
    tokens.look()
    problem = refused(tokens.call(uid, "transfer", BOB, 50), 422, "TOKEN_COIN_MISSING")
    assert fault(problem) == ("/wallet_id", "token-coin-missing")
    assert first in problem["detail"]


def test_p21_p28_p31_what_cannot_be_asked_is_shown_where_it_was_sent(tokens, uid):
    """And who may ask is a matter of the function."""
    for function, args, pointer in (
        ("transfer", [BOB], "/args"),
        ("transfer", [40, BOB], "/args"),
        ("pause", [BOB], "/args"),
        ("transfer", [BOB, 0], "/args/1/value"),
        ("transfer", ["nonsense", 1], "/args/0/value"),
    ):
        problem = refused(tokens.call(uid, function, *args), 422, "VALIDATION")
        assert pointer in {each["pointer"] for each in problem["errors"]}
    problem = refused(tokens.call(uid, "burn", BOB, 1), 422, "VALIDATION")
    assert fault(problem) == ("/args/0/value", "not-the-owners-address")
    refused(tokens.call(uid, "transfer", MAINNET, 1), 422, "WRONG_NETWORK_ADDRESS")
    refused(tokens.call(uid, "transfer", BOB, 1, recipients=[MAINNET]), 422, "WRONG_NETWORK_ADDRESS")
    for arg, pointer in (
        ({"type": "str"}, "/args/0/value"),
        ({"type": "bytes", "value": "00"}, "/args/0"),
    ):
        problem = refused(tokens.call(1, "pause", args=[arg]), 422, "VALIDATION")
        assert [each["pointer"] for each in problem["errors"]] == [pointer]
    # An amount is an exact integer.
    for amount in (1.5, -1, 2**63):
        problem = refused(tokens.call(uid, "transfer", args=typed(amount)), 422, "VALIDATION")
        assert [each["pointer"] for each in problem["errors"]] == ["/args/1/value"]

    alice = tokens.desk.signers["alice"]
    refused(tokens.call(uid, "transfer", BOB, 1, user=alice), 403, "PERMISSION_DENIED")
    grant(tokens.desk, "Signer", "PAYMENT_INIT")
    refused(tokens.call(uid, "pause", user=alice), 403, "PERMISSION_DENIED")
    refused(tokens.call(uid, "transfer", BOB, 1, user=alice), 403, "ROLE_LIMIT_EXCEEDED")


def test_p33_init_comes_once_and_only_while_the_deployment_is_confirmed(tokens):
    several_coins(tokens)
    made = ok(tokens.create())
    uid = made["contract_uid"]
    refused(tokens.call(uid, "init"), 409, "DEPLOYMENT_NOT_CONFIRMED")
    tokens.finish(made["psbt_id"], blocks=0)
    tokens.desk.mine()
    assert tokens.desk.proposal(made["psbt_id"])["status"] == "BROADCASTING", "the index has not seen it yet"
    refused(tokens.call(uid, "init"), 409, "DEPLOYMENT_NOT_CONFIRMED")
    tokens.look()
    tokens.reorganise(1, 2)
    assert tokens.desk.proposal(made["psbt_id"])["status"] == "BROADCASTING"
    refused(tokens.call(uid, "init"), 409, "DEPLOYMENT_NOT_CONFIRMED")
    tokens.mine()

    assert fault(refused(tokens.call(uid, "transfer", BOB, 1), 409, "STATE_CONFLICT"))[1] == "not-started"
    first = ok(tokens.call(uid, "init"))
    problem = refused(tokens.call(uid, "init"), 409, "STATE_CONFLICT")
    assert "one call" in problem["detail"]
    transfer = ok(tokens.call(uid, "transfer", BOB, 1))
    tokens.finish(first["psbt_id"])
    tokens.finish(transfer["psbt_id"])
    assert tokens.balance(BOB_SCRIPT) == 1, "behind an init that waits it might"
    assert fault(refused(tokens.call(uid, "init"), 409, "STATE_CONFLICT"))[1] == "already-started"


def held(tokens):
    return tokens.desk.admin.get("/api/v1/get-tokens", workspace_id=1, vault_id=tokens.desk.vault["id"])


class TestTheIndex:
    def test_p35_while_it_is_behind_the_chain_nothing_is_called_and_no_balance_told(self, tokens, uid):
        """A block that it has not read may pause the token: the call would be mined and do nothing."""
        several_coins(tokens)
        tokens.desk.mine(2)
        for answer in (tokens.call(uid, "transfer", BOB, 1), held(tokens)):
            problem = refused(answer, 503, "BACKEND_UNAVAILABLE")
            assert "index of tokens is behind" in problem["detail"]
        lists = ok(tokens.desk.admin.get("/api/v1/get-workspace-whitelist", workspace_id=1))
        assert "behind" in lists["contracts"][0]["error"]
        assert lists["contracts"][0]["addresses"] == lists["aggregate"] == []
        assert [each["vault_id"] for each in lists["vault_errors"]] == [tokens.desk.vault["id"]]
        tokens.look()
        ok(tokens.call(uid, "transfer", BOB, 1))
        # Ahead of the watcher it is not behind.
        tokens.desk.chain.mine(3)
        for indexer in tokens.desk.world.platform.background.indexers():
            indexer.look()
        ok(tokens.call(uid, "transfer", BOB, 1))

    def test_while_it_is_on_a_branch_that_the_chain_has_left(self, tokens, uid):
        """As high as the chain, or nearly: the balance is of blocks that are gone."""
        tokens.done(uid, "transfer", BOB, 900)
        tokens.desk.chain.mine(2)
        tokens.look()
        tokens.desk.reorganise(3, 4)
        # What the index read beyond the watcher's tip makes it no better.
        for more in (0, 2):
            self.read_more(tokens, more)
            for answer in (tokens.call(uid, "transfer", EVE, 1), held(tokens)):
                problem = refused(answer, 503, "BACKEND_UNAVAILABLE")
                assert "another block" in problem["detail"], more
        tokens.look()
        tokens.fund(50_000)
        # The transfer was mined again meanwhile.
        refused(tokens.call(uid, "transfer", EVE, 1), 422, "INSUFFICIENT_FUNDS")

    @staticmethod
    def read_more(tokens, blocks):
        with tokens.desk.store.write() as db:
            last = db.scalars(select(TokenBlockRow).order_by(TokenBlockRow.height.desc()).limit(1)).one()
            values = {"chain": last.chain, "mined_at": last.mined_at, "state": last.state}
            for number in range(1, blocks + 1):
                height = last.height + number
                db.add(TokenBlockRow(height=height, block_hash=f"{number:064x}", **values))

    def test_what_was_mined_on_a_branch_that_it_has_not_read_still_waits(self, tokens, uid):
        sent = tokens.finish(ok(tokens.call(uid, "transfer", BOB, 900))["psbt_id"], blocks=0)
        payment = tokens.desk.chain.transaction(sent["txid"]).transaction
        tokens.desk.chain.mine(1, empty=True)
        tokens.look()
        tokens.desk.reorganise(1, 2, [payment])
        assert tokens.desk.proposal(sent["psbt_id"])["status"] == "BROADCASTING"
        store = tokens.desk.store
        with store.read() as db:
            (waiting,) = waiting_calls(db, db.get_one(ContractRow, uid), tokens.desk.workspace_id)
        assert waiting.txid == payment.txid
        tokens.look()
        with store.read() as db:
            assert waiting_calls(db, db.get_one(ContractRow, uid), tokens.desk.workspace_id) == ()


def given_up(tokens, *answers) -> None:
    for answer in answers:
        tokens.desk.reject(ok(answer)["psbt_id"])


def test_p31_p34_what_waits_reserves_balances_supply_and_ownership(tokens, uid):
    several_coins(tokens)
    problem = refused(tokens.call(uid, "mint", BOB, 101), 422, "VALIDATION")
    assert fault(problem) == ("/args/1/value", "above-maximum")
    refused(tokens.call(uid, "mint", BOB, 2**63 - 1), 422, "VALIDATION")
    first = tokens.call(uid, "mint", BOB, 60)
    ok(first)
    assert "one call" in refused(tokens.call(uid, "mint", BOB, 60), 422, "VALIDATION")["detail"]
    given_up(tokens, first, tokens.call(uid, "mint", BOB, 40))

    first = tokens.call(uid, "transfer", BOB, 500)
    problem = refused(tokens.call(uid, "transfer", EVE, 500), 409, "LOCKED_FUNDS")
    assert fault(problem) == ("/args/1/value", "insufficient-balance")
    refused(tokens.call(uid, "transfer", EVE, 901), 422, "INSUFFICIENT_FUNDS")
    second = tokens.call(uid, "transfer", EVE, 400)
    given_up(tokens, first)
    given_up(tokens, second, tokens.call(uid, "transfer", EVE, 500))

    ok(tokens.call(uid, "transfer_ownership", BOB))
    assert "one call" in refused(tokens.call(uid, "pause"), 422, "VALIDATION")["detail"]


def used(tokens):
    return ok(tokens.desk.admin.get("/api/v1/get-my-limits", workspace_id=1))["Used"]


def test_p18_movements_fit_the_vault_in_whole_tokens_and_transfers_count_together_for_the_role(tokens, uid):
    several_coins(tokens)
    tokens.desk.limit("4.00999999")
    problem = refused(tokens.call(uid, "transfer", BOB, 401), 403, "VAULT_LIMIT_EXCEEDED")
    figures = problem["figures"]
    assert (figures["limit"], figures["requested"]) == ("4.00", "4.01")
    given_up(tokens, tokens.call(uid, "transfer", BOB, 400))

    # Minting and burning count for no role.
    tokens.desk.limit("0.50")
    tokens.desk.limit_role("0.00001")
    before = used(tokens)
    for function in ("mint", "burn"):
        refused(tokens.call(uid, function, tokens.address, 51), 403, "VAULT_LIMIT_EXCEEDED")
        made = tokens.call(uid, function, tokens.address, 50)
        ok(made)
        assert used(tokens) == before, "its fee neither"
        refused(tokens.call(uid, "pause"), 403, "ROLE_LIMIT_EXCEEDED")
        given_up(tokens, made)

    tokens.desk.limit("1000")
    tokens.desk.limit_role("5")
    first = tokens.call(uid, "transfer", BOB, 300)
    ok(first)
    problem = refused(tokens.call(uid, "transfer", BOB, 201), 403, "ROLE_LIMIT_EXCEEDED")
    assert (problem["figures"]["limit"], problem["figures"]["used"]) == ("5.00", "3.00")
    ok(tokens.call(uid, "transfer", BOB, 200))
    given_up(tokens, first)
    ok(tokens.call(uid, "transfer", BOB, 300))


def test_p16_p17_p31_of_two_that_exceed_a_balance_or_the_maximum_together_one_passes(tokens, uid):
    """The second was judged before the first was stored."""
    tokens.fund(*[100_000] * 3)
    for function, amount, status, code in (
        ("transfer", 500, 409, "LOCKED_FUNDS"),
        ("mint", 60, 422, "VALIDATION"),
    ):
        with meanwhile(lambda f=function, a=amount: ok(tokens.call(uid, f, BOB, a))):
            refused(tokens.call(uid, function, EVE, amount), status, code)


# Functions that give an address something, with an amount where they take one.
MOVING = [("transfer", [1]), ("mint", [1]), ("transfer_ownership", [])]


def out_of_reach(answer, vault) -> None:
    problem = refused(answer, 422, "VALIDATION")
    (found,) = problem["errors"]
    assert (found["pointer"], found["code"]) == ("/args/0/value", "out-of-reach")
    assert found["detail"].endswith(f"Use {vault['address']}.")


def test_another_address_of_a_vault_of_the_workspace_is_refused_with_the_one_to_use(tokens, uid):
    (vault,) = tokens.desk.wallets()
    assert vault["receive_address"] != vault["address"], "what the record shows for bitcoin is such a one"
    other = ok(tokens.desk.create_vault("Other"))
    theirs = Vault.from_descriptor(other["descriptor"], Network.REGTEST)
    own = [tokens.desk.policy.address(*place) for place in ((CHANGE, 0), (RECEIVE, 1), (CHANGE, 3))]
    for function, amount in MOVING:
        for address in (*own, vault["receive_address"]):
            out_of_reach(tokens.call(uid, function, address, *amount), vault)
        out_of_reach(tokens.call(uid, function, theirs.address(CHANGE, 0), *amount), other)
    tokens.desk.reject(ok(tokens.call(uid, "transfer", other["address"], 1))["psbt_id"])
    # P24: the owner of another tenant's address is not revealed.
    elsewhere = neighbour_of(tokens.desk).policy.address(CHANGE, 0)
    tokens.desk.reject(ok(tokens.call(uid, "transfer", elsewhere, 1))["psbt_id"])
    # A token whose first list named one must be able to lose it: that is no movement.
    tokens.done(uid, "add_to_whitelist", own[0])
    tokens.done(uid, "remove_from_whitelist", own[0])


def test_only_the_vaults_address_is_itself_to_its_limits(tokens, uid):
    """What moves nothing needs no room, and takes none; an address of its own that is not watched yet is
    somebody else's.
    """
    tokens.fund(50_000, 50_000)
    tokens.desk.limit("1")
    ok(tokens.call(uid, "transfer", tokens.address, 900))
    far = tokens.desk.policy.address(CHANGE, 5_000)
    refused(tokens.call(uid, "transfer", far, 101), 403, "VAULT_LIMIT_EXCEEDED")
    ok(tokens.call(uid, "transfer", BOB, 100))
    assert [each["Used"] for each in tokens.desk.wallets()[0]["assets"]] == ["1.00"]

"""Tokens go to the vault's token address or to another owner: from the vault's other addresses they could not
be moved again.
"""

from multisig import CHANGE, RECEIVE, Network, Vault
from tests.support.custody import neighbour_of, ok, refused
from tests.support.token_desk import BOB

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

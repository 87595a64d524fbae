"""What holds for each kind of proposal, whatever it pays: when it is refused, what it locks, where its change
goes, and that no two are one transaction (P16, P48, P53, P54, P104, P105, P109).
"""

from collections.abc import Callable
from dataclasses import replace

import httpx
import pytest
from sqlalchemy import select, update

from custody.server.keys.profiles import CHANGE_INDEX
from custody.server.proposals import drafts
from custody.server.proposals.drafts import Draft
from custody.server.requests.changes import MAX_TRIES
from custody.server.rules.selection import BACKDATE_BLOCKS
from custody.server.store.models import ChainCoinRow, CoinLockRow, KeyRow, ProposalRow, VaultRow
from multisig import CHANGE, RECEIVE, OutPoint, Psbt, PsbtTooLarge
from tests.support.custody import Desk, ok
from tests.support.platform import As
from tests.support.prepared import Story
from tests.support.profiles import forward, grant, pay_profile, policy_of
from tests.support.replacing import bump, cancel, made, meanwhile, take_back
from tests.support.rows import a_proposal, lock_coins
from tests.support.screening import answer, screen
from tests.support.token_desk import BOB, TokenDesk

RENT = "the rent"
OFTEN = 3


@pytest.fixture
def beginning() -> Story:
    return all_under_way


def all_under_way(desk: Desk) -> None:
    """A token that is started, money in Alice's profile, and a payment with little change and one
    signature.
    """
    grant(desk, "Signer", "PAYMENT_INIT")
    tokens = TokenDesk(desk)
    tokens.fund(200_000)
    tokens.started()
    tokens.fund(*[60_000] * 4)
    pay_profile(desk, "alice", *[60_000] * 4)
    desk.deposit(152_000, *(300_000 + number for number in range(6)))
    rent = {"coins": coins_of(desk, 152_000), "description": RENT}
    desk.approve("alice", made(desk.propose(150_000, fee_rate="2", **rent)))
    tokens.look()


def rent_of(desk: Desk) -> str:
    (first,) = desk.rows(ProposalRow, ProposalRow.description == RENT, ProposalRow.replaces_id.is_(None))
    return first.id


def coins_of(desk: Desk, amount: int) -> list[str]:
    coins = desk.rows(ChainCoinRow, ChainCoinRow.amount_sats == amount)
    return [f"{coin.txid}:{coin.vout}" for coin in coins]


def dearer(desk: Desk) -> dict[str, str]:
    """More than any version before: what ended has to be outbid, too."""
    versions = desk.rows(ProposalRow, ProposalRow.family_id == rent_of(desk))
    return {"fee_rate": str(int(12 * 2.5 ** len(versions)))}


def prove(desk: Desk) -> httpx.Response:
    message = f"Asked for by auditor {len(desk.rows(ProposalRow))}"
    return desk.of_vault("create-proof", message=message)


Propose = Callable[[Desk], httpx.Response]
KINDS: dict[str, Propose] = {
    "drawn": lambda desk: desk.propose(10_000, fee_rate="2"),
    "named": lambda desk: desk.propose(10_000, fee_rate="2", coins=coins_of(desk, 300_000)),
    "sweep": lambda desk: desk.sweep(fee_rate="2"),
    # Its change is too little: it takes another coin.
    "bump": lambda desk: bump(desk, rent_of(desk), **dearer(desk)),
    "take back": lambda desk: take_back(desk, rent_of(desk), **dearer(desk)),
    "token": lambda desk: TokenDesk(desk).create(),
    "call": lambda desk: TokenDesk(desk).call(1, "transfer", BOB, 1),
    "forward": lambda desk: forward(desk, "alice", 20_000),
    "proof": prove,
}
SENDS = ("drawn", "named", "sweep")
SHOWN = {*SENDS, "bump", "take back", "call", "forward"}


def end(desk: Desk, psbt_id: str) -> None:
    """Cancelled by its maker: a forward belongs to its owner alone."""
    is_forward = desk.proposal(psbt_id)["tx_type"] == "forward"
    ok(cancel(replace(desk, admin=desk.signers["alice"]) if is_forward else desk, psbt_id))


PREVIEWS = {
    "create-psbt": "preview-psbt",
    "forward-to-vault": "preview-forward",
    "call-contract": "preview-call",
}


class Preview(As):
    """Asks what would be made."""

    def post(self, path: str, body: object = None, **headers: str) -> httpx.Response:
        for name, shown in PREVIEWS.items():
            path = path.replace(name, shown)
        return super().post(path, body, **headers)


def previewing(desk: Desk) -> Desk:
    signers = {name: Preview(one.http, one.headers) for name, one in desk.signers.items()}
    return replace(desk, admin=Preview(desk.admin.http, desk.admin.headers), signers=signers)


def code_of(answer: httpx.Response) -> str:
    return "ok" if answer.status_code == 200 else answer.json()["code"]


def answers(desk: Desk) -> dict[str, str]:
    """How each kind is answered, the maximum included; a preview says the same. What is made is ended
    again, and what is refused leaves nothing.
    """
    where = {"workspace_id": 1, "wallet_id": desk.vault["id"], "recipients": BOB, "fee_rate": "2"}
    codes = {"most": code_of(desk.admin.get("/api/v1/max-send", **where))}
    for name, propose in KINDS.items():
        before = len(desk.rows(ProposalRow)), len(desk.rows(CoinLockRow))
        shown = code_of(propose(previewing(desk))) if name in SHOWN else None
        assert before == (len(desk.rows(ProposalRow)), len(desk.rows(CoinLockRow)))
        answer = propose(desk)
        codes[name] = code_of(answer)
        assert shown in {None, codes[name]}, name
        if answer.status_code == 200:
            end(desk, answer.json()["psbt_id"])
        else:
            assert before[0] == len(desk.rows(ProposalRow))
        assert before[1] == len(desk.rows(CoinLockRow)), name
    return codes


def nothing_happens(_desk: Desk) -> None:
    pass


def frozen(desk: Desk) -> None:
    desk.freeze()


def bound_to_the_book(desk: Desk) -> None:
    desk.bind(only_address_book=True)


def limited(desk: Desk) -> None:
    desk.limit("0.00000100")


def role_limited(desk: Desk) -> None:
    desk.limit_role("0.00000100")


def two_keys_are_lost(desk: Desk) -> None:
    with desk.store.write() as db:
        lost = KeyRow.user_id.in_([desk.user_ids["bob"], desk.user_ids["carol"]])
        db.execute(update(KeyRow).where(lost).values(status="revoked", revoked_reason="lost"))


def replaced(desk: Desk) -> None:
    desk.world.member(1, "dora@example.org", "Administrator")
    body = {"workspace_id": 1, "vault_id": desk.vault["id"], "name": "Treasury 2"}
    change = ok(desk.tell("request-change", path="/api/v1/replace-vault", body=body))["change_id"]
    ok(desk.tell("confirm-change", desk.world.as_user("dora@example.org"), change_id=change))


def others_hold_every_coin(desk: Desk) -> None:
    with desk.store.write() as db:
        held = set(map(tuple, db.execute(select(CoinLockRow.txid, CoinLockRow.vout))))
        coins = set(map(tuple, db.execute(select(ChainCoinRow.txid, ChainCoinRow.vout))))
        db.add(a_proposal("another", vault_id=desk.vault["id"]))
        lock_coins(db, "regtest", [OutPoint(*coin) for coin in coins - held], "another")


def no_coin_is_left(desk: Desk) -> None:
    with desk.store.write() as db:
        free = ~ChainCoinRow.txid.in_(select(CoinLockRow.txid))
        db.execute(update(ChainCoinRow).where(free).values(spent_by="ab" * 32))


CODES: list[tuple[Callable[[Desk], None], dict[str, str]]] = [
    (nothing_happens, {}),
    (frozen, dict.fromkeys(["most", *KINDS], "VAULT_FROZEN") | {"forward": "ok"}),
    (bound_to_the_book, dict.fromkeys(["most", *SENDS, "bump", "call"], "NOT_IN_ADDRESS_BOOK")),
    (limited, dict.fromkeys([*SENDS, "bump", "token", "call"], "VAULT_LIMIT_EXCEEDED")),
    (role_limited, dict.fromkeys([*SENDS, "bump", "token", "call"], "ROLE_LIMIT_EXCEEDED")),
    (two_keys_are_lost, dict.fromkeys(["most", *KINDS], "STATE_CONFLICT")),
    (replaced, dict.fromkeys(["most", *SENDS, "token", "forward"], "STATE_CONFLICT")),
    (others_hold_every_coin, dict.fromkeys([*SENDS, "bump", "token", "call", "forward"], "LOCKED_FUNDS")),
    (
        no_coin_is_left,
        dict.fromkeys(["drawn", "sweep"], "LOCKED_FUNDS")
        | dict.fromkeys(["bump", "forward"], "INSUFFICIENT_FUNDS")
        | {"named": "VALIDATION"}
        | dict.fromkeys(["token", "call"], "TOKEN_COIN_MISSING"),
    ),
]


@pytest.mark.parametrize(("happen", "codes"), CODES, ids=[happen.__name__ for happen, _ in CODES])
def test_p53_p54_p105_p109_which_kinds_are_refused(desk: Desk, happen, codes) -> None:
    happen(desk)
    assert answers(desk) == dict.fromkeys(["most", *KINDS], "ok") | codes


def test_screening_is_asked_about_what_moves_a_vaults_coins_but_for_newer_versions(desk: Desk) -> None:
    program = screen(desk)
    for name, propose in KINDS.items():
        psbt_id = made(propose(desk))
        is_asked = name in {*SENDS, "token", "call"}
        assert (desk.proposal(psbt_id)["screening"] is not None) is is_asked, name
        assert answer(desk, program, "hold") == is_asked
        end(desk, psbt_id)


def fault_of(answer: httpx.Response) -> tuple[int, str, str]:
    problem = answer.json()
    (fault,) = problem["errors"]
    return answer.status_code, fault["pointer"], fault["code"]


def test_p48_a_fee_above_the_cap_and_a_psbt_larger_than_devices_take_are_refused_at_their_fields(
    desk: Desk, monkeypatch
) -> None:
    """Of a proof neither can be: it pays no fee, and names a bounded number of coins."""

    def refuse(*_parts):
        raise PsbtTooLarge("It is too large.")

    large = {
        "drawn": "/amounts_sats", "named": "/coins", "sweep": "/amounts_sats", "bump": "/fee_rate",
        "take back": "/fee_rate", "token": "/vault_id", "call": "/wallet_id", "forward": "/amount_sats",
    }  # fmt: skip
    # A forward says its fee itself, and is refused before (test_forwarding.py).
    dear = {name: at if name in {"token", "call"} else "/fee_rate" for name, at in large.items()}
    del dear["forward"]
    for patched, pointers, code in (
        ((drafts, "MAX_FEE", 100), dear, "fee-too-high"),
        ((drafts, "built_psbt", refuse), large, PsbtTooLarge.code),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(*patched)
            for name, pointer in pointers.items():
                for each in (desk, previewing(desk)):
                    assert fault_of(KINDS[name](each)) == (422, pointer, code), name


def change_of(psbt: Psbt) -> bytes | None:
    """Marked for the devices."""
    return next((output.script_pubkey for output in psbt.outputs if output.derivations), None)


def test_p16_it_locks_what_it_spends_its_change_is_found_again_and_a_failure_leaves_nothing(
    desk: Desk, monkeypatch
) -> None:
    def fail(*_given, **_named):
        raise RuntimeError("the disk is full")

    own, profile = desk.policy.script_pubkey(RECEIVE, 0), policy_of(desk.devices["alice"])
    change = dict.fromkeys(["bump", "take back"], change_of(desk.psbt(rent_of(desk))))
    change |= dict.fromkeys(["token", "call"], own) | dict.fromkeys(["sweep", "proof"])
    change |= {"forward": profile.script_pubkey(CHANGE, CHANGE_INDEX)}
    for name, propose in KINDS.items():
        before, proposals = desk.locks().keys(), len(desk.rows(ProposalRow))
        (vault,) = desk.rows(VaultRow)
        with monkeypatch.context() as patch:
            patch.setattr(type(desk.world.platform.services.tools.audit), "record", fail)
            assert propose(desk).status_code == 500
        assert (desk.locks().keys(), len(desk.rows(ProposalRow))) == (before, proposals)
        assert desk.rows(VaultRow)[0].next_change_index == vault.next_change_index
        psbt_id = made(propose(desk))
        psbt = desk.psbt(psbt_id)
        assert desk.locks().keys() == before | {item.outpoint for item in psbt.inputs if name != "proof"}, (
            name
        )
        goes_to = change.get(name, desk.policy.script_pubkey(CHANGE, vault.next_change_index))
        assert change_of(psbt) == goes_to, name
        end(desk, psbt_id)
        assert desk.locks().keys() == before


def test_p16_what_is_taken_after_the_draft_is_not_proposed_and_what_stays_is_drafted_once(desk: Desk) -> None:
    def free(draft: Draft) -> set[OutPoint]:
        return {coin.outpoint for coin in draft.selection.coins} - desk.locks().keys()

    def take() -> None:
        gone.extend(free(drafted[-1]))
        with desk.store.write() as db:
            lock_coins(db, "regtest", gone, "faster")

    for name in ("drawn", "bump", "take back", "token", "call", "forward", "proof"):
        with meanwhile(lambda: None) as drafted:
            end(desk, made(KINDS[name](desk)))
        assert len(drafted) == 1, f"{name} reads the same under the write lock"
        if name == "proof":
            continue
        gone: list[OutPoint] = []
        with meanwhile(take) as drafted:
            psbt_id = made(KINDS[name](desk))
        assert len(drafted) == 2, name
        assert not desk.coins(psbt_id) & {*gone}
        end(desk, psbt_id)


class Steady:
    """A random source without randomness."""

    def randrange(self, stop: int) -> int:
        return stop - 1


@pytest.mark.parametrize("name", ["sweep", "token", "call", "forward"])
def test_p104_what_ended_is_proposed_again_as_another_transaction(desk: Desk, name: str, monkeypatch) -> None:
    """Also where it was proposed and ended since it was drafted: outside the write lock a few times, then
    inside it, where no other member can propose. Of these nothing but the lock time may be another.
    """
    monkeypatch.setattr(desk.world.platform.services.tools.rng, "randrange", Steady().randrange)
    propose = KINDS[name]
    for _ in range(OFTEN):
        end(desk, made(propose(desk)))
    with meanwhile(lambda: end(desk, made(propose(desk))), times=MAX_TRIES) as drafted:
        made(propose(desk))
    assert len(drafted) == MAX_TRIES + 1
    psbts = [Psbt.parse(row.psbt) for row in desk.rows(ProposalRow, ProposalRow.status == "CANCELLED")]
    again = [psbt.tx for psbt in psbts if psbt.tx.inputs == drafted[-1].built.psbt.tx.inputs]
    assert len(again) == len({tx.txid for tx in again}) == OFTEN + MAX_TRIES
    tip = desk.chain.tip().height
    assert all(tip - BACKDATE_BLOCKS < tx.locktime <= tip for tx in again), "as everybody's"


@pytest.mark.parametrize("name", ["bump", "take back"])
def test_p104_so_is_a_newer_version_of_it(desk: Desk, name: str, monkeypatch) -> None:
    monkeypatch.setattr(desk.world.platform.services.tools.rng, "randrange", Steady().randrange)
    ask = {"bump": bump, "take back": take_back}[name]
    for _ in range(OFTEN):
        first = made(KINDS["named"](desk))
        end(desk, made(ask(desk, first, fee_rate="9")))
        end(desk, first)
    txids = [row.txid_expected for row in desk.rows(ProposalRow)]
    assert len(txids) == len(set(txids)) > 2 * OFTEN

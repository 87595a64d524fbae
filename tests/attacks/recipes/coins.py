"""S3, S4, S5, S8: whose coins are spent, what they hold, and how much of the transaction is signed."""

from dataclasses import replace

from multisig import OutPoint, Psbt, TxOut, build_psbt, sats
from tests.attacks.people import ALICE, BOB, CAROL, MALLORY, MALLORYS, ONE_OF_THREE, OTHER_ACCOUNT
from tests.attacks.recipes.scene import COIN, PAID, PAYMENT, Recipe, Scene
from tests.support.wallets import foreign_script, pay, with_input, with_inputs, with_output

AMOUNT = (("amount-mismatch", "input 0"),)
NOT_THE_ONE = (("previous-transaction-mismatch", "input 0"),)
OPEN = (("sighash-not-all", "input 1"),)
BAD_SIGNATURE = (("bad-signature", "input 0"), ("bad-signature", "input 1"))
# What cannot be checked where no fee is proven (S32).
UNCOUNTED = ("fee-recorded", "fee-total", "fee-rate", "fee-share")


def foreign(name, psbt, place="input 1"):
    return Recipe(name=name, psbt=psbt, findings=(("input-not-ours", place),), handover="refused")


def claimed_coin_of_mallory(scene: Scene) -> Psbt:
    ours = scene.honest.inputs[1]
    psbt = scene.with_input_of(MALLORY.profile())
    return with_input(psbt, 1, derivations=ours.derivations, witness_script=ours.witness_script)


def mallorys_alone(scene: Scene) -> Psbt:
    policy = MALLORY.profile()
    return replace(build_psbt(policy, [scene.coin(0, policy)], [pay(99_000, scene.name)], 0), xpubs=())


def coin_twice(scene: Scene) -> Psbt:
    """Counted three times, two coins pay for what only three could."""
    inputs = scene.honest.inputs
    return with_output(with_inputs(scene.honest, *inputs, inputs[0]), PAYMENT, amount=sats(PAID + COIN))


COIN_TWICE = Recipe(name="the same coin twice", psbt=coin_twice, findings=(("duplicate-input", "input 2"),))
S3 = (
    Recipe(name="coins of the vault only", honest=True),
    Recipe(name="coins of the vault, signed by a colleague", psbt=lambda s: BOB.sign(s.honest), honest=True),
    foreign("a coin of another vault of the same people", lambda s: s.with_input_of(OTHER_ACCOUNT)),
    foreign("a coin of a quorum with Mallory", lambda s: s.with_input_of(MALLORYS)),
    foreign("a coin of the same keys, one of three", lambda s: s.with_input_of(ONE_OF_THREE)),
    foreign("a coin of one cosigner's own profile", lambda s: s.with_input_of(CAROL.profile())),
    foreign("a coin of Mallory's under our origins", claimed_coin_of_mallory),
    Recipe(name="a coin without origins", psbt=lambda s: with_input(s.honest, 1, derivations={}), findings=(("origins-missing", "input 1"),), handover="refused"),
    foreign("no coin but Mallory's", mallorys_alone, "input 0"),
    COIN_TWICE,
    Recipe(name="a coin that is final already", psbt=lambda s: with_input(s.honest, 0, final_script_witness=(b"",)), findings=(("input-finalised", "input 0"),), handover="refused"),
)  # fmt: skip


def misstated(name, amount):
    return Recipe(
        name=name,
        psbt=lambda s: with_input(s.honest, 0, witness_utxo=s.stated_coin(amount=sats(amount))),
        findings=AMOUNT,
        handover="refused",
    )


def understated_twice(scene: Scene) -> tuple[Psbt, Psbt]:
    """The attack of 2020: the same two coins, once with the one understated and once with the other; both
    halves are signed, and put together they pay a fee that no signer saw.
    """
    first, second = (
        with_input(scene.honest, index, witness_utxo=_less(scene.honest, index)) for index in (0, 1)
    )
    return first, second


def _less(psbt: Psbt, index: int) -> TxOut:
    coin = psbt.inputs[index].witness_utxo
    assert coin is not None
    return replace(coin, amount=sats(1_000))


def bare(scene: Scene) -> Psbt:
    """As above, and no previous transaction that could contradict it."""
    return with_input(understated_twice(scene)[1], 1, non_witness_utxo=None)


S4 = (
    Recipe(name="each amount as its transaction has it", honest=True),
    misstated("an amount understated", 1_000),
    misstated("an amount overstated by one", 100_001),
    Recipe(name="the first half of the fee attack", psbt=lambda s: understated_twice(s)[0], findings=AMOUNT, handover="refused"),
    Recipe(name="the second half of the fee attack", psbt=lambda s: understated_twice(s)[1], findings=(("amount-mismatch", "input 1"),), handover="refused"),
    Recipe(name="an understated amount that nothing contradicts", psbt=bare, findings=(("previous-transaction-missing", "input 1"),), checks=UNCOUNTED, handover="refused"),
    Recipe(name="the coin itself left out", psbt=lambda s: with_input(s.honest, 0, witness_utxo=None), honest=True),
)  # fmt: skip


def hidden_fee(name, *unproven, amount=49_000):
    """Counted without the unproven coins it pays an honest fee."""

    def psbt(scene):
        spend = scene.out(amount=sats(amount))
        for index in unproven:
            spend = with_input(spend, index, non_witness_utxo=None)
        return spend

    return Recipe(
        name=name,
        psbt=psbt,
        findings=tuple(("previous-transaction-missing", f"input {index}") for index in unproven),
        checks=UNCOUNTED,
        says={"fee": 1_000},
        handover="refused",
    )


S32 = (
    Recipe(name="amounts that their transactions prove", honest=True),
    Recipe(name="amounts that are stated nowhere else", psbt=lambda s: with_input(with_input(s.honest, 0, witness_utxo=None), 1, witness_utxo=None), honest=True),
    hidden_fee("a coin whose amount is not proven, as the fee", 0),
    hidden_fee("another coin whose amount is not proven, as the fee", 1),
    hidden_fee("no coin whose amount is proven", 0, 1),
)  # fmt: skip


def other_amount(scene: Scene) -> Psbt:
    """A previous transaction that differs from the true one by one satoshi."""
    tx, coin = scene.previous, scene.previous.outputs[1]
    lie = replace(tx, outputs=(tx.outputs[0], TxOut(sats(coin.amount - 1), coin.script_pubkey)))
    return with_input(scene.honest, 0, non_witness_utxo=lie)


def beyond_its_outputs(scene: Scene) -> Psbt:
    item = scene.honest.inputs[0]
    moved = replace(item, outpoint=OutPoint(item.outpoint.txid, 9))
    return with_inputs(scene.honest, moved, scene.honest.inputs[1])


def unproven(name, psbt, findings=NOT_THE_ONE):
    return Recipe(name=name, psbt=psbt, findings=findings, checks=UNCOUNTED, handover="refused")


S5 = (
    Recipe(name="each coin with the transaction that made it", honest=True),
    unproven("no previous transaction", lambda s: with_input(s.honest, 0, non_witness_utxo=None), (("previous-transaction-missing", "input 0"),)),
    unproven("a previous transaction with another amount", other_amount),
    unproven("the previous transaction of another coin", lambda s: with_input(s.honest, 0, non_witness_utxo=s.honest.inputs[1].non_witness_utxo)),
    unproven("an output that the previous transaction does not have", beyond_its_outputs),
    Recipe(name="the coin stated with another script", psbt=lambda s: with_input(s.honest, 0, witness_utxo=s.stated_coin(script_pubkey=foreign_script())), findings=(("script-mismatch", "input 0"),), handover="refused"),
)  # fmt: skip


def asked_for(name, sighash):
    return Recipe(name=name, psbt=lambda s: with_input(s.honest, 1, sighash_type=sighash), findings=OPEN)


def given(name, sighash):
    """A colleague's signature that leaves something open: with it, ours would complete a
    transaction that others may still change.
    """
    return Recipe(
        name=name,
        psbt=lambda s: BOB.sign(s.honest, sighash=sighash),
        findings=BAD_SIGNATURE,
        handover="refused",
    )


S8 = (
    Recipe(name="a signature over everything", honest=True),
    Recipe(name="no kind of signature is named", psbt=lambda s: with_input(s.honest, 1, sighash_type=None), honest=True),
    asked_for("DEFAULT is asked for, where it has no meaning", 0x00),
    asked_for("NONE is asked for", 0x02),
    asked_for("SINGLE is asked for", 0x03),
    asked_for("ALL with ANYONECANPAY is asked for", 0x81),
    asked_for("NONE with ANYONECANPAY is asked for", 0x82),
    asked_for("SINGLE with ANYONECANPAY is asked for", 0x83),
    asked_for("a kind that does not exist is asked for", 0x101),
    given("a colleague signed with NONE", 0x02),
    given("a colleague signed with SINGLE", 0x03),
    given("a colleague signed with ALL and ANYONECANPAY", 0x81),
    Recipe(name="our own signature that leaves the outputs open", psbt=lambda s: ALICE.sign(s.honest, sighash=0x02), findings=BAD_SIGNATURE, handover="refused"),
)  # fmt: skip

S19 = (
    Recipe(name="a colleague's device signed all of it", psbt=lambda s: BOB.sign(s.honest), honest=True),
    given("a colleague's device signed something else", 0x83),
)

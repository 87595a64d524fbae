"""S7 and S10: what the miner gets, and outputs that hide what they carry."""

from dataclasses import replace

from multisig import ChangeTo, Psbt, build_psbt, op_return_script, sats
from multisig.script import P2A_SCRIPT
from tests.attacks.people import VAULT
from tests.attacks.recipes.coins import UNCOUNTED
from tests.attacks.recipes.scene import COIN, Recipe, Scene
from tests.support.wallets import pay, with_outputs

WHOLE = "transaction"


def rich(scene: Scene, fee: int, held: int = 10_000_000_000) -> Psbt:
    """One coin of 100 BTC, so that a large fee is a small share."""
    outputs = [pay(50_000, scene.name), ChangeTo(sats(held - 50_000 - fee), 1, 7)]
    return build_psbt(VAULT, [scene.coin(0, amount=held)], outputs, 0)


S7 = (
    Recipe(name="a fee of one percent", psbt=lambda s: s.spend(fee=2_000), honest=True),
    Recipe(name="a fee just below the warning", psbt=lambda s: s.spend(fee=9_500), honest=True),
    Recipe(name="a fee that is warned about", psbt=lambda s: s.spend(fee=15_000), honest=True, warned=("fee-share",)),
    Recipe(name="a fee above a small payment, of a large coin", psbt=lambda s: rich(s, 50_001), honest=True, warned=("fee-share",)),
    Recipe(name="outputs beyond the coins", psbt=lambda s: s.out(amount=sats(2 * COIN + 1)), findings=(("fee-negative", WHOLE),), checks=UNCOUNTED),
    Recipe(name="a tenth of what is moved", psbt=lambda s: s.spend(fee=18_182), checks=("fee-share",)),
    Recipe(name="a fee of most of the money", psbt=lambda s: s.out(amount=sats(1_000)), findings=(("fee-above-limit", WHOLE),), checks=("fee-share",)),
    Recipe(name="all of the change", psbt=lambda s: with_outputs(s.honest, s.honest.outputs[0]), findings=(("fee-above-limit", WHOLE),), checks=("fee-share",)),
    Recipe(name="a rate above every rate there was", psbt=lambda s: rich(s, 300_000), checks=("fee-rate",)),
    Recipe(name="a fee above 0.1 BTC", psbt=lambda s: rich(s, 10_000_001), findings=(("fee-above-limit", WHOLE),), checks=("fee-total", "fee-rate")),
    Recipe(name="nobody is paid", psbt=lambda s: with_outputs(s.honest), findings=(("no-outputs", WHOLE), ("fee-above-limit", WHOLE)), checks=("fee-share",)),
)  # fmt: skip

PUSH_2 = b"\x6a\x02hi"
UNKNOWN = (("unknown-output-script", "output 0"),)
# A script without an address cannot be named as a recipient.
NAMELESS = ("recipients", "amounts")


def hidden(name, script, *, shown="0x6869"):
    """Data of which a lenient reader shows the first push; ``shown`` is what the platform says that it is."""
    return Recipe(
        name=name,
        psbt=lambda s: s.with_data(script),
        findings=(("op-return-malformed", "output 2"),),
        checks=("recipients", "amounts", "data"),
        named=(0,),
        says={"op_return": shown},
    )


def unknown(name, script):
    return Recipe(name=name, psbt=lambda s: s.paying(script), findings=UNKNOWN, checks=NAMELESS)


def with_second(scene: Scene) -> Psbt:
    return scene.with_data(PUSH_2, b"\x6a\x02ho")


NO_TOKENS_DATA = Recipe(
    name="data that says it is a token's, and is not",
    psbt=lambda s: s.with_data(op_return_script(b"CPT\x01\xff")),
    findings=(("token-payload-invalid", "output 2"),),
)
S10 = (
    Recipe(name="one piece of data, shown whole", psbt=lambda s: s.with_data(PUSH_2), honest=True),
    Recipe(name="eighty bytes of data", psbt=lambda s: s.with_data(op_return_script(bytes(range(80)))), honest=True),
    hidden("data behind the shown data", b"\x6a\x02hi\x06hidden"),
    hidden("data in a longer push than needed", b"\x6a\x4c\x02hi"),
    hidden("eighty-one bytes of data", b"\x6a\x4c\x51" + b"x" * 81, shown="0x" + b"x".hex() * 81),
    hidden("a push that ends early", b"\x6a\x05hi"),
    hidden("OP_RETURN and nothing", b"\x6a", shown="0x"),
    hidden("a number instead of a push", b"\x6a\x51", shown="0x"),
    Recipe(name="money in the data output", psbt=lambda s: s.with_data(PUSH_2, amount=546), findings=(("op-return-burns", "output 2"),)),
    Recipe(name="two data outputs, one of them recorded", psbt=with_second, findings=(("op-return-multiple", WHOLE),), checks=("data",)),
    Recipe(name="data that is not recorded", psbt=lambda s: s.with_data(PUSH_2), says={"op_return": None}, checks=("data",)),
    NO_TOKENS_DATA,
    unknown("an empty script", b""),
    unknown("a script that anyone can spend", b"\x51"),
    unknown("a bare multisig script", VAULT.witness_script(0, 0)),
    unknown("a witness version without rules", b"\x52\x20" + b"\x01" * 32),
    unknown("a taproot script of a wrong length", b"\x51\x02\x4e\x74"),
    Recipe(name="money for anyone to take (P2A)", psbt=lambda s: s.paying(P2A_SCRIPT), findings=(("anchor-burns", "output 0"),), checks=NAMELESS),
)  # fmt: skip


def locked(scene: Scene, **fields) -> Psbt:
    return replace(scene.honest, tx=replace(scene.honest.tx, **fields))

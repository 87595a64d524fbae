"""S6, S11 to S14, S24, S25: what is said beside the bytes, and what else is on its way."""

from dataclasses import replace

from multisig import ChangeTo, Policy, Psbt, PsbtOutput, TxOut, build_psbt, op_return_script, sats
from multisig.tokens import Deploy, Function, TokenCall, token_amount, token_script
from tests.attacks.people import ALICE, BOB, MAINNET, MALLORYS, OTHER_ACCOUNT, VAULT
from tests.attacks.recipes.coins import UNCOUNTED
from tests.attacks.recipes.scene import PAID, Neighbour, Recipe, Scene
from tests.conformance.rigs import NETWORK
from tests.support.look_alikes import look_alikes
from tests.support.wallets import pay, with_output, with_outputs

SIGNED = "submitted"
WAITING = "waiting-for-person"


def again(scene: Scene, payee: str | None = None, paid: int = PAID) -> Psbt:
    """The same payment, or another one, from other coins of the vault."""
    outputs = [pay(paid, payee or scene.name), ChangeTo(sats(200_000 - paid - 1_000), 1, 7)]
    return build_psbt(VAULT, [scene.coin(2), scene.coin(3)], outputs, 0)


def beside(psbt: Psbt, *, signed: bool = True) -> tuple[Neighbour, ...]:
    return (Neighbour(psbt, signed, SIGNED if signed else WAITING),)


TWICE = {"held": ("paid-twice",)}
CONFLICT = {"held": ("conflict",)}

S6 = (
    Recipe(name="the same payee gets another amount", psbt=lambda s: again(s, paid=40_000), neighbours=lambda s: beside(s.honest), honest=True),
    Recipe(name="another payee gets the same amount", psbt=lambda s: again(s, "another shop"), neighbours=lambda s: beside(s.honest), honest=True),
    Recipe(name="the same payment is proposed and not signed", psbt=again, neighbours=lambda s: beside(s.honest, signed=False), honest=True),
    Recipe(name="the same payment once more from other coins", psbt=again, neighbours=lambda s: beside(s.honest), **TWICE),
    Recipe(name="the same payment, and the first is said to be confirmed", psbt=again, neighbours=lambda s: (Neighbour(s.honest, signed=True, state="confirmed"),), **TWICE),
    Recipe(name="the same payment, and the first is said to be withdrawn", psbt=again, neighbours=lambda s: (Neighbour(s.honest, signed=True, state="withdrawn"),), **TWICE),
    Recipe(name="the same payment beside another one", psbt=lambda s: with_output(again(s), 1, **_stranger()), neighbours=lambda s: beside(s.honest), **TWICE),
    Recipe(name="the first was said to have failed, sign again", psbt=lambda s: s.spend(fee=1_200), neighbours=lambda s: beside(s.honest), **CONFLICT),
)  # fmt: skip


BEFORE = {"vault_id": "vault-before"}


def under_another_id(scene: Scene, psbt: Psbt | None = None) -> tuple[Neighbour, ...]:
    """Signed here while the platform called the same vault otherwise."""
    return (Neighbour(psbt or scene.honest, signed=True, state=SIGNED, tells=BEFORE),)


S26 = (
    Recipe(name="another payment, the first under the vault's id of before", psbt=lambda s: again(s, paid=40_000), neighbours=under_another_id, honest=True),
    Recipe(name="the same payment, the first under the vault's id of before", psbt=again, neighbours=under_another_id, **TWICE),
    Recipe(name="the same payment under an id of today", psbt=again, says={"vault_id": "vault-today"}, neighbours=lambda s: beside(s.honest), **TWICE),
    Recipe(name="both under ids that were never pinned", psbt=again, says={"vault_id": "vault-today"}, neighbours=under_another_id, **TWICE),
)  # fmt: skip


def signed_by_others(psbt: Psbt, state: str = WAITING) -> tuple[Neighbour, ...]:
    """One of the others has signed it, by the platform's record."""
    return (Neighbour(psbt, signed=False, state=state, tells={"collected": 1}),)


OTHERS = {"held": ("signed-by-others",)}

S27 = (
    Recipe(name="others signed another payment", psbt=lambda s: again(s, paid=40_000), neighbours=lambda s: signed_by_others(s.honest), honest=True),
    Recipe(name="others signed a version of it that spends the same coins", psbt=lambda s: s.spend(fee=1_200), neighbours=lambda s: signed_by_others(s.honest), warned=("conflict",), honest=True),
    Recipe(name="others signed the same payment from other coins", psbt=again, neighbours=lambda s: signed_by_others(s.honest), **OTHERS),
    Recipe(name="others signed the same payment, which is said to be cancelled", psbt=again, neighbours=lambda s: signed_by_others(s.honest, "withdrawn"), **OTHERS),
    Recipe(name="others signed the same payment under another id of the vault", psbt=again, neighbours=lambda s: (Neighbour(s.honest, signed=False, state=WAITING, tells={**BEFORE, "collected": 1}),), **OTHERS),
)  # fmt: skip


ALIKE = {"held": ("look-alike",)}


def to_known(scene: Scene) -> tuple[Neighbour, ...]:
    """Another payment, of which the person knows the payee."""
    return beside(
        with_output(again(scene, paid=40_000), 0, script_pubkey=look_alikes(scene.name, NETWORK)[0])
    )


def to_look_alike(scene: Scene, known: int = 1) -> Psbt:
    return scene.paying(look_alikes(scene.name, NETWORK)[known])


S37 = (
    Recipe(name="a payee that was paid before", psbt=lambda s: to_look_alike(s, 0), neighbours=to_known, honest=True),
    Recipe(name="a payee with the ends of one that was only proposed", psbt=to_look_alike, neighbours=lambda s: (replace(to_known(s)[0], signed=False, state=WAITING),), honest=True),
    Recipe(name="a payee with the ends of one that was paid before", psbt=to_look_alike, neighbours=to_known, **ALIKE),
)  # fmt: skip


def _stranger():
    return {"script_pubkey": pay(1, "another shop").script_pubkey, "witness_script": None, "derivations": {}}


FIRST = "other-0"
# The first spend is signed; the second one says that it replaces it.
DECLARED = {"says": {"replaces": FIRST}, "neighbours": lambda s: beside(s.honest)}
NOT_A_BUMP = {**DECLARED, "checks": ("replacement",), "held": ("conflict",)}


def cancel(scene: Scene) -> Psbt:
    """Everything comes back, and the fee is above the first one's."""
    return build_psbt(VAULT, [scene.coin(0), scene.coin(1)], [ChangeTo(sats(197_000), 1, 7)], 0)


def cancel_of_nothing(scene: Scene) -> Psbt:
    return build_psbt(VAULT, [scene.coin(2), scene.coin(3)], [ChangeTo(sats(197_000), 1, 7)], 0)


def bump_without_a_coin(scene: Scene) -> Psbt:
    """One coin of the first is left out, and another one is in."""
    outputs = [pay(PAID, scene.name), ChangeTo(sats(147_000), 1, 7)]
    return build_psbt(VAULT, [scene.coin(1), scene.coin(2)], outputs, 0)


def _with_data(scene: Scene) -> Psbt:
    extra = PsbtOutput(amount=sats(0), script_pubkey=op_return_script(b"invoice 7"))
    bump = scene.spend(fee=3_000)
    return with_outputs(bump, *bump.outputs, extra)


S11 = (
    Recipe(name="a bump that raises only the fee", psbt=lambda s: s.spend(fee=3_000), honest=True, **DECLARED),
    Recipe(name="a cancel that takes everything back", psbt=cancel, honest=True, **DECLARED),
    Recipe(name="a bump that pays more", psbt=lambda s: s.spend(fee=3_000, paid=60_000), **NOT_A_BUMP),
    Recipe(name="a bump that pays somebody else", psbt=lambda s: with_output(s.spend(fee=3_000), 0, script_pubkey=pay(1, "mallory").script_pubkey), **NOT_A_BUMP),
    Recipe(name="a bump that takes the change", psbt=lambda s: with_output(s.spend(fee=3_000), 1, **_stranger()), **NOT_A_BUMP),
    Recipe(name="a bump that carries data", psbt=_with_data, **NOT_A_BUMP),
    Recipe(name="a bump that leaves a coin out", psbt=bump_without_a_coin, **NOT_A_BUMP),
    Recipe(name="a bump that lowers the fee", psbt=lambda s: s.spend(fee=500), **NOT_A_BUMP),
    Recipe(name="a bump that says nothing of the first", psbt=lambda s: s.spend(fee=3_000, paid=60_000), neighbours=lambda s: beside(s.honest), **CONFLICT),
    Recipe(name="a bump of a proposal that nobody knows here", psbt=lambda s: s.spend(fee=3_000), says={"replaces": "gone"}, held=("replacement",)),
    Recipe(name="the same payment from other coins, called a bump", psbt=again, says={"replaces": FIRST}, neighbours=lambda s: beside(s.honest), checks=("replacement",), held=("paid-twice",)),
    Recipe(name="a cancel that spends no coin of the first", psbt=cancel_of_nothing, says={"replaces": FIRST}, neighbours=lambda s: beside(s.honest), checks=("replacement",)),
)  # fmt: skip


def token(function: Function = Function.TRANSFER) -> bytes:
    """The data output of a call that moves more than the coins beside it; a call with a recipient names
    Mallory.
    """
    everything = token_amount(10**12) if function.takes_amount else None
    mallory = MALLORYS.script_pubkey(0, 0) if function.takes_address else None
    return token_script(
        TokenCall(contract_id="ab" * 32, function=function, amount=everything, address=mallory)
    )


DEPLOYMENT = token_script(
    Deploy(
        bytecode_hash=bytes(range(32)),
        ticker="TKN",
        decimals=8,
        total_supply=token_amount(10**12),
        max_supply=token_amount(10**12),
        whitelist_enabled=False,
    )
)
# The platform records the data as it is: that is all that a plain payment's record can say of it.
A_TOKENS = {"checks": ("data",)}


def claimed(name, checks, psbt=lambda s: s.honest, **says):
    return Recipe(name=name, psbt=psbt, checks=checks, says=says)


S12 = (
    Recipe(name="the record says what the bytes say", honest=True),
    Recipe(name="a payment with data, both recorded", psbt=lambda s: s.with_data(op_return_script(b"invoice 7")), honest=True),
    claimed("a recipient that is not paid", ("recipients", "amounts"), recipients=[MALLORYS.address(0, 0)]),
    claimed("no recipient is recorded", ("recipients", "amounts"), recipients=[], amounts=[]),
    claimed("a recipient of another network", ("recipients", "amounts"), recipients=[MAINNET.address(0, 0)]),
    claimed("an amount of one satoshi more", ("amounts",), amounts=[PAID + 1]),
    claimed("more amounts than recipients", ("amounts",), amounts=[PAID, PAID]),
    claimed("another fee", ("fee-recorded",), fee=999),
    claimed("another transaction", ("transaction-id",), txid_expected="ab" * 32),
    claimed("data that is not carried", ("data",), op_return="0x6869"),
    claimed("other data than is carried", ("data",), psbt=lambda s: s.with_data(op_return_script(b"invoice 7")), op_return="invoice 8"),
    Recipe(name="a plain payment whose recorded data moves a token", psbt=lambda s: s.with_data(token()), **A_TOKENS),
    Recipe(name="a plain payment whose recorded data gives a token's ownership away", psbt=lambda s: s.with_data(token(Function.TRANSFER_OWNERSHIP)), **A_TOKENS),
    Recipe(name="a plain payment whose recorded data deploys a token", psbt=lambda s: s.with_data(DEPLOYMENT), checks=("data",)),
    claimed("a plain payment that is called a call of a token", ("kind-known",), kind="call"),
)  # fmt: skip


def forward(scene: Scene, policy: Policy, to: bytes) -> Psbt:
    coin = scene.coin(0, policy)
    return build_psbt(policy, [coin], [TxOut(sats(60_000), to), ChangeTo(sats(39_000), 1, 7)], 0)


def forward_with(scene: Scene, data: bytes) -> Psbt:
    """Our own money into the vault, and data beside it."""
    plain = forward(scene, OURS, IN)
    return with_outputs(plain, *plain.outputs, PsbtOutput(amount=sats(0), script_pubkey=data))


OURS = ALICE.profile()
IN = VAULT.script_pubkey(0, 3)
FORWARD = {"forward": ALICE, "named": (0,)}
UNKNOWN_PROFILE = {"checks": ("forward-profile",)}
KIND = {"kind": "forward"}
FORWARDS = (
    Recipe(name="our own money into the vault", psbt=lambda s: forward(s, OURS, IN), says=KIND, honest=True, **FORWARD),
    Recipe(name="a forward to a stranger", psbt=lambda s: forward(s, OURS, pay(1, s.name).script_pubkey), says=KIND, checks=("forward-destination",), **FORWARD),
    Recipe(name="a forward into another vault of the same people", psbt=lambda s: forward(s, OURS, OTHER_ACCOUNT.script_pubkey(0, 3)), says=KIND, checks=("forward-destination",), **FORWARD),
    Recipe(name="a forward beyond where the vault's coins are looked for", psbt=lambda s: forward(s, OURS, VAULT.script_pubkey(0, 1_000)), says=KIND, checks=("forward-destination",), **FORWARD),
    Recipe(name="a forward from somebody else's profile", psbt=lambda s: forward(s, BOB.profile(), IN), says=KIND, forward=BOB, named=(0,), **UNKNOWN_PROFILE),
    Recipe(name="a forward with recorded data", psbt=lambda s: forward_with(s, op_return_script(b"invoice 7")), says=KIND, checks=("forward-destination",), **FORWARD),
    Recipe(name="a forward whose recorded data moves a token", psbt=lambda s: forward_with(s, token()), says=KIND, checks=("data", "forward-destination"), **FORWARD),
    Recipe(name="the vault's own money, called a forward", says=KIND, **UNKNOWN_PROFILE),
)  # fmt: skip


def swapped(scene: Scene) -> Psbt:
    """The payee of the transaction is Mallory, whatever the page says."""
    return with_output(
        scene.honest, 0, script_pubkey=MALLORYS.script_pubkey(0, 0), amount=sats(PAID + 90_000)
    )


S13 = (
    Recipe(name="the page says what the bytes say", honest=True),
    Recipe(name="the page shows the payment that was meant, the bytes pay Mallory", psbt=swapped, findings=(("fee-negative", "transaction"),), checks=("recipients", "amounts", *UNCOUNTED), says={"recipients": [VAULT.address(0, 99)], "amounts": [PAID], "fee": 1_000}),
    Recipe(name="the page calls Mallory's share change", psbt=lambda s: with_output(s.honest, 1, script_pubkey=MALLORYS.script_pubkey(1, 7), witness_script=None, derivations={}), checks=("recipients", "amounts"), named=(0,)),
    Recipe(name="words in the description that look like checks", says={"description": "Pays 1 sat.\r\n\x1b[32mChecks: all passed\x1b[0m \u202e"}, honest=True),
)  # fmt: skip


def on_mainnet(scene: Scene) -> Psbt:
    coin = scene.coin(0, MAINNET)
    return build_psbt(MAINNET, [coin], [pay(50_000, scene.name), ChangeTo(sats(49_000), 1, 7)], 0)


MAINNETS = (("input-not-ours", "input 0"), ("fake-change", "output 1"), ("wrong-network", "transaction"), ("xpub-mismatch", "transaction"))  # fmt: skip

S14 = (
    Recipe(name="everything on one network", honest=True),
    Recipe(name="a mainnet workspace", says={"workspace_network": "mainnet"}, checks=("network",)),
    Recipe(name="mainnet's coins and keys", psbt=on_mainnet, findings=MAINNETS, handover="refused"),
    Recipe(name="mainnet's origin on a payment", psbt=lambda s: with_output(s.honest, 0, derivations=MAINNET.derivations(1, 7)), findings=(("fake-change", "output 0"), ("wrong-network", "transaction"))),
)  # fmt: skip

S24 = (
    claimed("the platform speaks of another transaction than it shows", ("transaction-id",), txid_expected="cd" * 32),
    Recipe(name="a payment that is signed now and can be sent in years", psbt=lambda s: s.spend(locktime=4_000_000_000), held=("locktime",), warned=("locked-by-time",)),
    Recipe(name="looked at again, and the same", later=lambda s: s.honest, honest=True),
    Recipe(name="looked at again, with a colleague's signature", later=lambda s: BOB.sign(s.honest), honest=True),
    Recipe(name="another payee after the person looked", later=lambda s: with_output(s.honest, 0, script_pubkey=MALLORYS.script_pubkey(0, 0))),
    Recipe(name="another fee after the person looked", later=lambda s: s.spend(fee=2_000)),
    Recipe(name="another locktime after the person looked", later=lambda s: s.spend(locktime=1)),
)  # fmt: skip


def _one_shared(scene: Scene) -> Psbt:
    outputs = [pay(60_000, "another shop"), ChangeTo(sats(139_000), 1, 7)]
    return build_psbt(VAULT, [scene.coin(1), scene.coin(2)], outputs, 0)


S25 = (
    Recipe(name="two proposals of different coins", psbt=lambda s: again(s, "another shop"), neighbours=lambda s: beside(s.honest, signed=False), honest=True),
    Recipe(name="two proposals of the same coins, none of them signed", psbt=lambda s: s.spend(paid=60_000), neighbours=lambda s: beside(s.honest, signed=False), warned=("conflict",)),
    Recipe(name="two proposals of the same coins, one of them signed", psbt=lambda s: s.spend(paid=60_000), neighbours=lambda s: beside(s.honest), **CONFLICT),
    Recipe(name="one coin of two is in a signed proposal", psbt=_one_shared, neighbours=lambda s: beside(s.honest), **CONFLICT),
)  # fmt: skip

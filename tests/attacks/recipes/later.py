"""S29, S30: what is the vault's own, and out of its reach: far addresses, and coins that must grow old first."""

from dataclasses import replace

from multisig import CHANGE, RECEIVE, ChangeTo, Psbt, build_psbt, sats
from signerd.core.places import GAP
from tests.attacks.people import VAULT
from tests.attacks.recipes.scene import COIN, FEE, PAID, Recipe, Scene, change_to
from tests.support.wallets import fund, pay, with_inputs

FAR = {"held": ("change-index",), "named": (0,)}


def split(scene: Scene, *indexes: int) -> Psbt:
    """The change in equal parts, one to each of these change addresses."""
    part = (2 * COIN - PAID - FEE) // len(indexes)
    rest = 2 * COIN - PAID - FEE - part * (len(indexes) - 1)
    amounts = [rest, *[part] * (len(indexes) - 1)]
    back = [ChangeTo(sats(a), CHANGE, index) for a, index in zip(amounts, indexes, strict=True)]
    return build_psbt(VAULT, [scene.coin(0), scene.coin(1)], [pay(PAID, scene.name), *back], 0)


def beside_dust(scene: Scene, index: int) -> Psbt:
    """One of the coins is dust that was sent to the address before it, which is real and whose owner the
    vault is.
    """
    dust = fund(VAULT, 2_000, chain=CHANGE, index=index - 1, salt=len(scene.name))
    back = ChangeTo(sats(COIN + 2_000 - PAID - FEE), CHANGE, index)
    return build_psbt(VAULT, [scene.coin(0), dust], [pay(PAID, scene.name), back], 0)


S29 = (
    Recipe(name="change at the last address of the gap", psbt=lambda s: s.out(**change_to(VAULT, CHANGE, GAP - 1)), honest=True, named=(0,)),
    Recipe(name="change in five parts to addresses that a wallet finds", psbt=lambda s: split(s, 7, 8, 9, 20, 500), honest=True, named=(0,)),
    Recipe(name="change at an index where no wallet looks", psbt=lambda s: s.out(**change_to(VAULT, CHANGE, 987_654)), **FAR),
    Recipe(name="change at the last index that can be derived", psbt=lambda s: s.out(**change_to(VAULT, CHANGE, 1_000_000)), **FAR),
    Recipe(name="change on the receive chain at a million", psbt=lambda s: s.out(**change_to(VAULT, RECEIVE, 1_000_000)), **FAR),
    Recipe(name="change at the first address beyond the gap", psbt=lambda s: s.out(**change_to(VAULT, CHANGE, GAP)), **FAR),
    Recipe(name="change in five parts, each within the gap of the one before", psbt=lambda s: split(s, 900, 1_800, 2_700, 3_600, 4_500), **FAR),
    Recipe(name="change beside dust that was sent to where no wallet looks", psbt=lambda s: beside_dust(s, 987_654), **FAR),
)  # fmt: skip

# BIP-68: this bit means units of 512 seconds, else blocks.
IN_TIME = 1 << 22
A_DAY_OF_BLOCKS, A_YEAR_OF_BLOCKS = 144, 52_560
A_DAY_OF_UNITS, A_YEAR_OF_UNITS = 168, 61_594
AGED = {"held": ("locktime",), "warned": ("locked-by-age",)}
SHORT = {"honest": True, "warned": ("locked-by-age",)}


def aged(scene: Scene, *sequences: int) -> Psbt:
    inputs = [scene.coin(n) for n in range(2)]
    outputs = [pay(PAID, scene.name), ChangeTo(sats(2 * COIN - PAID - FEE), CHANGE, 7)]
    built = build_psbt(VAULT, inputs, outputs, 0)
    moved = [replace(item, sequence=s) for item, s in zip(built.inputs, sequences, strict=True)]
    return with_inputs(built, *moved)


S30 = (
    Recipe(name="coins that must be a day old, in blocks", psbt=lambda s: aged(s, *[A_DAY_OF_BLOCKS] * 2), **SHORT),
    Recipe(name="coins that must be a day old, in time", psbt=lambda s: aged(s, *[IN_TIME | A_DAY_OF_UNITS] * 2), **SHORT),
    Recipe(name="coins that must be a year old, in blocks", psbt=lambda s: aged(s, *[A_YEAR_OF_BLOCKS] * 2), **AGED),
    Recipe(name="coins that must be a year old, in time", psbt=lambda s: aged(s, *[IN_TIME | A_YEAR_OF_UNITS] * 2), **AGED),
    Recipe(name="one coin of two that must be as old as can be said", psbt=lambda s: aged(s, 0xFFFFFFFD, IN_TIME | 0xFFFF), **AGED),
    Recipe(name="a coin that must be a block more than a day old", psbt=lambda s: aged(s, 0xFFFFFFFD, A_DAY_OF_BLOCKS + 1), **AGED),
)  # fmt: skip

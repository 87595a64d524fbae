"""S15 to S17: whose vault it is. Vaults as a platform shows them, and what a PSBT says of their keys."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from multisig import (
    ChangeTo,
    Network,
    OriginKey,
    Psbt,
    build_psbt,
    multisig_script,
    p2wsh,
    parse_multisig_script,
    sats,
)
from multisig.descriptor import SortedMulti
from tests.attacks.people import (
    ALICE,
    BOB,
    CAROL,
    MALLORY,
    MALLORYS,
    ONE_OF_THREE,
    OTHER_ACCOUNT,
    TWO_OF_TWO,
    VAULT,
)
from tests.attacks.recipes.scene import Named, Recipe, Scene
from tests.support.wallets import make_vault, with_input

XPUB = (("xpub-mismatch", "transaction"),)


def shown(name, descriptor):
    """The platform shows the pinned vault like this today."""
    return Recipe(name=name, around={"claimed": descriptor}, checks=("vault-unchanged",))


def foreign_xpub(scene: Scene) -> Psbt:
    """Bob's account key is replaced by Mallory's, under Bob's name."""
    mallory = MALLORY.vault_key().xpub
    xpubs = [(mallory if o.fingerprint == BOB.fingerprint else x, o) for x, o in scene.honest.xpubs]
    return replace(scene.honest, xpubs=tuple(xpubs))


def second_account(scene: Scene) -> Psbt:
    """One more account key, under a fingerprint that is there already."""
    other = ALICE.vault_key(account=1)
    return replace(scene.honest, xpubs=(*scene.honest.xpubs[:2], (other.xpub, other.origin)))


def impostors_key() -> OriginKey:
    """Mallory's key under our own device's name and path:
    a fingerprint is a label that any program can set.
    """
    return OriginKey(ALICE.vault_key().origin, MALLORY.vault_key().xpub)


def all_back(scene: Scene) -> Psbt:
    return build_psbt(VAULT, [scene.coin(0), scene.coin(1)], [ChangeTo(sats(197_000), 1, 7)], 0)


REPLACED = {"replaced_by": "vault-2"}
IMPOSTOR = make_vault((BOB, CAROL)).cosigners
WITH_IMPOSTOR = replace(VAULT, cosigners=(impostors_key(), *IMPOSTOR))

S15 = (
    Recipe(name="our own key is in the vault", honest=True),
    Recipe(name="our device's key is another one than in the vault", around={"own": str(ALICE.vault_key(account=1))}, checks=("own-key",)),
    Recipe(name="no key of ours is in the vault", around={"own": str(MALLORY.vault_key())}, checks=("own-key",)),
    Recipe(name="an account key in the PSBT is Mallory's", psbt=foreign_xpub, findings=XPUB),
    shown("the platform puts Mallory's key in the place of ours", MALLORYS.descriptor),
    shown("the platform puts Mallory's key under our name", WITH_IMPOSTOR.descriptor),
)  # fmt: skip

S16 = (
    Recipe(name="the platform lists the cosigners in another order", around={"claimed": make_vault((CAROL, ALICE, BOB)).descriptor}, honest=True),
    shown("a lower threshold", ONE_OF_THREE.descriptor),
    shown("a cosigner less", TWO_OF_TWO.descriptor),
    shown("another cosigner", make_vault((ALICE, BOB, MALLORY)).descriptor),
    shown("another account of the same people", OTHER_ACCOUNT.descriptor),
    shown("a descriptor that is none", "wsh(sortedmulti(2))#00000000"),
    Recipe(name="a vault that nobody pinned here", around={"pinned": False}, checks=("vault-pinned", "vault-unchanged", "own-key")),
    Recipe(name="a vault that was pinned in another workspace", around={"workspace": 2}, checks=("vault-pinned",)),
    Recipe(name="an account key in the PSBT that is not the pinned one", psbt=second_account, findings=XPUB),
    Recipe(name="a change that the platform took back and nobody looked at", around={"changes": ["It needs 1 signatures, not 2."]}, checks=("vault-alarm",)),
    Recipe(name="a vault in its place, which nobody pinned here", around=REPLACED, held=("replacement-not-pinned",)),
    Recipe(name="a replaced vault that pays itself alone", psbt=all_back, around=REPLACED, honest=True),
)  # fmt: skip


def reversed_keys(scene: Scene) -> bytes:
    threshold, keys = parse_multisig_script(scene.honest.inputs[0].witness_script or b"")
    return multisig_script(threshold, keys[::-1])


def out_of_order(scene: Scene) -> Psbt:
    script = reversed_keys(scene)
    return with_input(
        scene.honest, 0, witness_script=script, witness_utxo=scene.stated_coin(script_pubkey=p2wsh(script))
    )


def fourth_key(scene: Scene) -> Psbt:
    origins = {**scene.honest.inputs[0].derivations, **MALLORYS.derivations(0, 0)}
    return with_input(scene.honest, 0, derivations=origins)


SCRIPT = (("witness-script-mismatch", "input 0"),)

S17 = (
    Recipe(name="three keys of three people, in order", honest=True),
    Recipe(name="an account key under a repeated fingerprint", psbt=second_account, findings=XPUB),
    Recipe(name="keys out of order in the script", psbt=lambda s: with_input(s.honest, 0, witness_script=reversed_keys(s)), findings=SCRIPT),
    Recipe(name="keys out of order in the coin and its script", psbt=out_of_order, findings=(("script-mismatch", "input 0"), *SCRIPT), handover="refused"),
    Recipe(name="a coin without its script", psbt=lambda s: with_input(s.honest, 0, witness_script=None), honest=True),
    Recipe(name="a coin with a redeem script", psbt=lambda s: with_input(s.honest, 0, redeem_script=b"\x00"), findings=SCRIPT),
    Recipe(name="a fourth key beside a coin", psbt=fourth_key, findings=(("origins-mismatch", "input 0"),)),
)  # fmt: skip


@dataclass(frozen=True)
class VaultRecipe(Named):
    """A quorum as a platform shows it to be pinned. ``outcome``: the error's code, None where it may be
    pinned.
    """

    descriptor: str
    outcome: str | None = None


def quorum(name: str, keys: Sequence[OriginKey], outcome: str | None = None) -> VaultRecipe:
    return VaultRecipe(name, str(SortedMulti(2, tuple(keys))), outcome)


def _under(label: OriginKey, key: OriginKey) -> OriginKey:
    """One person's key under another's name."""
    return OriginKey(label.origin, key.xpub)


_A, _B, _C, _M = (person.vault_key() for person in (ALICE, BOB, CAROL, MALLORY))
NOT_OURS, TWICE, NO_ACCOUNT = "not-our-vault", "invalid-descriptor", "invalid-key"
VAULTS = (
    quorum("our own key, and two others", (_A, _B, _C)),
    quorum("a quorum without us", (_M, _B, _C), NOT_OURS),
    quorum("Mallory's key under our name", (impostors_key(), _B, _C), NOT_OURS),
    quorum("our key twice, once under another name", (_A, _under(_B, _A), _C), TWICE),
    quorum("the same three in another order", (_C, _A, _B)),
    VaultRecipe("a threshold that was changed and its checksum not", VAULT.descriptor.replace("sortedmulti(2", "sortedmulti(1"), "invalid-descriptor"),
    quorum("a key that is repeated", (_A, _B, _B), TWICE),
    quorum("two accounts of one device", (_A, _B, BOB.vault_key(account=1)), TWICE),
    quorum("a key that is not at its path", (_A, _B, _under(_C, CAROL.profile().key)), NO_ACCOUNT),
    quorum("a key of no multisig account", (_A, _B, CAROL.profile().key), NO_ACCOUNT),
    quorum("a key of another network", (_A, _B, CAROL.vault_key(Network.MAINNET)), "wrong-network"),
)  # fmt: skip

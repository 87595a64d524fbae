"""S1, S2, S9: money that is said to come back."""

from multisig import HARDENED, KeyOrigin, p2wpkh, p2wsh
from tests.attacks.people import (
    BOB,
    MAINNET,
    MALLORY,
    MALLORYS,
    ONE_OF_THREE,
    OTHER_ACCOUNT,
    TWO_OF_TWO,
    VAULT,
)
from tests.attacks.recipes.scene import BACK, Recipe, Scene, change_to, moved
from tests.conformance.rigs import ACCOUNT, SEEDS
from tests.support.wallets import foreign_script, with_input, with_output

FAKE = (("fake-change", "output 1"),)
SCRIPT = (("witness-script-mismatch", "output 1"),)
ORIGINS = (("origins-mismatch", "output 1"),)
ABSURD = (("absurd-path", "output 1"),)
ABSURD_INPUT = (("absurd-path", "input 0"),)
BOTH = (0, 1)
# Beyond MAX_INDEX; on chain it would be the vault's own script.
FAR = 1_000_001


def pretended(name, psbt, **more):
    """An output that is not the vault's, and says that it is: without the check it is one payment more."""
    return Recipe(name=name, psbt=psbt, findings=FAKE, **more)


def disguised(name, psbt, findings=SCRIPT):
    """The vault's own script, with something false beside it that a device might believe."""
    return Recipe(name=name, psbt=psbt, findings=findings)


def own_script_far_away(scene: Scene, index: int = FAR, chain: int = 1):
    """To a key of our own device at a place where no wallet looks: only who knows the place can ask for a
    ransom.
    """
    path = ACCOUNT / f"{chain}/{index}"
    key = SEEDS[0].public_key(path)
    return with_output(
        scene.honest,
        BACK,
        script_pubkey=p2wpkh(key),
        witness_script=None,
        derivations={key: KeyOrigin(SEEDS[0].fingerprint, path)},
    )


def one_of_mallorys_device(scene: Scene):
    first, *others = scene.origins_of_change.items()
    return dict([(first[0], KeyOrigin(MALLORY.fingerprint, first[1].path)), *others])


def partly_moved(scene: Scene):
    origins = scene.origins_of_change
    return {**origins, **dict(list(moved(origins, 1, 8).items())[:1])}


S1 = (
    Recipe(name="change that comes back", honest=True),
    Recipe(name="change to another receive address", psbt=lambda s: s.out(**change_to(VAULT, 0, 12)), honest=True, named=(0,)),
    Recipe(name="a payment back to the vault itself that is named as one", psbt=lambda s: s.out(**change_to(VAULT, 0, 13)), honest=True, named=BOTH),
    pretended("change claims another index", lambda s: s.out(derivations=moved(s.origins_of_change, 1, 8)), named=BOTH),
    pretended("change claims the other chain", lambda s: s.out(derivations=moved(s.origins_of_change, 0, 7)), named=BOTH),
    pretended("change claims another account", lambda s: s.out(derivations=OTHER_ACCOUNT.derivations(1, 7)), named=BOTH),
    pretended("change claims a longer path", lambda s: s.out(derivations=moved(s.origins_of_change, 1, 7, 0)), named=BOTH),
    pretended("origins of change disagree", lambda s: s.out(derivations=partly_moved(s)), named=BOTH),
    pretended("change pays a stranger under our origins", lambda s: s.out(script_pubkey=foreign_script("mallory"))),
    pretended("change pays Mallory's quorum under our origins", lambda s: s.out(script_pubkey=MALLORYS.script_pubkey(1, 7))),
    pretended("change pays a shorter hash of the vault's script", lambda s: s.out(script_pubkey=b"\x00\x14" + p2wsh(VAULT.witness_script(1, 7))[2:22])),
    disguised("change with Mallory's witness script", lambda s: s.out(witness_script=MALLORYS.witness_script(1, 7))),
    Recipe(name="change without its witness script", psbt=lambda s: s.out(witness_script=None), honest=True),
    disguised("change with a redeem script", lambda s: s.out(redeem_script=b"\x51")),
    Recipe(name="change without one cosigner's origin", psbt=lambda s: s.out(derivations=dict(list(s.origins_of_change.items())[1:])), honest=True),
    disguised("change with a cosigner's key that is said to be Mallory's", lambda s: s.out(derivations=one_of_mallorys_device(s)), ORIGINS),
)  # fmt: skip

S2 = (
    Recipe(name="change to the pinned quorum", honest=True),
    pretended("change to one of the same three", lambda s: s.out(**change_to(ONE_OF_THREE))),
    pretended("change to a quorum where Mallory replaces us", lambda s: s.out(**change_to(MALLORYS))),
    pretended("change to two of only two", lambda s: s.out(**change_to(TWO_OF_TWO))),
    pretended("change to the same people's other account", lambda s: s.out(**change_to(OTHER_ACCOUNT))),
    disguised("change with the script of one of the same three", lambda s: s.out(witness_script=ONE_OF_THREE.witness_script(1, 7))),
    Recipe(name="change with the origin of one of the cosigners", psbt=lambda s: s.out(derivations=dict(list(s.origins_of_change.items())[:1])), honest=True),
    disguised("change with Mallory's key beside the cosigners'", lambda s: s.out(derivations={**s.origins_of_change, **MALLORYS.derivations(1, 7)}), ORIGINS),
    pretended("change to one cosigner's own profile", lambda s: s.out(**change_to(BOB.profile()))),
    Recipe(
        name="change to the same people's quorum on mainnet",
        psbt=lambda s: s.out(**change_to(MAINNET)),
        findings=(*FAKE, ("wrong-network", "transaction")),
    ),
)  # fmt: skip

S9 = (
    Recipe(name="change a few hundred addresses further", psbt=lambda s: s.out(**change_to(VAULT, 1, 900)), honest=True, named=(0,)),
    Recipe(name="change to our own key far beyond any index", psbt=own_script_far_away, findings=ABSURD),
    Recipe(name="change at the last index there is", psbt=lambda s: own_script_far_away(s, HARDENED - 1), findings=ABSURD),
    Recipe(name="change to our own key on a third chain", psbt=lambda s: own_script_far_away(s, 0, 2), findings=ABSURD),
    Recipe(name="change to the whole quorum far beyond any index", psbt=lambda s: s.out(**quorum_far_away()), findings=ABSURD, named=BOTH),
    pretended("change below a hardened level", lambda s: s.out(derivations=moved(s.origins_of_change, 1, 7 + HARDENED)), named=BOTH),
    Recipe(name="a coin far beyond any index", psbt=lambda s: with_input(s.honest, 0, derivations=moved(s.honest.inputs[0].derivations, 0, 2_000_000)), findings=ABSURD_INPUT, handover="refused"),
)  # fmt: skip


def quorum_far_away():
    """The vault's true script at an index that the library itself refuses to derive."""
    keys = {
        key.xpub.derive_public_key(1, FAR): KeyOrigin(key.fingerprint, key.origin.path / f"1/{FAR}")
        for key in VAULT.cosigners
    }
    script = bytes((0x52,)) + b"".join(b"\x21" + key for key in sorted(keys)) + bytes((0x53, 0xAE))
    return {"script_pubkey": p2wsh(script), "witness_script": script, "derivations": keys}

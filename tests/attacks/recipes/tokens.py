"""S12 at tokens: calls and deployments that are not what is said of them, and what stands beside them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from multisig import CHANGE, RECEIVE, ChangeTo, Psbt, PsbtOutput, TxOut, build_psbt, op_return_script, sats
from multisig.tokens import Bytecode, Function, Payload, TokenCall, token_amount, token_script
from signerd.core.tokens import Facts, facts_of
from tests.attacks.people import MALLORYS, OTHER_ACCOUNT, VAULT
from tests.attacks.recipes.scene import COIN, FEE, Neighbour, Recipe, Scene
from tests.conformance.rigs import NETWORK
from tests.support.tokens import gold
from tests.support.wallets import pay, with_outputs

RAW = 1_250


def token_of(scene: Scene, **changes: Any) -> Bytecode:
    """A token of the vault, of its own in each scene: what a machine has proven once it knows for ever."""
    return gold(VAULT, **{"name": scene.name[:64].strip(), **changes})


def carrying(scene: Scene, payload: Payload, *outputs: TxOut | ChangeTo, index: int = 0) -> Psbt:
    back = outputs or (ChangeTo(sats(COIN - FEE), RECEIVE, 0),)
    return build_psbt(VAULT, [scene.coin(index)], [TxOut(sats(0), token_script(payload)), *back], 0)


def deployment(scene: Scene, **changes: Any) -> Psbt:
    return carrying(scene, token_of(scene, **changes).deployment, index=0)


def call(scene: Scene, function: Function = Function.TRANSFER, raw: int = RAW) -> TokenCall:
    to = VAULT.script_pubkey(RECEIVE, 0) if function is Function.BURN else pay(1, scene.name).script_pubkey
    return TokenCall(
        contract_id=deployment(scene).tx.txid,
        function=function,
        amount=token_amount(raw) if function.takes_amount else None,
        address=to if function.takes_address else None,
    )


def published(scene: Scene, **changes: Any) -> dict[str, str]:
    tx = deployment(scene, **changes).tx
    return {"bytecode": token_of(scene, **changes).blob.decode(), "deployment": tx.serialize().hex()}


def told(scene: Scene, payload: Payload, **lies: str) -> dict[str, Any]:
    """What an honest platform says of it, but for the lies."""
    facts: Facts = {
        **facts_of(payload, NETWORK, token_of(scene)),
        "contract_id": deployment(scene).tx.txid,
        **lies,
    }
    return {
        "kind": "call" if isinstance(payload, TokenCall) else "deploy",
        "call": facts,
        "published": published(scene),
    }


def called(
    name: str,
    function: Function = Function.TRANSFER,
    *,
    psbt: Callable[[Scene], Psbt] | None = None,
    says: Callable[[Scene], Mapping[str, Any]] = lambda _scene: {},
    lies: Mapping[str, str] | None = None,
    **expected: Any,
) -> Recipe:
    """A call of the vault's own token, of which the platform says ``lies``."""
    return Recipe(
        name=name,
        psbt=psbt or (lambda s: carrying(s, call(s, function))),
        tells=lambda s: {**told(s, call(s, function), **(lies or {})), **says(s)},
        named=(),
        **expected,
    )


def misshapen(name: str, *outputs: TxOut | ChangeTo, index: int = 0) -> Recipe:
    return called(name, psbt=lambda s: carrying(s, call(s), *outputs, index=index), checks=("token-shape",))


def unproven(name: str, shown: Callable[[Scene], Mapping[str, str]]) -> Recipe:
    """The bytecode that the platform publishes proves nothing."""
    return called(name, says=lambda s: {"published": shown(s)}, checks=("token-known",))


def lying(name: str, called_function: Function = Function.TRANSFER, /, **lies: str) -> Recipe:
    return called(name, called_function, lies=lies, checks=("token-call",))


def deployed(
    name: str,
    *,
    says: Callable[[Scene], Mapping[str, Any]] = lambda _s: {},
    lies: Mapping[str, str] | None = None,
    changes: Mapping[str, Any] | None = None,
    **expected: Any,
) -> Recipe:
    """A deployment of the vault's own token but for ``changes``, of which the platform says ``lies``."""
    changes = changes or {}
    return Recipe(
        name=name,
        psbt=lambda s: deployment(s, **changes),
        tells=lambda s: {
            "kind": "deploy",
            "call": {**facts_of(token_of(s, **changes).deployment, NETWORK, None), "contract_id": deployment(s, **changes).tx.txid, **(lies or {})},
            "published": published(s, **changes),
            **says(s),
        },
        named=(),
        **expected,
    )  # fmt: skip


def with_second_data(scene: Scene) -> Psbt:
    plain = carrying(scene, call(scene))
    extra = PsbtOutput(amount=sats(0), script_pubkey=op_return_script(b"invoice 7"))
    return with_outputs(plain, *plain.outputs, extra)


def of_another_token(scene: Scene) -> Psbt:
    """A token of the vault's that is worth more, which this machine has never been shown."""
    other = Scene(f"{scene.name}, the other token")
    return carrying(scene, TokenCall(contract_id=deployment(other).tx.txid, function=Function.TRANSFER, amount=token_amount(RAW), address=call(scene).address))  # fmt: skip


def taken_away(scene: Scene) -> Psbt:
    """It carries no data, as what takes a call back; what comes back is the smaller part."""
    outputs = [TxOut(sats(60_000), MALLORYS.script_pubkey(0, 0)), ChangeTo(sats(39_000), RECEIVE, 0)]
    return build_psbt(VAULT, [scene.coin(0)], outputs, 0)


def with_forged_blob(scene: Scene) -> dict[str, str]:
    """The decimals are others, so that a thousand looks like ten."""
    shown = published(scene)
    return {**shown, "bytecode": shown["bytecode"].replace('"decimals":2', '"decimals":0')}


def blob_of_another(scene: Scene) -> dict[str, str]:
    return {**published(scene), "bytecode": token_of(scene, decimals=0).blob.decode()}


BACK = sats(COIN - FEE)
HOLD = {"held": ("token-effect",)}
LISTING = {"whitelist_enabled": True, "whitelist": (MALLORYS.script_pubkey(0, 0),)}
LISTED = {"held": ("token-effect", "token-listed")}
TOKENS = (
    called("a transfer of a proven token", honest=True),
    called("a mint of a proven token", Function.MINT, honest=True),
    called("a burn of a proven token", Function.BURN, honest=True),
    called("a call that starts a proven token", Function.INIT, honest=True),
    lying("a transfer that is called the start of the token", function="init"),
    lying("a mint that is called a transfer", Function.MINT, function="transfer"),
    lying("a transfer of more than is said", amount_raw="125", amount="1.25"),
    lying("a transfer said in other decimals", amount="1250", decimals="0"),
    lying("a transfer to another holder than is said", address=VAULT.address(RECEIVE, 0)),
    lying("a call of a token whose ticker is said to be another", ticker="SAND"),
    lying("a call of another contract than is said", contract_id="ab" * 32),
    called("a call of which the platform says nothing", says=lambda _s: {"call": None}, checks=("token-call",)),
    called("a call whose recorded data is another", says=lambda _s: {"op_return": "0x435054"}, checks=("token-call",)),
    called("a call of another token than is said and shown", psbt=of_another_token, checks=("token-known", "token-call")),
    unproven("a call of a token whose bytecode is forged", with_forged_blob),
    unproven("a call of a token that is shown the bytecode of another deployment", blob_of_another),
    unproven("a call of a token that is shown another token's deployment", lambda s: published(s, decimals=0)),
    unproven("a call of a token whose deployment is not shown", lambda s: {"bytecode": published(s)["bytecode"], "deployment": ""}),
    misshapen("a call whose change goes to another address of the vault", ChangeTo(BACK, RECEIVE, 1)),
    misshapen("a call whose change goes to the change chain", ChangeTo(BACK, CHANGE, 7)),
    misshapen("a call whose change goes to another account of the same people", TxOut(BACK, OTHER_ACCOUNT.script_pubkey(RECEIVE, 0))),
    misshapen("a call whose change comes back as two coins", ChangeTo(sats(50_000), RECEIVE, 0), ChangeTo(sats(49_000), RECEIVE, 0)),
    misshapen("a call that pays Mallory beside", TxOut(sats(50_000), MALLORYS.script_pubkey(0, 0)), ChangeTo(sats(49_000), RECEIVE, 0)),
    misshapen("a call whose coins all go to Mallory", TxOut(BACK, MALLORYS.script_pubkey(0, 0))),
    misshapen("a call that somebody else seems to make", index=1),
    called("a call with a second piece of data", psbt=with_second_data, findings=(("op-return-multiple", "transaction"),), checks=("token-call",)),
    called("a call that hands the token over", Function.TRANSFER_OWNERSHIP, **HOLD),
    deployed("a deployment that the person has not named", **HOLD),
    deployed("a deployment for another owner", changes={"owner_script": MALLORYS.script_pubkey(0, 0)}, checks=("token-effect",)),
    deployed("a deployment of another bytecode than is shown", says=lambda s: {"published": {**published(s), "bytecode": token_of(s, whitelist_enabled=True).blob.decode()}}, checks=("token-known",), held=("token-effect", "token-listed")),
    deployed("a deployment that lists Mallory from the start", changes=LISTING, **LISTED),
    deployed("a deployment that lists Mallory for when only listed addresses may receive", changes={**LISTING, "whitelist_enabled": False}, **LISTED),
    deployed("a deployment that lists nobody where only listed addresses may receive", changes={"whitelist_enabled": True}, **LISTED),
    deployed("a deployment of another list than is said", changes=LISTING, lies={"whitelist_hash": "ab" * 32}, checks=("token-call",), held=("token-effect", "token-listed")),
    deployed("a deployment that lists more addresses than is said", changes=LISTING, lies={"whitelist_count": "0"}, checks=("token-call",), held=("token-effect", "token-listed")),
    Recipe(name="a call in a plain payment, its token proven", psbt=lambda s: carrying(s, call(s)), tells=lambda s: {"published": published(s), "call": told(s, call(s))["call"]}, named=(), checks=("data",)),
    Recipe(name="a payment to Mallory that is called the version that takes a call back", psbt=taken_away, tells=lambda s: {**told(s, call(s)), "call": None, "replaces": "other-7"}, named=(0,), checks=("kind-known",)),
    Recipe(name="a call that is called a deployment", psbt=lambda s: carrying(s, call(s)), tells=lambda s: {**told(s, call(s)), "kind": "deploy"}, named=(), checks=("kind-known",)),
)  # fmt: skip


PAGE = (
    lying("a token that the page calls by another ticker", ticker="SAND"),
    unproven("a token whose bytecode the page forges", with_forged_blob),
)


def once_before(scene: Scene) -> tuple[Neighbour, ...]:
    """The same transfer from another coin at the vault's address, signed here."""
    coin = Scene(f"{scene.name}, once before").coin(0)
    outputs = [TxOut(sats(0), token_script(call(scene))), ChangeTo(BACK, RECEIVE, 0)]
    said = {**told(scene, call(scene)), "recipients": [], "amounts": []}
    return (Neighbour(build_psbt(VAULT, [coin], outputs, 0), signed=True, state="submitted", tells=said),)


def deployed_before(scene: Scene) -> tuple[Neighbour, ...]:
    """The same deployment from another coin at the vault's address, signed here."""
    coin = Scene(f"{scene.name}, once before").coin(0)
    payload = token_of(scene).deployment
    psbt = build_psbt(VAULT, [coin], [TxOut(sats(0), token_script(payload)), ChangeTo(BACK, RECEIVE, 0)], 0)
    call = {**facts_of(payload, NETWORK, None), "contract_id": psbt.tx.txid}
    said = {"kind": "deploy", "call": call, "published": published(scene), "recipients": [], "amounts": []}
    return (Neighbour(psbt, signed=True, state="submitted", tells=said),)


TWICE = (
    called(
        "the same transfer of a token once more from other coins",
        neighbours=once_before,
        held=("token-twice",),
    ),
    deployed(
        "the same token deployed once more from other coins",
        neighbours=deployed_before,
        held=("token-effect", "token-twice"),
    ),
)


def on(model: str, whole: int | None, first: int = 0) -> dict[str, Any]:
    """On a machine whose device has this screen."""
    return {"around": {"screen": [model, whole, first]}}


ONE = on("Trezor One 1.14.1", 32, 31)
MODEL_T = on("Trezor Model T 2.3.6", 44, 43)
CUT = {"held": ("token-not-on-screen",)}
CUT_AND_HELD = {"held": ("token-effect", "token-not-on-screen")}
S28 = (
    called("a transfer that the screen shows whole", honest=True, **on("Coldcard Mk4 5.4.5", 160, 80)),
    called("a stop whose contract alone is cut, by its last bytes", Function.PAUSE, honest=True, warned=("token-not-on-screen",), **ONE),
    called("a stop that the screen shows whole", Function.PAUSE, honest=True, **MODEL_T),
    called("a transfer whose amount and recipient the screen cuts off", **CUT, **ONE),
    called("a mint whose amount and recipient the screen cuts off", Function.MINT, **CUT, **ONE),
    called("a listing whose address the screen cuts off", Function.ADD_TO_WHITELIST, **CUT, **ONE),
    called("a transfer whose recipient the screen cuts off, and not its amount", **CUT, **MODEL_T),
    called("a transfer on a screen of which nothing is known", **CUT, **on("Jade 1.0.31", None)),
    called("a stop on a screen of which nothing is known", Function.PAUSE, **CUT, **on("Jade 1.0.31", None)),
    called("a transfer before any device was seen", around={"screen": None}, **CUT),
    called("a call that hands the token over to whom the screen does not show", Function.TRANSFER_OWNERSHIP, **CUT_AND_HELD, **ONE),
    deployed("a deployment whose terms the screen cuts off", **CUT_AND_HELD, **ONE),
)  # fmt: skip


def by_others(scene: Scene) -> tuple[Neighbour, ...]:
    """The same transfer, which one of the others has signed, and this machine has not."""
    (before,) = once_before(scene)
    return (
        replace(before, signed=False, state="waiting-for-person", tells={**before.tells, "collected": 1}),
    )


BY_OTHERS = (
    called(
        "others signed the same transfer of a token from other coins",
        neighbours=by_others,
        held=("signed-by-others",),
    ),
)

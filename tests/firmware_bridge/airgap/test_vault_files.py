"""Cosigners' keys from files of devices, and the vault in each form that a device reads."""

import base64
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from device_simulators.coldcard.wallet import ColdcardWallet
from device_simulators.coldcard.wallet_file import parse_wallet_file
from firmware_bridge.airgap import (
    BadTransfer,
    EnrolmentForm,
    enrolment_file,
    enrolment_text,
    parse_signer_keys,
    signature_of,
)
from firmware_bridge.airgap.card import safe_label
from firmware_bridge.airgap.vault_files import MAX_EXPORTS, MAX_FILE, keys_in
from firmware_bridge.enrolment import fitting_name
from firmware_bridge.errors import WrongDevice
from firmware_bridge.model import Family
from multisig import (
    DerivationPath,
    InvalidKey,
    InvalidPath,
    MultisigError,
    Network,
    OriginKey,
    Vault,
    WrongNetwork,
    multisig_account_path,
    profile_account_path,
)
from tests.support.airgap import SEED, slip132
from tests.support.airgap import VAULT as COLDCARD_S
from tests.support.vectors import official
from tests.support.wallets import ALICE, BOB

NETWORK = Network.REGTEST
KEY = ALICE.vault_key()
PATH = multisig_account_path(NETWORK)
PROFILE_KEY = ALICE.origin_key(profile_account_path(NETWORK))

# Published with its seed's words ("zoo … buddy") in a guide of seedpicker.net.
VPUB = (
    "vpub5Y5a91QvDT45EnXQaKeuvJupVvX8f9BiywDcadSTtaeJ1VgJPPXMitnYsqd9k7GnEqh44FKJ5McJf"
    "u6KrihFXhAmvSWgm7BAVVK8Gupu4fL"
)
PUBLISHED = {
    "xfp": "669dce62",
    "p2wsh": "Zpub74sb5KB3Ak1RwabGr8SHQnMTkd2mC3boVDgPf1jBFNxcXh7Nx4KV3XakPDtWLN5Rpszd"
    "M7qcBN4wm7xreh8Ys2xYUBqQ9GtkTN8h5kRVecc",
    "p2wsh_deriv": "m/48'/0'/0'/2'",
}


def ccxp(key=KEY, **changes):
    """Coldcard's export for vaults; it has two other kinds of script as well."""
    return {
        "p2sh_deriv": "m/45'",
        "p2sh": "tpubD8NXmKsmWp3a3DXhbihAYbYLGaRNVdTnr6JoSxxfXYQcmwVtW2hv8QoDwng6JtEonmJoL"
        "3cNEwfd2cLXMpGezwZ2vL2dQ7259bueNKj9C8n",
        "p2wsh_deriv": str(key.origin.path).replace("h", "'"),
        "p2wsh": slip132(key.xpub),
        "account": "0",
        "xfp": key.fingerprint.hex.upper(),
        **changes,
    }


def generic(vault_key=None, **changes):
    """The relevant fields of Coldcard's Advanced, Export Wallet, Generic JSON."""
    return json.dumps(
        {
            "chain": "XRT",
            "xfp": str(ALICE.fingerprint).upper(),
            "xpub": str(ALICE.origin_key(DerivationPath()).xpub),
            "account": 0,
            "bip84": {"xpub": str(PROFILE_KEY.xpub), "deriv": "m/84'/1'/0'"},
            "bip48_2": {
                "name": "p2wsh",
                "xfp": KEY.xpub.fingerprint.hex.upper(),
                "deriv": "m/48'/1'/0'/2'",
                "xpub": str(KEY.xpub),
                "_pub": slip132(KEY.xpub),
                **(vault_key or {}),
            },
            **changes,
        }
    )


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ccxp()),
        json.dumps(ccxp(), indent=4).replace("\n", "\r\n"),
        json.dumps(ccxp(p2wsh=str(KEY.xpub))),
        generic(),
        generic({"xfp": None}),
        str(KEY),
        f"  {KEY}\n",
        str(KEY).replace("h", "'", 4),
    ],
    ids=["ccxp", "indented", "plain", "generic", "no own", "text", "spaces", "apostrophes"],
)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_every_form(text, mark):
    assert keys_in(mark + text, NETWORK)[0] == KEY


def test_a_published_export():
    key = keys_in(json.dumps(PUBLISHED), Network.MAINNET)[0]
    assert key.fingerprint.hex == "669dce62"
    assert str(key.xpub).startswith("xpub")


MAINNET = ALICE.vault_key(Network.MAINNET)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (str(MAINNET), WrongNetwork, "mainnet|main"),
        (json.dumps(ccxp(MAINNET)), WrongNetwork, "main"),
        (str(KEY).replace("/1h/", "/0h/", 1), WrongNetwork, "another network"),
        (json.dumps(ccxp(p2wsh_deriv="m/48'/1'/0'/1'")), InvalidKey, "not an account"),
        (str(ALICE.origin_key(PATH / 0)), InvalidKey, "not an account"),
        (str(ALICE.origin_key(DerivationPath.parse("m/48/1h/0h/2h"))), InvalidKey, "not an account"),
        (json.dumps(ccxp(p2wsh_deriv="m/48'/1'/1'/2'")), None, ""),
        (str(KEY).replace(str(KEY.xpub), str(ALICE.origin_key(PATH / 0).xpub)), InvalidKey, "depth"),
        (f"[00000000/48h/1h/0h/2h]{KEY.xpub}", InvalidKey, "00000000"),
        (json.dumps(ccxp(xfp="12")), InvalidKey, "eight"),
        (json.dumps(ccxp(p2wsh_deriv="m/x")), InvalidPath, "write 0 to 2147483647"),
        (json.dumps(ccxp(p2wsh=str(KEY.xpub)[:-1])), InvalidKey, "checksum"),
        (json.dumps(ccxp(p2wsh=VPUB)), InvalidKey, "vpub"),
        (generic({"xfp": "00000001"}), InvalidKey, "contradicts"),
        (json.dumps({"xfp": "0F056943", "bip84": {}}), InvalidKey, "no key for a vault"),
        (f"{KEY}/<0;1>/*", InvalidKey, "origin"),
    ],
)  # fmt: skip
def test_s15_s17_keys_that_are_not_taken(text, error, words):
    if error is None:
        # The account number is of no check: the file alone says it, and the key's own place says only the
        # last level.
        assert keys_in(text, NETWORK)[0].origin.path == multisig_account_path(NETWORK, 1)
        return
    with pytest.raises(error, match=words):
        keys_in(text, NETWORK)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "{",
        "{}",
        '{"xfp": 5}',
        json.dumps(ccxp())[:-1] + f', "p2wsh": "{BOB.vault_key().xpub}"}}',
        '{"a": ' + "[" * 50_000,
        '{"a": ' + "9" * 10_000 + "}",
        "\x1b]0;title\x07",
        str(KEY.xpub),
        "[" + "x" * MAX_FILE,
    ],
)
def test_s23_texts_that_are_no_key(text):
    with pytest.raises((BadTransfer, MultisigError)) as caught:
        keys_in(text, NETWORK)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("vector", official("bip129.json", lambda vector: vector["id"] == "bip129-2"))
def test_signed_key_records(vector):
    for signer in vector["round_1_signers"]:
        key = keys_in(signer["key_record"] + "\n", Network.MAINNET)[0]
        assert str(key.xpub) == signer["xpub"]
        assert key.fingerprint.hex == signer["master_key_fingerprint"]


@pytest.mark.parametrize("vector", official("bip129.json", lambda vector: vector["id"] == "bip129-2"))
@pytest.mark.parametrize("spoil", ["words", "signature", "swap", "lines", "token", "version"])
def test_key_records_that_are_not_taken(vector, spoil):
    first, second = (signer["key_record"].split("\n") for signer in vector["round_1_signers"])
    spoilt = {
        "words": [*first[:3], "Signer 9 key", first[4]],
        "signature": [*first[:4], "!" + first[4][1:]],
        "swap": [*first[:4], second[4]],
        "lines": first[:4],
        "token": [first[0], "a54044308ceac9b7", *first[2:]],
        "version": ["BSMS 1.0 ", *first[1:]],
    }[spoil]
    with pytest.raises(InvalidKey):
        keys_in("\n".join(spoilt), Network.MAINNET)


@pytest.mark.parametrize(
    "vector", official("bip129.json", lambda vector: vector["id"] in {"bip129-2", "bip129-3"})
)
def test_the_records_of_the_bip(vector):
    keys = (
        OriginKey.parse(f"[{signer['master_key_fingerprint']}{signer['path'][1:]}]{signer['xpub']}")
        for signer in vector["round_1_signers"]
    )
    vault = Vault(Network.MAINNET, 2, tuple(keys))
    assert enrolment_text(vault, "any", EnrolmentForm.BSMS) == vector["round_2_descriptor_record"]


@given(st.text(max_size=80))
@example("The savings of the whole office")
@example("con")
@example("A/B: 50%. Really")
def test_the_vault_s_name_is_the_wallet_s_name_on_a_coldcard(name):
    """In its own text it is written; of a descriptor the device takes the file's name, which has hyphens for
    all but letters.
    """
    fitting = fitting_name(Family.COLDCARD, name, COLDCARD_S)
    forms = {EnrolmentForm.COLDCARD: fitting, EnrolmentForm.DESCRIPTOR: safe_label(fitting)}
    for form, known_as in forms.items():
        wallet = enrolled_from(*enrolment_file(COLDCARD_S, name, form))
        assert 1 <= len(wallet.name) <= 20
        assert wallet.name == known_as
        assert wallet.same_keys(ColdcardWallet("x", COLDCARD_S.threshold, COLDCARD_S.cosigners))


def enrolled_from(file_name, text):
    """As the device's menu imports a file from the card."""
    return parse_wallet_file(text.encode(), SEED, Network.REGTEST, file_name.split(".")[0])


# --- what a signer registers --------------------------------------------------------------------------------

ACCOUNTS = tuple(ALICE.vault_key(NETWORK, account) for account in range(3))


SHOWN = (KEY, "02575483"), (PROFILE_KEY, "045f1cf6")


def lines(*keys):
    return "\n".join(map(str, keys))


@pytest.mark.parametrize(
    "texts",
    [
        (generic(),),
        (lines(KEY, PROFILE_KEY),),
        # As SeedSigner and Krux write them.
        (lines(*(f"[{key.origin}]{slip132(key.xpub, form)}" for key, form in SHOWN)),),
        (lines(PROFILE_KEY), lines(KEY)),
        (generic(), lines(KEY)),
        (json.dumps({"xfp": str(ALICE.fingerprint), "p2wsh": str(KEY.xpub), "p2wsh_deriv": str(PATH)}),
         lines(PROFILE_KEY) + "\r\n"),
    ],
    ids=["generic JSON", "lines", "SLIP-132", "two files", "the same twice", "ccxp and a line"],
)  # fmt: skip
def test_the_keys_that_a_signer_registers(texts):
    assert parse_signer_keys(texts, NETWORK) == (KEY, PROFILE_KEY)


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        ((), BadTransfer),
        (("",), BadTransfer),
        ((lines(KEY),) * (MAX_EXPORTS + 1), BadTransfer),
        (("[" + "0" * MAX_FILE,), BadTransfer),
        ((lines(KEY),), InvalidKey),
        ((lines(PROFILE_KEY),), InvalidKey),
        ((lines(ACCOUNTS[1], PROFILE_KEY),), InvalidKey),
        ((lines(KEY, BOB.origin_key(profile_account_path(NETWORK))),), WrongDevice),
        ((lines(KEY, PROFILE_KEY, BOB.vault_key()),), InvalidKey),
        ((lines(KEY, ALICE.origin_key(profile_account_path(NETWORK, 1))),), InvalidKey),
        ((generic(bip84={"xpub": str(KEY.xpub), "deriv": "m/84'/1'/0'"}),), MultisigError),
        ((generic(bip84={"xpub": "tpub", "deriv": "m/84'/1'/0'"}),), MultisigError),
        ((lines(KEY, PROFILE_KEY).replace("/1h/", "/0h/"),), MultisigError),
    ],
    ids=[
        "none", "empty", "too many", "too long", "no profile", "no vault", "account 0 missing", "two devices",
        "two keys", "another account's profile", "depth", "no xpub", "another network",
    ],
)  # fmt: skip
def test_s15_keys_that_are_not_registered(texts, error):
    with pytest.raises(error):
        parse_signer_keys(texts, NETWORK)


SIGNATURE = bytes([39]) + bytes(range(64))
ARMOURED = f"""-----BEGIN BITCOIN SIGNED MESSAGE-----
{base64.b64encode(bytes(65)).decode()}
-----BEGIN BITCOIN SIGNATURE-----
bc1qexample
{base64.b64encode(SIGNATURE).decode()}
-----END BITCOIN SIGNATURE-----
"""


@pytest.mark.parametrize(
    "answer", [ARMOURED, ARMOURED.replace("\n", "\r\n"), base64.b64encode(SIGNATURE).decode() + "\n"]
)
def test_a_messages_signature_is_found_in_what_a_device_writes(answer):
    assert signature_of(answer) == SIGNATURE


@pytest.mark.parametrize("answer", ["", "signed", base64.b64encode(bytes(64)).decode(), "A" * (MAX_FILE + 1)])
def test_no_signature(answer):
    with pytest.raises(BadTransfer):
        signature_of(answer)

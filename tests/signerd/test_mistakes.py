"""One table of mistakes: what is given at a door, and what is said of it. Each is from a public bug report. A
wrong reason is worse than none: each sentence must be true for each of its causes; as a client is told.
"""

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from custody.cli.common import Stop
from custody.cli.payments import _address
from firmware_bridge import BridgeError
from firmware_bridge.airgap.handoff import decode_psbt
from firmware_bridge.airgap.vault_files import parse_signer_keys
from multisig import InvalidDescriptor, MultisigError, Network, read_vault_file
from multisig.bip322 import ProofSignature
from multisig.descriptor import SortedMulti, strip_checksum, with_checksum
from signerd import errors as e
from signerd.account.config import load_config
from signerd.cli.desk import read_text
from signerd.cli.vaults import MAX_FILE_BYTES
from signerd.errors import SignerdError, leaves
from signerd.problems import error_from, problem
from tests.support.command import is_tame
from tests.support.wallets import make_vault

VAULT = make_vault(network=Network.REGTEST)
GOOD = VAULT.descriptor
BODY = strip_checksum(GOOD)
XPUB = str(VAULT.cosigners[2].xpub)
VPUB = (
    "vpub5Y5G9NUZyuwu2VPzDTCtZCrRXHe1R73tKV5gTnJW1hPqEK4Vyx5SxesN"
    "QYZDefUdbnPsb8PP2sq3qVrwvA3B8AUCQDJeHCJCyWQYCEMaukh"
)
LEGACY = base64.b64encode(b"\x1f" + b"a" * 64).decode()
COPY = "Copy the whole descriptor again"


def file(text: str | bytes) -> object:
    """As `signerd pin --file` reads it."""
    with NamedTemporaryFile() as written:
        path = Path(written.name)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_vault_file(read_text(path, MAX_FILE_BYTES), Network.REGTEST)


def keys(text: str) -> object:
    return parse_signer_keys([text], Network.REGTEST)


def psbt(text: str) -> object:
    return decode_psbt(text.encode())


def pay(text: str) -> object:
    return _address(text, 1, "regtest", (), unseen=False)


def proof(text: str) -> object:
    return ProofSignature.parse(text)


MISTAKES: list[tuple[Callable[[str], object], str | bytes, str, str]] = [
    (file, with_checksum(BODY.replace(str(VAULT.cosigners[2]), XPUB)),
     "Key 3 of the descriptor has no origin", "fingerprint and the key's path"),
    (file, with_checksum(BODY.replace("<0;1>", "0")), "gives the receiving addresses alone", "<0;1>"),
    (file, with_checksum(BODY.replace("<0;1>", "1")), "gives the change addresses alone", "<0;1>"),
    (file, with_checksum(BODY.replace("/<0;1>/*", "/**")),
     "Key 1 of the descriptor does not end in", "<0;1>"),
    (file, with_checksum(BODY.replace("sortedmulti", "multi")),
     "this is multi(), whose keys keep the order", "Take a vault"),
    (file, with_checksum(f"sh({BODY})"), "sh(wsh()), which is nested segwit", "Take a vault"),
    (file, with_checksum("wsh(and_v(v:pk(key),older(144)))"), "such as miniscript", "Take a vault"),
    (file, with_checksum("tr(key,sortedmulti_a(2,key,key))"), "tr(), which is taproot", "Take a vault"),
    (file, "wpkh(key/0/*)", "wpkh(), which has a single key", "Take a vault"),
    (file, with_checksum(BODY.replace("48h", "48H")), "has H in its path, where BIP-380 has h or '", ""),
    (file, with_checksum(BODY.replace(",[", ", [")), "Key 1 of the descriptor has a space in it", ""),
    (file, with_checksum(BODY.replace("(2,", "(2,,")), "nothing stands between two commas", ""),
    (file, with_checksum(re.sub("[0-9a-f]{8}/48h", "00000000/48h", BODY, count=1)),
     "00000000 is a placeholder", ""),
    (file, BODY, "has no checksum", COPY),
    (file, GOOD[:-1], "checksum is wrong", COPY),
    (file, GOOD.replace("h/", "\u2019/"), "U+2019", "write h"),
    (file, GOOD[:40], "not written as", COPY),
    (file, '{"name": "Cold", "addressType": "P2WSH"}', "of no form that is read here", "BSMS"),
    (file, GOOD.encode("utf-16"), "not text in UTF-8", "UTF-8"),
    (keys, f"[d0b9a3a1/48\u2019/1\u2019/0\u2019/2\u2019]{XPUB}", "level of the path is '48\\u2019'", "m/48h"),
    (keys, f"[d0b9a3a1/48h/1h/0h/2h]{VPUB}", "in the vpub form", "xpub or tpub"),
    (psbt, "p1of2 cHNidP8BAI\np2of2 kCAAAAAA==\n", "Specter-DIY's own series", ""),
    (psbt, "-", "This is not a PSBT.", ""),
    (pay, "BCRT1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080", "mixes upper and lower case", "Ask the receiver"),
    (pay, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "another network", "The vault is on regtest"),
    (proof, LEGACY, "65 bytes, of the kind before BIP-322", "BIP-322"),
]  # fmt: skip


@pytest.mark.parametrize(("door", "given_text", "said", "hint"), MISTAKES, ids=range(len(MISTAKES)))
def test_what_is_said_of_a_mistake(door, given_text, said: str, hint: str) -> None:
    with pytest.raises((MultisigError, BridgeError, SignerdError, Stop)) as caught:
        door(given_text)
    told = f"{caught.value} {getattr(caught.value, 'hint', '')}"
    assert said in told
    assert hint in told


# BIP-381 to BIP-386, and miniscript (BIP-379): what is no vault here.
OTHERS = {
    "multi": "wsh(multi(2,a,b))",
    "wsh": "wsh(and_v(v:pk(a),older(9)))",
    **{name: f"{name}(a)" for name in ("pk", "pkh", "wpkh", "combo", "tr", "rawtr", "addr", "raw", "sh")},
}


@pytest.mark.parametrize("function", OTHERS)
def test_another_form_is_named_as_what_it_is(function: str) -> None:
    for text in (OTHERS[function], with_checksum(OTHERS[function])):
        with pytest.raises(InvalidDescriptor, match=rf"this is {function}\(\)") as caught:
            SortedMulti.parse(text)
        assert COPY not in caught.value.hint


@given(st.data())
def test_a_copy_is_asked_for_where_the_copy_is_at_fault(data: st.DataObject) -> None:
    """One character is changed, left out or put in, once behind the checksum's back and once with it."""
    at = data.draw(st.integers(0, len(BODY) - 1))
    typed = data.draw(st.sampled_from([*"()[]/<;>*,hH' x0", ""]))
    body = BODY[:at] + typed + BODY[at + data.draw(st.integers(0, 1)) :]
    # White space around a text is dropped.
    assume(BODY != body == body.strip())
    with pytest.raises(InvalidDescriptor, match="checksum is wrong") as caught:
        file(f"{body}{GOOD[-9:]}")
    assert COPY in caught.value.hint
    try:
        file(with_checksum(body))
    except MultisigError as error:
        whole = f"{error} {error.hint}"
        assert "checksum is wrong: a character is mistyped" not in whole or "extended key" in whole
        assert COPY not in whole or "not written as" in whole


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    assert file("\ufeff" + GOOD) == file(GOOD.encode("utf-8-sig")) == file(GOOD)
    config = tmp_path / "config.toml"
    config.write_text('network = "regtest"\nplatform.url = "https://custody.example"\n', encoding="utf-8-sig")
    assert load_config(config).network is Network.REGTEST


def made(leaf: type[e.SignerdError]) -> e.SignerdError:
    if leaf is e.PlatformRefused:
        return e.PlatformRefused("no", platform_code="LIMIT_EXCEEDED", status=422)
    return leaf("it cannot be")


def test_what_an_error_is_stands_at_its_class_or_its_branch():
    for leaf in leaves():
        assert leaf.meaning, f"{leaf.__name__} has no meaning"
        assert leaf.http_status >= 400
    assert all(not branch.meaning for branch in SignerdError.__subclasses__())


@pytest.mark.parametrize("leaf", leaves(), ids=lambda leaf: leaf.code)
def test_a_problem_comes_out_as_the_error_that_went_in(leaf):
    error = made(leaf)
    body = json.loads(json.dumps(problem(error)))
    assert body["status"] == error.http_status
    assert body["type"].endswith(body["code"])
    again = error_from(body)
    assert type(again) is leaf
    assert (str(again), again.hint) == (str(error), error.hint)


def test_l8_the_words_of_a_problem_are_tame():
    body = problem(e.PlatformRefused("\x1b[2J\u202eevil", platform_code="\x07", status=400, hint="\r\n"))
    assert all(is_tame(value) for value in body.values() if isinstance(value, str))

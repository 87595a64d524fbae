import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import (
    DerivationPath,
    InvalidDescriptor,
    MultisigError,
    Network,
    SortedMulti,
    WrongNetwork,
    checksum,
    encodings,
    multisig_script,
)
from multisig.descriptor import MAX_CHARACTERS, strip_checksum, with_checksum
from multisig.keys import ExtendedPublicKey
from tests.support.policies import vault
from tests.support.vectors import official

KEYS = [
    key for name in ("2-of-3-testnet4", "3-of-3-regtest", "1-of-3-signet") for key in vault(name).cosigners
]
BODY = f"wsh(sortedmulti(2,{','.join(f'{key}/<0;1>/*' for key in KEYS[:3])}))"


@pytest.mark.parametrize("vector", official("bip380.json", lambda vector: vector["kind"] == "checksum"))
def test_bip380_checksums(vector):
    text = vector["descriptor"]
    if not vector["valid"]:
        with pytest.raises(InvalidDescriptor):
            strip_checksum(text, strict=False)
        return
    body = strip_checksum(text, strict=False)
    assert body == text.partition("#")[0]
    assert strip_checksum(with_checksum(body)) == body


@pytest.mark.parametrize("vector", official("bip380.json", lambda vector: vector["kind"] == "key_expression"))
def test_bip380_key_expressions_as_far_as_the_form_goes(vector):
    """Ours is an origin and an extended public key;
    the valid expressions of other forms are refused, and cleanly.
    """
    expression = vector["expression"]
    ours = (
        vector["valid"]
        and expression.startswith("[")
        and "]xpub" in expression
        and expression[-111:-107] == "xpub"
    )
    text = f"wsh(sortedmulti(1,{expression}/<0;1>/*))"
    if ours:
        parsed = SortedMulti.parse(text, strict=False)
        assert str(parsed.keys[0]) == expression
    else:
        with pytest.raises(MultisigError):
            SortedMulti.parse(text, strict=False)


@pytest.mark.parametrize("vector", official("descriptors.json", lambda vector: not vector["valid"]))
def test_invalid_descriptors_of_every_bip_are_refused(vector):
    with pytest.raises(MultisigError):
        SortedMulti.parse(vector["descriptor"], strict=False)


@pytest.mark.parametrize("vector", official("descriptors.json", lambda vector: vector["valid"]))
def test_valid_descriptors_of_other_forms_are_refused_too(vector):
    """No official vector has our form: key origins, multipath and wsh(sortedmulti) at once."""
    with pytest.raises(InvalidDescriptor):
        SortedMulti.parse(vector["descriptor"], strict=False)


@pytest.mark.parametrize("vector", official("descriptors.json", lambda v: v["id"] == "bip383-valid-05"))
def test_bip383_sortedmulti_scripts(vector):
    """The only official sortedmulti over extended keys; its key expressions are not ours, its scripts are."""
    first, second = vector["descriptor"].removesuffix(")").split(",")[1:]
    bases = [(ExtendedPublicKey.parse(first.removesuffix("/*")), ()),
             (ExtendedPublicKey.parse(second.removesuffix("/0/0/*")), (0, 0))]  # fmt: skip
    for index, script in enumerate(vector["scripts_hex"]):
        keys = [key.derive(DerivationPath((*above, index))).public_key for key, above in bases]
        assert multisig_script(2, sorted(keys)).hex() == script


@given(st.lists(st.sampled_from(KEYS), min_size=1, max_size=15), st.data())
def test_round_trip(keys, data):
    descriptor = SortedMulti(data.draw(st.integers(1, len(keys))), tuple(keys))
    assert SortedMulti.parse(str(descriptor)) == descriptor
    assert SortedMulti.parse(f" {descriptor}\n", Network.REGTEST) == descriptor
    assert SortedMulti.parse(str(descriptor).partition("#")[0], strict=False) == descriptor


@given(st.data())
def test_one_wrong_character_is_noticed(data):
    text = with_checksum(BODY)
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters(min_codepoint=33, max_codepoint=126))
    if other != text[at]:
        with pytest.raises(InvalidDescriptor):
            SortedMulti.parse(text[:at] + other + text[at + 1 :])


OTHER_FORMS = (
    BODY.replace("wsh(", "sh(wsh(") + ")", BODY.replace("sortedmulti", "multi"),
    BODY.replace("wsh", "sh"), BODY.replace("<0;1>", "<1;0>"), BODY.replace("<0;1>", "<0;1;2>"),
    BODY.replace("/<0;1>", ""), BODY.replace("<0;1>/*", "0/*"), BODY.replace("<0;1>/*", "**"),
    BODY.replace("<0;1>/*", "<0;1>/*h"), BODY.replace("(2,", "(02,"), BODY.replace("(2,", "(0,"),
    BODY.replace("(2,", "(4,"), BODY.replace("(2,", "(-2,"), BODY.replace("(2,", "(2,,"),
    BODY.replace("(2,", "( 2,"), BODY.replace("48h", "48H", 1), BODY.replace("(2,", "(2, "), BODY + ")",
    BODY[:-1], "", "wsh()", "wsh(sortedmulti(1,))", "wsh(sortedmulti(1))",
    f"wsh(sortedmulti(1,{','.join([f'{KEYS[0]}/<0;1>/*'] * 16)}))",
)  # fmt: skip
WRONG_SUMS = ("#", "#" + "q" * 8, f"#{checksum(BODY)}x", f"#{checksum(BODY)}#", f"#{checksum(BODY).upper()}")


@pytest.mark.parametrize("text", [*OTHER_FORMS, *(BODY + wrong for wrong in WRONG_SUMS)])
def test_other_forms_and_wrong_checksums_are_refused(text):
    with pytest.raises(InvalidDescriptor):
        SortedMulti.parse(text, strict=False)


def test_a_missing_checksum():
    with pytest.raises(InvalidDescriptor, match="no checksum"):
        SortedMulti.parse(BODY)
    assert SortedMulti.parse(BODY, strict=False).threshold == 2


def test_what_is_too_long_is_not_looked_at():
    with pytest.raises(InvalidDescriptor, match="more than"):
        SortedMulti.parse("x" * (MAX_CHARACTERS + 1), strict=False)


def test_s14_keys_of_another_network():
    with pytest.raises(WrongNetwork):
        SortedMulti.parse(with_checksum(BODY), Network.MAINNET)


def test_a_private_key_is_refused_and_not_repeated():
    private = encodings.encode_base58check(bytes.fromhex("04358394") + KEYS[0].xpub.serialize()[4:])
    text = BODY.replace(str(KEYS[0].xpub), private)
    with pytest.raises(InvalidDescriptor, match="private") as refusal:
        SortedMulti.parse(text, strict=False)
    assert private not in str(refusal.value)
    assert "Never" in refusal.value.hint

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import (
    DerivationPath,
    ExtendedPublicKey,
    Fingerprint,
    InvalidKey,
    InvalidPath,
    KeyOrigin,
    Network,
    OriginKey,
    WrongNetwork,
    encodings,
    keys,
)
from multisig.keys import HARDENED
from tests.support.policies import UINT32, vault
from tests.support.vectors import official

KEY = vault().cosigners[0]
XPUB = KEY.xpub
PATHS = st.lists(UINT32, max_size=8).map(lambda indexes: DerivationPath(tuple(indexes)))


def reversioned(xpub, version):
    return encodings.encode_base58check(bytes.fromhex(version) + xpub.serialize()[4:])


TEXT = str(KEY)
NO_FINGERPRINTS = ("", "deadbee", "deadbeef0", "gaaaaaaa", " deadbeef", "0xdeadbe", "١2345678")
NO_PATHS = ("/", "m//0", "m/0/", "/0", "m/-1", "m/+1", "m/1hh", "m/h", "m/01", "m/2147483648",
            "m/2147483648h", "m/99999999999", "m/1 ", " m/1", "m/0x1", "m/*", "M/0", "m/1/m",
            "m/١", "m/" + "/".join("0" * 256))  # fmt: skip
NO_KEYS = (TEXT.replace("[", ""), TEXT.replace("]", ""), TEXT + "/0/*", "[deadbeef]" + TEXT,
           TEXT[: TEXT.index("]") + 1], TEXT.replace("]", "/]"), TEXT.replace("0be174ee", "0be174"),
           TEXT.replace("0be174ee", "0be174eg"), TEXT.replace("48h", "48x"), TEXT.replace("2h]", "2h/*]"),
           TEXT[:-1])  # fmt: skip
REFUSED = [
    *((Fingerprint.from_hex, text) for text in NO_FINGERPRINTS),
    *((Fingerprint, value) for value in (b"", b"abc", b"abcde", "abcd")),
    *((DerivationPath.parse, text) for text in NO_PATHS),
    *((DerivationPath, indexes) for indexes in ((-1,), (2**32,), (True,), (1.0,), ("1",), (0,) * 256)),
    *((KeyOrigin.parse, text) for text in ("deadbeef/", "deadbeef/m/0", "deadbeef/m", "deadbeef//0")),
    *((OriginKey.parse, text) for text in NO_KEYS),
]


@pytest.mark.parametrize(("read", "value"), REFUSED)
def test_s9_what_is_no_fingerprint_path_origin_or_key(read, value):
    with pytest.raises((InvalidKey, InvalidPath)):
        read(value)


class TestFingerprint:
    @given(st.binary(min_size=4, max_size=4))
    def test_round_trip(self, value):
        fingerprint = Fingerprint(value)
        assert (
            Fingerprint.from_hex(fingerprint.hex)
            == Fingerprint.from_hex(str(fingerprint).upper())
            == fingerprint
        )
        assert bytes(fingerprint) == value


class TestDerivationPath:
    @given(PATHS)
    def test_round_trip(self, path):
        text = str(path)
        assert DerivationPath.parse(text) == path
        assert DerivationPath.parse(text.replace("h", "'").removeprefix("m/")) == path

    @pytest.mark.parametrize("text", ["m/48h/1h/0h/2h", "48'/1'/0'/2'", "m/48H/1h/0'/2H"])
    def test_every_mark_means_hardened(self, text):
        path = DerivationPath.parse(text)
        assert str(path) == "m/48h/1h/0h/2h"
        assert path.indexes == tuple(HARDENED + level for level in (48, 1, 0, 2))

    @pytest.mark.parametrize("text", ["m", "m/", ""])
    def test_the_master_key(self, text):
        path = DerivationPath.parse(text)
        assert (str(path), len(path), bool(path)) == ("m", 0, True)

    def test_joining(self):
        account = DerivationPath.parse("m/48h/1h")
        assert str(account / 0 / "5/6h" / DerivationPath((7,))) == "m/48h/1h/0/5/6h/7"
        assert str(account / HARDENED) == "m/48h/1h/0h"

    def test_starts_with(self):
        path = DerivationPath.parse("m/48h/1h/0h")
        assert path.starts_with(DerivationPath.parse("m/48h/1h"))
        assert path.starts_with(path)
        assert path.starts_with(DerivationPath())
        assert not path.starts_with(DerivationPath.parse("m/48h/1"))
        assert not path.starts_with(path / 0)


class TestKeyOrigin:
    @given(st.binary(min_size=4, max_size=4), PATHS)
    def test_round_trip(self, fingerprint, path):
        origin = KeyOrigin(Fingerprint(fingerprint), path)
        assert KeyOrigin.parse(str(origin)) == origin


@pytest.mark.parametrize("vector", official("bip32.json", lambda vector: vector["kind"] == "derivation"))
def test_bip32_derivation(vector):
    parents = {step["path"]: step["xpub"] for step in vector["chains"]}
    derived = 0
    for path, text in parents.items():
        xpub = ExtendedPublicKey.parse(text, Network.MAINNET)
        assert str(xpub) == text
        parent, _, last = path.rpartition("/")
        if last.isdigit():
            above = ExtendedPublicKey.parse(parents[parent])
            assert above.derive(DerivationPath((int(last),))) == xpub
            assert above.fingerprint == xpub.parent_fingerprint
            derived += 1
    assert derived or vector["id"] in {"bip32-3", "bip32-4"}


@pytest.mark.parametrize("vector", official("bip32.json", lambda vector: vector["kind"] != "derivation"))
def test_bip32_invalid_keys(vector):
    with pytest.raises(InvalidKey):
        ExtendedPublicKey.parse(vector["extended_key"])


class TestExtendedPublicKey:
    def test_white_space_of_a_copied_line_is_dropped(self):
        text = str(XPUB)
        assert ExtendedPublicKey.parse(f" \t{text[:50]}\r\n{text[50:]}\u00a0\n") == XPUB

    def test_s14_another_network(self):
        with pytest.raises(WrongNetwork):
            ExtendedPublicKey.parse(str(XPUB), Network.MAINNET)
        for network in (Network.TESTNET4, Network.SIGNET, Network.REGTEST):
            assert ExtendedPublicKey.parse(str(XPUB), network) == XPUB

    @pytest.mark.parametrize(
        ("version", "name"),
        [("049d7cb2", "ypub"), ("04b24746", "zpub"), ("02aa7ed3", "Zpub"), ("045f1cf6", "vpub"),
         ("02575483", "Vpub"), ("0295b43f", "Ypub"), ("044a5262", "upub"), ("024289ef", "Upub")],
    )  # fmt: skip
    def test_slip132_forms_are_refused_by_name(self, version, name):
        text = reversioned(XPUB, version)
        assert text.startswith(name)
        with pytest.raises(InvalidKey, match=name) as refusal:
            ExtendedPublicKey.parse(text)
        assert "plain form" in refusal.value.hint

    @pytest.mark.parametrize(("version", "prefix"), [("0488ade4", "xprv"), ("04358394", "tprv")])
    def test_a_private_key_is_refused_and_not_repeated(self, version, prefix):
        text = reversioned(XPUB, version)
        assert text.startswith(prefix)
        with pytest.raises(InvalidKey, match="private") as refusal:
            ExtendedPublicKey.parse(text)
        assert text not in str(refusal.value) + refusal.value.hint
        assert "Never" in refusal.value.hint

    def test_wrong_length(self):
        with pytest.raises(InvalidKey, match="length"):
            ExtendedPublicKey.from_bytes(XPUB.serialize() + b"\0")
        with pytest.raises(InvalidKey):
            ExtendedPublicKey.from_bytes(XPUB.serialize()[:-1])

    def test_a_point_not_on_the_curve(self):
        with pytest.raises(InvalidKey, match="public key"):
            ExtendedPublicKey.from_bytes(XPUB.serialize()[:-33] + b"\x02" + b"\xff" * 32)

    @given(st.integers(0, 1), st.integers(0, HARDENED - 1))
    def test_short_derivation_agrees_with_the_long_one(self, chain, index):
        assert XPUB.derive_public_key(chain, index) == XPUB.derive(DerivationPath((chain, index))).public_key

    def test_hardened_children_cannot_be_had(self):
        for path in ("0h", "0/1h"):
            with pytest.raises(InvalidPath, match="hardened"):
                XPUB.derive(DerivationPath.parse(path))
        for chain, index in ((HARDENED, 0), (0, HARDENED), (-1, 0), (0, 2**32)):
            with pytest.raises(InvalidPath):
                XPUB.derive_public_key(chain, index)

    @pytest.mark.parametrize(
        "change", [{"depth": -1}, {"depth": 256}, {"chain_code": bytes(31)}, {"child_number": -1}]
    )
    def test_impossible_fields(self, change):
        with pytest.raises((InvalidKey, InvalidPath)):
            replace(XPUB, **change)

    def test_a_child_that_does_not_exist(self, monkeypatch):
        """BIP-32: a tweak at or above the order has no child;
        no known key has such an index, so it is made up.
        """
        monkeypatch.setattr(keys.hmac, "digest", lambda *_: b"\xff" * 64)
        with pytest.raises(InvalidKey, match="no child 7"):
            XPUB.derive(DerivationPath((7,)))

    def test_nothing_is_below_level_255(self):
        deepest = ExtendedPublicKey(
            XPUB.kind, 255, XPUB.parent_fingerprint, 0, XPUB.chain_code, XPUB.public_key
        )
        with pytest.raises(InvalidPath, match="255"):
            deepest.derive(DerivationPath((0,)))


class TestOriginKey:
    def test_round_trip(self):
        for text in (str(KEY), f"  {KEY}\n"):
            assert OriginKey.parse(text, Network.TESTNET4) == KEY
        assert str(KEY).startswith("[0be174ee/48h/1h/0h/2h]tpub")
        assert KEY.fingerprint == Fingerprint.from_hex("0be174ee")

    def test_s17_the_key_s_own_place_must_be_that_of_its_path(self):
        KEY.require_agreement()
        for path in ("m/48h/1h/0h", "m/48h/1h/0h/2h/0", "m/48h/1h/0h/1h", "m"):
            wrong = OriginKey(KeyOrigin(KEY.fingerprint, DerivationPath.parse(path)), XPUB)
            with pytest.raises(InvalidKey):
                wrong.require_agreement()

    def test_s17_a_fingerprint_that_the_key_itself_contradicts(self):
        master = ExtendedPublicKey(XPUB.kind, 0, Fingerprint(bytes(4)), 0, XPUB.chain_code, XPUB.public_key)
        child = master.derive(DerivationPath((5,)))
        for key, path in ((master, "m"), (child, "m/5")):
            right = KeyOrigin(master.fingerprint, DerivationPath.parse(path))
            OriginKey(right, key).require_agreement()
            wrong = KeyOrigin(Fingerprint(b"fake"), right.path)
            with pytest.raises(InvalidKey, match="another master"):
                OriginKey(wrong, key).require_agreement()

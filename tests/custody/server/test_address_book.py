"""The canonical form of an address, and when two names are one."""

import pytest

from custody.common.recipients import typed_address
from custody.common.text import name_key
from custody.server.address_book import canonical_address
from custody.server.errors import Invalid, WrongNetworkAddress
from multisig import Network, encode_address
from tests.support.wallets import foreign_script

SCRIPT = foreign_script("shop")
SHOP = encode_address(SCRIPT, Network.REGTEST)


@pytest.mark.parametrize("text", [SHOP, SHOP.upper()])
def test_an_address_has_one_way_of_writing(text: str) -> None:
    assert canonical_address(text, Network.REGTEST) == SHOP


@pytest.mark.parametrize(
    "text",
    [
        SHOP[:8].upper() + SHOP[8:], SHOP[:-1], SHOP + "q", SHOP + " ", "", "x" * 200, f"bitcoin:{SHOP}",
        "' OR 1=1 --",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    """P28, P50: mixed case among them."""
    with pytest.raises(Invalid) as caught:
        canonical_address(text, Network.REGTEST)
    assert caught.value.faults[0].pointer == "/address"


@pytest.mark.parametrize("network", [Network.MAINNET, Network.SIGNET])
def test_another_networks_address_is_told_apart(network: Network) -> None:
    """P28."""
    with pytest.raises(WrongNetworkAddress, match="another network"):
        canonical_address(str(encode_address(SCRIPT, network)), Network.REGTEST)


@pytest.mark.parametrize("network", Network)
def test_an_address_of_any_network_and_a_link_are_no_names(network: Network) -> None:
    address = str(encode_address(SCRIPT, network))
    grouped = " ".join(address[at : at + 4] for at in range(0, len(address), 4))
    for text in (address, f" {address}\t", grouped, address[:9] + "\u200b\u00a0" + address[9:]):
        assert typed_address(text) == address
    for text in (address.upper(), address[:1].upper() + address[1:]):
        assert typed_address(text) == text, "a name in this form would be found for what is no address"
    for text in (f"bitcoin:{address}?amount=1", f"BITCOIN: {address}?amount=1", "bitcoin:shop"):
        assert typed_address(text) == text.replace(" ", "")


@pytest.mark.parametrize("text", [
    "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc",
    "bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs",
])  # fmt: skip
def test_old_and_future_addresses_are_no_names(text: str) -> None:
    assert typed_address(text) == text


@pytest.mark.parametrize(
    "text", ["", "Shop", "bitcoin", "Bitcoin Ltd: Berlin", "bc1q", SHOP[:-1], SHOP + "q"]
)
def test_all_else_is_a_name(text: str) -> None:
    assert typed_address(text) is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Shop", "shop", True), ("Shop  1", "shop 1", True), ("STRASSE", "straße", True),
        ("Shop", "Sh\u200bop", True), ("Shop", "Shop\u200e\ufeff", True), ("Shop", "Ｓｈｏｐ", True),
        ("Office", "Oﬃce", True), ("A\u030angstro\u0308m", "Ångström", True), ("Shop 1", "Shop 2", False),
        ("Shop1", "Shop 1", False),
    ],
)  # fmt: skip
def test_names_that_a_reader_takes_for_one_are_one(one: str, other: str, same: bool) -> None:
    assert (name_key(one) == name_key(other)) is same

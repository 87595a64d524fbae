"""On the page, whom a new token lists from the start: every address whole, however many there are (S12)."""

import pytest

from multisig import RECEIVE, encode_address
from signerd.core.states import State
from signerd.core.tokens import Published
from tests.support.daemons import until_state
from tests.support.desk import NETWORK, VAULT
from tests.support.tokens import gold, token_snapshot
from tests.support.wallets import foreign_script

pytestmark = pytest.mark.anyio

ICON = "https://evil.example/" + "x" * 400 + "?a=1&b='2'"


@pytest.mark.parametrize("strangers", [1, 30])
async def test_s12_every_listed_address_is_on_the_page_beside_their_number_and_hash(desk, strangers):
    scripts = (VAULT.script_pubkey(RECEIVE, 0), *(foreign_script(f"holder {n}") for n in range(strangers)))
    token = gold(whitelist_enabled=True, whitelist=tuple(sorted(scripts)), icon=ICON)
    desk.platform.published[1] = Published(token.blob)
    desk.platform.proposals["t-1"] = token_snapshot(token.deployment)
    await until_state(desk.daemon, "t-1", State.WAITING_PERSON)
    assert "token GOLD: a new one" in (await desk.page("/")).all("main")[0].words
    page = await desk.page("/proposals/t-1")
    assert page.broken == []
    addresses = [encode_address(script, NETWORK) for script in token.whitelist]
    words = [found.words for found in page.all("span") if found.attributes.get("class") == "address"]
    # The vault's own stands in the table above, too: what returns goes there.
    assert [shown for shown in words if shown in addresses][1:] == addresses
    (fold,) = [found for found in page.all("details") if found.attributes["id"].startswith("listed-")]
    assert f"Listed from the start: {len(addresses)} addresses" in fold.words
    assert token.whitelist_hash.hex() in fold.words
    assert fold.words.count("this vault itself") == 1
    assert ("open" in fold.attributes) is (len(addresses) <= 10)
    whole = page.all("main")[0].words
    assert f"{ICON[:120]}… (cut: {len(ICON)} characters in all, SHA-256 " in whole
    assert not [tag for tag in page.all("a") if "evil" in tag.attributes.get("href", "")]
    ticks = {box.attributes["value"] for box in page.all("input", name="acknowledged")}
    assert ticks == {"token-effect", "token-listed", "token-not-on-screen"}

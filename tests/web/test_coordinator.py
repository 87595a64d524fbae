"""web/example: a coordinator in a page of its own origin, in both browsers, with a signerd and a virtual
device of a make of its own for each signer of a vault of 2 of 3.
"""

from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from multisig import (
    ChangeTo,
    ReceivedPsbt,
    Sats,
    Transaction,
    build_psbt,
    signer_progress,
    to_version_2,
)
from signerd.core.states import State
from signerd.loopback.serve import serving
from tests.conformance.rigs import VIRTUAL, make_rig, short_folder
from tests.signerd.browser import test_hostile_pages
from tests.support.browser import chromium
from tests.support.custody import open_desk
from tests.support.daemons import approve, until
from tests.support.firefox import Window, firefox
from tests.support.other_origin import NAMES as HOSTS
from tests.support.other_origin import NOTHING, another_site, attempts_of
from tests.support.real_signer import pin, register, signer
from tests.support.wallets import fund, pay
from tests.support.web import WEB, require_client, site

__all__ = ["chromium", "firefox"]
NAMES = ("alice", "bob", "carol")
COIN, FEE = 1_000_000, 5_000


class Signers:
    """Each with a signerd that has pinned the vault; ``portal``: to the loop in which they run."""

    def __init__(self, desk, daemons, portal):
        self.policy, self.seeds, self.daemons, self._portal = desk.policy, desk.devices, daemons, portal

    def url(self, number):
        return self.daemons[number].page_address.url.rstrip("/")

    def do(self, act, *given):
        return self._portal.call(act, *given)

    def let_in(self, number, origin):
        self.do(self.daemons[number].apps.let_in, origin, 5)

    def accept(self, number, code):
        async def accept():
            apps = self.daemons[number].apps
            (asks,) = await apps.open_requests()
            await apps.accept(asks.id, code, rights=None, days=1)

        self.do(accept)

    def known(self):
        """All that a request could have changed."""

        async def known():
            chains = [await one.verify_audit() for one in self.daemons]
            apps = [(await one.apps.open_requests(), await one.apps.list_origins()) for one in self.daemons]
            return chains, apps, [one.feed.last for one in self.daemons]

        return self.do(known)

    def approve(self, number):
        """The person looks at what was imported, and says yes; the device's buttons are pressed."""

        async def say_yes():
            daemon, found = self.daemons[number], []

            def waits():
                records = daemon.journal.records()
                found[:] = [one.psbt_id for one in records if one.state is State.WAITING_PERSON]
                return bool(found)

            await until(waits)
            view = await daemon.proposal(found[0])
            await approve(daemon, found[0], *view.to_acknowledge)

        self.do(say_yes)


@asynccontextmanager
async def three_signers(desk, folder):
    async with AsyncExitStack() as stack:
        daemons = []
        for name, family in zip(NAMES, VIRTUAL, strict=True):
            rig = make_rig(family, folder, seed=desk.devices[name])
            daemon = await stack.enter_async_context(signer(desk, name, rig, folder))
            await register(daemon)
            await pin(daemon, desk.vault["id"])
            await stack.enter_async_context(serving(daemon, folder / name, port=0))
            daemons.append(daemon)
        yield daemons


@pytest.fixture
def signers(tmp_path):
    require_client()
    with (
        open_desk(tmp_path / "platform") as desk,
        short_folder() as name,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(three_signers(desk, Path(name))) as daemons,
    ):
        yield Signers(desk, daemons, portal)


def payment(policy, index, amount):
    """From a coin of its own: two that pay alike would be held."""
    outputs = [pay(amount), ChangeTo(Sats(COIN - amount - FEE), 1, index)]
    return build_psbt(policy, [fund(policy, COIN, index=index)], outputs, 0)


def add(window, url):
    window.type("[name=url]", url)
    window.click("#signer button")


def join(window, signers, number):
    """The page is paired: the person types the digits that it shows."""
    add(window, signers.url(number))
    said = window.until("#said", f"Type this in the signerd at {signers.url(number)}: ")
    signers.accept(number, said[-6:])
    window.until("#said", "is here.")


def walk(window, origin, signers, order, psbt, bring):
    """Two of the three are added, see the vault and the payment, and sign one after the other. Returns
    the address of the first, and the page's token for it.
    """
    window.go(f"{origin}/example/")
    add(window, signers.url(order[0]))
    window.until("#said", f"Then let this site in: signerd pair --origin {origin}")
    for number in order:
        signers.let_in(number, origin)
        join(window, signers, number)
    assert window.text("#descriptor") == signers.policy.descriptor
    window.until("#addresses", signers.policy.address(0, 0))
    bring()
    window.click("#look")
    window.until("#said", "Compare it")
    assert f"{psbt.tx.outputs[0].amount} sats to " in window.text("#money")
    for place, number in enumerate(order):
        window.click(f"#ask-{place}")
        signers.approve(number)
        window.until("#said", "has signed." if place == 0 else "Complete.")
    received = ReceivedPsbt.parse(window.text("#psbt"))
    assert (received.version, received.psbt.tx) == (2, psbt.tx)
    for number, name in enumerate(NAMES):
        progress = signer_progress(received.psbt, signers.policy, signers.seeds[name].fingerprint)
        assert progress.is_complete == (number in order)
    final = Transaction.parse(bytes.fromhex(window.text("#final")))
    assert final.txid == psbt.tx.txid
    url = signers.url(order[0])
    token = window.run("url => JSON.parse(localStorage.getItem(url)).token", url)
    assert window.run(ASK, url, token) == 200
    return url, token


# The status of an answer that can be read; 0 where none can.
ASK = """(url, token) => fetch(`${url}/v1/vaults`, { headers: { Authorization: `Bearer ${token}` } })
    .then((answer) => answer.status, () => 0)"""
# Over when the page has come: a script in a document that is replaced meanwhile has no answer.
FRAMED = """(url) => new Promise((done) => {
    const onload = () => done();
    document.body.append(Object.assign(document.createElement("iframe"), { src: url, onload }));
})"""


def another_origin_gets_nothing(window, origin, signers, url, token):
    """In the browser in which the page is paired: of signerd by the L list and by the page's token, and of
    the page, also in a frame.
    """
    before = signers.known()
    with another_site() as elsewhere:
        for name in HOSTS:
            with window.beside() as other:
                other.go(f"http://{name}:{elsewhere.port}/")
                assert other.run(ASK, url, token) == 0
                for tried, least in (
                    (attempts_of(other, test_hostile_pages.__file__, url, "0" * 64), 60),
                    (attempts_of(other, __file__, origin), 10),
                ):
                    assert len(tried) > least
                    assert {key: value for key, value in tried.items() if value not in NOTHING} == {}
                assert signers.known() == before
        window.go(f"http://localhost:{elsewhere.port}/")
        window.run(FRAMED, f"{origin}/example/")
        frame = window.frame()
        frame.until("h1", "Coordinator")
        add(frame, url)
        frame.until("#said", "This page is shown inside another site's.")


def test_l13_p97_p98_two_of_three_sign_in_a_page_of_another_origin(signers, chromium, firefox, tmp_path):
    first, second = payment(signers.policy, 0, 600_000), payment(signers.policy, 1, 300_000)
    file = tmp_path / "payment.psbt"
    file.write_bytes(to_version_2(second))
    with site(WEB) as origin:
        with chromium.in_use() as browser:
            context = browser.new_context()
            window = Window(context.new_page())
            typed = lambda: window.type("#psbt", first.to_base64())  # noqa: E731
            known = walk(window, origin, signers, (0, 1), first, typed)
            another_origin_gets_nothing(window, origin, signers, *known)
            context.close()
        known = walk(firefox, origin, signers, (2, 0), second, lambda: firefox.bring("#file", file))
        another_origin_gets_nothing(firefox, origin, signers, *known)
        # Once it is shut out, its own page gets nothing either.
        firefox.go(f"{origin}/example/")
        assert firefox.run(ASK, *known) == 200
        signers.do(signers.daemons[2].apps.shut_out, origin)
        assert firefox.run(ASK, *known) == 0

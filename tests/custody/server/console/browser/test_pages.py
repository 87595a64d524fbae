"""The console in a browser: each page that links lead to, once, with what axe finds at both widths (a quarter
of them in a fast run), and one story each of the administration, a vault and the account.
"""

from playwright.sync_api import expect

from tests.custody.server.console.browser.conftest import heading
from tests.custody.server.console.test_every_page import LONG, TEXTS, fill, poison
from tests.support.accounts import mailed_token
from tests.support.asgi import asgi_client
from tests.support.console import Visitor
from tests.support.console_rows import row_of, walk
from tests.support.custody import CAFE, SHOP
from tests.support.examples import drawn
from tests.support.platform import PASSWORD


def test_nothing_is_found_against_any_page(window):
    fill(window.desk)
    # Why a webhook is disabled is one of a few words.
    poison(window.desk, LONG, [each for each in TEXTS if each[1] != "disabled_reason"])
    paths = {}
    with asgi_client(window.desk.world.platform.asgi) as http:
        person = Visitor(http).sign_in("admin@example.org")
        for start in (f"{window.here}/", "/console/"):
            for path in walk(person, start):
                paths.setdefault(row_of("GET", path.partition("?")[0]), path)
    assert len(paths) > 40
    page = window.page()
    for path in drawn([*paths.values()], len(paths), of=__name__):
        page.goto(path)
        window.judge(page, path.removeprefix("/console/").replace("/", "-"))
    page = window.page("/console/sign-in", person=None)
    for path in ("sign-in", "register", "forgotten-password", "reset-password", "nowhere"):
        page.goto(f"/console/{path}")
        window.judge(page, path)


def test_an_administrator_imports_addresses_and_makes_a_webhook(window):
    page = window.page(f"{window.here}/addresses/import")
    page.get_by_label("Or its lines").fill(f"Shop,{SHOP}\nCafé,{CAFE}\nWrong,bcrt1q")
    window.follow(page.get_by_role("button", name="See what it changes"))
    window.judge(page, "addresses-import-review")
    page.get_by_label("Your password, once more").fill(PASSWORD)
    window.follow(page.get_by_role("button", name="Import"))
    window.judge(page, "addresses-imported")
    page.goto(f"{window.here}/webhooks/new")
    page.get_by_label("Address of the program").fill("https://hooks.example.org/custody")
    page.get_by_label("All events").check()
    page.get_by_role("button", name="Make the webhook").click()
    window.follow(page.get_by_role("button", name="Make the webhook"))
    window.judge(page, "webhook-secret")


def test_a_treasurer_makes_a_vault_and_sees_what_comes(window):
    desk = window.desk
    page = window.page(f"{window.here}/vaults/new")
    page.get_by_label("Name").fill("Payroll")
    page.get_by_label("alice@example.org").check()
    page.get_by_label("bob@example.org").check()
    page.get_by_label("At most, fees included").fill("0.5")
    page.get_by_role("button", name="Look at it").click()
    heading(page, "Make a vault?")
    window.judge(page, "vault-new-review")
    page.get_by_role("button", name="Make the vault").click()
    heading(page, "Payroll")
    page.get_by_role("link", name="Receive").click()
    page.get_by_label("Amount (BTC)").fill("0.25")
    page.get_by_role("button", name="Put it into the link").click()
    expect(page.get_by_text("Asks for")).to_be_visible()
    window.judge(page, "vault-receive")
    (address,) = [one["receive_address"] for one in desk.wallets() if one["name"] == "Payroll"]
    page.get_by_role("link", name="Payroll").click()
    heading(page, "Payroll")
    # The page follows by itself.
    desk.deposit(150_000_000, to=address)
    expect(page.locator(".balance")).to_contain_text("150,000,000 sats")
    window.judge(page, "vault")


def test_the_link_of_a_reset_mail_fills_the_token_in(window):
    desk = window.desk
    page = window.page("/console/forgotten-password", person=None)
    window.judge(page, "forgotten-password")
    page.get_by_label("E-mail address").fill("admin@example.org")
    page.get_by_role("button", name="Mail a token").click()
    expect(page.get_by_role("status")).to_be_visible()
    token = mailed_token(desk.world)
    # From another page, as from a mail: on this one a link with a fragment loads nothing.
    page.goto("about:blank")
    page.goto(f"/console/reset-password#token={token}")
    expect(page.get_by_label("The token of the mail")).to_have_value(token)
    assert token not in page.url
    window.judge(page, "reset-password")
    page.get_by_label("New password", exact=True).fill("another password")
    page.get_by_label("New password, once more").fill("another password")
    page.get_by_role("button", name="Change the password").click()
    expect(page.get_by_role("status")).to_contain_text("Your password is changed")


def test_a_passkey_that_is_not_given_is_asked_for_again_and_a_code_only_where_one_is_taken(window):
    page = window.page("/console/account")
    for kind, words in (("get", "Try again, or give a code."), ("create", "Try again.")):
        page.evaluate(
            "kind => document.querySelector('main').insertAdjacentHTML('beforeend', "
            "`<form><button type=button data-passkey=${kind} data-options='{}'>${kind}</button>"
            "<span></span></form>`)",
            kind,
        )
        button = page.get_by_role("button", name=kind, exact=True)
        button.click()
        expect(button.locator("+ span")).to_have_text(f"The browser gave no passkey. {words}")

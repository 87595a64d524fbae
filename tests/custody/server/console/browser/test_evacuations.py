"""A flaw becomes known: the advisory, the vaults that it exposes, the plan, a second person's yes, and the
sweeps; and what an auditor asks for afterwards.
"""

from playwright.sync_api import expect
from sqlalchemy import update

from custody.server.store.models import Key
from tests.support.advisories import Publisher, affected, entry, trust
from tests.support.evacuations import staff
from tests.support.platform import PASSWORD

PUBLISHER = Publisher()


def publish(desk):
    """A list of advisories that is about one signer's device."""
    trust(desk, PUBLISHER.root)
    store = desk.world.platform.services.store
    with store.write() as db:
        known = {"maker": "coldcard", "model": "Coldcard Mk4", "firmware": "5.6.1"}
        db.execute(update(Key).where(Key.user_id != desk.user_ids["carol"]).values(**known))
    old = affected(firmware=[{"line": "", "from": "5.0.0", "below": "5.5.0"}])
    return PUBLISHER.list(1, entry("COLDCARD-2026-07", old)).line.decode()


def test_exposed_vaults_are_moved_and_the_rest_is_proven(window):
    desk = window.desk
    staff(desk)
    desk.deposit(90_000_000, 400_000)
    told = publish(desk)
    page = window.page(f"{window.here}/advisories")
    page.get_by_label("The signed list").fill(told)
    page.get_by_role("button", name="Take it").click()
    page.get_by_role("link", name="COLDCARD-2026-07", exact=True).click()
    expect(page.get_by_role("rowheader", name="Treasury")).to_be_visible()
    window.judge(page, "advisory")
    page.get_by_role("link", name="Plan their evacuation").click()
    expect(page.get_by_text("1 of 3 keys exposed, 2 sign")).to_be_visible()
    expect(page.get_by_label("Who signs instead of")).to_be_visible()
    window.judge(page, "evacuation-plan")
    window.follow(page.get_by_role("button", name="Start it with a second person"))
    window.judge(page, "evacuation-review")
    page.get_by_role("button", name="Ask a second person").click()
    expect(page.get_by_role("status")).to_contain_text("It waits for a second person.")

    second = window.page(f"{window.here}/changes", person="dora")
    second.get_by_role("button", name="Confirm: Evacuate exposed vaults").click()
    expect(second.get_by_text("Treasury (new)")).to_be_visible()
    window.judge(second, "evacuation-confirmation")
    second.get_by_label("Your password, once more").fill(PASSWORD)
    second.get_by_role("button", name="Confirm", exact=True).click()
    expect(second.get_by_role("status")).to_contain_text("The change is made.")
    desk.settle()
    page.goto(f"{window.here}/evacuations")
    expect(page.get_by_role("cell", name="awaiting approval")).to_be_visible()
    window.judge(page, "evacuations")

    page.goto(f"{window.here}/proofs/new")
    window.judge(page, "proof-new")
    # By keyboard alone.
    page.get_by_label("Vault", exact=True).focus()
    page.keyboard.press("Tab")
    page.keyboard.type("Audit of 2026")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Ask the signers").press("Enter")
    expect(page.get_by_text("Audit of 2026 (block")).to_be_visible()
    window.judge(page, "proof")
    page.goto(f"{window.here}/proofs")
    window.judge(page, "proofs")

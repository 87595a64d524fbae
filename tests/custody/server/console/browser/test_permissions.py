"""Each permission alone, in a browser: what the menu offers opens whole, with the parts that load by
themselves; what it does not offer is refused. Every link and form over HTTP: `../test_permissions.py`.
"""

from playwright.sync_api import Page, Response

from custody.schemas.permissions import PermissionName
from custody.server.console.rendering import TEMPLATES
from tests.support.staff import add_someone

SECTIONS = {section for _, section, _ in TEMPLATES.environment.globals["sections"]}
EACH_ALONE: list[frozenset[PermissionName]] = [frozenset(), *(frozenset({each}) for each in PermissionName)]
# A member who may not see the others finds there only how to leave.
OPEN_TO_ALL = {"members"}


def offered(page: Page, here: str) -> set[str]:
    links = page.locator("nav a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    return {link.removeprefix(f"{here}/") for link in links if link.startswith(f"{here}/")}


def test_p84_the_menu_offers_what_opens_and_nothing_else_opens(window):
    desk, here, wrong = window.desk, window.here, []
    for_all: set[str] = set()
    desk.deposit(1_000_000)
    for number, held in enumerate(EACH_ALONE):
        add_someone(desk.world, f"someone{number}", held, desk.workspace_id)
        page = window.page(f"{here}/", person=f"someone{number}")

        def note(answer: Response, held: frozenset[PermissionName] = held) -> None:
            if answer.status >= 400:
                wrong.append(f"{set(held)}: {answer.url} is offered, and answers {answer.status}")

        page.on("response", note)
        found = offered(page, here)
        for section in sorted(found - for_all):
            page.goto(f"{here}/{section}")
            if page.locator(".live").count():
                with page.expect_response("**/parts/**"):
                    page.evaluate("document.body.dispatchEvent(new CustomEvent('changed'))")
        page.remove_listener("response", note)
        for_all = for_all or found
        for section in sorted(SECTIONS - found - OPEN_TO_ALL):
            answer = page.request.get(f"{here}/{section}")
            if answer.status != 403:
                wrong.append(f"{set(held)}: {section} is not offered, and answers {answer.status}")
        page.context.close()
    assert wrong == []

"""A page's number of statements and its size do not grow with the number of rows."""

import pytest

from custody.server.console.application import ASSETS, ROOT
from tests.support.asgi import asgi_client
from tests.support.budgets import assert_as_budgeted
from tests.support.console import Visitor
from tests.support.crowd import Crowd, Size
from tests.support.databases import Asked, statements_of

# More than a page of each, and more than two; vaults are shown and chosen from, coins drawn from.
PAGES = (Size(60, 60, 27, 150, 60, 60, 30, 30), Size(140, 130, 45, 300, 140, 140, 60, 60))
FURTHER = ("/w/{workspace_id}/proposals?search=invoice",)
# The newest few may be of more vaults.
MORE_VALUES = 10
# Files: all of it is sent.
FILES = (".csv", "/export")
# What a browser loads at first: a page and the files of its frame.
FIRST_BYTES = 100_000


@pytest.mark.slow("every page twice over hundreds of rows")
def test_no_page_takes_more_of_the_database_where_there_are_more_rows(desk):
    store, crowd, found, large = desk.store, Crowd.of(desk), [], []
    with asgi_client(desk.world.platform.asgi) as http:
        Visitor(http).sign_in("admin@example.org")
        files = sum(int(http.get(f"{ROOT}/static/{n}").headers["content-length"]) for n in ASSETS.files)
        for size in PAGES:
            crowd.grow(size)
            asked: dict[str, Asked] = {}
            for label, path in crowd.pages(*FURTHER).items():
                if not found:
                    # What is asked once in a process is no part of a page.
                    http.get(path)
                with statements_of(store) as seen:
                    answer = http.get(path)
                if answer.status_code == 200 and not label.endswith(FILES):
                    asked[label] = seen
                    large += [label] * (files + len(answer.content) > FIRST_BYTES)
            found.append(asked)
    assert large == []
    few, many = found
    grown = {
        label: (few[label], each)
        for label, each in many.items()
        if len(each) > len(few[label]) or values(each) > values(few[label]) + MORE_VALUES
    }
    assert grown == {}
    assert_as_budgeted({label: (len(each), each.transactions) for label, each in many.items()})


def values(asked: Asked) -> int:
    return sum(len(given or ()) for _, given in asked)

"""What a call or a page asks of the database is in one table, for either database."""

from tests.support.budgets import assert_as_budgeted, measured


def test_each_call_and_page_asks_what_its_budget_says(desk):
    assert_as_budgeted(measured(desk))

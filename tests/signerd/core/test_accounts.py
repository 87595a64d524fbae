"""How many vault accounts a registration offers, and when the person is asked for more."""

from hypothesis import given
from hypothesis import strategies as st

from signerd.core.keys import ALL_ACCOUNTS, FEW_ACCOUNTS, FIRST_ACCOUNTS, MORE_ACCOUNTS, Accounts

counts = st.integers(0, ALL_ACCOUNTS)
any_accounts = st.builds(Accounts, counts, counts, st.none() | counts)


def test_the_first_registration_offers_eight():
    assert Accounts().wanted == FIRST_ACCOUNTS
    assert Accounts().advice is None


def test_enough_free_ones_ask_for_nothing():
    enough = Accounts(known=8, following=8, free=FEW_ACCOUNTS + 1)
    assert enough.wanted == 8
    assert enough.advice is None


def test_few_free_ones_are_topped_up_with_many():
    few = Accounts(known=8, following=8, free=FEW_ACCOUNTS)
    assert few.wanted == 8 + MORE_ACCOUNTS
    assert "signerd register" in (few.advice or "")


def test_every_path_in_use_asks_for_nothing_more():
    """BIP-48 accounts 0 to 100 are the paths that every make takes without a warning."""
    full = Accounts(known=ALL_ACCOUNTS, following=ALL_ACCOUNTS, free=0)
    assert full.wanted == ALL_ACCOUNTS
    assert full.advice is None


def test_a_machine_that_knows_fewer_reads_them_all():
    behind = Accounts(known=8, following=40, free=20)
    assert behind.wanted == 40
    assert "Another desktop" in (behind.advice or "")


def test_a_platform_that_tells_no_figures_changes_nothing():
    assert Accounts(known=8).wanted == 8
    assert Accounts(known=8).advice is None


@given(any_accounts)
def test_whatever_the_platform_says_the_offer_is_bounded_and_loses_no_account(accounts):
    assert max(accounts.known, FIRST_ACCOUNTS) <= accounts.wanted <= ALL_ACCOUNTS


@given(any_accounts)
def test_advice_ends_with_the_registration_that_it_asks_for(accounts):
    """The platform then has what was offered, and what is new is free."""
    fresh = accounts.wanted - accounts.registered
    free = None if accounts.free is None else accounts.free + fresh
    assert accounts.advice is None or Accounts(accounts.wanted, accounts.wanted, free).advice is None

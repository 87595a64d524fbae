"""Which addresses of a pinned vault are recognised: those around the last one that is known to be used."""

import pytest

from multisig import MAX_INDEX, RECEIVE
from signerd.core.pinned_places import RECOGNISED_ADDRESSES, receive_scripts
from tests.support.desk import VAULT


@pytest.mark.parametrize(
    ("following", "first", "last"),
    [
        (0, 0, RECOGNISED_ADDRESSES - 1),
        (500, 400, 599),
        (MAX_INDEX + 1, MAX_INDEX + 1 - RECOGNISED_ADDRESSES, MAX_INDEX),
    ],
)
def test_no_further_than_a_bound_and_to_the_end_of_the_chain(following, first, last):
    found = receive_scripts(VAULT, following)
    assert list(found.values()) == list(range(first, last + 1))
    assert found[VAULT.script_pubkey(RECEIVE, last)] == last

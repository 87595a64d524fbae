"""S28: what the device cuts off is named before the approval, and judged by the device that is about to be
asked.
"""

from pathlib import Path

import pytest

from multisig.tokens import Function, Payload, encode_payload, payload_parts
from signerd.core.audit import Note
from signerd.core.tokens import ModelScreen, hidden_parts
from signerd.core.values import SigningLimits
from signerd.journal import Journal
from tests.support.desk import (
    CLAIM,
    NETWORK,
    SCREEN,
    VAULT_ID,
    make_pin,
    own_keys,
    review_context,
)
from tests.support.tokens import GOLD, call, published, token_snapshot
from tests.support.wallets import ALICE

ONE = ModelScreen("Trezor One 1.14.1", 32, 31)
MODEL_T = ModelScreen("Trezor Model T 2.3.6", 44, 43)
UNKNOWN = ModelScreen("Jade 1.0.31", None)
TRANSFER, PAUSE, DEPLOYMENT = call(), call(Function.PAUSE), GOLD.deployment


@pytest.mark.parametrize("payload", [*map(call, Function), DEPLOYMENT], ids=lambda p: type(p).__name__)
def test_the_parts_of_a_payload_are_all_of_it(payload: Payload) -> None:
    assert b"".join(data for _name, data in payload_parts(payload)) == encode_payload(payload)


@pytest.mark.parametrize(
    ("payload", "screen", "hidden"),
    [
        (TRANSFER, SCREEN, ()),
        (TRANSFER, ONE, ("contract", "amount", "recipient")),
        (TRANSFER, MODEL_T, ("recipient",)),
        (TRANSFER, UNKNOWN, ("function", "contract", "amount", "recipient")),
        (TRANSFER, None, ("function", "contract", "amount", "recipient")),
        (PAUSE, ONE, ("contract",)),
        (PAUSE, MODEL_T, ()),
        (DEPLOYMENT, MODEL_T, ("ticker",)),
    ],
)
def test_what_a_screen_hides(payload: Payload, screen: ModelScreen | None, hidden: tuple[str, ...]) -> None:
    assert hidden_parts(payload, screen) == hidden


# --- the device that is asked -------------------------------------------------------------------------------


def open_desk(folder: Path) -> Journal:
    journal = Journal(folder, network=NETWORK, limits=SigningLimits())
    journal.add_own_keys(own_keys(), "key-1", Note("registered", "key-1"))
    journal.learn(CLAIM)
    journal.add_pin(make_pin(), Note("pinned", VAULT_ID))
    journal.learn_token(TRANSFER, published(GOLD))
    return journal


def test_what_was_seen_outlives_a_restart_and_is_written_once(tmp_path: Path) -> None:
    with open_desk(tmp_path) as journal:
        journal.see_screen(ALICE.fingerprint, UNKNOWN)
        entries = journal.head()
        assert journal.see_screen(ALICE.fingerprint, UNKNOWN) == ()
        assert journal.head() == entries
    with Journal(tmp_path, network=NETWORK, limits=review_context().limits) as journal:
        assert journal.review_context(token_snapshot(TRANSFER)).screen == UNKNOWN

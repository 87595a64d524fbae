"""A platform for each test, and the people whom most tests are about."""

import pytest

from tests.support.accounts import register
from tests.support.platform import As, World

ALICE, BOB, EVE = "alice@example.org", "bob@example.org", "eve@example.com"


@pytest.fixture
def alice(world: World) -> As:
    """Administrator of workspace 1 in organisation 1."""
    world.organisation("Acme", ALICE)
    return world.as_user(ALICE)


@pytest.fixture
def bob(world: World, alice: As) -> As:
    """A signer of workspace 1."""
    world.member(1, BOB)
    return world.as_user(BOB)


@pytest.fixture
def carol(world: World) -> str:
    """The address of an account, whose sign-in asks for a mailed code."""
    return register(world)


@pytest.fixture
def eve(world: World, alice: As) -> As:
    """Administrator of workspace 2 in organisation 2."""
    world.organisation("Umbrella", EVE)
    return world.as_user(EVE)

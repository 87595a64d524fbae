"""What the daemon is put together from on its state folder, where no test passes the part in."""

import pytest

from firmware_bridge import Registration, RegistrationFile
from signerd.app import REGISTRATIONS_FILE
from signerd.errors import RegistrationsUnreadable
from tests.support.daemons import daemon_at
from tests.support.desk import VAULT
from tests.support.wallets import ALICE

pytestmark = pytest.mark.anyio


async def starts_and_stops(state, platform):
    """With the bridge that it makes itself."""
    async with daemon_at(state, platform, None, sign_in=False):
        pass


async def test_what_ledgers_registered_outlives_the_daemon(state, platform):
    await starts_and_stops(state, platform)
    kept = Registration(ALICE.fingerprint, VAULT.verification_code, "Savings", b"\x01" * 32)
    RegistrationFile.open(state / REGISTRATIONS_FILE).keep(kept)
    before = (state / REGISTRATIONS_FILE).read_bytes()
    await starts_and_stops(state, platform)
    assert (state / REGISTRATIONS_FILE).read_bytes() == before


async def test_registrations_that_cannot_be_read_are_told_and_kept(state, platform):
    await starts_and_stops(state, platform)
    (state / REGISTRATIONS_FILE).write_text("{")
    with pytest.raises(RegistrationsUnreadable, match="holds no registrations"):
        await starts_and_stops(state, platform)
    assert (state / REGISTRATIONS_FILE).read_text() == "{"

"""What the daemon is put together from on its state folder, where no test passes the part in."""

import pytest

from firmware_bridge import Registration, RegistrationFile
from signerd.app import REGISTRATIONS_FILE, DaemonDependencies, open_daemon
from signerd.errors import RegistrationsUnreadable
from signerd.journal.storage import held
from tests.support.daemons import MemoryStore, make_config
from tests.support.fake_platform import FakePlatform
from tests.support.wallets import ALICE, make_vault

pytestmark = pytest.mark.anyio

CODE = make_vault().verification_code


async def opened(state):
    with held(state):
        async with open_daemon(
            make_config(),
            state,
            MemoryStore(),
            DaemonDependencies(transport=FakePlatform(state.parent).transport),
        ) as daemon:
            return daemon


async def test_what_ledgers_registered_outlives_the_daemon(tmp_path):
    state = tmp_path / "state"
    await opened(state)
    RegistrationFile.open(state / REGISTRATIONS_FILE).keep(
        Registration(ALICE.fingerprint, CODE, "Savings", b"\x01" * 32)
    )
    before = (state / REGISTRATIONS_FILE).read_bytes()
    await opened(state)
    assert (state / REGISTRATIONS_FILE).read_bytes() == before


async def test_registrations_that_cannot_be_read_are_told_and_kept(tmp_path):
    state = tmp_path / "state"
    await opened(state)
    (state / REGISTRATIONS_FILE).write_text("{")
    with pytest.raises(RegistrationsUnreadable, match="holds no registrations"):
        await opened(state)
    assert (state / REGISTRATIONS_FILE).read_text() == "{"

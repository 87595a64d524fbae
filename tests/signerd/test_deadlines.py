"""Deadlines on processes of our own are for those that hang: a machine on which each takes thirty times its
second fails none.
"""

import pytest

from firmware_bridge import Deadlines
from signerd.account.config import SecretsSection
from signerd.demo import programs
from signerd.doctor import platform

# A child that imports HWI, a keyring's libraries or a desktop's bus takes about a second of an idle machine.
BUSY_SECONDS = 30.0


@pytest.mark.parametrize(
    "seconds",
    [
        Deadlines().start,
        SecretsSection().keyring_seconds,
        platform.KEYRING_SECONDS,
        programs.STOP_SECONDS,
        programs.COMMAND_SECONDS,
        programs.START_SECONDS,
        programs.STEP_SECONDS,
    ],
)
def test_a_process_of_ours_is_given_time_on_a_busy_machine(seconds):
    assert seconds >= BUSY_SECONDS

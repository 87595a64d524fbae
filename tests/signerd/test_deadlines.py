"""Deadlines on processes of our own are for those that hang: a machine on which each takes thirty times its
second fails none.
"""

import pytest

from custody.session_store import stores
from firmware_bridge import Deadlines
from signerd.account.config import SecretsSection
from signerd.demo import programs
from signerd.doctor import examining, platform
from signerd.notifying import child, notifier

# A child that imports HWI, a keyring's libraries or a desktop's bus takes about a second of an idle machine.
BUSY_SECONDS = 30.0


@pytest.mark.parametrize(
    "seconds",
    [
        Deadlines().start,
        stores.SEALING_SECONDS,
        SecretsSection().keyring_seconds,
        platform.KEYRING_SECONDS,
        notifier.DEADLINE_SECONDS - child.SECONDS,
        programs.STOP_SECONDS,
        programs.COMMAND_SECONDS,
        programs.START_SECONDS,
        programs.STEP_SECONDS,
    ],
)
def test_a_process_of_ours_is_given_time_on_a_busy_machine(seconds):
    assert seconds >= BUSY_SECONDS


def test_the_doctor_waits_longer_than_the_longest_of_its_checks():
    assert max(platform.KEYRING_SECONDS, platform.ANSWER_SECONDS) < examining.SECONDS

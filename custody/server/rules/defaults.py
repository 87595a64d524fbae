"""What holds unless the operator sets it otherwise."""

from datetime import timedelta
from typing import Final

# How long other processes wait for one that was killed. It is renewed after a third, so two renewals may
# fail.
LEASE: Final = timedelta(seconds=20)
# A reading call takes 2 to 3 ms of a core: at twenty a second, one user takes a twentieth of it. A page of a
# workspace makes some twenty calls; a daemon makes two or three a minute and a long poll.
CALLS_PER_MINUTE: Final = 1_200
# A change holds the write lock for some 10 ms: at five a second, a user takes a twentieth of its capacity.
WRITES_PER_MINUTE: Final = 300

"""What was found out in a snapshot, before the writers' turn, may have changed when the turn comes."""

from typing import Final

# So often something is prepared outside the writers' one lock; then it is prepared inside, where nothing can change.
MAX_TRIES: Final = 3


class Outdated(Exception):
    """Somebody else wrote meanwhile: prepare it again. No answer to a caller; whoever prepared it catches it."""

"""What differs between kinds of jobs beside who does them."""

from typing import Final

from custody.server.service.jobs.operator import FUND, MINE
from custody.server.service.proposals.finalising import BROADCAST

# A signed payment, whose coins are locked, waits as long as it takes for a node that takes it: never given up (P14).
ENDLESS: Final = frozenset({BROADCAST})
# A command asked, saw the end or gave up: nobody waits for a second try.
ONCE: Final = frozenset({MINE, FUND})

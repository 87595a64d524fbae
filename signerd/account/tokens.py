"""Which tokens the proposals are about: what the platform publishes of each, kept only where bytes prove it.

It is asked before a proposal is judged, so that the person is first shown it in the token's own decimals. Whatever goes wrong,
the proposal is judged all the same, and refused by its check until the token is proven.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from multisig.tokens import Payload
from signerd.account.listing import UNFORESEEN
from signerd.account.platform import Platform
from signerd.account.sink import Sink
from signerd.account.wire import Workspace
from signerd.core.text import said
from signerd.core.tokens import NotProven, payload_of_bytes, subject_of
from signerd.core.values import Snapshot
from signerd.errors import PlatformError, PlatformFloods, SignerdError
from signerd.journal import Journal

# A round learns so many; a platform that shows a thousand unknown tokens does not keep the other proposals waiting.
MOST_A_ROUND = 20
# All of them together: a proposal that waits for the person must not wait for a slow answer about a token.
LONGEST_SECONDS = 20.0


_log = logging.getLogger(__name__)


@dataclass
class TokensLearnt:
    journal: Journal
    platform: Platform
    sink: Sink
    alarm: Callable[[PlatformFloods], None]

    async def learn(self, workspace: Workspace, snapshots: Iterable[Snapshot]) -> dict[str, str]:
        """Prove and keep the tokens that are not known yet; by proposal, why one could not be. Raises SignedOut."""
        wanted = self._unknown(snapshots)
        unproven = {
            snapshot.psbt_id: _told(snapshot, "it is asked for in its turn.") for _p, snapshot in wanted
        }
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                for payload, snapshot in wanted[:MOST_A_ROUND]:
                    why = await self._learn(workspace, payload, snapshot)
                    if why is None:
                        del unproven[snapshot.psbt_id]
                    else:
                        unproven[snapshot.psbt_id] = _told(snapshot, why)
        except TimeoutError:
            pass
        return unproven

    def _unknown(self, snapshots: Iterable[Snapshot]) -> list[tuple[Payload, Snapshot]]:
        found = ((payload_of_bytes(s.psbt), s) for s in snapshots if s.is_of_token)
        return [
            (payload, snapshot)
            for payload, snapshot in found
            if payload is not None and self.journal.tokens.bytecode(payload) is None
        ]

    async def _learn(self, workspace: Workspace, payload: Payload, snapshot: Snapshot) -> str | None:
        if self.journal.tokens.bytecode(payload) is not None:
            return None  # Another proposal of this round is about it, too.
        if snapshot.contract_uid is None:
            return "the platform does not say which token of its own it means."
        try:
            published = await self.platform.published(workspace, snapshot.contract_uid)
            self.sink.perform(self.journal.learn_token(payload, published))
        except (PlatformError, NotProven) as error:
            if isinstance(error, PlatformFloods):
                self.alarm(error)
            return f"token {subject_of(payload)}: {said(error)}"
        except SignerdError:
            raise
        except Exception:  # noqa: BLE001 - whatever one token makes of us, the proposals are judged
            _log.exception("the token %s could not be read", subject_of(payload))
            return f"token {subject_of(payload)}: {UNFORESEEN}"
        return None


def _told(snapshot: Snapshot, why: str) -> str:
    return f"The token of the platform's proposal {snapshot.psbt_id} is not proven: {why}"

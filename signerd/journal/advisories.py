"""The newest list of each publisher of advisories, and what devices said of themselves when their keys were
registered.
"""

import json
import sqlite3
from dataclasses import dataclass

from custody.advisories import Held, KeyFacts

_REGISTERED = "SELECT at, facts FROM audit WHERE kind = 'registered' ORDER BY sequence"


@dataclass(frozen=True)
class AdvisoryBook:
    """Reads at any time; writes within the journal's transaction only. No older list takes a newer one's
    place.
    """

    connection: sqlite3.Connection

    def held(self) -> tuple[Held, ...]:
        found = self.connection.execute("SELECT * FROM advisories ORDER BY root")
        return tuple(
            Held(row["root"], row["key"], row["epoch"], row["serial"], row["digest"], row["line"])
            for row in found
        )

    def write(self, held: Held) -> None:
        self.connection.execute(
            "INSERT INTO advisories (root, key, epoch, serial, digest, line) VALUES (?,?,?,?,?,?) "
            "ON CONFLICT (root) DO UPDATE SET key=excluded.key, epoch=excluded.epoch, "
            "serial=excluded.serial, digest=excluded.digest, line=excluded.line",
            (held.root, held.key, held.epoch, held.serial, held.digest, held.line),
        )

    def registrations(self) -> dict[str, KeyFacts]:
        """By master fingerprint, what is known of each device: its first word, and the day of it."""
        known: dict[str, KeyFacts] = {}
        for row in self.connection.execute(_REGISTERED):
            facts = json.loads(row["facts"])
            said = facts.get("device", {})
            known.setdefault(
                str(facts.get("fingerprint", "")),
                KeyFacts(
                    said.get("maker"),
                    said.get("model"),
                    said.get("firmware"),
                    said.get("made_on"),
                    row["at"][:10],
                ),
            )
        return known

"""The newest advisory list of each publisher, and the facts of registered devices that advisories are matched
with.
"""

import json
import sqlite3
from dataclasses import dataclass

from custody.advisories import Held, KeyFacts

_REGISTERED = "SELECT at, facts FROM audit WHERE kind = 'registered' ORDER BY sequence"


@dataclass(frozen=True)
class AdvisoryBook:
    """Reads at any time, writes only within the journal's transaction. An older list never replaces a newer
    one.
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
        """By master fingerprint, the facts and the day of each device's first registration."""
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

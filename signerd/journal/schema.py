"""The schema as migrations from version to version. A released migration is never edited."""

import json
import sqlite3
from collections.abc import Sequence

from custody.schemas.vaults import MAX_SIGNERS
from multisig import MultisigError, Network, Vault
from signerd.errors import JournalTooNew

_FIRST = """
CREATE TABLE proposals (
  psbt_id TEXT PRIMARY KEY,
  workspace_id INTEGER NOT NULL,
  vault_id TEXT NOT NULL,
  state TEXT NOT NULL,
  identity TEXT NOT NULL,
  snapshot TEXT NOT NULL,
  psbt BLOB NOT NULL,
  approval TEXT,
  decline TEXT,
  reason TEXT NOT NULL,
  alarm TEXT NOT NULL,
  settled INTEGER NOT NULL
) STRICT;
CREATE INDEX proposals_by_state ON proposals (state);
CREATE INDEX proposals_unsettled ON proposals (settled) WHERE settled = 0;

CREATE TABLE signatures (
  psbt_id TEXT PRIMARY KEY REFERENCES proposals (psbt_id),
  psbt BLOB NOT NULL,
  idempotency_key TEXT NOT NULL
) STRICT;
CREATE TRIGGER signatures_stay BEFORE UPDATE ON signatures
BEGIN SELECT RAISE(ABORT, 'a stored signature never changes'); END;
CREATE TRIGGER signatures_remain BEFORE DELETE ON signatures
BEGIN SELECT RAISE(ABORT, 'a stored signature is never deleted'); END;

CREATE TABLE spends (
  psbt_id TEXT NOT NULL REFERENCES proposals (psbt_id),
  txid TEXT NOT NULL,
  vout INTEGER NOT NULL,
  PRIMARY KEY (psbt_id, txid, vout)
) STRICT;
CREATE INDEX spends_by_coin ON spends (txid, vout);

CREATE TABLE outputs (
  psbt_id TEXT NOT NULL REFERENCES proposals (psbt_id),
  position INTEGER NOT NULL,
  script BLOB NOT NULL,
  amount INTEGER NOT NULL,
  PRIMARY KEY (psbt_id, position)
) STRICT;
CREATE INDEX outputs_by_payment ON outputs (script, amount);

CREATE TABLE own_keys (
  origin_key TEXT PRIMARY KEY,
  purpose TEXT NOT NULL,
  account INTEGER NOT NULL,
  platform_key_id TEXT NOT NULL
) STRICT;

CREATE TABLE pins (
  vault_id TEXT PRIMARY KEY,
  workspace_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  descriptor TEXT NOT NULL,
  own_key TEXT NOT NULL REFERENCES own_keys (origin_key),
  enrolled INTEGER NOT NULL
) STRICT;

CREATE TABLE vault_claims (
  vault_id TEXT PRIMARY KEY,
  workspace_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  descriptor TEXT NOT NULL
) STRICT;

CREATE TABLE audit (
  sequence INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  facts TEXT NOT NULL,
  previous BLOB NOT NULL,
  digest BLOB NOT NULL
) STRICT;
CREATE TRIGGER audit_stays BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'an audit entry never changes'); END;
CREATE TRIGGER audit_remains BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'an audit entry is never deleted'); END;
"""

# Whether the device has shown the address; the figures of the platform's record; changes of a pinned vault that
# the person has not dismissed.
_SECOND = """
ALTER TABLE pins ADD COLUMN address_shown INTEGER NOT NULL DEFAULT 0;
ALTER TABLE vault_claims ADD COLUMN threshold INTEGER;
ALTER TABLE vault_claims ADD COLUMN signers INTEGER;
ALTER TABLE vault_claims ADD COLUMN first_address TEXT;

CREATE TABLE vault_changes (
  vault_id TEXT NOT NULL REFERENCES pins (vault_id),
  mark TEXT NOT NULL,
  sentences TEXT NOT NULL,
  PRIMARY KEY (vault_id, mark)
) STRICT;
"""

# The time of a signature is looked up whenever a proposal that pays the same is judged, without a scan.
_THIRD = """
CREATE INDEX audit_of_signatures ON audit (subject) WHERE kind = 'signed';
"""

# The keys of a replaced device stay, for the pins that reference them; nothing is signed with them.
_FOURTH = """
ALTER TABLE own_keys ADD COLUMN replaced INTEGER NOT NULL DEFAULT 0;
"""

# When a device was replaced, filled in from the chain; the platform's revocations of a registered key.
_FIFTH = """
ALTER TABLE own_keys ADD COLUMN replaced_at TEXT;
UPDATE own_keys SET replaced_at = (
  SELECT at FROM audit WHERE kind = 'registered' AND sequence > (
    SELECT max(sequence) FROM audit WHERE kind = 'registered' AND instr(facts, own_keys.origin_key) > 0
  ) ORDER BY sequence LIMIT 1
) WHERE replaced = 1;

CREATE TABLE revocations (
  platform_key_id TEXT PRIMARY KEY,
  fingerprint TEXT NOT NULL,
  why TEXT NOT NULL,
  told_at TEXT NOT NULL,
  successor TEXT NOT NULL
) STRICT;
"""

# Paired apps, each with the hash of its token, and the origins whose pages may ask. Rights never change.
_SIXTH = """
CREATE TABLE apps (
  app_id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  origin TEXT,
  rights TEXT NOT NULL,
  token_hash BLOB NOT NULL UNIQUE,
  created TEXT NOT NULL,
  expires TEXT NOT NULL,
  revoked TEXT,
  used TEXT
) STRICT;
CREATE TRIGGER apps_stay BEFORE UPDATE OF app_id, name, origin, rights, token_hash, created, expires ON apps
BEGIN SELECT RAISE(ABORT, 'what an app was granted never changes'); END;
CREATE TRIGGER apps_stay_revoked BEFORE UPDATE OF revoked ON apps WHEN OLD.revoked IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a revoked app stays revoked'); END;

CREATE TABLE origins (
  origin TEXT PRIMARY KEY,
  until TEXT NOT NULL
) STRICT;
"""

# `brought_by`: an app's id, '' for the person, NULL for the platform's proposals. An index by transaction id.
_SEVENTH = """
ALTER TABLE proposals ADD COLUMN brought_by TEXT;
CREATE INDEX proposals_brought ON proposals (brought_by) WHERE brought_by IS NOT NULL;
CREATE INDEX proposals_by_identity ON proposals (identity);
"""

# Proven tokens: a hash's bytecode and a contract's hash never change.
_EIGHTH = """
CREATE TABLE bytecodes (
  hash BLOB PRIMARY KEY,
  blob BLOB NOT NULL
) STRICT;
CREATE TRIGGER bytecodes_stay BEFORE UPDATE ON bytecodes
BEGIN SELECT RAISE(ABORT, 'a proven bytecode never changes'); END;

CREATE TABLE tokens (
  contract_id TEXT PRIMARY KEY,
  hash BLOB NOT NULL REFERENCES bytecodes (hash),
  deployment BLOB NOT NULL
) STRICT;
CREATE TRIGGER tokens_stay BEFORE UPDATE ON tokens
BEGIN SELECT RAISE(ABORT, 'a proven token never changes'); END;
"""

# A quorum is identified by its verification code, not by an id of the platform (S26). `proposals.quorum`: of the
# vault that the proposal was last judged by, final once a device was asked; '' for the person's own profile;
# NULL where unknown, which is compared with every vault and counts in every limit.
# `proposals.collected`: the platform's highest count of signatures, for finding what others signed (S27).
# The migration sets `quorum` of a signed proposal to the vault that was pinned under its id then, by the chain;
# of the rest to the vault pinned last, or else to the one that the platform shows.
_NINTH = """
CREATE INDEX audit_of_pins ON audit (subject) WHERE kind = 'pinned';

ALTER TABLE proposals ADD COLUMN collected INTEGER NOT NULL DEFAULT 0;
UPDATE proposals SET collected = collected_of(snapshot);
ALTER TABLE proposals ADD COLUMN quorum TEXT;
CREATE INDEX proposals_by_quorum ON proposals (quorum);
UPDATE proposals SET quorum = CASE WHEN vault_id = '' THEN '' ELSE (
  SELECT code_of_facts(facts) FROM audit
  WHERE kind = 'pinned' AND subject = proposals.vault_id AND sequence < coalesce(
    (SELECT min(sequence) FROM audit WHERE kind = 'signed' AND subject = proposals.psbt_id), 9223372036854775807
  ) ORDER BY sequence DESC LIMIT 1
) END;
UPDATE proposals SET quorum = (
  SELECT code_of(descriptor) FROM vault_claims WHERE vault_claims.vault_id = proposals.vault_id
) WHERE quorum IS NULL AND psbt_id NOT IN (SELECT psbt_id FROM signatures);

CREATE TABLE earlier_pins AS SELECT * FROM pins;
CREATE TABLE earlier_changes AS SELECT * FROM vault_changes ORDER BY rowid;
DROP TABLE vault_changes;
DROP TABLE pins;
CREATE TABLE pins (
  code TEXT NOT NULL PRIMARY KEY,
  vault_id TEXT NOT NULL UNIQUE,
  workspace_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  descriptor TEXT NOT NULL,
  own_key TEXT NOT NULL REFERENCES own_keys (origin_key),
  enrolled INTEGER NOT NULL,
  address_shown INTEGER NOT NULL
) STRICT;
INSERT INTO pins
SELECT code_of(descriptor), vault_id, workspace_id, name, descriptor, own_key, enrolled, address_shown FROM earlier_pins;
CREATE TABLE vault_changes (
  code TEXT NOT NULL REFERENCES pins (code),
  mark TEXT NOT NULL,
  sentences TEXT NOT NULL,
  PRIMARY KEY (code, mark)
) STRICT;
INSERT INTO vault_changes
SELECT pins.code, mark, sentences FROM earlier_changes JOIN pins USING (vault_id) ORDER BY earlier_changes.rowid;
DROP TABLE earlier_changes;
DROP TABLE earlier_pins;
"""

# Proposals of pinned vaults that others signed and this machine never followed (S27), found by what they pay.
# `tx` is without witnesses. `heard`: up to which proposal a workspace's whole list was read for these vaults.
_TENTH = """
CREATE TABLE unfollowed (
  psbt_id TEXT PRIMARY KEY,
  quorum TEXT NOT NULL,
  status TEXT NOT NULL,
  collected INTEGER NOT NULL,
  required INTEGER NOT NULL,
  tx BLOB NOT NULL
) STRICT;
CREATE TABLE unfollowed_outputs (
  script BLOB NOT NULL,
  amount INTEGER NOT NULL,
  psbt_id TEXT NOT NULL REFERENCES unfollowed (psbt_id),
  PRIMARY KEY (script, amount, psbt_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE unfollowed_spends (
  psbt_id TEXT NOT NULL REFERENCES unfollowed (psbt_id),
  txid TEXT NOT NULL,
  vout INTEGER NOT NULL,
  PRIMARY KEY (psbt_id, txid, vout)
) STRICT, WITHOUT ROWID;

CREATE TABLE heard (
  workspace_id INTEGER PRIMARY KEY,
  psbt_id TEXT NOT NULL,
  codes TEXT NOT NULL
) STRICT;
"""

# A PSBT exported for an air-gapped device may be signed at any time: it is never changed or deleted, whatever
# becomes of the proposal.
_ELEVENTH = """
ALTER TABLE proposals ADD COLUMN exported BLOB;
CREATE TRIGGER exports_stay BEFORE UPDATE OF exported ON proposals
WHEN OLD.exported IS NOT NULL AND NEW.exported IS NOT OLD.exported
BEGIN SELECT RAISE(ABORT, 'what was exported never changes'); END;
CREATE TRIGGER exports_remain BEFORE DELETE ON proposals WHEN OLD.exported IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'what was exported is never deleted'); END;
CREATE INDEX audit_of_exports ON audit (subject) WHERE kind = 'exported';
"""

# The newest advisory list of each publisher. An older one is never accepted again.
_TWELFTH = """
CREATE TABLE advisories (
  root TEXT PRIMARY KEY,
  key TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  serial INTEGER NOT NULL,
  digest TEXT NOT NULL,
  line BLOB NOT NULL
) STRICT;
CREATE TRIGGER advisories_grow BEFORE UPDATE ON advisories
WHEN NEW.serial <= OLD.serial OR NEW.epoch < OLD.epoch OR NEW.root IS NOT OLD.root
BEGIN SELECT RAISE(ABORT, 'an older list of advisories is never taken'); END;
CREATE TRIGGER advisories_remain BEFORE DELETE ON advisories
BEGIN SELECT RAISE(ABORT, 'a list of advisories is never forgotten'); END;
CREATE INDEX audit_of_registrations ON audit (sequence) WHERE kind = 'registered';
"""

# Replacements of payments: one that arrived after our signature withdraws it. The order in which this machine
# heard and signed decides, not a clock. `let_go`: a signed proposal that ended long ago and is no longer
# followed.
_THIRTEENTH = """
CREATE TABLE newer_versions (
  psbt_id TEXT PRIMARY KEY,
  replaces TEXT NOT NULL,
  after_signature INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX newer_versions_of_signed ON newer_versions (replaces) WHERE after_signature = 1;
ALTER TABLE proposals ADD COLUMN let_go INTEGER NOT NULL DEFAULT 0;
"""

# What costs work is bounded (S34). `outputs`: each (script, amount) of a proposal once, so that a transaction of
# many equal outputs is one row. `parts`: its inputs and outputs. `judged`: under what it was last judged, while
# nothing of the row has changed since (``review.verdict_key``). The audit chain is never read whole at a start.
_FOURTEENTH = """
ALTER TABLE proposals ADD COLUMN parts INTEGER NOT NULL DEFAULT 0;
UPDATE proposals SET parts = (SELECT count(*) FROM spends WHERE psbt_id = proposals.psbt_id)
  + (SELECT count(*) FROM outputs WHERE psbt_id = proposals.psbt_id);
ALTER TABLE proposals ADD COLUMN judged BLOB;

CREATE TABLE earlier_outputs AS SELECT DISTINCT script, amount, psbt_id FROM outputs;
DROP TABLE outputs;
CREATE TABLE outputs (
  script BLOB NOT NULL,
  amount INTEGER NOT NULL,
  psbt_id TEXT NOT NULL REFERENCES proposals (psbt_id),
  PRIMARY KEY (script, amount, psbt_id)
) STRICT, WITHOUT ROWID;
INSERT INTO outputs SELECT script, amount, psbt_id FROM earlier_outputs;
DROP TABLE earlier_outputs;
CREATE INDEX outputs_of_proposal ON outputs (psbt_id);
DROP INDEX spends_by_coin;
CREATE INDEX spends_by_coin ON spends (txid, vout, psbt_id);

CREATE INDEX audit_by_kind ON audit (kind);
CREATE INDEX audit_by_subject ON audit (subject);
CREATE INDEX audit_times ON audit (sequence, at);
"""

MIGRATIONS: tuple[str, ...] = (
    _FIRST,
    _SECOND,
    _THIRD,
    _FOURTH,
    _FIFTH,
    _SIXTH,
    _SEVENTH,
    _EIGHTH,
    _NINTH,
    _TENTH,
    _ELEVENTH,
    _TWELFTH,
    _THIRTEENTH,
    _FOURTEENTH,
)


def migrate(connection: sqlite3.Connection, steps: Sequence[str] = MIGRATIONS) -> None:
    """Migrate the journal to the newest version, each step atomically.

    Raises:
        JournalTooNew: a later signerd wrote it.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > len(steps):
        raise JournalTooNew(f"the journal is of version {version}; this signerd knows up to {len(steps)}")
    connection.create_function("code_of", 1, code_of, deterministic=True)
    connection.create_function("code_of_facts", 1, _code_of_facts, deterministic=True)
    connection.create_function("collected_of", 1, _collected_of, deterministic=True)
    for number, step in enumerate(steps[version:], start=version + 1):
        # executescript() commits an open transaction, so the script has its own.
        try:
            connection.executescript(f"BEGIN IMMEDIATE;\n{step}\nPRAGMA user_version = {number};\nCOMMIT;")
        except sqlite3.Error:
            connection.rollback()
            raise


def code_of(descriptor: str) -> str | None:
    """A descriptor's verification code, for the ninth step; None where it cannot be parsed.

    A journal has one network. The test networks share their key format, so one of them stands for all.
    """
    for network in (Network.MAINNET, Network.TESTNET4):
        try:
            return Vault.from_descriptor(descriptor, network).verification_code
        except MultisigError:
            continue
    return None


def _collected_of(snapshot: str) -> int:
    return max(0, min(int(json.loads(snapshot).get("collected", 0)), MAX_SIGNERS))


def _code_of_facts(facts: str) -> str | None:
    """Of a "pinned" entry, in which every version wrote the descriptor."""
    return code_of(str(json.loads(facts).get("descriptor", "")))

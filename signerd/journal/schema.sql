-- The journal, version 1. `settled`, `enrolled` and their like: 0 or 1. Times: RFC 3339, UTC.

-- `quorum`: the verification code, not an id of the platform (S26), of the vault that the proposal was last judged
-- by, final once a device was asked; '' for the person's own profile; NULL where the platform shows no vault that
-- can be read, which is compared with every vault and counts in every limit.
-- `imported_by`: an app's id, '' for the person, NULL for the platform's proposals.
-- `collected`: the platform's highest count of signatures, for finding what others signed (S27).
-- `exported`: for a device without a cable, which may sign it at any time: it is never changed or deleted.
-- `let_go`: a signed proposal that ended long ago and is no longer followed.
-- `parts`: its inputs and outputs. `judged`: under what it was last judged, while nothing of the row has changed
-- since (`review.verdict_key`) (S34).
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
  settled INTEGER NOT NULL,
  imported_by TEXT,
  collected INTEGER NOT NULL DEFAULT 0,
  quorum TEXT,
  exported BLOB,
  let_go INTEGER NOT NULL DEFAULT 0,
  parts INTEGER NOT NULL DEFAULT 0,
  judged BLOB
) STRICT;
CREATE INDEX proposals_by_state ON proposals (state);
CREATE INDEX proposals_unsettled ON proposals (settled) WHERE settled = 0;
CREATE INDEX proposals_imported ON proposals (imported_by) WHERE imported_by IS NOT NULL;
CREATE INDEX proposals_by_identity ON proposals (identity);
CREATE INDEX proposals_by_quorum ON proposals (quorum);
CREATE TRIGGER exports_stay BEFORE UPDATE OF exported ON proposals
WHEN OLD.exported IS NOT NULL AND NEW.exported IS NOT OLD.exported
BEGIN SELECT RAISE(ABORT, 'what was exported never changes'); END;
CREATE TRIGGER exports_remain BEFORE DELETE ON proposals WHEN OLD.exported IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'what was exported is never deleted'); END;

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
CREATE INDEX spends_by_coin ON spends (txid, vout, psbt_id);

-- The addresses that are known to be used, by the policy's code (`core/places.py`).
CREATE TABLE places (
  policy TEXT PRIMARY KEY,
  places TEXT NOT NULL
) STRICT;

-- Each (script, amount) of a proposal once, so that a transaction of many equal outputs is one row (S34).
CREATE TABLE outputs (
  script BLOB NOT NULL,
  amount INTEGER NOT NULL,
  psbt_id TEXT NOT NULL REFERENCES proposals (psbt_id),
  PRIMARY KEY (script, amount, psbt_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX outputs_of_proposal ON outputs (psbt_id);

-- What was signed or exported pays these addresses, the first of it named; found by both ends (S37).
CREATE TABLE payees (
  ends TEXT NOT NULL,
  address TEXT NOT NULL,
  psbt_id TEXT NOT NULL REFERENCES proposals (psbt_id),
  PRIMARY KEY (ends, address)
) STRICT, WITHOUT ROWID;

-- The keys of a replaced device stay, for the pins that reference them; nothing is signed with them.
CREATE TABLE own_keys (
  origin_key TEXT PRIMARY KEY,
  purpose TEXT NOT NULL,
  account INTEGER NOT NULL,
  platform_key_id TEXT NOT NULL,
  replaced INTEGER NOT NULL DEFAULT 0,
  replaced_at TEXT
) STRICT;

-- The platform's revocations of a registered key.
CREATE TABLE revocations (
  platform_key_id TEXT PRIMARY KEY,
  fingerprint TEXT NOT NULL,
  why TEXT NOT NULL,
  told_at TEXT NOT NULL,
  successor TEXT NOT NULL
) STRICT;

-- What the platform says of its vaults, with the figures of its record.
CREATE TABLE vault_claims (
  vault_id TEXT PRIMARY KEY,
  workspace_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  descriptor TEXT NOT NULL,
  threshold INTEGER,
  signers INTEGER,
  first_address TEXT,
  replaced_by TEXT
) STRICT;

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

-- Changes of a pinned vault that the person has not dismissed.
CREATE TABLE vault_changes (
  code TEXT NOT NULL REFERENCES pins (code),
  mark TEXT NOT NULL,
  sentences TEXT NOT NULL,
  PRIMARY KEY (code, mark)
) STRICT;

-- The chain is never read whole at a start: it is read by these indexes.
CREATE TABLE audit (
  sequence INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  facts TEXT NOT NULL,
  previous BLOB NOT NULL,
  digest BLOB NOT NULL
) STRICT;
CREATE INDEX audit_of_signatures ON audit (subject) WHERE kind = 'signed';
CREATE INDEX audit_of_pins ON audit (subject) WHERE kind = 'pinned';
CREATE INDEX audit_of_exports ON audit (subject) WHERE kind = 'exported';
CREATE INDEX audit_by_kind ON audit (kind);
CREATE INDEX audit_by_subject ON audit (subject);
CREATE INDEX audit_times ON audit (at);
CREATE TRIGGER audit_stays BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'an audit entry never changes'); END;
CREATE TRIGGER audit_remains BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'an audit entry is never deleted'); END;

-- Paired apps, each with the hash of its token, and the origins whose pages may ask. Rights never change.
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

-- Proven tokens: a hash's bytecode and a contract's hash never change.
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

-- Proposals of pinned vaults that others signed and this machine never followed (S27), found by what they pay.
-- `tx` is without witnesses.
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

-- Up to which proposal a workspace's whole list was read for these vaults.
CREATE TABLE heard (
  workspace_id INTEGER PRIMARY KEY,
  psbt_id TEXT NOT NULL,
  codes TEXT NOT NULL
) STRICT;

-- Replacements of payments: one that arrived after our signature withdraws it. The order in which this machine heard
-- and signed decides, not a clock.
CREATE TABLE newer_versions (
  psbt_id TEXT PRIMARY KEY,
  replaces TEXT NOT NULL,
  after_signature INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX newer_versions_of_signed ON newer_versions (replaces) WHERE after_signature = 1;

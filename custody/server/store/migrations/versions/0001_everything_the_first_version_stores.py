"""everything the first version stores"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_UNUSUAL = (
    "(replaces_id IS NOT NULL OR status IN ('CANCELLED', 'EXPIRED', 'FAILED', 'INVALIDATED', 'REJECTED'))"
)
_OPEN = "(status IN ('PENDING', 'SIGNED', 'STALLED', 'BROADCASTING') OR keeps_coins)"
# SQLite numbers rows by itself only in a column of the type INTEGER.
_INT64 = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TIME = sa.DateTime(timezone=True)


def _where(sqlite: str, postgresql: str | None = None) -> dict[str, Any]:
    """The condition of a partial index."""
    return {"sqlite_where": sa.text(sqlite), "postgresql_where": sa.text(postgresql or sqlite)}


def upgrade() -> None:
    op.create_table(
        "attempts",
        sa.Column("id", _INT64, primary_key=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("subject_hash", sa.LargeBinary, nullable=False),
        sa.Column("tried_at", _TIME, nullable=False, index=True),
    )
    op.create_index(
        op.f("ix_attempts_kind_attempts_subject_hash_attempts_tried_at"),
        "attempts",
        ["kind", "subject_hash", "tried_at"],
    )
    op.create_table(
        "audit_events",
        sa.Column("event_uid", sa.String, primary_key=True),
        sa.Column("chain_id", sa.String, nullable=False),
        sa.Column("position", _INT64, nullable=False),
        sa.Column("org_uid", sa.String, nullable=False),
        sa.Column("workspace_uid", sa.String, nullable=False),
        sa.Column("timestamp", _TIME, nullable=False),
        sa.Column("category", sa.String, nullable=False),
        sa.Column("action", sa.String, nullable=False),
        sa.Column("description", sa.String, nullable=False),
        sa.Column("user_uuid", _INT64, nullable=False),
        sa.Column("user_name", sa.String, nullable=False),
        sa.Column("role_uid", sa.String, nullable=False),
        sa.Column("trace_id", sa.String, nullable=False),
        sa.Column("prev_hash", sa.LargeBinary, nullable=False),
        sa.Column("event_hash", sa.LargeBinary, nullable=False),
        sa.UniqueConstraint("chain_id", "position"),
    )
    op.create_index("ix_audit_events_by_day", "audit_events", ["chain_id", "timestamp", "position"])
    op.create_index(
        "ix_audit_events_by_category", "audit_events", ["chain_id", "category", "position", "timestamp"]
    )
    op.create_index(
        "ix_audit_events_by_person",
        "audit_events",
        ["chain_id", "user_uuid", "position", "category", "timestamp"],
    )
    op.create_table(
        "audit_heads",
        sa.Column("chain_id", sa.String, primary_key=True),
        sa.Column("size", _INT64, nullable=False),
        sa.Column("head_hash", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "chain_blocks",
        sa.Column("chain", sa.String, primary_key=True),
        sa.Column("height", _INT64, primary_key=True),
        sa.Column("block_hash", sa.String, nullable=False),
        sa.Column("seen_at", _TIME, nullable=False),
    )
    op.create_table(
        "chain_transactions",
        sa.Column("chain", sa.String, primary_key=True),
        sa.Column("txid", sa.String, primary_key=True),
        sa.Column("raw", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "jobs",
        sa.Column("id", _INT64, primary_key=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("subject", sa.String, nullable=False),
        sa.Column("payload", sa.JSON, nullable=False),
        sa.Column("run_at", _TIME, nullable=False),
        sa.Column("attempts", _INT64, nullable=False),
        sa.Column("failures", _INT64, nullable=False),
        sa.Column("lease_owner", sa.String),
        sa.Column("lease_until", _TIME),
        sa.Column("last_error", sa.String),
        sa.Column("trace_id", sa.String),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("done_at", _TIME),
        sa.Column("dead_at", _TIME),
    )
    op.create_index(
        "ix_jobs_due", "jobs", ["kind", "run_at", "id"], **_where("done_at IS NULL AND dead_at IS NULL")
    )
    op.create_index(
        "uq_jobs_open",
        "jobs",
        ["kind", "subject"],
        unique=True,
        **_where("done_at IS NULL AND dead_at IS NULL"),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("owner", sa.String, nullable=False),
        sa.Column("until", _TIME, nullable=False),
    )
    op.create_table(
        "organisations",
        sa.Column("id", _INT64, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
    )
    op.create_table(
        "token_blocks",
        sa.Column("chain", sa.String, primary_key=True),
        sa.Column("height", _INT64, primary_key=True),
        sa.Column("block_hash", sa.String, nullable=False),
        sa.Column("mined_at", _TIME, nullable=False),
        sa.Column("state", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "token_cells",
        sa.Column("chain", sa.String, primary_key=True),
        sa.Column("contract_id", sa.String, primary_key=True),
        sa.Column("cell", _INT64, primary_key=True),
        sa.Column("holder", sa.LargeBinary, primary_key=True),
        sa.Column("number", _INT64),
        sa.Column("data", sa.LargeBinary),
    )
    op.create_index(
        op.f("ix_token_cells_chain_token_cells_holder_token_cells_cell"),
        "token_cells",
        ["chain", "holder", "cell"],
    )
    op.create_table(
        "token_effects",
        sa.Column("chain", sa.String, primary_key=True),
        sa.Column("height", _INT64, primary_key=True),
        sa.Column("sequence", _INT64, primary_key=True),
        sa.Column("txid", sa.String, nullable=False),
        sa.Column("function", sa.String, nullable=False),
        sa.Column("contract_id", sa.String, nullable=False),
        sa.Column("cell", _INT64, nullable=False),
        sa.Column("holder", sa.LargeBinary, nullable=False),
        sa.Column("number_before", _INT64),
        sa.Column("data_before", sa.LargeBinary),
        sa.Column("number_after", _INT64),
        sa.Column("data_after", sa.LargeBinary),
    )
    op.create_index(
        "ix_token_effects_of_holder", "token_effects", ["chain", "holder", "cell", "height", "sequence"]
    )
    op.create_index(
        "ix_token_effects_of_token",
        "token_effects",
        ["chain", "holder", "cell", "contract_id", "height", "sequence"],
    )
    op.create_table(
        "token_transactions",
        sa.Column("chain", sa.String, primary_key=True),
        sa.Column("height", _INT64, primary_key=True),
        sa.Column("position", _INT64, primary_key=True),
        sa.Column("txid", sa.String, nullable=False),
        sa.Column("contract_id", sa.String),
        sa.Column("failure", sa.String),
    )
    op.create_index(
        op.f("ix_token_transactions_chain_token_transactions_txid"), "token_transactions", ["chain", "txid"]
    )
    op.create_table(
        "workspaces",
        sa.Column("id", _INT64, primary_key=True),
        sa.Column("organisation_id", _INT64, sa.ForeignKey("organisations.id"), nullable=False, index=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("description", sa.String, nullable=False),
        sa.Column("network", sa.String, nullable=False),
        sa.Column("chain", sa.String, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.CheckConstraint("(network = 'mainnet') = (chain = 'mainnet')", name="chain_of_network"),
        sa.CheckConstraint("chain IN ('mainnet', 'testnet4', 'signet', 'regtest')", name="chain"),
        sa.CheckConstraint("network IN ('mainnet', 'testnet')", name="network"),
        sa.UniqueConstraint("organisation_id", "name"),
    )
    op.create_table(
        "revisions",
        sa.Column("workspace_id", _INT64, sa.ForeignKey("workspaces.id"), primary_key=True),
        sa.Column("number", _INT64, nullable=False),
    )
    op.create_table(
        "roles",
        sa.Column("id", _INT64, primary_key=True),
        sa.Column("workspace_id", _INT64, sa.ForeignKey("workspaces.id"), nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("description", sa.String, nullable=False),
        sa.Column("limit_sats", _INT64, nullable=False),
        sa.Column("cycle_period", sa.String, nullable=False),
        sa.Column("cycle_day", _INT64, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("updated_at", _TIME, nullable=False),
        sa.CheckConstraint("cycle_period IN ('W', 'M')", name="cycle_period"),
        sa.CheckConstraint("limit_sats >= 0", name="limit"),
        sa.UniqueConstraint("id", "workspace_id"),
        sa.UniqueConstraint("workspace_id", "name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "users",
        sa.Column("id", _INT64, primary_key=True),
        sa.Column("email", sa.String, nullable=False, unique=True),
        sa.Column("first_name", sa.String),
        sa.Column("surname", sa.String),
        sa.Column("phone_number", sa.String),
        sa.Column("is_operator", sa.Boolean, nullable=False),
        sa.Column("mails_waiting", sa.Boolean, nullable=False),
        sa.Column("mails_amounts", sa.Boolean, nullable=False),
        sa.Column("waiting_mailed_at", _TIME),
        sa.Column("default_org_id", _INT64, sa.ForeignKey("organisations.id")),
        sa.Column("default_workspace_id", _INT64, sa.ForeignKey("workspaces.id")),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("last_login_at", _TIME),
    )
    op.create_table(
        "webhook_events",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("workspace_id", _INT64, sa.ForeignKey("workspaces.id"), nullable=False),
        sa.Column("sequence", _INT64, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("payload", sa.JSON, nullable=False),
        sa.Column("created_at", _TIME, nullable=False, index=True),
        sa.UniqueConstraint("workspace_id", "sequence"),
    )
    op.create_table(
        "address_book",
        sa.Column("id", _INT64, primary_key=True),
        sa.Column("workspace_id", _INT64, sa.ForeignKey("workspaces.id"), nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("name_key", sa.String, nullable=False),
        sa.Column("address", sa.String, nullable=False),
        sa.Column("created_by", _INT64, sa.ForeignKey("users.id"), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.UniqueConstraint("workspace_id", "address"),
        sa.UniqueConstraint("workspace_id", "name_key"),
    )
    op.create_table(
        "credentials",
        sa.Column("user_id", _INT64, sa.ForeignKey("users.id"), primary_key=True),
        sa.Column("password_hash", sa.String, nullable=False),
        sa.Column("second_factor", sa.String, nullable=False),
        sa.Column("totp_secret", sa.LargeBinary),
        sa.Column("totp_pending", sa.LargeBinary),
        sa.Column("totp_last_step", _INT64),
        sa.Column("updated_at", _TIME, nullable=False),
        sa.CheckConstraint("second_factor <> 'totp' OR totp_secret IS NOT NULL", name="totp"),
        sa.CheckConstraint("second_factor IN ('none', 'email', 'totp')", name="second_factor"),
    )
    op.create_table(
        "idempotency_records",
        sa.Column("user_id", _INT64, sa.ForeignKey("users.id"), primary_key=True),
        sa.Column("method", sa.String, primary_key=True),
        sa.Column("path", sa.String, primary_key=True),
        sa.Column("key", sa.String, primary_key=True),
        sa.Column("body_hash", sa.LargeBinary, nullable=False),
        sa.Column("response", sa.LargeBinary, nullable=False),
        sa.Column("created_at", _TIME, nullable=False, index=True),
    )
    op.create_table(
        "invitations",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("organisation_id", _INT64, sa.ForeignKey("organisations.id"), nullable=False),
        sa.Column("workspace_id", _INT64, sa.ForeignKey("workspaces.id"), nullable=False),
        sa.Column("role_id", _INT64, nullable=False),
        sa.Column("invited_email", sa.String, nullable=False, index=True),
        sa.Column("invited_by", _INT64, sa.ForeignKey("users.id"), nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("expires_at", _TIME, nullable=False),
        sa.Column("decided_at", _TIME),
        sa.CheckConstraint(
            "status IN ('pending', 'accepted', 'declined', 'expired', 'revoked')", name="status"
        ),
    )
    op.create_index(
        op.f("ix_invitations_organisation_id_invitations_created_at"),
        "invitations",
        ["organisation_id", "created_at"],
    )
    op.create_index(
        op.f("ix_invitations_status_invitations_expires_at"), "invitations", ["status", "expires_at"]
    )
    op.create_index(
        "uq_invitations_pending",
        "invitations",
        ["workspace_id", "invited_email"],
        unique=True,
        **_where("status = 'pending'"),
    )
    op.create_table(
        "key_challenges",
        sa.Column("id", _INT64, primary_key=True),
        sa.Column("user_id", _INT64, sa.ForeignKey("users.id"), nullable=False, index=True),
        sa.Column("network", sa.String, nullable=False),
        sa.Column("challenge", sa.String, nullable=False, unique=True),
        sa.Column("offered_digest", sa.String, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("expires_at", _TIME, nullable=False),
        sa.Column("used_at", _TIME),
    )
    op.create_table(
        "keys",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("user_id", _INT64, sa.ForeignKey("users.id"), nullable=False, index=True),
        sa.Column("network", sa.String, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("revoked_reason", sa.String),
        sa.Column("key_type", sa.String, nullable=False),
        sa.Column("xpub", sa.String, nullable=False),
        sa.Column("pub_key_hex", sa.String, nullable=False),
        sa.Column("master_fingerprint", sa.String, nullable=False),
        sa.Column("derivation_base_path", sa.String, nullable=False),
        sa.Column("label", sa.String),
        sa.Column("maker", sa.String),
        sa.Column("model", sa.String),
        sa.Column("firmware", sa.String),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("updated_at", _TIME, nullable=False),
        sa.CheckConstraint("(status = 'revoked') = (revoked_reason IS NOT NULL)", name="reason"),
        sa.CheckConstraint("status IN ('active', 'revoked')", name="status"),
    )
    op.create_index(
        "uq_keys_active_user", "keys", ["user_id", "network"], unique=True, **_where("status = 'active'")
    )
    op.create_index("uq_keys_active_xpub", "keys", ["xpub"], unique=True, **_where("status = 'active'"))
    op.create_table(
        "memberships",
        sa.Column("id", _INT64, primary_key=True),
        sa.Column("user_id", _INT64, sa.ForeignKey("users.id"), nullable=False, index=True),
        sa.Column("workspace_id", _INT64, sa.ForeignKey("workspaces.id"), nullable=False),
        sa.Column("role_id", _INT64, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["role_id", "workspace_id"], ["roles.id", "roles.workspace_id"]),
        sa.UniqueConstraint("workspace_id", "user_id"),
    )
    op.create_table(
        "onboarding_requests",
        sa.Column("id", _INT64, primary_key=True),
        sa.Column("requester_id", _INT64, sa.ForeignKey("users.id"), nullable=False, index=True),
        sa.Column("first_name", sa.String, nullable=False),
        sa.Column("last_name", sa.String, nullable=False),
        sa.Column("work_email", sa.String, nullable=False),
        sa.Column("messaging_platform", sa.String, nullable=False),
        sa.Column("messaging_handle", sa.String, nullable=False),
        sa.Column("monthly_volume", sa.String, nullable=False),
        sa.Column("referral_source", sa.String, nullable=False),
        sa.Column("referral_source_detail", sa.String),
        sa.Column("org_name", sa.String, nullable=False),
        sa.Column("workspace_name", sa.String, nullable=False),
        sa.Column("network", sa.String, nullable=False),
        sa.Column("status", sa.String, nullable=False, index=True),
        sa.Column("review_note", sa.String),
        sa.Column("approved_by_email", sa.String),
        sa.Column("approved_at", _TIME),
        sa.Column("created_org_id", _INT64, sa.ForeignKey("organisations.id")),
        sa.Column("submitted_at", _TIME, nullable=False),
        sa.Column("updated_at", _TIME, nullable=False),
        sa.CheckConstraint("(created_org_id IS NOT NULL) = (status = 'approved')", name="created_org"),
        sa.CheckConstraint("status IN ('pending', 'approved', 'rejected')", name="status"),
    )
    op.create_table(
        "sessions",
        sa.Column("id", _INT64, primary_key=True),
        sa.Column("sid", sa.String, nullable=False, unique=True),
        sa.Column("user_id", _INT64, sa.ForeignKey("users.id"), nullable=False, index=True),
        sa.Column("device", sa.String),
        sa.Column("location", sa.String),
        sa.Column("used_generation", _INT64, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("last_used_at", _TIME, nullable=False),
        sa.Column("revoked_at", _TIME),
        sa.Column("revoked_reason", sa.String),
        sa.Column("stepped_up_at", _TIME),
        sa.Column("bound_to", _INT64, sa.ForeignKey("organisations.id"), index=True),
    )
    op.create_table(
        "otp_challenges",
        sa.Column("id", _INT64, primary_key=True),
        sa.Column("user_id", _INT64, sa.ForeignKey("users.id"), nullable=False),
        sa.Column("token_hash", sa.LargeBinary, nullable=False, unique=True),
        sa.Column("code_hash", sa.LargeBinary),
        sa.Column("tries", _INT64, nullable=False),
        sa.Column("device", sa.String),
        sa.Column("location", sa.String),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("expires_at", _TIME, nullable=False),
        sa.Column("closed_at", _TIME),
        sa.Column("session_id", _INT64, sa.ForeignKey("sessions.id")),
    )
    op.create_index("ix_otp_challenges_open", "otp_challenges", ["user_id"], **_where("closed_at IS NULL"))
    op.create_index(
        op.f("ix_otp_challenges_user_id_otp_challenges_created_at"),
        "otp_challenges",
        ["user_id", "created_at"],
    )
    op.create_table(
        "passkeys",
        sa.Column("id", _INT64, primary_key=True),
        sa.Column("user_id", _INT64, sa.ForeignKey("users.id"), nullable=False, index=True),
        sa.Column("credential_id", sa.LargeBinary, nullable=False, unique=True),
        sa.Column("credential", sa.LargeBinary, nullable=False),
        sa.Column("sign_count", _INT64, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("last_used_at", _TIME),
    )
    op.create_table(
        "password_resets",
        sa.Column("token_hash", sa.LargeBinary, primary_key=True),
        sa.Column("user_id", _INT64, sa.ForeignKey("users.id"), nullable=False, index=True),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("expires_at", _TIME, nullable=False),
        sa.Column("used_at", _TIME),
    )
    op.create_table(
        "purchases",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("user_id", _INT64, sa.ForeignKey("users.id"), index=True),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("base_currency_amount", sa.String, nullable=False),
        sa.Column("base_currency_code", sa.String, nullable=False),
        sa.Column("quote_currency_amount", sa.String, nullable=False),
        sa.Column("quote_currency_code", sa.String, nullable=False),
        sa.Column("fee_amount", sa.String, nullable=False),
        sa.Column("extra_fee_amount", sa.String, nullable=False),
        sa.Column("network_fee_amount", sa.String, nullable=False),
        sa.Column("are_fees_included", sa.Boolean, nullable=False),
        sa.Column("wallet_address", sa.String, nullable=False),
        sa.Column("crypto_transaction_id", sa.String, nullable=False),
        sa.Column("failure_reason", sa.String),
        sa.Column("external_transaction_id", sa.String, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("updated_at", _TIME, nullable=False),
    )
    op.create_table(
        "recovery_codes",
        sa.Column("code_hash", sa.LargeBinary, primary_key=True),
        sa.Column("user_id", _INT64, sa.ForeignKey("users.id"), nullable=False, index=True),
        sa.Column("used_at", _TIME),
    )
    op.create_table(
        "role_permissions",
        sa.Column("role_id", _INT64, sa.ForeignKey("roles.id"), primary_key=True),
        sa.Column("permission", sa.String, primary_key=True),
    )
    op.create_table(
        "vaults",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("workspace_id", _INT64, sa.ForeignKey("workspaces.id"), nullable=False),
        sa.Column("created_by", _INT64, sa.ForeignKey("users.id"), nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("network", sa.String, nullable=False),
        sa.Column("chain", sa.String, nullable=False),
        sa.Column("m", _INT64, nullable=False),
        sa.Column("n", _INT64, nullable=False),
        sa.Column("script_type", sa.String, nullable=False),
        sa.Column("descriptor", sa.String, nullable=False, unique=True),
        sa.Column("address", sa.String, nullable=False, unique=True),
        sa.Column("witness_script_hex", sa.String, nullable=False),
        sa.Column("limit_sats", _INT64, nullable=False),
        sa.Column("cycle_period", sa.String, nullable=False),
        sa.Column("cycle_day", _INT64, nullable=False),
        sa.Column("is_per_cycle", sa.Boolean, nullable=False),
        sa.Column("only_address_book", sa.Boolean, nullable=False),
        sa.Column("maker_may_approve", sa.Boolean, nullable=False),
        sa.Column("frozen_at", _TIME),
        sa.Column("frozen_by", _INT64, sa.ForeignKey("users.id")),
        sa.Column("freeze_reason", sa.String),
        sa.Column("unfreeze_asked_at", _TIME),
        sa.Column("unfreeze_asked_by", _INT64, sa.ForeignKey("users.id")),
        sa.Column("replaced_by_id", sa.String, sa.ForeignKey("vaults.id"), unique=True),
        sa.Column("next_receive_index", _INT64, nullable=False),
        sa.Column("next_change_index", _INT64, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("updated_at", _TIME, nullable=False),
        sa.CheckConstraint("cycle_period IN ('W', 'M')", name="cycle_period"),
        sa.CheckConstraint("limit_sats >= 0", name="limit"),
        sa.CheckConstraint("m >= 1 AND m <= n AND n <= 15", name="quorum"),
        sa.CheckConstraint("replaced_by_id <> id", name="replaced"),
        sa.UniqueConstraint("workspace_id", "name"),
    )
    op.create_table(
        "webhooks",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("workspace_id", _INT64, sa.ForeignKey("workspaces.id"), nullable=False),
        sa.Column("url", sa.String, nullable=False),
        sa.Column("kinds", sa.JSON, nullable=False),
        sa.Column("sealed_secret", sa.LargeBinary, nullable=False),
        sa.Column("sealed_old_secret", sa.LargeBinary),
        sa.Column("old_secret_until", _TIME),
        sa.Column("created_by", _INT64, sa.ForeignKey("users.id"), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("disabled_at", _TIME),
        sa.Column("disabled_reason", sa.String),
        sa.Column("failing_since", _TIME),
        sa.Column("quiet_until", _TIME),
        sa.UniqueConstraint("workspace_id", "url"),
    )
    op.create_table(
        "access_tokens",
        sa.Column("token_hash", sa.LargeBinary, primary_key=True),
        sa.Column("session_id", _INT64, sa.ForeignKey("sessions.id"), nullable=False, index=True),
        sa.Column("expires_at", _TIME, nullable=False),
    )
    op.create_table(
        "chain_coins",
        sa.Column("chain", sa.String, primary_key=True),
        sa.Column("txid", sa.String, primary_key=True),
        sa.Column("vout", _INT64, primary_key=True),
        sa.Column("vault_id", sa.String, sa.ForeignKey("vaults.id")),
        sa.Column("branch", _INT64, nullable=False),
        sa.Column("address_index", _INT64, nullable=False),
        sa.Column("amount_sats", _INT64, nullable=False),
        sa.Column("script_pubkey", sa.LargeBinary, nullable=False),
        sa.Column("is_coinbase", sa.Boolean, nullable=False),
        sa.Column("height", _INT64),
        sa.Column("block_hash", sa.String),
        sa.Column("spent_by", sa.String),
        sa.Column("spent_height", _INT64),
        sa.Column("first_seen_at", _TIME, nullable=False),
    )
    op.create_index(
        "ix_chain_coins_change", "chain_coins", ["vault_id", "address_index"], **_where("branch = 1")
    )
    op.create_index("ix_chain_coins_height", "chain_coins", ["chain", "height"])
    op.create_index(
        "ix_chain_coins_moving",
        "chain_coins",
        ["vault_id", "height", "spent_by", "amount_sats"],
        **_where("(spent_height IS NULL AND (height IS NULL OR spent_by IS NOT NULL))"),
    )
    op.create_index(
        "ix_chain_coins_profiles", "chain_coins", ["chain", "script_pubkey"], **_where("vault_id IS NULL")
    )
    op.create_index(
        "ix_chain_coins_rewards",
        "chain_coins",
        ["vault_id", "height"],
        **_where("is_coinbase = 1", "is_coinbase"),
    )
    op.create_index(
        "ix_chain_coins_spent", "chain_coins", ["chain", "spent_height"], **_where("spent_by IS NOT NULL")
    )
    op.create_index("ix_chain_coins_spender", "chain_coins", ["spent_by"])
    op.create_index(
        "ix_chain_coins_unspent",
        "chain_coins",
        ["vault_id", "amount_sats", "txid", "vout", "height"],
        **_where("spent_by IS NULL"),
    )
    op.create_table(
        "coin_locks",
        sa.Column("chain", sa.String, primary_key=True),
        sa.Column("txid", sa.String, primary_key=True),
        sa.Column("vout", _INT64, primary_key=True),
        sa.Column("family_id", sa.String, nullable=False, index=True),
        sa.Column("vault_id", sa.String, sa.ForeignKey("vaults.id")),
        sa.Column("held_sats", _INT64, nullable=False),
    )
    op.create_index("ix_coin_locks_held", "coin_locks", ["vault_id", "held_sats"], **_where("held_sats > 0"))
    op.create_table(
        "key_accounts",
        sa.Column("id", _INT64, primary_key=True),
        sa.Column("key_id", sa.String, sa.ForeignKey("keys.id"), nullable=False),
        sa.Column("account", _INT64, nullable=False),
        sa.Column("derivation_path", sa.String, nullable=False),
        sa.Column("xpub", sa.String, nullable=False, index=True),
        sa.Column("vault_id", sa.String, sa.ForeignKey("vaults.id")),
        sa.UniqueConstraint("key_id", "account"),
    )
    op.create_index(
        "uq_key_accounts_taken_xpub", "key_accounts", ["xpub"], unique=True, **_where("vault_id IS NOT NULL")
    )
    op.create_table(
        "profiles",
        sa.Column("key_id", sa.String, sa.ForeignKey("keys.id"), primary_key=True),
        sa.Column("xpub", sa.String, nullable=False),
        sa.Column("derivation_base_path", sa.String, nullable=False),
        sa.Column("receive_script", sa.LargeBinary, nullable=False, index=True),
        sa.Column("created_at", _TIME, nullable=False),
    )
    op.create_table(
        "proposals",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("family_id", sa.String, nullable=False, index=True),
        sa.Column("workspace_id", _INT64, sa.ForeignKey("workspaces.id"), nullable=False),
        sa.Column("vault_id", sa.String, sa.ForeignKey("vaults.id"), nullable=False),
        sa.Column("profile_key_id", sa.String, sa.ForeignKey("keys.id")),
        sa.Column("tx_type", sa.String, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("created_by", _INT64, sa.ForeignKey("users.id"), nullable=False),
        sa.Column("description", sa.String),
        sa.Column("psbt", sa.LargeBinary, nullable=False),
        sa.Column("txid_expected", sa.String, nullable=False),
        sa.Column("recipients", sa.JSON, nullable=False),
        sa.Column("amounts_sats", sa.JSON, nullable=False),
        sa.Column("fee_sats", _INT64, nullable=False),
        sa.Column("fee_rate_sat_per_kvb", _INT64, nullable=False),
        sa.Column("op_return_hex", sa.String),
        sa.Column("contract_ids", sa.JSON, nullable=False),
        sa.Column("m", _INT64, nullable=False),
        sa.Column("n", _INT64, nullable=False),
        sa.Column("movement_sats", _INT64, nullable=False),
        sa.Column("counts_for_role", sa.Boolean, nullable=False),
        sa.Column("sweeps", sa.Boolean, nullable=False),
        sa.Column("final_tx", sa.LargeBinary),
        sa.Column("txid", sa.String),
        sa.Column("block_hash", sa.String),
        sa.Column("block_height", _INT64, index=True),
        sa.Column("failure_code", sa.String),
        sa.Column("failure_reason", sa.String),
        sa.Column("trouble", sa.String),
        sa.Column("trouble_txid", sa.String),
        sa.Column("trouble_words", sa.String),
        sa.Column("trouble_since", _TIME),
        sa.Column("told_trouble", sa.String),
        sa.Column("replaces_id", sa.String, sa.ForeignKey("proposals.id")),
        sa.Column("replaced_by_id", sa.String, sa.ForeignKey("proposals.id")),
        sa.Column("keeps_coins", sa.Boolean, nullable=False),
        sa.Column("withdrawn_signatures", _INT64, nullable=False),
        sa.Column("expires_at", _TIME, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("updated_at", _TIME, nullable=False),
        sa.CheckConstraint("fee_sats >= 0", name="fee"),
        sa.CheckConstraint("movement_sats >= 0", name="movement"),
    )
    op.create_index("ix_proposals_by_age", "proposals", ["workspace_id", "created_at", "id"])
    op.create_index("ix_proposals_by_status", "proposals", ["workspace_id", "status", "created_at", "id"])
    op.create_index("ix_proposals_kept", "proposals", ["id"], **_where("keeps_coins = 1", "keeps_coins"))
    op.create_index("ix_proposals_open", "proposals", ["vault_id", "created_at", "id"], **_where(_OPEN))
    op.create_index("ix_proposals_troubled", "proposals", ["status"], **_where("trouble IS NOT NULL"))
    op.create_index(
        "ix_proposals_mined",
        "proposals",
        ["workspace_id", "block_height"],
        **_where("block_height IS NOT NULL"),
    )
    op.create_index(
        "ix_proposals_of_member", "proposals", ["workspace_id", "created_by", "created_at", "movement_sats"]
    )
    op.create_index("ix_proposals_of_vault", "proposals", ["vault_id", "created_at", "movement_sats"])
    op.create_index(
        "ix_proposals_proofs",
        "proposals",
        ["workspace_id", "created_at", "id"],
        **_where("tx_type = 'proof'"),
    )
    op.create_index(op.f("ix_proposals_status_proposals_expires_at"), "proposals", ["status", "expires_at"])
    op.create_index(op.f("ix_proposals_txid_expected"), "proposals", ["txid_expected"], unique=True)
    op.create_index(
        "ix_proposals_unusual", "proposals", ["vault_id", "created_at", "family_id"], **_where(_UNUSUAL)
    )
    op.create_table(
        "refresh_tokens",
        sa.Column("token_hash", sa.LargeBinary, primary_key=True),
        sa.Column("session_id", _INT64, sa.ForeignKey("sessions.id"), nullable=False, index=True),
        sa.Column("generation", _INT64, nullable=False),
        sa.Column("expires_at", _TIME, nullable=False),
        sa.Column("first_used_at", _TIME),
    )
    op.create_table(
        "watched_scripts",
        sa.Column("chain", sa.String, primary_key=True),
        sa.Column("script_pubkey", sa.LargeBinary, primary_key=True),
        sa.Column("vault_id", sa.String, sa.ForeignKey("vaults.id")),
        sa.Column("branch", _INT64, nullable=False),
        sa.Column("address_index", _INT64, nullable=False),
        sa.UniqueConstraint("vault_id", "branch", "address_index"),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("webhook_id", sa.String, sa.ForeignKey("webhooks.id"), nullable=False),
        sa.Column("event_id", sa.String, sa.ForeignKey("webhook_events.id"), nullable=False, index=True),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("attempts", _INT64, nullable=False),
        sa.Column("response_status", _INT64),
        sa.Column("error", sa.String),
        sa.Column("attempted_at", _TIME),
        sa.Column("queued_at", _TIME, nullable=False),
        sa.Column("next_attempt_at", _TIME),
        sa.Column("created_at", _TIME, nullable=False, index=True),
        sa.CheckConstraint("status IN ('pending', 'delivered', 'failed')", name="status"),
        sa.UniqueConstraint("webhook_id", "event_id"),
    )
    op.create_index(
        op.f("ix_webhook_deliveries_webhook_id_webhook_deliveries_created_at"),
        "webhook_deliveries",
        ["webhook_id", "created_at"],
    )
    op.create_table(
        "contracts",
        sa.Column("uid", _INT64, primary_key=True, autoincrement=True),
        sa.Column("workspace_id", _INT64, sa.ForeignKey("workspaces.id"), nullable=False, index=True),
        sa.Column("vault_id", sa.String, sa.ForeignKey("vaults.id"), nullable=False, index=True),
        sa.Column("chain", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("ticker", sa.String, nullable=False),
        sa.Column("icon", sa.String, nullable=False),
        sa.Column("decimals", _INT64, nullable=False),
        sa.Column("total_supply", _INT64, nullable=False),
        sa.Column("max_supply", _INT64, nullable=False),
        sa.Column("whitelist_enabled", sa.Boolean, nullable=False),
        sa.Column("bytecode", sa.LargeBinary, nullable=False),
        sa.Column("bytecode_hash", sa.LargeBinary, nullable=False, index=True),
        sa.Column("deploy_family_id", sa.String, sa.ForeignKey("proposals.id"), nullable=False, unique=True),
        sa.Column("created_by", _INT64, sa.ForeignKey("users.id"), nullable=False),
        sa.Column("told_status", sa.String, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.CheckConstraint("decimals >= 0 AND decimals <= 18", name="decimals"),
    )
    op.create_table(
        "decisions",
        sa.Column("proposal_id", sa.String, sa.ForeignKey("proposals.id"), primary_key=True),
        sa.Column("key_id", sa.String, sa.ForeignKey("keys.id"), primary_key=True),
        sa.Column("user_id", _INT64, sa.ForeignKey("users.id"), nullable=False, index=True),
        sa.Column("decision", sa.String, nullable=False),
        sa.Column("is_complete", sa.Boolean, nullable=False),
        sa.Column("reason", sa.String),
        sa.Column("decided_at", _TIME, nullable=False),
        sa.CheckConstraint("decision IN ('approve', 'reject')", name="decision"),
    )
    op.create_table(
        "proposal_inputs",
        sa.Column("proposal_id", sa.String, sa.ForeignKey("proposals.id"), primary_key=True),
        sa.Column("input_index", _INT64, primary_key=True),
        sa.Column("txid", sa.String, nullable=False),
        sa.Column("vout", _INT64, nullable=False),
        sa.Column("amount_sats", _INT64, nullable=False),
        sa.Column("branch", _INT64, nullable=False),
        sa.Column("address_index", _INT64, nullable=False),
    )
    op.create_index(op.f("ix_proposal_inputs_txid_proposal_inputs_vout"), "proposal_inputs", ["txid", "vout"])
    op.create_table(
        "vault_signers",
        sa.Column("vault_id", sa.String, sa.ForeignKey("vaults.id"), primary_key=True),
        sa.Column("key_index", _INT64, primary_key=True),
        sa.Column("user_id", _INT64, sa.ForeignKey("users.id"), nullable=False, index=True),
        sa.Column("key_id", sa.String, sa.ForeignKey("keys.id"), nullable=False, index=True),
        sa.Column("key_account_id", _INT64, sa.ForeignKey("key_accounts.id"), nullable=False, unique=True),
        sa.Column("fingerprint", sa.String, nullable=False),
        sa.UniqueConstraint("vault_id", "user_id"),
    )
    op.create_table(
        "contract_calls",
        sa.Column("uid", _INT64, primary_key=True, autoincrement=True),
        sa.Column("contract_uid", _INT64, sa.ForeignKey("contracts.uid"), nullable=False),
        sa.Column("workspace_id", _INT64, sa.ForeignKey("workspaces.id"), nullable=False),
        sa.Column("vault_id", sa.String, sa.ForeignKey("vaults.id"), nullable=False),
        sa.Column("function_name", sa.String, nullable=False),
        sa.Column("args", sa.JSON, nullable=False),
        sa.Column("amount", _INT64),
        sa.Column("address_script", sa.LargeBinary),
        sa.Column("family_id", sa.String, sa.ForeignKey("proposals.id"), nullable=False, unique=True),
        sa.Column("created_by", _INT64, sa.ForeignKey("users.id"), nullable=False),
        sa.Column("told_status", sa.String, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
    )
    op.create_index(
        op.f("ix_contract_calls_contract_uid_contract_calls_uid"), "contract_calls", ["contract_uid", "uid"]
    )
    op.create_index(
        op.f("ix_contract_calls_vault_id_contract_calls_uid"), "contract_calls", ["vault_id", "uid"]
    )
    op.create_table(
        "signatures",
        sa.Column("proposal_id", sa.String, primary_key=True),
        sa.Column("input_index", _INT64, primary_key=True),
        sa.Column("public_key", sa.LargeBinary, primary_key=True),
        sa.Column("key_id", sa.String, sa.ForeignKey("keys.id"), nullable=False),
        sa.Column("signature", sa.LargeBinary, nullable=False),
        sa.Column("received_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["proposal_id", "input_index"], ["proposal_inputs.proposal_id", "proposal_inputs.input_index"]
        ),
    )
    op.create_table(
        "pending_changes",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("organisation_id", _INT64, sa.ForeignKey("organisations.id"), nullable=False),
        sa.Column("workspace_id", _INT64, sa.ForeignKey("workspaces.id"), nullable=False),
        sa.Column("path", sa.String, nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("asked_by", _INT64, sa.ForeignKey("users.id"), nullable=False),
        sa.Column("asked_by_name", sa.String, nullable=False),
        sa.Column("asked_at", _TIME, nullable=False),
        sa.Column("not_before", _TIME, nullable=False),
        sa.Column("expires_at", _TIME, nullable=False),
        sa.Column("decided_by", _INT64, sa.ForeignKey("users.id")),
        sa.Column("decided_by_name", sa.String),
        sa.Column("decided_at", _TIME),
        sa.Column("reason", sa.String),
        sa.CheckConstraint("status IN ('PENDING', 'APPLIED', 'DECLINED', 'EXPIRED')", name="status"),
    )
    op.create_index("ix_pending_changes_by_age", "pending_changes", ["organisation_id", "status", "asked_at"])
    op.create_index(
        op.f("ix_pending_changes_status_pending_changes_expires_at"),
        "pending_changes",
        ["status", "expires_at"],
    )
    op.create_table(
        "second_person_rules",
        sa.Column("organisation_id", _INT64, sa.ForeignKey("organisations.id"), primary_key=True),
        sa.Column("confirming_role_id", _INT64, sa.ForeignKey("roles.id"), nullable=False),
        sa.Column("cooling_off_hours", _INT64, nullable=False),
        sa.Column("set_by", _INT64, sa.ForeignKey("users.id"), nullable=False),
        sa.Column("set_at", _TIME, nullable=False),
    )
    op.create_table(
        "identity_providers",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("organisation_id", _INT64, sa.ForeignKey("organisations.id"), nullable=False, unique=True),
        sa.Column("issuer", sa.String, nullable=False),
        sa.Column("client_id", sa.String, nullable=False),
        sa.Column("sealed_secret", sa.LargeBinary),
        sa.Column("is_required", sa.Boolean, nullable=False),
        sa.Column("set_by", _INT64, sa.ForeignKey("users.id"), nullable=False),
        sa.Column("set_at", _TIME, nullable=False),
    )
    op.create_table(
        "identity_links",
        sa.Column("id", _INT64, primary_key=True),
        sa.Column("provider_id", sa.String, sa.ForeignKey("identity_providers.id"), nullable=False),
        sa.Column("user_id", _INT64, sa.ForeignKey("users.id"), nullable=False, index=True),
        sa.Column("subject", sa.String, nullable=False),
        sa.Column("linked_at", _TIME, nullable=False),
        sa.Column("last_used_at", _TIME),
        sa.UniqueConstraint("provider_id", "subject"),
        sa.UniqueConstraint("provider_id", "user_id"),
    )
    op.create_table(
        "identity_flows",
        sa.Column("token_hash", sa.LargeBinary, primary_key=True),
        sa.Column("provider_id", sa.String, nullable=False, index=True),
        sa.Column("session_id", _INT64),
        sa.Column("target", sa.String, nullable=False),
        sa.Column("expires_at", _TIME, nullable=False, index=True),
    )
    op.create_table(
        "service_accounts",
        sa.Column("id", _INT64, primary_key=True),
        sa.Column("workspace_id", _INT64, sa.ForeignKey("workspaces.id"), nullable=False, index=True),
        sa.Column("made_by", _INT64, sa.ForeignKey("users.id"), nullable=False, index=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("rights", sa.JSON, nullable=False),
        sa.Column("networks", sa.JSON, nullable=False),
        sa.Column("secret_hash", sa.LargeBinary),
        sa.Column("former_hash", sa.LargeBinary),
        sa.Column("former_until", _TIME),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("expires_at", _TIME, nullable=False),
        sa.Column("revoked_at", _TIME),
        sa.Column("last_used_at", _TIME),
        sa.Column("last_used_from", sa.String),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "movements",
        sa.Column("vault_id", sa.String, sa.ForeignKey("vaults.id"), primary_key=True),
        sa.Column("txid", sa.String, primary_key=True),
        sa.Column("chain", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("psbt_id", sa.String, sa.ForeignKey("proposals.id")),
        sa.Column("received_sats", _INT64, nullable=False),
        sa.Column("sent_sats", _INT64, nullable=False),
        sa.Column("amount_sats", _INT64, nullable=False),
        sa.Column("height", _INT64),
        sa.Column("place", _INT64),
        sa.Column("block_hash", sa.String),
        sa.Column("mined_at", _TIME),
        sa.Column("balance_sats", _INT64),
        sa.Column("first_seen_at", _TIME, nullable=False),
    )
    op.create_index("ix_movements_blocks", "movements", ["chain", "height"])
    op.create_index("ix_movements_in_order", "movements", ["vault_id", "height", "place"])
    op.create_index("ix_movements_of_kind", "movements", ["vault_id", "kind", "height", "place"])
    op.create_index("ix_movements_of_transaction", "movements", ["txid", "chain"])
    op.create_index(
        "ix_movements_pending", "movements", ["vault_id", "first_seen_at", "txid"], **_where("height IS NULL")
    )

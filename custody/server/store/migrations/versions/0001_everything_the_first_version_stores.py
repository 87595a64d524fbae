"""everything the first version stores"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


_UNUSUAL = (
    "(replaces_id IS NOT NULL OR status IN ('CANCELLED', 'EXPIRED', 'FAILED', 'INVALIDATED', 'REJECTED'))"
)
_OPEN = "(status IN ('PENDING', 'SIGNED', 'STALLED', 'BROADCASTING') OR keeps_coins)"


def upgrade() -> None:
    op.create_table(
        "attempts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("subject_hash", sa.LargeBinary(), nullable=False),
        sa.Column("tried_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
    )
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_attempts_kind_attempts_subject_hash_attempts_tried_at"),
            ["kind", "subject_hash", "tried_at"],
            unique=False,
        )
        batch_op.create_index(batch_op.f("ix_attempts_tried_at"), ["tried_at"], unique=False)

    op.create_table(
        "audit_events",
        sa.Column("event_uid", sa.String(), nullable=False),
        sa.Column("chain_id", sa.String(), nullable=False),
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("org_uid", sa.String(), nullable=False),
        sa.Column("workspace_uid", sa.String(), nullable=False),
        sa.Column("timestamp", sa.DateTime(timezone=True), nullable=False),
        sa.Column("category", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("user_uuid", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("user_name", sa.String(), nullable=False),
        sa.Column("role_uid", sa.String(), nullable=False),
        sa.Column("trace_id", sa.String(), nullable=False),
        sa.Column("prev_hash", sa.LargeBinary(), nullable=False),
        sa.Column("event_hash", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("event_uid", name=op.f("pk_audit_events")),
        sa.UniqueConstraint("chain_id", "position", name=op.f("uq_audit_events_chain_id_position")),
    )
    with op.batch_alter_table("audit_events", schema=None) as batch_op:
        batch_op.create_index("ix_audit_events_by_day", ["chain_id", "timestamp", "position"], unique=False)
        batch_op.create_index(
            "ix_audit_events_by_category", ["chain_id", "category", "position", "timestamp"], unique=False
        )
        batch_op.create_index(
            "ix_audit_events_by_person",
            ["chain_id", "user_uuid", "position", "category", "timestamp"],
            unique=False,
        )

    op.create_table(
        "audit_heads",
        sa.Column("chain_id", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("head_hash", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("chain_id", name=op.f("pk_audit_heads")),
    )
    op.create_table(
        "chain_blocks",
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("height", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("block_hash", sa.String(), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("chain", "height", name=op.f("pk_chain_blocks")),
    )
    op.create_table(
        "chain_transactions",
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("txid", sa.String(), nullable=False),
        sa.Column("raw", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("chain", "txid", name=op.f("pk_chain_transactions")),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("run_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("attempts", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("failures", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("lease_owner", sa.String(), nullable=True),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_error", sa.String(), nullable=True),
        sa.Column("trace_id", sa.String(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("done_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("dead_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.create_index(
            "ix_jobs_due",
            ["kind", "run_at", "id"],
            unique=False,
            sqlite_where=sa.text("done_at IS NULL AND dead_at IS NULL"),
            postgresql_where=sa.text("done_at IS NULL AND dead_at IS NULL"),
        )
        batch_op.create_index(
            "uq_jobs_open",
            ["kind", "subject"],
            unique=True,
            sqlite_where=sa.text("done_at IS NULL AND dead_at IS NULL"),
            postgresql_where=sa.text("done_at IS NULL AND dead_at IS NULL"),
        )

    op.create_table(
        "leases",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )
    op.create_table(
        "organisations",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_organisations")),
    )
    op.create_table(
        "token_blocks",
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("height", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("block_hash", sa.String(), nullable=False),
        sa.Column("mined_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("chain", "height", name=op.f("pk_token_blocks")),
    )
    op.create_table(
        "token_cells",
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("contract_id", sa.String(), nullable=False),
        sa.Column("cell", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("holder", sa.LargeBinary(), nullable=False),
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("data", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("chain", "contract_id", "cell", "holder", name=op.f("pk_token_cells")),
    )
    with op.batch_alter_table("token_cells", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_token_cells_chain_token_cells_holder_token_cells_cell"),
            ["chain", "holder", "cell"],
            unique=False,
        )

    op.create_table(
        "token_effects",
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("height", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("sequence", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("txid", sa.String(), nullable=False),
        sa.Column("function", sa.String(), nullable=False),
        sa.Column("contract_id", sa.String(), nullable=False),
        sa.Column("cell", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("holder", sa.LargeBinary(), nullable=False),
        sa.Column("number_before", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("data_before", sa.LargeBinary(), nullable=True),
        sa.Column("number_after", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("data_after", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("chain", "height", "sequence", name=op.f("pk_token_effects")),
    )
    with op.batch_alter_table("token_effects", schema=None) as batch_op:
        batch_op.create_index(
            "ix_token_effects_of_holder", ["chain", "holder", "cell", "height", "sequence"], unique=False
        )
        batch_op.create_index(
            "ix_token_effects_of_token",
            ["chain", "holder", "cell", "contract_id", "height", "sequence"],
            unique=False,
        )
    op.create_table(
        "token_transactions",
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("height", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("txid", sa.String(), nullable=False),
        sa.Column("contract_id", sa.String(), nullable=True),
        sa.Column("failure", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("chain", "height", "position", name=op.f("pk_token_transactions")),
    )
    with op.batch_alter_table("token_transactions", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_token_transactions_chain_token_transactions_txid"), ["chain", "txid"], unique=False
        )

    op.create_table(
        "workspaces",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("organisation_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("network", sa.String(), nullable=False),
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "(network = 'mainnet') = (chain = 'mainnet')", name=op.f("ck_workspaces_chain_of_network")
        ),
        sa.CheckConstraint(
            "chain IN ('mainnet', 'testnet4', 'signet', 'regtest')", name=op.f("ck_workspaces_chain")
        ),
        sa.CheckConstraint("network IN ('mainnet', 'testnet')", name=op.f("ck_workspaces_network")),
        sa.ForeignKeyConstraint(
            ["organisation_id"],
            ["organisations.id"],
            name=op.f("fk_workspaces_organisation_id_organisations"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspaces")),
        sa.UniqueConstraint("organisation_id", "name", name=op.f("uq_workspaces_organisation_id_name")),
    )
    with op.batch_alter_table("workspaces", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_workspaces_organisation_id"), ["organisation_id"], unique=False)

    op.create_table(
        "revisions",
        sa.Column("workspace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_revisions_workspace_id_workspaces")
        ),
        sa.PrimaryKeyConstraint("workspace_id", name=op.f("pk_revisions")),
    )
    op.create_table(
        "roles",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("workspace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("limit_sats", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("cycle_period", sa.String(), nullable=False),
        sa.Column("cycle_day", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("cycle_period IN ('W', 'M')", name=op.f("ck_roles_cycle_period")),
        sa.CheckConstraint("limit_sats >= 0", name=op.f("ck_roles_limit")),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_roles_workspace_id_workspaces")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_roles")),
        sa.UniqueConstraint("id", "workspace_id", name=op.f("uq_roles_id_workspace_id")),
        sa.UniqueConstraint("workspace_id", "name", name=op.f("uq_roles_workspace_id_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "users",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("email", sa.String(), nullable=False),
        sa.Column("first_name", sa.String(), nullable=True),
        sa.Column("surname", sa.String(), nullable=True),
        sa.Column("phone_number", sa.String(), nullable=True),
        sa.Column("is_operator", sa.Boolean(), nullable=False),
        sa.Column("mails_waiting", sa.Boolean(), nullable=False),
        sa.Column("mails_amounts", sa.Boolean(), nullable=False),
        sa.Column("waiting_mailed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("default_org_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column(
            "default_workspace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_login_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["default_org_id"], ["organisations.id"], name=op.f("fk_users_default_org_id_organisations")
        ),
        sa.ForeignKeyConstraint(
            ["default_workspace_id"], ["workspaces.id"], name=op.f("fk_users_default_workspace_id_workspaces")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("email", name=op.f("uq_users_email")),
    )
    op.create_table(
        "webhook_events",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("workspace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("sequence", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_webhook_events_workspace_id_workspaces")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_events")),
        sa.UniqueConstraint("workspace_id", "sequence", name=op.f("uq_webhook_events_workspace_id_sequence")),
    )
    with op.batch_alter_table("webhook_events", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_webhook_events_created_at"), ["created_at"], unique=False)

    op.create_table(
        "address_book",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("workspace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("name_key", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("created_by", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["created_by"], ["users.id"], name=op.f("fk_address_book_created_by_users")),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_address_book_workspace_id_workspaces")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_address_book")),
        sa.UniqueConstraint("workspace_id", "address", name=op.f("uq_address_book_workspace_id_address")),
        sa.UniqueConstraint("workspace_id", "name_key", name=op.f("uq_address_book_workspace_id_name_key")),
    )
    op.create_table(
        "credentials",
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("password_hash", sa.String(), nullable=False),
        sa.Column("second_factor", sa.String(), nullable=False),
        sa.Column("totp_secret", sa.LargeBinary(), nullable=True),
        sa.Column("totp_pending", sa.LargeBinary(), nullable=True),
        sa.Column("totp_last_step", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "second_factor <> 'totp' OR totp_secret IS NOT NULL", name=op.f("ck_credentials_totp")
        ),
        sa.CheckConstraint(
            "second_factor IN ('none', 'email', 'totp')", name=op.f("ck_credentials_second_factor")
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_credentials_user_id_users")),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_credentials")),
    )
    op.create_table(
        "idempotency_records",
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("method", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("body_hash", sa.LargeBinary(), nullable=False),
        sa.Column("response", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_idempotency_records_user_id_users")),
        sa.PrimaryKeyConstraint("user_id", "method", "path", "key", name=op.f("pk_idempotency_records")),
    )
    with op.batch_alter_table("idempotency_records", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_idempotency_records_created_at"), ["created_at"], unique=False)

    op.create_table(
        "invitations",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("organisation_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("workspace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("role_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("invited_email", sa.String(), nullable=False),
        sa.Column("invited_by", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status IN ('pending', 'accepted', 'declined', 'expired', 'revoked')",
            name=op.f("ck_invitations_status"),
        ),
        sa.ForeignKeyConstraint(["invited_by"], ["users.id"], name=op.f("fk_invitations_invited_by_users")),
        sa.ForeignKeyConstraint(
            ["organisation_id"],
            ["organisations.id"],
            name=op.f("fk_invitations_organisation_id_organisations"),
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_invitations_workspace_id_workspaces")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitations")),
    )
    with op.batch_alter_table("invitations", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_invitations_invited_email"), ["invited_email"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_invitations_organisation_id_invitations_created_at"),
            ["organisation_id", "created_at"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_invitations_status_invitations_expires_at"), ["status", "expires_at"], unique=False
        )
        batch_op.create_index(
            "uq_invitations_pending",
            ["workspace_id", "invited_email"],
            unique=True,
            sqlite_where=sa.text("status = 'pending'"),
            postgresql_where=sa.text("status = 'pending'"),
        )

    op.create_table(
        "key_challenges",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("network", sa.String(), nullable=False),
        sa.Column("challenge", sa.String(), nullable=False),
        sa.Column("offered_digest", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_key_challenges_user_id_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_key_challenges")),
        sa.UniqueConstraint("challenge", name=op.f("uq_key_challenges_challenge")),
    )
    with op.batch_alter_table("key_challenges", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_key_challenges_user_id"), ["user_id"], unique=False)

    op.create_table(
        "keys",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("network", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("revoked_reason", sa.String(), nullable=True),
        sa.Column("key_type", sa.String(), nullable=False),
        sa.Column("xpub", sa.String(), nullable=False),
        sa.Column("pub_key_hex", sa.String(), nullable=False),
        sa.Column("master_fingerprint", sa.String(), nullable=False),
        sa.Column("derivation_base_path", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=True),
        sa.Column("maker", sa.String(), nullable=True),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("firmware", sa.String(), nullable=True),
        sa.Column("made_on", sa.String(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "(status = 'revoked') = (revoked_reason IS NOT NULL)", name=op.f("ck_keys_reason")
        ),
        sa.CheckConstraint("status IN ('active', 'revoked')", name=op.f("ck_keys_status")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_keys_user_id_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_keys")),
    )
    with op.batch_alter_table("keys", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_keys_user_id"), ["user_id"], unique=False)
        batch_op.create_index(
            "uq_keys_active_user",
            ["user_id", "network"],
            unique=True,
            sqlite_where=sa.text("status = 'active'"),
            postgresql_where=sa.text("status = 'active'"),
        )
        batch_op.create_index(
            "uq_keys_active_xpub",
            ["xpub"],
            unique=True,
            sqlite_where=sa.text("status = 'active'"),
            postgresql_where=sa.text("status = 'active'"),
        )

    op.create_table(
        "memberships",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("workspace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("role_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["role_id", "workspace_id"],
            ["roles.id", "roles.workspace_id"],
            name=op.f("fk_memberships_role_id_workspace_id_roles"),
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_memberships_user_id_users")),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_memberships_workspace_id_workspaces")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_memberships")),
        sa.UniqueConstraint("workspace_id", "user_id", name=op.f("uq_memberships_workspace_id_user_id")),
    )
    with op.batch_alter_table("memberships", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_memberships_user_id"), ["user_id"], unique=False)

    op.create_table(
        "onboarding_requests",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("requester_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("first_name", sa.String(), nullable=False),
        sa.Column("last_name", sa.String(), nullable=False),
        sa.Column("work_email", sa.String(), nullable=False),
        sa.Column("messaging_platform", sa.String(), nullable=False),
        sa.Column("messaging_handle", sa.String(), nullable=False),
        sa.Column("monthly_volume", sa.String(), nullable=False),
        sa.Column("referral_source", sa.String(), nullable=False),
        sa.Column("referral_source_detail", sa.String(), nullable=True),
        sa.Column("org_name", sa.String(), nullable=False),
        sa.Column("workspace_name", sa.String(), nullable=False),
        sa.Column("network", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("review_note", sa.String(), nullable=True),
        sa.Column("approved_by_email", sa.String(), nullable=True),
        sa.Column("approved_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_org_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("submitted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "(created_org_id IS NOT NULL) = (status = 'approved')",
            name=op.f("ck_onboarding_requests_created_org"),
        ),
        sa.CheckConstraint(
            "status IN ('pending', 'approved', 'rejected')", name=op.f("ck_onboarding_requests_status")
        ),
        sa.ForeignKeyConstraint(
            ["created_org_id"],
            ["organisations.id"],
            name=op.f("fk_onboarding_requests_created_org_id_organisations"),
        ),
        sa.ForeignKeyConstraint(
            ["requester_id"], ["users.id"], name=op.f("fk_onboarding_requests_requester_id_users")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_onboarding_requests")),
    )
    with op.batch_alter_table("onboarding_requests", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_onboarding_requests_requester_id"), ["requester_id"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_onboarding_requests_status"), ["status"], unique=False)

    op.create_table(
        "sessions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("sid", sa.String(), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("device", sa.String(), nullable=True),
        sa.Column("location", sa.String(), nullable=True),
        sa.Column("used_generation", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_reason", sa.String(), nullable=True),
        sa.Column("stepped_up_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("bound_to", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.ForeignKeyConstraint(
            ["bound_to"], ["organisations.id"], name=op.f("fk_sessions_bound_to_organisations")
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_sessions_user_id_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("sid", name=op.f("uq_sessions_sid")),
    )
    with op.batch_alter_table("sessions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_sessions_bound_to"), ["bound_to"], unique=False)
        batch_op.create_index(batch_op.f("ix_sessions_user_id"), ["user_id"], unique=False)

    op.create_table(
        "otp_challenges",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("code_hash", sa.LargeBinary(), nullable=True),
        sa.Column("tries", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("device", sa.String(), nullable=True),
        sa.Column("location", sa.String(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("session_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name=op.f("fk_otp_challenges_session_id_sessions")
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_otp_challenges_user_id_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_otp_challenges")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_otp_challenges_token_hash")),
    )
    with op.batch_alter_table("otp_challenges", schema=None) as batch_op:
        batch_op.create_index(
            "ix_otp_challenges_open",
            ["user_id"],
            unique=False,
            sqlite_where=sa.text("closed_at IS NULL"),
            postgresql_where=sa.text("closed_at IS NULL"),
        )
        batch_op.create_index(
            batch_op.f("ix_otp_challenges_user_id_otp_challenges_created_at"),
            ["user_id", "created_at"],
            unique=False,
        )

    op.create_table(
        "passkeys",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("credential_id", sa.LargeBinary(), nullable=False),
        sa.Column("credential", sa.LargeBinary(), nullable=False),
        sa.Column("sign_count", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_passkeys_user_id_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_passkeys")),
        sa.UniqueConstraint("credential_id", name=op.f("uq_passkeys_credential_id")),
    )
    with op.batch_alter_table("passkeys", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_passkeys_user_id"), ["user_id"], unique=False)

    op.create_table(
        "password_resets",
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_password_resets_user_id_users")),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_password_resets")),
    )
    with op.batch_alter_table("password_resets", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_password_resets_user_id"), ["user_id"], unique=False)

    op.create_table(
        "purchases",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("base_currency_amount", sa.String(), nullable=False),
        sa.Column("base_currency_code", sa.String(), nullable=False),
        sa.Column("quote_currency_amount", sa.String(), nullable=False),
        sa.Column("quote_currency_code", sa.String(), nullable=False),
        sa.Column("fee_amount", sa.String(), nullable=False),
        sa.Column("extra_fee_amount", sa.String(), nullable=False),
        sa.Column("network_fee_amount", sa.String(), nullable=False),
        sa.Column("are_fees_included", sa.Boolean(), nullable=False),
        sa.Column("wallet_address", sa.String(), nullable=False),
        sa.Column("crypto_transaction_id", sa.String(), nullable=False),
        sa.Column("failure_reason", sa.String(), nullable=True),
        sa.Column("external_transaction_id", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_purchases_user_id_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_purchases")),
    )
    with op.batch_alter_table("purchases", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_purchases_user_id"), ["user_id"], unique=False)

    op.create_table(
        "recovery_codes",
        sa.Column("code_hash", sa.LargeBinary(), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_recovery_codes_user_id_users")),
        sa.PrimaryKeyConstraint("code_hash", name=op.f("pk_recovery_codes")),
    )
    with op.batch_alter_table("recovery_codes", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_recovery_codes_user_id"), ["user_id"], unique=False)

    op.create_table(
        "registrations",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("email", sa.String(), nullable=False),
        sa.Column("password_hash", sa.String(), nullable=False),
        sa.Column("first_name", sa.String(), nullable=True),
        sa.Column("surname", sa.String(), nullable=True),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("code_hash", sa.LargeBinary(), nullable=False),
        sa.Column("tries", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("device", sa.String(), nullable=True),
        sa.Column("location", sa.String(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_registrations")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_registrations_token_hash")),
    )
    with op.batch_alter_table("registrations", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_registrations_created_at"), ["created_at"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_registrations_email_registrations_created_at"),
            ["email", "created_at"],
            unique=False,
        )

    op.create_table(
        "role_permissions",
        sa.Column("role_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("permission", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["role_id"], ["roles.id"], name=op.f("fk_role_permissions_role_id_roles")),
        sa.PrimaryKeyConstraint("role_id", "permission", name=op.f("pk_role_permissions")),
    )
    op.create_table(
        "vaults",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("workspace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_by", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("network", sa.String(), nullable=False),
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("m", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("n", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("script_type", sa.String(), nullable=False),
        sa.Column("descriptor", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("witness_script_hex", sa.String(), nullable=False),
        sa.Column("limit_sats", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("cycle_period", sa.String(), nullable=False),
        sa.Column("cycle_day", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("is_per_cycle", sa.Boolean(), nullable=False),
        sa.Column("only_address_book", sa.Boolean(), nullable=False),
        sa.Column("maker_may_approve", sa.Boolean(), nullable=False),
        sa.Column("frozen_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("frozen_by", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("freeze_reason", sa.String(), nullable=True),
        sa.Column("unfreeze_asked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("unfreeze_asked_by", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("next_receive_index", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("next_change_index", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("cycle_period IN ('W', 'M')", name=op.f("ck_vaults_cycle_period")),
        sa.CheckConstraint("limit_sats >= 0", name=op.f("ck_vaults_limit")),
        sa.CheckConstraint("m >= 1 AND m <= n AND n <= 15", name=op.f("ck_vaults_quorum")),
        sa.ForeignKeyConstraint(["created_by"], ["users.id"], name=op.f("fk_vaults_created_by_users")),
        sa.ForeignKeyConstraint(["frozen_by"], ["users.id"], name=op.f("fk_vaults_frozen_by_users")),
        sa.ForeignKeyConstraint(
            ["unfreeze_asked_by"], ["users.id"], name=op.f("fk_vaults_unfreeze_asked_by_users")
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_vaults_workspace_id_workspaces")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vaults")),
        sa.UniqueConstraint("address", name=op.f("uq_vaults_address")),
        sa.UniqueConstraint("descriptor", name=op.f("uq_vaults_descriptor")),
        sa.UniqueConstraint("workspace_id", "name", name=op.f("uq_vaults_workspace_id_name")),
    )
    op.create_table(
        "webhooks",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("workspace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("kinds", sa.JSON(), nullable=False),
        sa.Column("sealed_secret", sa.LargeBinary(), nullable=False),
        sa.Column("sealed_old_secret", sa.LargeBinary(), nullable=True),
        sa.Column("old_secret_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_by", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("disabled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("disabled_reason", sa.String(), nullable=True),
        sa.Column("failing_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("quiet_until", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["created_by"], ["users.id"], name=op.f("fk_webhooks_created_by_users")),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_webhooks_workspace_id_workspaces")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
        sa.UniqueConstraint("workspace_id", "url", name=op.f("uq_webhooks_workspace_id_url")),
    )
    op.create_table(
        "access_tokens",
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("session_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name=op.f("fk_access_tokens_session_id_sessions")
        ),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_access_tokens")),
    )
    with op.batch_alter_table("access_tokens", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_access_tokens_session_id"), ["session_id"], unique=False)

    op.create_table(
        "chain_coins",
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("txid", sa.String(), nullable=False),
        sa.Column("vout", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("vault_id", sa.String(), nullable=True),
        sa.Column("branch", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("address_index", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("amount_sats", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("script_pubkey", sa.LargeBinary(), nullable=False),
        sa.Column("is_coinbase", sa.Boolean(), nullable=False),
        sa.Column("height", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("block_hash", sa.String(), nullable=True),
        sa.Column("spent_by", sa.String(), nullable=True),
        sa.Column("spent_height", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("first_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["vault_id"], ["vaults.id"], name=op.f("fk_chain_coins_vault_id_vaults")),
        sa.PrimaryKeyConstraint("chain", "txid", "vout", name=op.f("pk_chain_coins")),
    )
    with op.batch_alter_table("chain_coins", schema=None) as batch_op:
        batch_op.create_index(
            "ix_chain_coins_change",
            ["vault_id", "address_index"],
            unique=False,
            sqlite_where=sa.text("branch = 1"),
            postgresql_where=sa.text("branch = 1"),
        )
        batch_op.create_index("ix_chain_coins_height", ["chain", "height"], unique=False)
        batch_op.create_index(
            "ix_chain_coins_moving",
            ["vault_id", "height", "spent_by", "amount_sats"],
            unique=False,
            sqlite_where=sa.text("(spent_height IS NULL AND (height IS NULL OR spent_by IS NOT NULL))"),
            postgresql_where=sa.text("(spent_height IS NULL AND (height IS NULL OR spent_by IS NOT NULL))"),
        )
        batch_op.create_index(
            "ix_chain_coins_profiles",
            ["chain", "script_pubkey"],
            unique=False,
            sqlite_where=sa.text("vault_id IS NULL"),
            postgresql_where=sa.text("vault_id IS NULL"),
        )
        batch_op.create_index(
            "ix_chain_coins_rewards",
            ["vault_id", "height"],
            unique=False,
            sqlite_where=sa.text("is_coinbase = 1"),
            postgresql_where=sa.text("is_coinbase"),
        )
        batch_op.create_index(
            "ix_chain_coins_spent",
            ["chain", "spent_height"],
            unique=False,
            sqlite_where=sa.text("spent_by IS NOT NULL"),
            postgresql_where=sa.text("spent_by IS NOT NULL"),
        )
        batch_op.create_index("ix_chain_coins_spender", ["spent_by"], unique=False)
        batch_op.create_index(
            "ix_chain_coins_unspent",
            ["vault_id", "amount_sats", "txid", "vout", "height"],
            unique=False,
            sqlite_where=sa.text("spent_by IS NULL"),
            postgresql_where=sa.text("spent_by IS NULL"),
        )

    op.create_table(
        "coin_locks",
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("txid", sa.String(), nullable=False),
        sa.Column("vout", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("family_id", sa.String(), nullable=False),
        sa.Column("vault_id", sa.String(), nullable=True),
        sa.Column("held_sats", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(["vault_id"], ["vaults.id"], name=op.f("fk_coin_locks_vault_id_vaults")),
        sa.PrimaryKeyConstraint("chain", "txid", "vout", name=op.f("pk_coin_locks")),
    )
    with op.batch_alter_table("coin_locks", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_coin_locks_family_id"), ["family_id"], unique=False)
        batch_op.create_index(
            "ix_coin_locks_held",
            ["vault_id", "held_sats"],
            unique=False,
            sqlite_where=sa.text("held_sats > 0"),
            postgresql_where=sa.text("held_sats > 0"),
        )

    op.create_table(
        "key_accounts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("account", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("derivation_path", sa.String(), nullable=False),
        sa.Column("xpub", sa.String(), nullable=False),
        sa.Column("vault_id", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["key_id"], ["keys.id"], name=op.f("fk_key_accounts_key_id_keys")),
        sa.ForeignKeyConstraint(["vault_id"], ["vaults.id"], name=op.f("fk_key_accounts_vault_id_vaults")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_key_accounts")),
        sa.UniqueConstraint("key_id", "account", name=op.f("uq_key_accounts_key_id_account")),
    )
    with op.batch_alter_table("key_accounts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_key_accounts_xpub"), ["xpub"], unique=False)
        batch_op.create_index(
            "uq_key_accounts_taken_xpub",
            ["xpub"],
            unique=True,
            sqlite_where=sa.text("vault_id IS NOT NULL"),
            postgresql_where=sa.text("vault_id IS NOT NULL"),
        )

    op.create_table(
        "profiles",
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("xpub", sa.String(), nullable=False),
        sa.Column("derivation_base_path", sa.String(), nullable=False),
        sa.Column("receive_script", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["key_id"], ["keys.id"], name=op.f("fk_profiles_key_id_keys")),
        sa.PrimaryKeyConstraint("key_id", name=op.f("pk_profiles")),
    )
    with op.batch_alter_table("profiles", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_profiles_receive_script"), ["receive_script"], unique=False)

    op.create_table(
        "evacuations",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("workspace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("started_by", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("started_by_name", sa.String(), nullable=False),
        sa.Column("plan_hash", sa.String(), nullable=False),
        sa.Column("priority", sa.String(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["started_by"], ["users.id"], name=op.f("fk_evacuations_started_by_users")),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_evacuations_workspace_id_workspaces")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evacuations")),
    )
    with op.batch_alter_table("evacuations", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_evacuations_workspace_id"), ["workspace_id"], unique=False)

    op.create_table(
        "evacuated_vaults",
        sa.Column("evacuation_id", sa.String(), nullable=False),
        sa.Column("vault_id", sa.String(), nullable=False),
        sa.Column("place", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("signers", sa.JSON(), nullable=False),
        sa.Column("key_ids", sa.JSON(), nullable=False),
        sa.Column("asked_by", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("replacement_id", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("replaced_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("proposed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('PLANNED', 'REPLACED', 'PROPOSED', 'LEFT')", name=op.f("ck_evacuated_vaults_state")
        ),
        sa.ForeignKeyConstraint(["asked_by"], ["users.id"], name=op.f("fk_evacuated_vaults_asked_by_users")),
        sa.ForeignKeyConstraint(
            ["evacuation_id"], ["evacuations.id"], name=op.f("fk_evacuated_vaults_evacuation_id_evacuations")
        ),
        sa.ForeignKeyConstraint(
            ["replacement_id"], ["vaults.id"], name=op.f("fk_evacuated_vaults_replacement_id_vaults")
        ),
        sa.ForeignKeyConstraint(
            ["vault_id"], ["vaults.id"], name=op.f("fk_evacuated_vaults_vault_id_vaults")
        ),
        sa.PrimaryKeyConstraint("evacuation_id", "vault_id", name=op.f("pk_evacuated_vaults")),
    )
    with op.batch_alter_table("evacuated_vaults", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_evacuated_vaults_vault_id"), ["vault_id"], unique=False)

    op.create_table(
        "proposals",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("family_id", sa.String(), nullable=False),
        sa.Column("workspace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("vault_id", sa.String(), nullable=False),
        sa.Column("profile_key_id", sa.String(), nullable=True),
        sa.Column("tx_type", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("created_by", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("psbt", sa.LargeBinary(), nullable=False),
        sa.Column("txid_expected", sa.String(), nullable=False),
        sa.Column("recipients", sa.JSON(), nullable=False),
        sa.Column("amounts_sats", sa.JSON(), nullable=False),
        sa.Column("fee_sats", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column(
            "fee_rate_sat_per_kvb", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("op_return_hex", sa.String(), nullable=True),
        sa.Column("contract_ids", sa.JSON(), nullable=False),
        sa.Column("m", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("n", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("movement_sats", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("counts_for_role", sa.Boolean(), nullable=False),
        sa.Column("final_tx", sa.LargeBinary(), nullable=True),
        sa.Column("txid", sa.String(), nullable=True),
        sa.Column("block_hash", sa.String(), nullable=True),
        sa.Column("block_height", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("failure_code", sa.String(), nullable=True),
        sa.Column("failure_reason", sa.String(), nullable=True),
        sa.Column("trouble", sa.String(), nullable=True),
        sa.Column("trouble_txid", sa.String(), nullable=True),
        sa.Column("trouble_words", sa.String(), nullable=True),
        sa.Column("trouble_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("told_trouble", sa.String(), nullable=True),
        sa.Column("replaces_id", sa.String(), nullable=True),
        sa.Column("replaced_by_id", sa.String(), nullable=True),
        sa.Column("evacuation_id", sa.String(), nullable=True),
        sa.Column("keeps_coins", sa.Boolean(), nullable=False),
        sa.Column(
            "withdrawn_signatures", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("fee_sats >= 0", name=op.f("ck_proposals_fee")),
        sa.CheckConstraint("movement_sats >= 0", name=op.f("ck_proposals_movement")),
        sa.ForeignKeyConstraint(["created_by"], ["users.id"], name=op.f("fk_proposals_created_by_users")),
        sa.ForeignKeyConstraint(
            ["evacuation_id"], ["evacuations.id"], name=op.f("fk_proposals_evacuation_id_evacuations")
        ),
        sa.ForeignKeyConstraint(
            ["profile_key_id"], ["keys.id"], name=op.f("fk_proposals_profile_key_id_keys")
        ),
        sa.ForeignKeyConstraint(
            ["replaced_by_id"], ["proposals.id"], name=op.f("fk_proposals_replaced_by_id_proposals")
        ),
        sa.ForeignKeyConstraint(
            ["replaces_id"], ["proposals.id"], name=op.f("fk_proposals_replaces_id_proposals")
        ),
        sa.ForeignKeyConstraint(["vault_id"], ["vaults.id"], name=op.f("fk_proposals_vault_id_vaults")),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_proposals_workspace_id_workspaces")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_proposals")),
    )
    with op.batch_alter_table("proposals", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_proposals_block_height"), ["block_height"], unique=False)
        batch_op.create_index("ix_proposals_by_age", ["workspace_id", "created_at", "id"], unique=False)
        batch_op.create_index(
            "ix_proposals_by_status", ["workspace_id", "status", "created_at", "id"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_proposals_family_id"), ["family_id"], unique=False)
        batch_op.create_index(
            "ix_proposals_kept",
            ["id"],
            unique=False,
            sqlite_where=sa.text("keeps_coins = 1"),
            postgresql_where=sa.text("keeps_coins"),
        )
        batch_op.create_index(
            "ix_proposals_open",
            ["vault_id", "created_at", "id"],
            unique=False,
            sqlite_where=sa.text(_OPEN),
            postgresql_where=sa.text(_OPEN),
        )
        batch_op.create_index(
            "ix_proposals_troubled",
            ["status"],
            unique=False,
            sqlite_where=sa.text("trouble IS NOT NULL"),
            postgresql_where=sa.text("trouble IS NOT NULL"),
        )
        batch_op.create_index(
            "ix_proposals_mined",
            ["workspace_id", "block_height"],
            unique=False,
            sqlite_where=sa.text("block_height IS NOT NULL"),
            postgresql_where=sa.text("block_height IS NOT NULL"),
        )
        batch_op.create_index(
            "ix_proposals_of_member",
            ["workspace_id", "created_by", "created_at", "movement_sats"],
            unique=False,
        )
        batch_op.create_index(
            "ix_proposals_of_vault", ["vault_id", "created_at", "movement_sats"], unique=False
        )
        batch_op.create_index(
            "ix_proposals_proofs",
            ["workspace_id", "created_at", "id"],
            unique=False,
            sqlite_where=sa.text("tx_type = 'proof'"),
            postgresql_where=sa.text("tx_type = 'proof'"),
        )
        batch_op.create_index(
            batch_op.f("ix_proposals_status_proposals_expires_at"), ["status", "expires_at"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_proposals_txid_expected"), ["txid_expected"], unique=True)
        batch_op.create_index(
            "ix_proposals_unusual",
            ["vault_id", "created_at", "family_id"],
            unique=False,
            sqlite_where=sa.text(_UNUSUAL),
            postgresql_where=sa.text(_UNUSUAL),
        )

    op.create_table(
        "refresh_tokens",
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("session_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("generation", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("first_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name=op.f("fk_refresh_tokens_session_id_sessions")
        ),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_refresh_tokens")),
    )
    with op.batch_alter_table("refresh_tokens", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_refresh_tokens_session_id"), ["session_id"], unique=False)

    op.create_table(
        "watched_scripts",
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("script_pubkey", sa.LargeBinary(), nullable=False),
        sa.Column("vault_id", sa.String(), nullable=True),
        sa.Column("branch", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("address_index", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(["vault_id"], ["vaults.id"], name=op.f("fk_watched_scripts_vault_id_vaults")),
        sa.PrimaryKeyConstraint("chain", "script_pubkey", name=op.f("pk_watched_scripts")),
        sa.UniqueConstraint(
            "vault_id",
            "branch",
            "address_index",
            name=op.f("uq_watched_scripts_vault_id_branch_address_index"),
        ),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("webhook_id", sa.String(), nullable=False),
        sa.Column("event_id", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("attempts", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("response_status", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("attempted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("queued_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("next_attempt_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "status IN ('pending', 'delivered', 'failed')", name=op.f("ck_webhook_deliveries_status")
        ),
        sa.ForeignKeyConstraint(
            ["event_id"], ["webhook_events.id"], name=op.f("fk_webhook_deliveries_event_id_webhook_events")
        ),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhooks.id"], name=op.f("fk_webhook_deliveries_webhook_id_webhooks")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_deliveries")),
        sa.UniqueConstraint("webhook_id", "event_id", name=op.f("uq_webhook_deliveries_webhook_id_event_id")),
    )
    with op.batch_alter_table("webhook_deliveries", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_webhook_deliveries_created_at"), ["created_at"], unique=False)
        batch_op.create_index(batch_op.f("ix_webhook_deliveries_event_id"), ["event_id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_webhook_deliveries_webhook_id_webhook_deliveries_created_at"),
            ["webhook_id", "created_at"],
            unique=False,
        )

    op.create_table(
        "contracts",
        sa.Column(
            "uid", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("workspace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("vault_id", sa.String(), nullable=False),
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("ticker", sa.String(), nullable=False),
        sa.Column("icon", sa.String(), nullable=False),
        sa.Column("decimals", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("total_supply", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("max_supply", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("whitelist_enabled", sa.Boolean(), nullable=False),
        sa.Column("bytecode", sa.LargeBinary(), nullable=False),
        sa.Column("bytecode_hash", sa.LargeBinary(), nullable=False),
        sa.Column("deploy_family_id", sa.String(), nullable=False),
        sa.Column("created_by", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("told_status", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("decimals >= 0 AND decimals <= 18", name=op.f("ck_contracts_decimals")),
        sa.ForeignKeyConstraint(["created_by"], ["users.id"], name=op.f("fk_contracts_created_by_users")),
        sa.ForeignKeyConstraint(
            ["deploy_family_id"], ["proposals.id"], name=op.f("fk_contracts_deploy_family_id_proposals")
        ),
        sa.ForeignKeyConstraint(["vault_id"], ["vaults.id"], name=op.f("fk_contracts_vault_id_vaults")),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_contracts_workspace_id_workspaces")
        ),
        sa.PrimaryKeyConstraint("uid", name=op.f("pk_contracts")),
        sa.UniqueConstraint("deploy_family_id", name=op.f("uq_contracts_deploy_family_id")),
    )
    with op.batch_alter_table("contracts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_contracts_bytecode_hash"), ["bytecode_hash"], unique=False)
        batch_op.create_index(batch_op.f("ix_contracts_vault_id"), ["vault_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_contracts_workspace_id"), ["workspace_id"], unique=False)

    op.create_table(
        "decisions",
        sa.Column("proposal_id", sa.String(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("decision", sa.String(), nullable=False),
        sa.Column("is_complete", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("decision IN ('approve', 'reject')", name=op.f("ck_decisions_decision")),
        sa.ForeignKeyConstraint(["key_id"], ["keys.id"], name=op.f("fk_decisions_key_id_keys")),
        sa.ForeignKeyConstraint(
            ["proposal_id"], ["proposals.id"], name=op.f("fk_decisions_proposal_id_proposals")
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_decisions_user_id_users")),
        sa.PrimaryKeyConstraint("proposal_id", "key_id", name=op.f("pk_decisions")),
    )
    with op.batch_alter_table("decisions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_decisions_user_id"), ["user_id"], unique=False)

    op.create_table(
        "proposal_inputs",
        sa.Column("proposal_id", sa.String(), nullable=False),
        sa.Column("input_index", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("txid", sa.String(), nullable=False),
        sa.Column("vout", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("amount_sats", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("branch", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("address_index", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(
            ["proposal_id"], ["proposals.id"], name=op.f("fk_proposal_inputs_proposal_id_proposals")
        ),
        sa.PrimaryKeyConstraint("proposal_id", "input_index", name=op.f("pk_proposal_inputs")),
    )
    with op.batch_alter_table("proposal_inputs", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_proposal_inputs_txid_proposal_inputs_vout"), ["txid", "vout"], unique=False
        )

    op.create_table(
        "vault_signers",
        sa.Column("vault_id", sa.String(), nullable=False),
        sa.Column("key_index", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("key_account_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["key_account_id"], ["key_accounts.id"], name=op.f("fk_vault_signers_key_account_id_key_accounts")
        ),
        sa.ForeignKeyConstraint(["key_id"], ["keys.id"], name=op.f("fk_vault_signers_key_id_keys")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_vault_signers_user_id_users")),
        sa.ForeignKeyConstraint(["vault_id"], ["vaults.id"], name=op.f("fk_vault_signers_vault_id_vaults")),
        sa.PrimaryKeyConstraint("vault_id", "key_index", name=op.f("pk_vault_signers")),
        sa.UniqueConstraint("key_account_id", name=op.f("uq_vault_signers_key_account_id")),
        sa.UniqueConstraint("vault_id", "user_id", name=op.f("uq_vault_signers_vault_id_user_id")),
    )
    with op.batch_alter_table("vault_signers", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_vault_signers_key_id"), ["key_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_vault_signers_user_id"), ["user_id"], unique=False)

    op.create_table(
        "contract_calls",
        sa.Column(
            "uid", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("contract_uid", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("workspace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("vault_id", sa.String(), nullable=False),
        sa.Column("function_name", sa.String(), nullable=False),
        sa.Column("args", sa.JSON(), nullable=False),
        sa.Column("amount", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("address_script", sa.LargeBinary(), nullable=True),
        sa.Column("family_id", sa.String(), nullable=False),
        sa.Column("created_by", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("told_status", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["contract_uid"], ["contracts.uid"], name=op.f("fk_contract_calls_contract_uid_contracts")
        ),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_contract_calls_created_by_users")
        ),
        sa.ForeignKeyConstraint(
            ["family_id"], ["proposals.id"], name=op.f("fk_contract_calls_family_id_proposals")
        ),
        sa.ForeignKeyConstraint(["vault_id"], ["vaults.id"], name=op.f("fk_contract_calls_vault_id_vaults")),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_contract_calls_workspace_id_workspaces")
        ),
        sa.PrimaryKeyConstraint("uid", name=op.f("pk_contract_calls")),
        sa.UniqueConstraint("family_id", name=op.f("uq_contract_calls_family_id")),
    )
    with op.batch_alter_table("contract_calls", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_contract_calls_contract_uid_contract_calls_uid"),
            ["contract_uid", "uid"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_contract_calls_vault_id_contract_calls_uid"), ["vault_id", "uid"], unique=False
        )

    op.create_table(
        "signatures",
        sa.Column("proposal_id", sa.String(), nullable=False),
        sa.Column("input_index", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("signature", sa.LargeBinary(), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["key_id"], ["keys.id"], name=op.f("fk_signatures_key_id_keys")),
        sa.ForeignKeyConstraint(
            ["proposal_id", "input_index"],
            ["proposal_inputs.proposal_id", "proposal_inputs.input_index"],
            name=op.f("fk_signatures_proposal_id_input_index_proposal_inputs"),
        ),
        sa.PrimaryKeyConstraint("proposal_id", "input_index", "public_key", name=op.f("pk_signatures")),
    )
    op.create_table(
        "pending_changes",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("organisation_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("workspace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("asked_by", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("asked_by_name", sa.String(), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("not_before", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("decided_by", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("decided_by_name", sa.String(), nullable=True),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.CheckConstraint(
            "status IN ('PENDING', 'APPLIED', 'DECLINED', 'EXPIRED')", name=op.f("ck_pending_changes_status")
        ),
        sa.ForeignKeyConstraint(["asked_by"], ["users.id"], name=op.f("fk_pending_changes_asked_by_users")),
        sa.ForeignKeyConstraint(
            ["decided_by"], ["users.id"], name=op.f("fk_pending_changes_decided_by_users")
        ),
        sa.ForeignKeyConstraint(
            ["organisation_id"],
            ["organisations.id"],
            name=op.f("fk_pending_changes_organisation_id_organisations"),
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_pending_changes_workspace_id_workspaces")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pending_changes")),
    )
    with op.batch_alter_table("pending_changes", schema=None) as batch_op:
        batch_op.create_index(
            "ix_pending_changes_by_age",
            ["organisation_id", "status", "asked_at"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_pending_changes_status_pending_changes_expires_at"),
            ["status", "expires_at"],
            unique=False,
        )

    op.create_table(
        "second_person_rules",
        sa.Column("organisation_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("role_name", sa.String(), nullable=False),
        sa.Column("cooling_off_hours", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("set_by", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("set_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["organisation_id"],
            ["organisations.id"],
            name=op.f("fk_second_person_rules_organisation_id_organisations"),
        ),
        sa.ForeignKeyConstraint(["set_by"], ["users.id"], name=op.f("fk_second_person_rules_set_by_users")),
        sa.PrimaryKeyConstraint("organisation_id", name=op.f("pk_second_person_rules")),
    )
    op.create_table(
        "identity_providers",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("organisation_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("issuer", sa.String(), nullable=False),
        sa.Column("client_id", sa.String(), nullable=False),
        sa.Column("sealed_secret", sa.LargeBinary(), nullable=True),
        sa.Column("is_required", sa.Boolean(), nullable=False),
        sa.Column("set_by", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("set_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["organisation_id"],
            ["organisations.id"],
            name=op.f("fk_identity_providers_organisation_id_organisations"),
        ),
        sa.ForeignKeyConstraint(["set_by"], ["users.id"], name=op.f("fk_identity_providers_set_by_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_identity_providers")),
        sa.UniqueConstraint("organisation_id", name=op.f("uq_identity_providers_organisation_id")),
    )
    op.create_table(
        "identity_links",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("provider_id", sa.String(), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("linked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["provider_id"],
            ["identity_providers.id"],
            name=op.f("fk_identity_links_provider_id_identity_providers"),
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_identity_links_user_id_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_identity_links")),
        sa.UniqueConstraint("provider_id", "subject", name=op.f("uq_identity_links_provider_id_subject")),
        sa.UniqueConstraint("provider_id", "user_id", name=op.f("uq_identity_links_provider_id_user_id")),
    )
    with op.batch_alter_table("identity_links", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_identity_links_user_id"), ["user_id"], unique=False)

    op.create_table(
        "identity_flows",
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("provider_id", sa.String(), nullable=False),
        sa.Column("session_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_identity_flows")),
    )
    with op.batch_alter_table("identity_flows", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_identity_flows_expires_at"), ["expires_at"], unique=False)
        batch_op.create_index(batch_op.f("ix_identity_flows_provider_id"), ["provider_id"], unique=False)

    op.create_table(
        "service_accounts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("workspace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("made_by", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("rights", sa.JSON(), nullable=False),
        sa.Column("networks", sa.JSON(), nullable=False),
        sa.Column("secret_hash", sa.LargeBinary(), nullable=True),
        sa.Column("former_hash", sa.LargeBinary(), nullable=True),
        sa.Column("former_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_from", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["made_by"], ["users.id"], name=op.f("fk_service_accounts_made_by_users")),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_service_accounts_workspace_id_workspaces")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_service_accounts")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("service_accounts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_service_accounts_made_by"), ["made_by"], unique=False)
        batch_op.create_index(batch_op.f("ix_service_accounts_workspace_id"), ["workspace_id"], unique=False)

    op.create_table(
        "movements",
        sa.Column("vault_id", sa.String(), nullable=False),
        sa.Column("txid", sa.String(), nullable=False),
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("psbt_id", sa.String(), nullable=True),
        sa.Column("received_sats", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("sent_sats", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("amount_sats", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("height", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("place", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("block_hash", sa.String(), nullable=True),
        sa.Column("mined_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("balance_sats", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("first_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["psbt_id"], ["proposals.id"], name=op.f("fk_movements_psbt_id_proposals")),
        sa.ForeignKeyConstraint(["vault_id"], ["vaults.id"], name=op.f("fk_movements_vault_id_vaults")),
        sa.PrimaryKeyConstraint("vault_id", "txid", name=op.f("pk_movements")),
    )
    with op.batch_alter_table("movements", schema=None) as batch_op:
        batch_op.create_index("ix_movements_blocks", ["chain", "height"], unique=False)
        batch_op.create_index("ix_movements_in_order", ["vault_id", "height", "place"], unique=False)
        batch_op.create_index("ix_movements_of_kind", ["vault_id", "kind", "height", "place"], unique=False)
        batch_op.create_index("ix_movements_of_transaction", ["txid", "chain"], unique=False)
        batch_op.create_index(
            "ix_movements_pending",
            ["vault_id", "first_seen_at", "txid"],
            unique=False,
            sqlite_where=sa.text("height IS NULL"),
            postgresql_where=sa.text("height IS NULL"),
        )
    op.create_table(
        "advisory_publishers",
        sa.Column("root", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("epoch", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("serial", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("line", sa.LargeBinary(), nullable=False),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("taken_by", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.ForeignKeyConstraint(
            ["taken_by"], ["users.id"], name=op.f("fk_advisory_publishers_taken_by_users")
        ),
        sa.PrimaryKeyConstraint("root", name=op.f("pk_advisory_publishers")),
    )
    op.create_table(
        "advisories",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("root", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("serial", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("withdrawn_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["root"], ["advisory_publishers.root"], name=op.f("fk_advisories_root_advisory_publishers")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_advisories")),
        sa.UniqueConstraint("root", "name", name=op.f("uq_advisories_root_name")),
    )

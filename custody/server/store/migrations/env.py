"""Alembic's entry: always on a connection that the store passes in, never by a URL of its own."""

from alembic import context

from custody.server.store.models import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    # SQLite cannot alter most things in place.
    render_as_batch=True,
    # The caller's transaction is the transaction.
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()

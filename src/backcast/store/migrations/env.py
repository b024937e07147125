"""Run by Alembic: applies the steps inside the transaction that `backcast.store.migrate` holds."""

from __future__ import annotations

from alembic import context

from backcast.store.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()

"""How a store came to its present schema, step by step. Alembic runs these files; nothing imports them."""

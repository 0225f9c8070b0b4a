"""The store over PostgreSQL.

Alembic (with SQLAlchemy) makes the tables; statements are SQL text over asyncpg: arrays through
`unnest`, COPY, prepared statements, and a COMMIT whose outcome is never guessed. Why:
docs/adr/0002-tables.md.
"""

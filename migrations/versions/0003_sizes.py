"""Attempts that change their size while they run."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

SIZES = """ALTER TABLE attempts
    ADD COLUMN generation integer NOT NULL DEFAULT 0,
    ADD COLUMN resized integer NOT NULL DEFAULT 0"""


def upgrade() -> None:
    op.execute(SIZES)


def downgrade() -> None:
    raise NotImplementedError("migrations only go forward: restore a backup instead")

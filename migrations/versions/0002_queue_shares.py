"""Queues with weights, deserved shares and limits by device kind."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# Constant defaults: no row is written, and the lock is held for a moment only.
SHARES = """ALTER TABLE queues
    ADD COLUMN weight double precision NOT NULL DEFAULT 1,
    ADD COLUMN deserved jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN kind_limits jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN preempts boolean NOT NULL DEFAULT true"""


def upgrade() -> None:
    op.execute(SHARES)


def downgrade() -> None:
    raise NotImplementedError("migrations only go forward: restore a backup instead")

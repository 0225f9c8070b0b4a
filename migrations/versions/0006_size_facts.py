"""When attempts last changed their size, and what work they had done by then."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

FACTS = """ALTER TABLE attempts
    ADD COLUMN changed_at double precision NOT NULL DEFAULT 0,
    ADD COLUMN done double precision NOT NULL DEFAULT 0"""


def upgrade() -> None:
    op.execute(FACTS)


def downgrade() -> None:
    raise NotImplementedError("migrations only go forward: restore a backup instead")

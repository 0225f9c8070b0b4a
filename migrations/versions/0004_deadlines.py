"""Jobs with a deadline, and those to whom it is guaranteed."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

DEADLINES = """ALTER TABLE jobs
    ADD COLUMN deadline_at double precision NOT NULL DEFAULT 0,
    ADD COLUMN guaranteed boolean NOT NULL DEFAULT false"""


def upgrade() -> None:
    op.execute(DEADLINES)


def downgrade() -> None:
    raise NotImplementedError("migrations only go forward: restore a backup instead")

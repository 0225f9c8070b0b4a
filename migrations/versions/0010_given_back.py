"""What an occurrence is of, where that is not what its reservation says."""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# Not given: all that the reservation books.
WHAT = "ALTER TABLE occurrences ADD COLUMN what bytea"


def upgrade() -> None:
    op.execute(WHAT)


def downgrade() -> None:
    raise NotImplementedError("migrations only go forward: restore a backup instead")

"""How forecasts of starts held, by shard: what a new leader goes on from."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

FORECASTS = """CREATE TABLE forecasts (
    shard integer PRIMARY KEY,
    record text NOT NULL
)"""


def upgrade() -> None:
    op.execute(FORECASTS)


def downgrade() -> None:
    raise NotImplementedError("migrations only go forward: restore a backup instead")

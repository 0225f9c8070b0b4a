"""What is held for jobs while others are stopped for them, and how often a job was stopped."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

NOMINATIONS = (
    """CREATE TABLE nominations (
        job bigint PRIMARY KEY,
        shard integer NOT NULL,
        cluster text COLLATE "C" NOT NULL,
        queue text COLLATE "C" NOT NULL,
        tasks bytea NOT NULL,
        until double precision NOT NULL,
        victims bigint[] NOT NULL
    )""",
    "CREATE INDEX nominations_of_shard ON nominations (shard)",
)
PREEMPTIONS = "ALTER TABLE jobs ADD COLUMN preemptions integer NOT NULL DEFAULT 0"


def upgrade() -> None:
    for statement in (*NOMINATIONS, PREEMPTIONS):
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("migrations only go forward: restore a backup instead")

"""Statements of the broker's transactions. The queue of all together is the empty one."""

from typing import Final

from atoll.adapters.postgres.burst_rows import INSTANCE_COLUMNS, INSTANCE_MUTABLE
from atoll.adapters.postgres.live import NOW, update_by_id
from atoll.core.model.burst_time import HOUR_S
from atoll.ports.store.burst import TO_END_S

HOUR: Final = f"floor({NOW} / {HOUR_S})::bigint * {HOUR_S}"
MONTH: Final = "extract(epoch FROM date_trunc('month', now()))::bigint"

FENCE: Final = """
UPDATE burst_loop SET seq = seq + 1
WHERE id = 0 AND epoch_generation = $1 AND epoch_revision = $2 AND seq = $3 RETURNING seq
"""
ADD_REQUEST: Final = """
INSERT INTO burst_requests (key, body_hash) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING key
"""
REQUEST: Final = "SELECT body_hash, instances FROM burst_requests WHERE key = $1"
SET_REQUEST: Final = "UPDATE burst_requests SET instances = $2 WHERE key = $1"

# The root sorts before what is below it, so budgets are locked from all together down.
LOCK_BUDGETS: Final = (
    """INSERT INTO burst_budgets (queue) SELECT unnest($1::text[]) AS queue ORDER BY queue
    ON CONFLICT DO NOTHING""",
    "SELECT 1 FROM burst_budgets WHERE queue = ANY($1::text[]) ORDER BY queue FOR NO KEY UPDATE",
)
# A statement of its own after the locks: it sees what those committed that were waited for.
# Names below `a` lie between `a.` and `a/`, the character after the dot.
TAKE_BUDGET: Final = f"""
WITH uncounted AS MATERIALIZED (
    SELECT queue, greatest(
        0, floor(price * ({NOW} - created_at) / {HOUR_S})::bigint - spent
    ) AS amount
    FROM burst_instances WHERE live AND created_at > 0
), asked AS MATERIALIZED (
    SELECT b.queue, b.rate, p.per_hour, p.per_month,
        CASE WHEN b.month_at >= {MONTH} THEN b.month ELSE 0 END
            + (b.rate * {int(TO_END_S)} / {HOUR_S})
            + (SELECT coalesce(sum(u.amount), 0) FROM uncounted u
                WHERE b.queue = '' OR u.queue = b.queue
                    OR u.queue > b.queue || '.' AND u.queue < b.queue || '/')::bigint AS committed
    FROM burst_budgets b LEFT JOIN burst_policies p ON p.queue = b.queue
    WHERE b.queue = ANY($1::text[])
), short AS MATERIALIZED (
    SELECT queue, 'per_hour' AS bound, per_hour AS most, per_hour - rate AS rest
    FROM asked WHERE rate + $2::bigint > per_hour
    UNION ALL
    SELECT queue, 'per_month', per_month, per_month - committed
    FROM asked WHERE committed + $3::bigint > per_month
    ORDER BY queue, bound LIMIT 1
), taken AS (
    UPDATE burst_budgets SET rate = rate + $2::bigint
    WHERE queue = ANY($1::text[]) AND NOT EXISTS (SELECT FROM short)
)
SELECT queue, bound, most, greatest(0, rest) AS rest FROM short
"""
GIVE_BACK: Final = """
UPDATE burst_budgets SET rate = greatest(0, rate - $2::bigint) WHERE queue = ANY($1::text[])
"""
BUDGETS: Final = f"""
SELECT queue, rate, CASE WHEN hour_at >= {HOUR} THEN hour ELSE 0 END AS hour,
    CASE WHEN month_at >= {MONTH} THEN month ELSE 0 END AS month
FROM burst_budgets ORDER BY queue
"""

INSTANCES: Final = f"SELECT {INSTANCE_COLUMNS} FROM burst_instances i"
LOCK_INSTANCES: Final = (
    f"{INSTANCES} WHERE i.id = ANY($1::bigint[]) ORDER BY i.id FOR NO KEY UPDATE"
)
UPDATE_INSTANCES: Final = update_by_id("burst_instances", INSTANCE_MUTABLE)
# Rows of different lengths do not make an array of arrays: jobs come as texts.
SET_JOBS: Final = """
UPDATE burst_instances i SET jobs = u.jobs::bigint[]
FROM unnest($1::bigint[], $2::text[]) AS u(id, jobs) WHERE i.id = u.id
"""
SET_EXPECTED: Final = """
UPDATE burst_instances i SET expected_at = u.at
FROM unnest($1::bigint[], $2::double precision[]) AS u(id, at) WHERE i.id = u.id
"""
ADD_CLUSTERS: Final = (
    """INSERT INTO clusters (name, shard, state)
    SELECT u.name, u.shard, 'BOOTING' FROM unnest($1::text[], $2::integer[]) AS u(name, shard)""",
    """INSERT INTO sessions (cluster)
    SELECT u.name FROM unnest($1::text[], $2::integer[]) AS u(name, shard)""",
)

LEDGER: Final = """
INSERT INTO burst_ledger AS l (hour, instance, queue, amount)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[])
ON CONFLICT (hour, instance) DO UPDATE SET amount = l.amount + excluded.amount
"""
PAY: Final = """
UPDATE burst_instances i SET spent = i.spent + u.amount
FROM unnest($1::bigint[], $2::bigint[]) AS u(id, amount) WHERE i.id = u.id
"""
# What was spent in an hour or a month that is over is not counted any more.
COUNT: Final = """
UPDATE burst_budgets b SET
    hour = CASE WHEN $3::bigint > b.hour_at THEN u.amount
        WHEN $3::bigint = b.hour_at THEN b.hour + u.amount ELSE b.hour END,
    hour_at = greatest(b.hour_at, $3::bigint),
    month = CASE WHEN $4::bigint > b.month_at THEN u.amount
        WHEN $4::bigint = b.month_at THEN b.month + u.amount ELSE b.month END,
    month_at = greatest(b.month_at, $4::bigint)
FROM unnest($1::text[], $2::bigint[]) AS u(queue, amount) WHERE b.queue = u.queue
"""

PUT_POLICY: Final = """
INSERT INTO burst_policies (queue, policy, per_hour, per_month) VALUES ($1, $2, $3, $4)
ON CONFLICT (queue) DO UPDATE SET policy = $2, per_hour = $3, per_month = $4
"""
PUT_OFFERS: Final = """
INSERT INTO burst_offers AS o (provider, offers) VALUES ($1, $2)
ON CONFLICT (provider) DO UPDATE SET offers = $2 WHERE o.offers <> $2
"""
PUT_MEMORY: Final = """
INSERT INTO burst_memory (name, content) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET content = $2
"""
DECISION_INSERTED: Final = ("at", "job", "instances", "decision")

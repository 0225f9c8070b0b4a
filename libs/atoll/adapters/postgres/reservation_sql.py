"""Statements of the reservation service's transactions."""

from typing import Final

from atoll.adapters.postgres.live import NOW
from atoll.adapters.postgres.reservation_rows import (
    OCCURRENCE_COLUMNS,
    RESERVATION_COLUMNS,
    RESERVATION_INSERTED,
)

FENCE: Final = """
UPDATE booking_loop SET seq = seq + 1
WHERE id = 0 AND epoch_generation = $1 AND epoch_revision = $2 AND seq = $3 RETURNING seq
"""
LOCK_SHARDS: Final = f"""
SELECT id, {NOW} AS at FROM shards WHERE id = ANY($1::integer[]) ORDER BY id FOR NO KEY UPDATE
"""
RAISE: Final = "UPDATE shards SET booking_rev = booking_rev + 1 WHERE id = ANY($1::integer[])"
ADD_REQUEST: Final = """
INSERT INTO reservation_requests (tenant, key, body_hash, reservation) VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING RETURNING key
"""
REQUEST: Final = """
SELECT tenant, key, body_hash, reservation FROM reservation_requests
WHERE tenant = $1 AND key = $2
"""
# A name may be taken by a transaction that is under way: the index waits for its end.
ADD_RESERVATION: Final = f"""
INSERT INTO reservations ({", ".join(RESERVATION_INSERTED)}, uid)
VALUES ({", ".join(f"${at}" for at in range(1, len(RESERVATION_INSERTED) + 2))})
ON CONFLICT (tenant, name) WHERE state = 'ACTIVE' DO NOTHING RETURNING id
"""
LOCK_RESERVATIONS: Final = f"""
SELECT {RESERVATION_COLUMNS} FROM reservations r WHERE r.id = ANY($1::bigint[])
ORDER BY r.id FOR NO KEY UPDATE
"""
NAME_TAKEN: Final = """
SELECT 1 FROM reservations WHERE tenant = $1 AND name = $2 AND state = 'ACTIVE' AND id <> $3
"""
UPDATE_RESERVATION: Final = """
UPDATE reservations SET name = $2, spec = $3, recurs = $4, queues = $5, state = $6, message = $7,
    remarks = $8, planned_until = $9, etag = $10, revision = revision + 1,
    ended_at = CASE WHEN $6 = 'ACTIVE' THEN 0 WHEN ended_at > 0 THEN ended_at
        ELSE extract(epoch FROM now()) END
WHERE id = $1
"""
OCCURRENCES: Final = f"""
SELECT {OCCURRENCE_COLUMNS} FROM occurrences o JOIN reservations r ON r.id = o.reservation
"""
KEPT: Final = f"""
SELECT {OCCURRENCE_COLUMNS}, o.busy_at, o.used_until, {RESERVATION_COLUMNS}
FROM occurrences o JOIN reservations r ON r.id = o.reservation
"""
KEPT_NUMBERED: Final = f"{KEPT} WHERE o.id = ANY($1::bigint[]) ORDER BY o.id"
UPDATE_OCCURRENCES: Final = """
UPDATE occurrences o SET start_at = u.start_at, end_at = u.end_at, state = u.state,
    start_local = u.start_local, message = u.message, started_at = u.started_at,
    ended_at = u.ended_at, missing_devices = u.missing, what = u.what,
    revision = o.revision + 1
FROM unnest($1::bigint[], $2::double precision[], $3::double precision[], $4::text[], $5::text[],
    $6::text[], $7::double precision[], $8::double precision[], $9::integer[],
    $10::bytea[])
    AS u(id, start_at, end_at, state, start_local, message, started_at, ended_at, missing, what)
WHERE o.id = u.id
"""
DROP_PARTS: Final = "DELETE FROM occurrence_parts WHERE occurrence = ANY($1::bigint[])"
ADD_PARTS: Final = """
INSERT INTO occurrence_parts (occurrence, cluster, shares)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[])
"""
NOTE_USE: Final = """
UPDATE occurrences o SET used_device_hours = u.used, busy_at = u.busy_at, used_until = u.until
FROM unnest($1::bigint[], $2::double precision[], $3::double precision[], $4::double precision[])
    AS u(id, used, busy_at, until)
WHERE o.id = u.id
"""
PUT_RULE: Final = """
INSERT INTO booking_rules (tenant, name, rule, status, etag) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant, name) DO UPDATE SET rule = $3, status = $4, etag = $5
"""
ADD_ACTION: Final = """
INSERT INTO booking_rule_actions (tenant, rule, at, what, why, reservation)
VALUES ($1, $2, $3, $4, $5, $6)
"""

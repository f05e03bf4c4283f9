-- Acquires the locks of roles whose terms may begin, and begins their terms: a row
-- for each role that is locked, and for each that is left to other nodes. A reserved
-- role is tried by its target alone, but not longer than twice the time of the
-- reservation: the clock may have been ahead when it was made. A node that gave up a role leaves it to other
-- nodes for a time, until another term has begun. A term begins unless a fenced
-- transaction holds the role's row at that moment. The rows are locked in a fixed
-- order, so that there are no deadlocks. If the rows were not examined, a term also
-- does not begin where it may have to wait: on another server, after the time to
-- settle, for another node. The lock function is called in a loop, once for each key: in a query, the planner may call it
-- more or fewer times than it returns rows. A term begins only if the role still has
-- the key that was locked: the key may have changed since the session read it.
--
-- A role that another session holds may be about to become vacant, so the caller tries
-- it again soon, unless a session leads it that still has its node lock: nodes are
-- notified when that ends. They are not if the node is silent or has a newer session:
-- then the session may just have been terminated while no watch waits for its end. The
-- first attempt after a change should be fast and does not ask for this.
--
-- The watch of this node may have noticed deaths that it has not recorded yet:
-- dead_sessions and dead_since name them. The term of a dead node ends when its death
-- was noticed, which is when its lock was free.
--
-- The number is at least the time, so that it grows although the row may not be the
-- one that the last leader saw. That makes the commit need no flush: a crash that
-- loses it also loses what was fenced with the number, the next term waits for this
-- node, and no later term has the number. The next heartbeat flushes it.
--
-- A plan for each call would take longer than the work for one role. The one plan that is
-- kept must fit one role of thousands and a thousand roles, whatever the size of the
-- tables when it was made. So each row is looked up by its key: the lateral subqueries
-- are no joins that the planner may turn round, and no join method but a lookup applies to
-- ANY. Speculative insertion into the history takes as long as a third of the insertion,
-- and no other session inserts the term of a role whose row is locked.
--
-- Parameters that belong together stay single: six arrays for the roles, four values for
-- the node, three for the life of the server, two arrays for deaths. With composite types
-- there would be 7 parameters instead of 18. They would not save time. On the server, a
-- call for no role takes 67 us of the processor now, and 66 us with composite types; a
-- call that begins a term takes 1.1 ms, and 1.4 ms. The statement would still have 18
-- parameters, or each session would have to read the numbers of four types when it opens.
CREATE FUNCTION {take}(
    roles text[],
    keys bigint[], -- null where the key is a pair
    firsts integer[],
    seconds integer[],
    yield_terms bigint[],
    yield_ms integer[], -- 0 for no time
    own uuid,
    names text[], -- of the leaders for the records: one for all roles, or one for each
    own_incarnation integer,
    own_lease_ms integer,
    lineage text,
    epoch text,
    examined boolean, -- the session holds the locks, and has read the rows
    is_new boolean, -- the server has not lost its locks since the tables were made
    settling boolean,
    dead_sessions integer[],
    dead_since timestamptz[],
    space integer, -- of node locks; null if the leaders are not asked for
    OUT taken text,
    OUT number bigint,
    OUT last_number bigint,
    OUT began_at timestamptz,
    OUT vacant double precision,
    OUT left_ms double precision, -- how long it is left to others
    OUT led_by integer -- the living session that leads it, if another holds it
)
RETURNS SETOF record
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $tenure_function$
DECLARE
    wanted record;
    held text[] := '{}';
    held_keys text[] := '{}';
    held_names text[] := '{}'; -- empty if all roles have one name
    missed text[] := '{}';
    moment timestamptz;
    moment_ms bigint;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    IF examined THEN
        held := roles;
        IF cardinality(names) > 1 THEN
            held_names := names;
        END IF;
        SELECT array_agg(coalesce(k.key::text, k.first || ':' || k.second) ORDER BY k.place)
        INTO held_keys
        FROM unnest(keys, firsts, seconds) WITH ORDINALITY AS k(key, first, second, place);
    ELSE
        moment := clock_timestamp();
        FOR wanted IN
            SELECT w.*, (
                SELECT CASE
                    WHEN moment BETWEEN t.ended_at - (t.reserved_until - t.ended_at) AND t.reserved_until AND t.reserved_for = own THEN 0
                    WHEN moment BETWEEN t.ended_at - (t.reserved_until - t.ended_at) AND t.reserved_until THEN 1000 * date_part('epoch', t.reserved_until - moment)
                    WHEN t.term = w.yield_term THEN w.yield_ms
                END
                FROM {terms} t
                WHERE t.role = w.role
            ) AS left_ms
            FROM unnest(roles, keys, firsts, seconds, yield_terms, yield_ms, names) AS w(role, key, first, second, yield_term, yield_ms, name)
        LOOP
            IF wanted.left_ms > 0 THEN
                taken := wanted.role;
                left_ms := wanted.left_ms;
                RETURN NEXT;
            ELSIF (CASE
                WHEN wanted.key IS NOT NULL THEN pg_try_advisory_lock(wanted.key)
                ELSE pg_try_advisory_lock(wanted.first, wanted.second)
            END) THEN
                held := held || wanted.role;
                held_keys := held_keys || coalesce(wanted.key::text, wanted.first || ':' || wanted.second);
                IF cardinality(names) > 1 THEN
                    held_names := held_names || wanted.name;
                END IF;
            ELSE
                missed := missed || wanted.role;
            END IF;
        END LOOP;
        IF missed <> '{}' AND space IS NOT NULL THEN
            RETURN QUERY
            WITH led AS MATERIALIZED (
                SELECT t.role, t.node_id, t.incarnation
                FROM unnest(missed) AS m(role)
                CROSS JOIN LATERAL (
                    SELECT t.role, t.node_id, t.incarnation
                    FROM {terms} t
                    WHERE t.role = m.role AND t.term > 0 AND t.ended_at IS NULL AND t.incarnation <> own_incarnation
                    OFFSET 0
                ) t
            ), living AS MATERIALIZED (
                SELECT l.incarnation
                FROM (SELECT DISTINCT led.node_id, led.incarnation FROM led) l
                CROSS JOIN LATERAL (
                    SELECT
                    FROM {nodes} n
                    WHERE n.id = l.node_id AND n.incarnation = l.incarnation
                        AND n.last_heartbeat + n.lease_ms * interval '1 millisecond' > clock_timestamp()
                    OFFSET 0
                ) n
                WHERE NOT {ended}(space, ARRAY[l.incarnation])
            )
            SELECT led.role, NULL::bigint, NULL::bigint, NULL::timestamptz, NULL::double precision, NULL::double precision, led.incarnation
            FROM led
            JOIN living USING (incarnation);
        END IF;
        IF held = '{}' THEN
            RETURN;
        END IF;
    END IF;
    moment := clock_timestamp();
    moment_ms := floor(1000 * extract(epoch FROM moment));
    RETURN QUERY
    WITH previous AS MATERIALIZED (
        SELECT
            t.*,
            coalesce(h.name, names[1]) AS name,
            coalesce(t.ended_at, {term_end}(
                n.last_heartbeat, n.lease_ms, coalesce(CASE WHEN n.death_seen THEN n.died_at END, d.since), moment)) AS over_at,
            -- The next one found the lock free, and no node saw when it became so.
            CASE
                WHEN t.ended_at IS NULL AND coalesce(CASE WHEN n.death_seen THEN n.died_at END, d.since) IS NULL
                    AND {term_end}(n.last_heartbeat, n.lease_ms, NULL, NULL) > moment
                THEN 'no node observed the end'
                ELSE t.end_cause
            END AS cause,
            coalesce(t.end_reason, CASE
                WHEN n.last_heartbeat + n.lease_ms * interval '1 millisecond' <= coalesce(n.died_at, d.since, moment) THEN 'lease_expired'
                ELSE 'crashed'
            END) AS reason,
            CASE
                WHEN t.ended_at IS NULL THEN {last_sign}(n.last_heartbeat, t.acquired_at)
                WHEN t.end_reason IN ('crashed', 'lease_expired', 'server_changed') THEN t.last_seen
                ELSE t.ended_at
            END AS seen_at
        FROM (SELECT * FROM unnest(held, held_keys, held_names) AS w(role, lock_key, name) ORDER BY w.role) h
        CROSS JOIN LATERAL (
            SELECT
                t.role, t.term, t.node_id, t.node_name, t.incarnation, t.acquired_at, t.ended_at, t.end_reason, t.ended_by,
                t.end_cause, t.vacant_ms, t.silent_ms, t.blocked_by, t.last_seen
            FROM {terms} t
            WHERE t.role = h.role AND t.lock_key = h.lock_key
                AND (examined
                    OR (t.reserved_for IS NULL OR t.reserved_for = own
                        OR moment NOT BETWEEN t.ended_at - (t.reserved_until - t.ended_at) AND t.reserved_until)
                    AND (t.term = 0 AND is_new
                        OR t.server_lineage = lineage AND t.server_epoch = epoch
                        AND (NOT settling OR t.end_reason NOT IN ('crashed', 'lease_expired', 'server_changed'))))
            FOR UPDATE SKIP LOCKED
        ) t
        LEFT JOIN LATERAL (
            SELECT n.last_heartbeat, n.lease_ms, n.died_at, n.death_seen
            FROM {nodes} n
            WHERE t.ended_at IS NULL AND n.id = t.node_id AND n.incarnation = t.incarnation
            OFFSET 0
        ) n ON true
        LEFT JOIN unnest(dead_sessions, dead_since) AS d(session, since) ON t.ended_at IS NULL AND d.session = t.incarnation
    ), recorded AS (
        INSERT INTO {history}
            (role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason, ended_by, end_cause, vacant_ms,
            silent_ms, blocked_by)
        SELECT p.role, p.term, p.node_id, p.node_name, p.incarnation, p.acquired_at, p.over_at, p.reason, p.ended_by, p.cause,
            p.vacant_ms, p.silent_ms, p.blocked_by
        FROM previous p
        WHERE p.term > 0
            AND (SELECT h.term FROM {history} h WHERE h.role = p.role AND h.term = p.term) IS NULL
    ), begun AS (
        UPDATE {terms} t
        SET term = greatest(p.term + 1, moment_ms),
            node_id = own,
            node_name = p.name,
            incarnation = own_incarnation,
            lease_ms = own_lease_ms,
            acquired_at = greatest(moment, p.over_at),
            ended_at = NULL,
            end_reason = NULL,
            ended_by = '',
            end_cause = '',
            next_by = NULL,
            blocked_by = '',
            vacant_ms = CASE
                WHEN p.term > 0 AND p.reason <> 'server_changed' AND p.cause <> 'no node observed the end'
                THEN 1000 * date_part('epoch', greatest(moment, p.over_at) - p.over_at)
            END,
            silent_ms = CASE
                WHEN p.term > 0 THEN 1000 * date_part('epoch', greatest(moment, p.over_at) - p.seen_at)
            END,
            last_seen = NULL,
            server_lineage = lineage,
            server_epoch = epoch,
            reserved_for = NULL,
            reserved_until = NULL,
            retired_at = NULL,
            retired_by = ''
        FROM previous p
        WHERE t.role = ANY (ARRAY[p.role])
        RETURNING t.role, t.term, p.term AS last_term, t.acquired_at, t.vacant_ms
    )
    SELECT b.role, b.term, b.last_term, b.acquired_at, b.vacant_ms, NULL::double precision, NULL::integer
    FROM begun b
    UNION ALL
    SELECT h.role, NULL, NULL, NULL, NULL, NULL, NULL FROM unnest(held) h(role) WHERE h.role NOT IN (SELECT b.role FROM begun b);
END
$tenure_function$;

-- Reports whether one of these sessions has ended: its node lock is free. It also
-- reports true if the lock table has no room to find out, since a heartbeat must not
-- fail for that.
CREATE FUNCTION {ended}(space integer, sessions integer[])
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $tenure_function$
BEGIN
    RETURN EXISTS (SELECT FROM unnest(sessions) AS s(incarnation) WHERE pg_try_advisory_xact_lock_shared(space, s.incarnation));
EXCEPTION
    WHEN out_of_memory THEN
        RETURN true;
END
$tenure_function$;

-- Waits until a node that this one watches has ended, another may have died, or the
-- time is over; see the manual page on failover for the reasons behind
-- its form. The server logs each wait that lasts for deadlock_timeout if log_lock_waits is
-- on, so attempts are shorter then. They are at transaction level, since a session-level
-- lock can be granted at the moment of the timeout and stay. stale_session is an earlier
-- session of this node that the server still keeps, and which no longer has a row.
--
-- A node watches its predecessor in the ring. One whose watch connection is down
-- cannot detect deaths, so its successor watches the node before it too, and so on
-- back to the first that watches. It waits for the lock of its predecessor and
-- only tries those of the others, with short attempts.
--
-- It holds no lock on a table while it waits, or a migration would have to wait
-- for it: the tables are read in a block that always ends with an exception,
-- which releases their locks and keeps the variables.
--
-- While it waits it sends a message to its client five times per lease: a client
-- that receives nothing for most of a lease closes the connection.
CREATE FUNCTION {watch}(
    own integer,
    stale_session integer,
    space integer,
    seen bigint,
    max_wait_ms integer,
    margin_ms integer,
    OUT event text,
    OUT died integer,
    OUT membership bigint,
    OUT waited boolean -- for the end of a session that was alive, or no other node is alive
)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $tenure_function$
DECLARE
    deadline constant timestamptz := clock_timestamp() + max_wait_ms * interval '1 millisecond';
    -- The longest wait that the server does not log.
    silent_ms constant double precision := CASE
        WHEN current_setting('log_lock_waits')::boolean
        THEN greatest(1, floor(900 * extract(epoch FROM current_setting('deadlock_timeout')::interval)))
        ELSE 3600000
    END;
    -- At rest a watch reads only between attempts whether the membership has moved, and
    -- the ring this often.
    ring_ms constant integer := 2000;
    long_ms constant integer := least(ring_ms, silent_ms);
    -- A node draws its number before it joins. So the predecessor of a young node may still
    -- join, the less likely the older the node is.
    young_ms constant integer := least(400, silent_ms);
    young_part constant integer := 5; -- an attempt lasts for this part of the node's age
    short_ms constant integer := least(100, silent_ms);
    -- The oldest node watches the youngest, so each node that joins is its new
    -- predecessor. Its session cancels a wait when it is notified of a join, and for
    -- restless_ms after that no further notification is needed.
    oldest_ms constant integer := least(50, silent_ms);
    restless_ms constant integer := 500;
    -- Each attempt reads the ring again if it has moved, so that the watch need not return
    -- for each of many nodes that join or end at the same time. A death moves {releases},
    -- too. Without that, only nodes have joined or left, and the watch need not return.
    report_ms constant integer := 500;
    latest bigint;
    released bigint;
    released_before bigint; -- null if the membership had moved when the call began
    watched record;
    place bigint; -- in the ring
    passed_oldest boolean;
    nearest integer;
    pause_ms integer;
    wait_ms integer;
    read_at timestamptz; -- when the ring must be read again
    pulse_ms integer;
    opened_at timestamptz;
    age_ms double precision;
    oldest boolean := false;
    reported boolean := false;
    restless_until timestamptz := clock_timestamp() + interval '100 milliseconds';
    pulsed timestamptz := clock_timestamp();
    moved_at timestamptz;
BEGIN
    waited := false;
    LOOP
        event := NULL;
        BEGIN
            PERFORM set_config('lock_timeout', young_ms || 'ms', true);
            -- A death moves {releases} before {membership}. So {releases} is read after
            -- {membership}. Only the value to compare with is read before: it must be older.
            IF membership IS NULL THEN
                SELECT last_value INTO released_before FROM {releases};
            END IF;
            SELECT last_value, (SELECT last_value FROM {releases}) INTO latest, released FROM {membership};
            IF membership IS NULL AND latest <> seen THEN
                released_before := NULL;
            END IF;
            IF latest = membership AND clock_timestamp() < read_at THEN
                RAISE EXCEPTION USING ERRCODE = 'TNREL', MESSAGE = 'releases the lock of the sequence';
            END IF;
            membership := latest;
            nearest := stale_session;
            died := stale_session;
            oldest := false;
            pause_ms := long_ms;
            read_at := clock_timestamp() + ring_ms * interval '1 millisecond';
            IF stale_session > 0 THEN
                pause_ms := short_ms;
                read_at := '-infinity';
            END IF;
            IF pulse_ms IS NULL THEN
                SELECT greatest(100, n.lease_ms / 5), n.backend_start
                INTO pulse_ms, opened_at
                FROM {nodes} n
                WHERE n.incarnation = own;
            END IF;
            age_ms := 1000 * extract(epoch FROM clock_timestamp() - opened_at);
            IF age_ms >= 0 THEN -- the clock was not ahead
                pause_ms := least(pause_ms, greatest(young_ms, age_ms / young_part));
            END IF;
            IF membership <> seen AND released IS DISTINCT FROM released_before THEN
                moved_at := coalesce(moved_at, clock_timestamp());
                pause_ms := least(pause_ms, report_ms);
                read_at := '-infinity';
            END IF;
            IF seen < 0 OR clock_timestamp() >= moved_at + report_ms * interval '1 millisecond' THEN
                event := 'moved';
            ELSIF stale_session > 0 AND pg_try_advisory_xact_lock_shared(space, stale_session) THEN
                event := 'died';
            ELSE
                place := own;
                passed_oldest := false;
                LOOP
                    -- One row at a time, or the rows read would grow with the square of the nodes.
                    SELECT
                        n.incarnation,
                        n.watching,
                        1000 * extract(epoch FROM
                            n.last_heartbeat + (n.lease_ms + margin_ms) * interval '1 millisecond' - clock_timestamp()) AS left_ms
                    INTO watched
                    FROM {nodes} n
                    WHERE n.status <> 'dead' AND n.incarnation < place AND (n.incarnation > own OR NOT passed_oldest)
                    ORDER BY n.incarnation DESC
                    LIMIT 1;
                    IF NOT FOUND THEN
                        EXIT WHEN passed_oldest;
                        passed_oldest := true;
                        place := 1::bigint << 32;
                        CONTINUE;
                    END IF;
                    place := watched.incarnation;
                    died := watched.incarnation;
                    IF pg_try_advisory_xact_lock_shared(space, died) THEN
                        event := 'died';
                        EXIT;
                    ELSIF watched.left_ms < 0 THEN
                        event := 'silent';
                        EXIT;
                    END IF;
                    IF nearest = stale_session THEN
                        nearest := died;
                        oldest := died > own;
                    END IF;
                    -- A silent node is noticed when its time is over, not an attempt later.
                    pause_ms := greatest(1, least(pause_ms, ceil(watched.left_ms)));
                    read_at := least(read_at, clock_timestamp() + watched.left_ms * interval '1 millisecond');
                    EXIT WHEN watched.watching;
                    pause_ms := least(pause_ms, short_ms);
                    read_at := '-infinity'; -- the lock of the node before it is only tried
                END LOOP;
                IF event IS NULL AND nearest = 0 THEN
                    event := 'alone';
                    waited := true;
                END IF;
            END IF;
            RAISE EXCEPTION USING ERRCODE = 'TNREL', MESSAGE = 'releases the locks of the tables';
        EXCEPTION
            WHEN SQLSTATE 'TNREL' THEN
                IF event IS NOT NULL THEN
                    RETURN;
                END IF;
            WHEN lock_not_available THEN -- a migration has the table
                nearest := 0;
                read_at := '-infinity';
            WHEN query_canceled THEN
                nearest := 0;
                read_at := '-infinity';
                restless_until := clock_timestamp() + restless_ms * interval '1 millisecond';
        END;

        IF nearest <> 0 THEN
            died := nearest;
            waited := true;
            wait_ms := greatest(1, least(pause_ms, coalesce(pulse_ms, pause_ms), ceil(1000 * extract(epoch FROM deadline - clock_timestamp()))));
            IF oldest THEN
                IF NOT reported THEN
                    RAISE INFO 'oldest'; -- the client cancels waits only then
                    reported := true;
                END IF;
                IF moved_at IS NOT NULL OR clock_timestamp() < restless_until THEN
                    wait_ms := least(wait_ms, oldest_ms);
                END IF;
            END IF;
            BEGIN
                PERFORM set_config('lock_timeout', wait_ms || 'ms', true);
                PERFORM pg_advisory_xact_lock_shared(space, died);
                event := 'died';
                RETURN;
            EXCEPTION
                WHEN lock_not_available THEN
                    NULL;
                WHEN query_canceled THEN
                    restless_until := clock_timestamp() + restless_ms * interval '1 millisecond';
            END;
        END IF;

        IF clock_timestamp() >= pulsed + coalesce(pulse_ms, 0) * interval '1 millisecond' THEN
            RAISE INFO 'watching';
            pulsed := clock_timestamp();
        END IF;
        IF clock_timestamp() >= deadline THEN
            membership := coalesce(membership, seen);
            event := 'timeout';
            RETURN;
        END IF;
    END LOOP;
END
$tenure_function$;

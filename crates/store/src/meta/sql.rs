use crate::sql::statements;

statements! {
    /// The first eight digits of a segment's name are its timeline. Every role may ask for both.
    TIMELINE on meta {
        sqlite: "",
        postgres: "SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline,
                   current_setting('synchronous_standby_names') AS standbys,
                   (SELECT m.value FROM meta m WHERE m.key = 'timeline') AS noted"
    }

    META_GET on meta {
        both: "SELECT value FROM meta WHERE key = $1"
    }

    META_PUT on meta {
        both: "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
    }

    /// The runs that a restore could not park: a key for each, so that each is taken away by itself.
    UNPARKED_LIST on meta {
        both: "SELECT key FROM meta WHERE substr(key, 1, 9) = 'unparked/' ORDER BY key LIMIT $1"
    }

    UNPARKED_CLEAR on meta {
        both: "DELETE FROM meta WHERE substr(key, 1, 9) = 'unparked/'"
    }

    META_DROP on meta {
        both: "DELETE FROM meta WHERE key = $1"
    }

    /// Notes where the row `$2` was written, under the key `$1`: by which transaction, in which table of which database. A
    /// dump that is loaded makes the row anew, and the note is then not of it.
    NOTE_HERE on meta {
        sqlite: "",
        postgres: "INSERT INTO meta (key, value)
                   SELECT $1::text, concat_ws(' ', d.oid::text, m.tableoid::text, m.xmin::text)
                   FROM meta m, pg_database d WHERE m.key = $2 AND d.datname = current_database()
                   ON CONFLICT (key) DO UPDATE SET value = excluded.value"
    }

    /// Whether the note `$1` is of the row `$2` as it stands in this very database: one or none.
    IS_HERE on meta {
        sqlite: "",
        postgres: "SELECT count(*) AS found FROM meta n, meta m, pg_database d
                   WHERE n.key = $1 AND m.key = $2 AND d.datname = current_database()
                   AND n.value = concat_ws(' ', d.oid::text, m.tableoid::text, m.xmin::text)"
    }

    /// How many tables the schema has that no extension has made, how many columns its `schema_migrations` has, how many of
    /// these have the store's names, and which tables of tenants have no primary key, which a dump brings after all rows.
    TABLES_HERE on pg_class {
        sqlite: "",
        postgres: "SELECT
                   (SELECT count(*) FROM pg_class c
                    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
                    AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
                                    AND d.objid = c.oid AND d.deptype = 'e')) AS tables,
                   (SELECT count(*) FROM pg_attribute a
                    WHERE a.attrelid = to_regclass('schema_migrations') AND a.attnum > 0 AND NOT a.attisdropped) AS record,
                   (SELECT count(*) FROM pg_attribute a
                    WHERE a.attrelid = to_regclass('schema_migrations') AND a.attnum > 0 AND NOT a.attisdropped
                    AND a.attname IN ('version', 'name', 'checksum', 'applied_at')) AS own,
                   (SELECT coalesce(string_agg(c.relname::text, ' ' ORDER BY c.relname), '') FROM pg_class c
                    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
                    AND NOT c.relispartition
                    AND EXISTS (SELECT 1 FROM pg_attribute a
                                WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped)
                    AND NOT EXISTS (SELECT 1 FROM pg_index i
                                    WHERE i.indrelid = c.oid AND i.indisprimary)) AS unkeyed"
    }

    /// A share of the lock that says that a server is at work here.
    SERVICE_SHARE on pg_locks {
        sqlite: "",
        postgres: "SELECT CASE WHEN pg_try_advisory_lock_shared($1::bigint) THEN 1::bigint ELSE 0 END AS taken"
    }

    /// The whole lock.
    SERVICE_ALONE on pg_locks {
        sqlite: "",
        postgres: "SELECT CASE WHEN pg_try_advisory_lock($1::bigint) THEN 1::bigint ELSE 0 END AS taken"
    }

    /// Who has it, given the key's two halves. Of other users' connections PostgreSQL tells a part only.
    SERVICE_HOLDERS on pg_locks {
        sqlite: "",
        postgres: "SELECT l.pid, CASE WHEN l.mode = 'ExclusiveLock' THEN 1::bigint ELSE 0 END AS alone,
                   a.application_name::text AS name, host(a.client_addr) AS address,
                   to_char(a.backend_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS since
                   FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
                   WHERE l.locktype = 'advisory' AND l.classid::bigint = $1 AND l.objid::bigint = $2 AND l.objsubid = 1
                   AND l.granted AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
                   ORDER BY l.pid"
    }

    /// How many other connections there are to this database. Every role sees that there is one, whoever has it.
    OTHER_CONNECTIONS on pg_stat_activity {
        sqlite: "",
        postgres: "SELECT count(*) AS found FROM pg_stat_activity a
                   WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
                   AND coalesce(a.backend_type, 'client backend') = 'client backend'"
    }

    /// One sealer at a time over all servers. SQLite has one writer anyway.
    META_LOCK on meta {
        sqlite: "SELECT value FROM meta WHERE key = ?1",
        postgres: "SELECT value FROM meta WHERE key = $1 FOR UPDATE"
    }

    SET_ONCE on meta {
        both: "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING"
    }

    /// Which tenant's rows the session sees behind row-level security.
    SET_TENANT on meta {
        sqlite: "",
        postgres: "SELECT set_config('interlock.tenant', $1, false)"
    }

    LANE_INSERT on lanes {
        both: "INSERT INTO lanes (lane_id, server_id, opened_at)
               SELECT coalesce(max(lane_id), 0) + 1, $1, $2 FROM lanes RETURNING lane_id"
    }

    /// Of a lane whose server lives. One that was taken for dead comes back, and what it committed meanwhile is sealed.
    LANE_SEEN on lanes {
        both: "INSERT INTO lanes (lane_id, server_id, opened_at, seen_at) VALUES ($1, $2, $3, $3)
               ON CONFLICT (lane_id) DO UPDATE SET seen_at = excluded.seen_at"
    }

    // What decides whether a commit survives a crash of the machine. SQLite's are set by the store on every connection.
    DURABILITY on pg_settings {
        sqlite: "",
        postgres: "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') ORDER BY name"
    }

    /// Whether this very connection is encrypted.
    ENCRYPTED on pg_stat_ssl {
        sqlite: "",
        postgres: "SELECT CASE WHEN ssl THEN 1::bigint ELSE 0 END FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
    }

    SERVER_TIME on meta {
        sqlite: "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)",
        postgres: "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    }

    /// Group numbers do not order lanes, so the newest group of each lane is asked.
    LAST_COMMIT on commit_groups {
        both: "SELECT (SELECT g.at FROM commit_groups g WHERE g.lane_id = l.lane_id ORDER BY g.group_no DESC LIMIT 1)
               FROM lanes l"
    }

    STATS on run_live {
        both: "SELECT count(*), count(session_id) FROM run_live"
    }

    /// Looks at every live run: for metrics, now and then.
    LIVE_BY_STATE on run_live {
        both: "SELECT state, count(*) AS runs FROM run_live GROUP BY state ORDER BY state"
    }

    /// The same by tenant, where the operator asks for that. In the order of the ids, so that the same tenants are within the
    /// limit each time.
    LIVE_BY_TENANT on run_live {
        both: "SELECT tenant_id, state, count(*) AS runs FROM run_live
               GROUP BY tenant_id, state ORDER BY tenant_id, state LIMIT $1"
    }
}

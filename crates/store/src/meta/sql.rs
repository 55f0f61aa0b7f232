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

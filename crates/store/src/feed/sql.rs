use crate::sql::statements;

statements! {
    EVENTS on journal {
        both: "SELECT run_id, first_seq, at, events, initiator, person, context_meta FROM journal
               WHERE tenant_id = $1 AND run_id = $2 AND seq > $3 ORDER BY seq LIMIT $4"
    }

    FEED_READ on tenant_feed {
        both: "SELECT cursor_from, cursor_to, entries FROM tenant_feed WHERE tenant_id = $1 AND cursor_to > $2
               ORDER BY cursor_to LIMIT $3"
    }

    FEED_LAST on tenant_feed {
        both: "SELECT cursor_to FROM tenant_feed WHERE tenant_id = $1 ORDER BY cursor_to DESC LIMIT 1"
    }

    /// From the newest backwards, as far as it takes.
    FEED_BEFORE on tenant_feed {
        both: "SELECT cursor_to FROM tenant_feed WHERE tenant_id = $1 AND sealed_at < $2 ORDER BY cursor_to DESC LIMIT 1"
    }

    FEED_EVENTS on journal {
        both: "SELECT run_id, first_seq, at, events, initiator, person, context_meta FROM journal
               WHERE tenant_id = $1 AND run_id = $2 AND seq >= $3 AND seq <= $4 ORDER BY seq"
    }

    // Sealing. All lanes' groups are read by one statement: in one snapshot every lane's groups are a prefix, and a
    // group that follows another one (a later version of the same run, committed by another lane) is only seen
    // together with it.
    /// Lane by lane from where the sealer stands, at most $1 of each, so that its cost grows neither with the groups that
    /// are kept nor with those that wait. Of these the $1 oldest by transaction: a later version of a run is decided after
    /// the earlier one was committed, so its group's transaction is the younger one, and a cut between transactions never
    /// shows it first. (After a dump was read back all groups have one age; then their instants decide.) Told by their
    /// instants, which never fall within a lane: what was committed before something was asked for comes before it.
    SEAL_READ on commit_groups {
        sqlite: "SELECT l.lane_id, g.group_no, g.entries FROM lanes l
                 LEFT JOIN feed_positions p ON p.lane_id = l.lane_id
                 CROSS JOIN commit_groups g
                 WHERE g.lane_id = l.lane_id AND g.group_no > coalesce(p.group_no, 0) AND length(g.entries) > 0
                 ORDER BY l.lane_id, g.group_no LIMIT ?1",
        postgres: "SELECT lane_id, group_no, entries FROM
                   (SELECT l.lane_id, g.group_no, g.at, g.entries FROM lanes l
                   LEFT JOIN feed_positions p ON p.lane_id = l.lane_id
                   CROSS JOIN LATERAL (SELECT g.group_no, g.at, g.entries, age(g.xmin) AS age FROM commit_groups g
                   WHERE g.lane_id = l.lane_id AND g.group_no > coalesce(p.group_no, 0) AND length(g.entries) > 0
                   ORDER BY g.group_no LIMIT $1) AS g
                   ORDER BY g.age DESC, g.at, l.lane_id, g.group_no LIMIT $1) AS oldest
                   ORDER BY at, lane_id, group_no"
    }

    /// Lanes with more than $1 groups since the last one that was sealed, and their newest group.
    SEAL_HEADS on lanes {
        both: "SELECT lane_id, head FROM (SELECT l.lane_id, coalesce(p.group_no, 0) AS sealed, (SELECT g.group_no
               FROM commit_groups g WHERE g.lane_id = l.lane_id ORDER BY g.group_no DESC LIMIT 1) AS head
               FROM lanes l LEFT JOIN feed_positions p ON p.lane_id = l.lane_id) AS h WHERE head > sealed + $1"
    }

    /// The first group of each lane that is not sealed.
    UNSEALED on lanes {
        both: "SELECT (SELECT g.at FROM commit_groups g WHERE g.lane_id = l.lane_id AND g.group_no > coalesce(p.group_no, 0)
               AND length(g.entries) > 0 ORDER BY g.group_no LIMIT 1) AS at
               FROM lanes l LEFT JOIN feed_positions p ON p.lane_id = l.lane_id"
    }

    SEAL_POSITION on feed_positions {
        both: "INSERT INTO feed_positions (lane_id, group_no) VALUES ($1, $2)
               ON CONFLICT (lane_id) DO UPDATE SET group_no = excluded.group_no"
    }

    SEAL_CURSOR on tenant_feed {
        both: "SELECT cursor_to FROM tenant_feed WHERE tenant_id = $1 ORDER BY cursor_to DESC LIMIT 1"
    }

    FEED_INSERT on tenant_feed {
        both: "INSERT INTO tenant_feed (tenant_id, cursor_to, cursor_from, sealed_at, entries) VALUES ($1, $2, $3, $4, $5)"
    }

    /// The last row of a tenant stays, because the next cursor is counted from it.
    SWEEP_FEED on tenant_feed {
        both: "DELETE FROM tenant_feed WHERE (tenant_id, cursor_to) IN
               (SELECT f.tenant_id, f.cursor_to FROM tenant_feed f WHERE f.sealed_at < $1 AND f.cursor_to <
                (SELECT max(n.cursor_to) FROM tenant_feed n WHERE n.tenant_id = f.tenant_id)
                ORDER BY f.sealed_at LIMIT $2)"
    }
}

use crate::sql::statements;

statements! {
    // Sweeping: bounded batches, oldest first.

    /// Ids begin with the instant of the start and a run finishes after it, so only old ids are looked at.
    /// Runs that continue one another go together, once the last of them is due: a resume of the last one must find the
    /// receipts of all. runs_by_root.
    SWEEP_RUNS on runs {
        both: "SELECT r.run_id FROM runs r WHERE r.tenant_id = $1 AND r.run_id < $2 AND r.finished_at < $3
               AND NOT EXISTS (SELECT 1 FROM runs y WHERE y.tenant_id = r.tenant_id
               AND y.root_run_id = coalesce(r.root_run_id, r.run_id) AND y.run_id <> r.run_id
               AND (y.finished_at IS NULL OR y.finished_at >= $3))
               ORDER BY r.run_id LIMIT $4"
    }

    SWEEP_RUN on runs { both: "DELETE FROM runs WHERE tenant_id = $1 AND run_id = $2" }

    SWEEP_JOURNAL on journal { both: "DELETE FROM journal WHERE tenant_id = $1 AND run_id = $2" }

    SWEEP_STEPS on steps_added { both: "DELETE FROM steps_added WHERE tenant_id = $1 AND run_id = $2" }

    SWEEP_WAITS on waits { both: "DELETE FROM waits WHERE tenant_id = $1 AND run_id = $2" }

    SWEEP_HEARD on signals_heard { both: "DELETE FROM signals_heard WHERE tenant_id = $1 AND run_id = $2" }

    SWEEP_SUCCESSOR on successors { both: "DELETE FROM successors WHERE tenant_id = $1 AND run_id = $2" }

    SWEEP_VOTES on votes {
        both: "DELETE FROM votes WHERE tenant_id = $1 AND approval_id IN
               (SELECT approval_id FROM approvals WHERE tenant_id = $1 AND run_id = $2)"
    }

    SWEEP_APPROVALS on approvals { both: "DELETE FROM approvals WHERE tenant_id = $1 AND run_id = $2" }

    SWEEP_RECEIPTS on receipts { both: "DELETE FROM receipts WHERE tenant_id = $1 AND run_id = $2" }

    SWEEP_HOLDS on effect_holds { both: "DELETE FROM effect_holds WHERE tenant_id = $1 AND run_id = $2" }

    SWEEP_DECISIONS on decisions { both: "DELETE FROM decisions WHERE tenant_id = $1 AND run_id = $2" }

    SWEEP_OUTPUT on output { both: "DELETE FROM output WHERE tenant_id = $1 AND run_id = $2" }

    SWEEP_OUTPUT_HEADS on output_heads { both: "DELETE FROM output_heads WHERE tenant_id = $1 AND run_id = $2" }

    SWEEP_ASSIGNMENTS on assignments { both: "DELETE FROM assignments WHERE tenant_id = $1 AND run_id = $2" }

    SWEEP_RUN_OUTBOX on outbox {
        both: "DELETE FROM outbox WHERE tenant_id = $1 AND run_id = $2
               AND (delivered_at IS NOT NULL OR dead_at IS NOT NULL)"
    }

    SWEEP_LABELS on runs { both: "SELECT labels, state FROM runs WHERE tenant_id = $1 AND run_id = $2" }

    SWEEP_ATTR on run_attrs {
        both: "DELETE FROM run_attrs WHERE tenant_id = $1 AND name = $2 AND value = $3 AND run_id = $4"
    }

    /// Sealed groups are kept a while: they are the proof of commit for a lane whose answer was lost. A lane's last
    /// one stays, because no clock may go below its instant.
    SWEEP_GROUPS on commit_groups {
        both: "DELETE FROM commit_groups WHERE (lane_id, group_no) IN
               (SELECT g.lane_id, g.group_no FROM commit_groups g LEFT JOIN feed_positions p ON p.lane_id = g.lane_id
                WHERE g.at < $1 AND (g.group_no <= p.group_no OR length(g.entries) = 0)
                AND EXISTS (SELECT 1 FROM commit_groups n WHERE n.lane_id = g.lane_id AND n.group_no > g.group_no)
                ORDER BY g.lane_id, g.group_no LIMIT $2)"
    }

    // Plans that no run uses any more.

    /// plans_by_use.
    PLANS_OLD on plans {
        both: "SELECT tenant_id, plan_hash, workflow, used_at FROM plans WHERE used_at < $1 ORDER BY used_at LIMIT $2"
    }

    /// runs_by_workflow, of which retention has left few below the id.
    PLAN_RUN on runs {
        both: "SELECT 1 FROM runs WHERE workflow = $1 AND tenant_id = $2 AND run_id < $3 AND plan_hash = $4 LIMIT 1"
    }

    /// Some run lives longer than most: look again when the others of its age would be gone.
    PLAN_IN_USE on plans {
        both: "UPDATE plans SET used_at = $1 WHERE tenant_id = $2 AND plan_hash = $3 AND used_at < $1"
    }

    /// A plan that was used since it was looked at has another instant, and stays.
    SWEEP_PLAN on plans {
        both: "DELETE FROM plans WHERE tenant_id = $1 AND plan_hash = $2 AND used_at = $3"
    }

    // Lanes of servers that are gone.

    /// Those that no sweep has looked at yet: their time begins now.
    LANES_FIRST_SEEN on lanes {
        both: "UPDATE lanes SET seen_at = $1 WHERE seen_at IS NULL"
    }

    /// All that they committed is sealed. The newest lane stays, because the next one is counted from it; and one with a
    /// newer commit than all lanes after it, because no clock may go below its instant.
    LANES_GONE on lanes {
        both: "SELECT l.lane_id FROM lanes l WHERE l.seen_at < $1
               AND NOT EXISTS (SELECT 1 FROM commit_groups g WHERE g.lane_id = l.lane_id AND length(g.entries) > 0
               AND g.group_no > coalesce((SELECT p.group_no FROM feed_positions p WHERE p.lane_id = l.lane_id), 0))
               AND EXISTS (SELECT 1 FROM lanes n WHERE n.lane_id > l.lane_id
               AND coalesce((SELECT g.at FROM commit_groups g WHERE g.lane_id = n.lane_id
                   ORDER BY g.group_no DESC LIMIT 1), 0)
               >= coalesce((SELECT g.at FROM commit_groups g WHERE g.lane_id = l.lane_id
                   ORDER BY g.group_no DESC LIMIT 1), 0))
               ORDER BY l.lane_id LIMIT $2"
    }

    /// A server that has said meanwhile that it lives keeps its lane.
    SWEEP_LANE on lanes {
        both: "DELETE FROM lanes WHERE lane_id = $1 AND seen_at < $2"
    }

    /// What was not sealed stays, for the case that the server comes back.
    SWEEP_LANE_GROUPS on commit_groups {
        both: "DELETE FROM commit_groups WHERE lane_id = $1 AND (length(entries) = 0
               OR group_no <= coalesce((SELECT p.group_no FROM feed_positions p WHERE p.lane_id = $1), 0))"
    }

    SWEEP_LANE_POSITION on feed_positions {
        both: "DELETE FROM feed_positions WHERE lane_id = $1"
    }
}

//! Every table's columns, in one place: their names, which of them are ids, and which are left out or stand below where there is
//! little room. A test for each shows it in 60 and in 80 columns.

/// The columns of a table.
#[derive(Debug)]
pub struct Layout {
    pub header: &'static [&'static str],
    /// Columns of ids that commands know by their last characters: they are shortened first.
    pub ids: &'static [usize],
    /// Columns of which a part is worth nothing: others are left out for them, and at most the end of a line is cut.
    pub whole: &'static [usize],
    /// Columns that are left out where there is little room, the least useful first.
    pub dispensable: &'static [usize],
    /// Columns that get a line of their own under the row where there is little room, before anything is cut for them.
    pub below: &'static [usize],
}

/// Each layout with rows as they may look, for its test.
macro_rules! layouts {
    ($($(#[$doc:meta])* $test:ident $name:ident { header: $header:expr, ids: $ids:expr, whole: $whole:expr, dispensable: $dispensable:expr, $(below: $below:expr,)? rows: $rows:expr })+) => {
        $(
            $(#[$doc])*
            pub const $name: Layout = Layout {
                header: &$header, ids: &$ids, whole: &$whole, dispensable: &$dispensable, below: &[$($below)?],
            };
        )+

        #[cfg(test)]
        mod tests {
            $(
                #[test]
                fn $test() {
                    super::shown::fits(stringify!($test), &super::$name, &$rows);
                }
            )+
        }
    };
}

layouts! {
    /// `interlock webhook dead-letter list`.
    dead_letters DEAD_LETTERS {
        header: ["MESSAGE", "DESTINATION", "RUN", "GIVEN UP", "TRIES", "ERROR"],
        ids: [2],
        whole: [0],
        dispensable: [4, 3, 2],
        rows: [
            ["out_019a8c2e4b7a7f10a1b2c3d4e5f60001", "webhook:desk", "run_019a8c2e4b7a7f10a1b2c3d4e5f60001", "3 h ago", "12", "503: the receiver is away for maintenance"],
            ["out_019a8c2e4b7a7f10a1b2c3d4e5f60002", "slack", "run_019a8c2e4b7a7f10a1b2c3d4e5f60002", "2 d ago", "12", "the channel is archived"],
        ]
    }

    /// `interlock webhook out list`.
    webhook_endpoints WEBHOOK_ENDPOINTS {
        header: ["ENDPOINT", "URL", "EVENTS", "STATE", "NOTE"],
        ids: [],
        whole: [0],
        dispensable: [2, 4],
        rows: [
            ["who_019a8c2e4b7a7f10a1b2c3d4e5f60001", "https://desk.example.org/hooks/interlock", "session.*, approval.*", "works", "tickets of the service desk"],
            ["who_019a8c2e4b7a7f10a1b2c3d4e5f60002", "https://example.org/", "all", "disabled", "it answered 410"],
        ]
    }

    /// `interlock webhook out deliveries`.
    webhook_deliveries WEBHOOK_DELIVERIES {
        header: ["DELIVERY", "EVENT", "RUN", "MADE", "STATE", "TRIES", "LAST ANSWER"],
        ids: [2],
        whole: [0],
        dispensable: [5, 3, 2, 6],
        rows: [
            ["out_019a8c2e4b7a7f10a1b2c3d4e5f60001", "execution.step.completed", "run_019a8c2e4b7a7f10a1b2c3d4e5f60001", "10 s ago", "delivered", "1", "200"],
            ["out_019a8c2e4b7a7f10a1b2c3d4e5f60002", "session.failed", "run_019a8c2e4b7a7f10a1b2c3d4e5f60002", "2 min ago", "pending", "4", "503: the receiver is away for maintenance"],
        ]
    }

    /// `interlock webhook in list`.
    webhooks_in WEBHOOKS_IN {
        header: ["NAME", "SOURCE", "PATH", "STATE"],
        ids: [],
        whole: [2],
        dispensable: [1, 3],
        rows: [
            ["hub", "github", "/api/v1/webhooks/whi_019a8c2e4b7a7f10a1b2c3d4e5f60001", "open"],
            ["desk", "servicenow", "/api/v1/webhooks/whi_019a8c2e4b7a7f10a1b2c3d4e5f60002", "paused"],
        ]
    }

    /// `interlock webhook in deliveries`.
    webhook_arrivals WEBHOOK_ARRIVALS {
        header: ["DELIVERY", "EVENT", "CAME", "STATUS", "ANSWER"],
        ids: [],
        whole: [0, 1, 2, 4],
        dispensable: [3, 0],
        rows: [
            ["72d3162e-cc78-11e3-81ab-4c9367dc0958", "pull_request", "3 min ago", "completed", "started …e5f60001 of deploy, …e5f60002 of check-links"],
            ["72d3162e-cc78-11e3-81ab-4c9367dc0959", "push", "1 h ago", "completed", "started nothing: deploy: the event is `push`, and not `pull_request` or `release`; and 2 more"],
        ]
    }

    /// `interlock change list`.
    changes CHANGES {
        header: ["CHANGE", "STATE", "WHAT", "ASKED BY", "ASKED", "UNTIL"],
        ids: [],
        whole: [0],
        dispensable: [5, 4, 3],
        rows: [
            ["chg_019a8c2e4b7a7f10a1b2c3d4e5f60001", "requested", "PATCH /api/v1/policy", "ada", "5 min ago", "in 23 h"],
            ["chg_019a8c2e4b7a7f10a1b2c3d4e5f60002", "approved", "PATCH /api/v1/users/usr_019a8c2e4b7a7f10a1b2c3d4e5f60001", "bob", "2 h ago", "in 22 h"],
        ]
    }

    /// `interlock key list`.
    keys KEYS {
        header: ["KEY", "NAME", "BEGINS", "ROLES", "STATE", "LAST USED"],
        ids: [],
        whole: [0],
        dispensable: [2, 5, 0],
        rows: [
            ["key_019a8c2e4b7a7f10a1b2c3d4e5f60001", "continuous-integration", "ilk_7Hq2", "operator, viewer", "works", "2 min ago"],
            ["key_019a8c2e4b7a7f10a1b2c3d4e5f60002", "old", "ilk_Ab3d", "admin", "revoked", "-"],
        ]
    }

    /// `interlock user list`.
    users USERS {
        header: ["USER", "NAME", "ROLES", "GROUPS", "STATE", "LAST SIGN-IN"],
        ids: [],
        whole: [0],
        dispensable: [0, 5, 3],
        rows: [
            ["usr_019a8c2e4b7a7f10a1b2c3d4e5f60001", "ada.lovelace", "admin, approver", "sre, database", "enabled", "5 min ago"],
            ["usr_019a8c2e4b7a7f10a1b2c3d4e5f60002", "bob", "viewer", "-", "disabled", "-"],
        ]
    }

    /// `interlock tenant list`.
    tenants TENANTS {
        header: ["TENANT", "NAME", "CONCURRENCY", "RUNS/MIN", "WEIGHT", "STATE"],
        ids: [],
        whole: [0],
        dispensable: [4, 3, 0],
        rows: [
            ["ten_019a8c2e4b7a7f10a1b2c3d4e5f60001", "default", "no limit", "no limit", "1", "enabled"],
            ["ten_019a8c2e4b7a7f10a1b2c3d4e5f60002", "payments-production", "200", "6000", "10", "disabled"],
        ]
    }

    /// `interlock flag list`.
    flags FLAGS {
        header: ["FLAG", "STATE"],
        ids: [],
        whole: [],
        dispensable: [],
        rows: [
            ["new-approvals", "on"],
            ["old-timeline", "off"],
        ]
    }

    /// `interlock config show`.
    config CONFIG {
        header: ["SETTING", "VALUE", "FROM"],
        ids: [],
        whole: [1],
        dispensable: [2],
        rows: [
            ["listen", "127.0.0.1:8420", "default"],
            ["store", "postgres://interlock@db-1.example.org,db-2.example.org/interlock", "/etc/interlock/interlock.toml"],
        ]
    }

    /// `interlock policy list`.
    policy_versions POLICY_VERSIONS {
        header: ["VERSION", "HASH", "MADE", "BY", "NOTE"],
        ids: [],
        whole: [],
        dispensable: [1, 2],
        rows: [
            ["12", "7f83b1657ff1", "2 h ago", "ada", "two keys for everything in production"],
            ["11", "ef2d127de37b", "3 d ago", "bob", "-"],
        ]
    }

    /// `interlock secret list`.
    secrets SECRETS {
        header: ["NAME"],
        ids: [],
        whole: [],
        dispensable: [],
        rows: [
            ["cred-prod-db-primary"],
            ["servicenow"],
        ]
    }

    /// `interlock worker list`.
    workers WORKERS {
        header: ["WORKER", "STATE", "HEARD", "STEPS", "QUEUES", "TASKS", "SESSION"],
        ids: [6],
        whole: [],
        dispensable: [6, 5],
        rows: [
            ["deploy-box-7.example.org", "online", "2 s ago", "3/8", "default, deploy", "deploy, rollback, +4", "wks_019a8c2e4b7a7f10a1b2c3d4e5f60001"],
            ["db-1", "silent", "14 s ago", "1/1", "database", "backup", "wks_019a8c2e4b7a7f10a1b2c3d4e5f60002"],
        ]
    }

    /// `interlock worker token list`.
    worker_identities WORKER_IDENTITIES {
        header: ["IDENTITY", "NAME", "STATE", "ENVIRONMENTS", "PROFILES", "CERTIFICATE UNTIL"],
        ids: [],
        whole: [0],
        dispensable: [4, 5, 0],
        rows: [
            ["wid_019a8c2e4b7a7f10a1b2c3d4e5f60001", "deploy-box-7", "enrolled", "prod, staging", "prod-standard", "2026-11-18 09:00"],
            ["wid_019a8c2e4b7a7f10a1b2c3d4e5f60002", "db-1", "invited", "prod", "prod-critical", "-"],
        ]
    }

    /// `interlock worker show`.
    worker_steps WORKER_STEPS {
        header: ["RUN", "STEP", "ATTEMPT", "SINCE"],
        ids: [0],
        whole: [],
        dispensable: [3],
        rows: [
            ["run_019a8c2e4b7a7f10a1b2c3d4e5f60001", "restart-primary-database", "1", "3 s ago"],
            ["run_019a8c2e4b7a7f10a1b2c3d4e5f60002", "note", "2", "1 min ago"],
        ]
    }

    /// `interlock audit list`.
    audit AUDIT {
        header: ["ENTRY", "WHEN", "WHAT", "BY", "ABOUT"],
        ids: [3, 4],
        whole: [0, 1],
        dispensable: [1],
        rows: [
            ["20412", "3 min ago", "policy.decided, approval.requested, approval.voted, approval.resolved", "ada.lovelace", "run_019a8c2e4b7a7f10a1b2c3d4e5f60001"],
            ["20411", "2 h ago", "key.created", "bob", "key_019a8c2e4b7a7f10a1b2c3d4e5f60001"],
        ]
    }

    /// `interlock schedule list`.
    schedules SCHEDULES {
        header: ["NAME", "WORKFLOW", "CRON", "ZONE", "OVERLAP", "NEXT", "LAST RUN"],
        ids: [6],
        whole: [],
        dispensable: [4, 6, 3],
        rows: [
            ["nightly-backup", "backup-primary", "0 3 * * 1-5", "Europe/Berlin", "skip", "in 7 h", "run_019a8c2e4b7a7f10a1b2c3d4e5f60001"],
            ["hourly", "sync", "0 * * * *", "UTC", "queue", "paused", "-"],
        ]
    }

    /// `interlock schedule next`.
    slots SLOTS {
        header: ["LOCAL", "UTC", "STARTS"],
        ids: [],
        whole: [],
        dispensable: [1],
        rows: [
            ["2026-11-18 03:00:00 +01:00", "2026-11-18T02:00:00Z", "in 17 h"],
            ["2026-11-19 03:00:00 +01:00", "2026-11-19T02:00:00Z", "in 41 h"],
        ]
    }

    /// `interlock schedule show`.
    schedule_slots SCHEDULE_SLOTS {
        header: ["SLOT", "STATE", "RUN", "NOTE"],
        ids: [2],
        whole: [],
        dispensable: [2],
        rows: [
            ["2026-11-17T02:00:00Z", "started", "run_019a8c2e4b7a7f10a1b2c3d4e5f60001", "-"],
            ["2026-11-16T02:00:00Z", "skipped", "-", "the run before it was still active"],
        ]
    }

    /// `interlock queue list`.
    queues QUEUES {
        header: ["QUEUE", "READY", "OLDEST", "LATER", "RUNNING", "WORKERS"],
        ids: [],
        whole: [],
        dispensable: [3, 5],
        rows: [
            ["default", "12", "4 min", "3", "8", "2"],
            ["database-maintenance", "0", "-", "0", "1", "1"],
        ]
    }

    /// Open approvals of `interlock status`.
    status_approvals STATUS_APPROVALS {
        header: ["APPROVAL", "RUN", "VOTES", "ASKED", "EXPIRES", "QUESTION"],
        ids: [0, 1],
        whole: [],
        dispensable: [1, 3],
        rows: [
            ["apr_019a8c2e4b7a7f10a1b2c3d4e5f60001", "run_019a8c2e4b7a7f10a1b2c3d4e5f60001", "1/2", "4 min ago", "in 23 h", "Restart the primary database of the shop?"],
            ["apr_019a8c2e4b7a7f10a1b2c3d4e5f60002", "run_019a8c2e4b7a7f10a1b2c3d4e5f60002", "0/1", "2 h ago", "in 10 min", "Deploy?"],
        ]
    }

    /// Endpoints of `interlock status`.
    status_endpoints STATUS_ENDPOINTS {
        header: ["ENDPOINT", "URL", "STATE", "FAILING", "BEHIND", "NOTE"],
        ids: [0],
        whole: [],
        dispensable: [5, 4],
        rows: [
            ["who_019a8c2e4b7a7f10a1b2c3d4e5f60001", "https://desk.example.org/hooks/interlock", "failing", "3 h", "112", "503: the receiver is away for maintenance"],
        ]
    }

    /// `interlock slack links`.
    slack_links SLACK_LINKS {
        header: ["PERSON", "SLACK USER", "TEAM", "SINCE"],
        ids: [],
        whole: [],
        dispensable: [2],
        rows: [
            ["ada.lovelace", "U02ABCDEF12", "T0123456789", "3 d ago"],
        ]
    }

    /// `interlock workflow list`.
    workflows WORKFLOWS {
        header: ["WORKFLOW", "VERSION", "STATE", "APPLIED", "BY"],
        ids: [],
        whole: [],
        dispensable: [4],
        rows: [
            ["restart-primary-database-of-the-shop", "12", "active", "2 h ago", "ada.lovelace"],
            ["deploy", "3", "disabled", "3 d ago", "bob"],
        ]
    }

    /// `interlock workflow show`.
    workflow_versions WORKFLOW_VERSIONS {
        header: ["VERSION", "APPLIED", "BY", "SOURCE"],
        ids: [],
        whole: [],
        dispensable: [2],
        rows: [
            ["12", "2026-11-17 09:00:12", "ada.lovelace", "workflows/restart-primary-database.yaml"],
            ["11", "2026-11-14 12:00:00", "bob", "-"],
        ]
    }

    /// `interlock context list`.
    contexts CONTEXTS {
        header: ["", "NAME", "SERVER", "CREDENTIAL"],
        ids: [],
        whole: [],
        dispensable: [3],
        rows: [
            ["*", "production", "https://interlock.example.org", "login of ada.lovelace"],
            ["", "local", "http://127.0.0.1:8420", "interlock-data/local.key"],
        ]
    }

    /// `interlock run waits`.
    waits WAITS {
        header: ["SIGNAL", "KEY", "RUN", "STEP", "WAITS SINCE"],
        ids: [2],
        whole: [],
        dispensable: [3],
        rows: [
            ["monitor.recovered", "INC-2041", "run_019a8c2e4b7a7f10a1b2c3d4e5f60001", "wait-for-the-monitor", "12 min"],
            ["github.push", "shop/api", "run_019a8c2e4b7a7f10a1b2c3d4e5f60002", "merged", "3 d"],
        ]
    }

    /// `interlock run list`.
    runs RUNS {
        header: ["RUN", "WORKFLOW", "SUBJECT", "STATE", "STARTED", "TOOK"],
        ids: [0],
        whole: [3],
        dispensable: [5, 4],
        rows: [
            ["run_019a8c2e4b7a7f10a1b2c3d4e5f60001", "restart-primary-database", "INC-2041", "paused (in doubt)", "2 min ago", "-"],
            ["run_019a8c2e4b7a7f10a1b2c3d4e5f60002", "deploy", "shop/api#4711", "succeeded", "3 h ago", "4 min 12 s"],
        ]
    }

    /// `interlock run receipts`.
    receipts RECEIPTS {
        header: ["STEP", "TRY", "EFFECT", "STATE", "ASKED", "ANSWERED", "KEY", "RECEIPT", "POLICY"],
        ids: [7],
        whole: [6],
        dispensable: [8, 7, 5, 4, 6],
        rows: [
            ["restart", "1", "unsafe", "in_doubt", "09:00:12.120", "-", "run_019a8c2e4b7a7f10a1b2c3d4e5f60001/restart/0", "rcp_019a8c2e4b7a7f10a1b2c3d4e5f60001", "4f0c9d2e1b7a"],
            ["note", "2", "keyed", "succeeded (late)", "09:00:14.000", "09:00:15.100", "run_019a8c2e4b7a7f10a1b2c3d4e5f60001/note/0", "rcp_019a8c2e4b7a7f10a1b2c3d4e5f60002", "-"],
        ]
    }

    /// `interlock db restore`.
    parked_runs PARKED_RUNS {
        header: ["RUN", "WORKFLOW", "STEP", "STATE", "EFFECT", "OPEN EFFECTS"],
        ids: [0],
        whole: [],
        dispensable: [4, 3],
        below: 5,
        rows: [
            ["run_019a8c2e4b7a7f10a1b2c3d4e5f60001", "restart-primary-database", "restart", "running", "unsafe", "rcp_019a8c2e4b7a7f10a1b2c3d4e5f60001"],
            ["run_019a8c2e4b7a7f10a1b2c3d4e5f60002", "deploy", "announce-to-customers", "ready", "keyed", "-"],
        ]
    }

    /// `interlock bulk show`.
    bulk_failures BULK_FAILURES {
        header: ["RUN", "CODE", "WHY"],
        ids: [0],
        whole: [2],
        dispensable: [1],
        rows: [
            ["run_019a8c2e4b7a7f10a1b2c3d4e5f60001", "RUN_TERMINAL_STATE", "the run has ended: it is succeeded"],
            ["run_019a8c2e4b7a7f10a1b2c3d4e5f60002", "RUN_INVALID_TRANSITION", "the run is running: cannot resume it"],
        ]
    }

    /// `interlock bulk list`.
    bulk_jobs BULK_JOBS {
        header: ["JOB", "ACTION", "RUNS", "DONE", "FAILED", "STATE", "STARTED", "REASON"],
        ids: [],
        whole: [0],
        dispensable: [7, 6, 3, 4, 2],
        rows: [
            ["job_019a8c2e4b7a7f10a1b2c3d4e5f60001", "cancel", "1240", "1240", "0", "finished", "3 h ago", "the region is being evacuated"],
            ["job_019a8c2e4b7a7f10a1b2c3d4e5f60002", "retry", "12", "3", "1", "under way", "10 s ago", "the database is back"],
        ]
    }

    /// `interlock run attempts`.
    attempts ATTEMPTS {
        header: ["STEP", "TRY", "WORKER", "STARTED", "TOOK", "OUTCOME", "ERROR"],
        ids: [2],
        whole: [2],
        dispensable: [3, 4],
        rows: [
            ["restart-primary-database", "1", "deploy-box-7.example.org", "09:00:12", "1 min 2 s", "timed out", "STEP_TIMEOUT: it ran longer than 60 s"],
            ["note", "2", "db-1", "09:01:20", "120 ms", "completed", "-"],
        ]
    }

    /// `interlock run show`.
    steps STEPS {
        header: ["", "STEP", "KIND", "STATE", "TRIES", "TOOK", ""],
        ids: [],
        whole: [6],
        dispensable: [6, 2],
        rows: [
            ["✓", "check-that-it-runs", "command", "succeeded", "", "1.2 s", "━━━━━━━━━━"],
            ["▶", "restart-primary-database", "command", "running", "2", "12 s", "          ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━"],
        ]
    }

    /// `interlock approval list`.
    approvals APPROVALS {
        header: ["APPROVAL", "WORKFLOW", "SUBJECT", "QUESTION", "STATE", "VOTES", "YOURS", "DUE", "EXPIRES", "ASKED", "APPROVERS", "RUN"],
        ids: [0, 11],
        whole: [],
        dispensable: [11, 10, 9, 8, 4, 5, 7],
        below: 3,
        rows: [
            ["apr_019a8c2e4b7a7f10a1b2c3d4e5f60001", "restart-primary-database", "INC-2041", "Restart the primary database of the shop?", "requested", "1/2", "yes", "in 6 min", "in 23 h", "4 min ago", "sre, database", "run_019a8c2e4b7a7f10a1b2c3d4e5f60001"],
            ["apr_019a8c2e4b7a7f10a1b2c3d4e5f60002", "deploy", "shop/api#4711", "Deploy?", "requested", "0/1", "-", "-", "in 10 min", "2 h ago", "anybody", "run_019a8c2e4b7a7f10a1b2c3d4e5f60002"],
        ]
    }

    /// `interlock approval delegations`.
    delegations DELEGATIONS {
        header: ["DELEGATION", "WHOSE", "WHO DECIDES", "STATE", "FROM", "UNTIL", "REASON"],
        ids: [],
        whole: [0],
        dispensable: [6, 4, 5, 3],
        rows: [
            ["dlg_019a8c2e4b7a7f10a1b2c3d4e5f60001", "ada.lovelace", "bob", "in force", "2026-11-16 00:00", "2026-11-30 00:00", "on holiday until the end of the month"],
        ]
    }
}

#[cfg(test)]
mod shown {
    use unicode_width::UnicodeWidthStr as _;

    use super::Layout;
    use crate::output::paint::Paint;
    use crate::output::table::{Cell, Table};

    /// The table in 60 and in 80 columns, as it is kept: no line is too long, and no id is cut in the middle.
    pub fn fits<const C: usize>(name: &str, layout: &Layout, rows: &[[&str; C]]) {
        let mut table = Table::of(layout);
        for row in rows {
            table.row(row.map(Cell::new));
        }
        for width in [60, 80] {
            let shown = table.render(Paint::OFF, width);
            for line in shown.lines() {
                assert!(line.width() <= width, "{name} in {width} columns: {line}");
            }
            for row in rows {
                let is_id = |text: &&str| text.len() > 32 && text.is_ascii() && !text.contains([' ', ':']);
                for id in layout.ids.iter().chain(layout.whole).map(|column| row[*column]).filter(is_id) {
                    let begun = shown.contains(&id[..8]);
                    assert!(!begun || shown.contains(id), "{name} in {width} columns cuts {id}:\n{shown}");
                }
            }
            insta::assert_snapshot!(format!("{name}-{width}"), shown);
        }
    }
}

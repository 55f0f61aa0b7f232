//! All statements of the store.

use crate::sql::{Stmt, hot, side};
use crate::{
    approvals, assignments, audit, bulk_jobs, changes, check, claims, decisions, delegations, effect_holds, evidence,
    feed, idempotency, inbound, keys, meta, outbound, outbox, output, payloads, people, policies, receipts, retention,
    runs, schedules, signals, slack, subjects, tenants, worker_identities, workers, workflows,
};

/// All of them, for the test that prepares each on both databases.
pub fn all_statements() -> impl Iterator<Item = &'static Stmt> {
    let nouns: [&[&Stmt]; 33] = [
        approvals::sql::ALL,
        assignments::sql::ALL,
        effect_holds::sql::ALL,
        audit::sql::ALL,
        bulk_jobs::sql::ALL,
        changes::sql::ALL,
        check::sql::ALL,
        claims::sql::ALL,
        decisions::sql::ALL,
        delegations::sql::ALL,
        evidence::sql::ALL,
        feed::sql::ALL,
        idempotency::sql::ALL,
        inbound::sql::ALL,
        keys::sql::ALL,
        meta::sql::ALL,
        outbound::sql::ALL,
        outbox::sql::ALL,
        output::sql::ALL,
        payloads::sql::ALL,
        people::sql::ALL,
        policies::sql::ALL,
        receipts::sql::ALL,
        retention::sql::ALL,
        runs::sql::ALL,
        schedules::sql::ALL,
        signals::sql::ALL,
        slack::sql::ALL,
        subjects::sql::ALL,
        tenants::sql::ALL,
        worker_identities::sql::ALL,
        workers::sql::ALL,
        workflows::sql::ALL,
    ];
    hot::ALL.iter().chain(side::ALL).chain(nouns.into_iter().flatten()).copied()
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_first_appear_in_order_and_names_are_unique() {
        let mut names = std::collections::HashSet::new();
        for stmt in super::all_statements() {
            assert!(names.insert(stmt.name), "{} is declared twice", stmt.name);
            for sql in [stmt.sqlite, stmt.postgres] {
                let mut seen = 0;
                for part in sql.split('$').skip(1) {
                    let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
                    let Ok(number) = digits.parse::<u32>() else { continue };
                    assert!(number <= seen + 1, "{}: ${number} appears before ${}", stmt.name, seen + 1);
                    seen = seen.max(number);
                }
            }
        }
    }
}

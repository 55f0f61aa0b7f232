use std::sync::Arc;

use interlock_core::ids::{DecisionId, RunId, TenantId};
use interlock_core::json::HashHex;
use interlock_core::run::decision::{Basis, DecisionRecord};
use interlock_core::time::Timestamp;

use super::{DecisionRow, sql};
use crate::error::{CorruptRow, ReadError};
use crate::store::Store;
use crate::value::{Row, Value, args, first_id_at};

impl Store {
    /// What was decided on a run's actions, in that order.
    pub async fn decisions_of(
        &self,
        tenant: TenantId,
        run: RunId,
        limit: usize,
    ) -> Result<Vec<DecisionRow>, ReadError> {
        let rows = self.rows(&sql::DECISIONS_OF_RUN, args![tenant, run, limit]).await?;
        Ok(rows.into_iter().map(decision).collect::<Result<_, _>>()?)
    }

    /// A tenant's decisions from an instant on, after the last one of the page before.
    pub async fn decisions_since(
        &self,
        tenant: TenantId,
        since: Timestamp,
        after: Option<DecisionId>,
        limit: usize,
    ) -> Result<Vec<DecisionRow>, ReadError> {
        let after = after.map_or_else(|| first_id_at(since), Value::from);
        let rows = self.rows(&sql::DECISIONS_SINCE, args![tenant, after, limit]).await?;
        Ok(rows.into_iter().map(decision).collect::<Result<_, _>>()?)
    }
}

fn decision(mut row: Row) -> Result<DecisionRow, CorruptRow> {
    let (run, at) = (row.id("run_id")?, row.time("at")?);
    let basis = Basis {
        bundle: HashHex(row.hash("bundle")?),
        evaluator: row.text("evaluator")?,
        input: row.json("input")?,
        answer: row.opt_json("answer")?,
        shadow: row.opt_json("shadow")?,
        tier: row.text("tier")?,
    };
    let record = DecisionRecord {
        id: row.id("decision_id")?,
        position: row.num("position")?,
        iteration: row.num("iteration")?,
        attempt: row.num("attempt")?,
        operation: row.text("operation")?,
        verdict: row.text("verdict")?,
        action: HashHex(row.hash("action")?),
        basis: Arc::new(basis),
    };
    Ok(DecisionRow { run, at, record })
}

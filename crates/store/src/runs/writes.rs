use std::collections::BTreeMap;

use interlock_core::ids::{RunId, TenantId};
use interlock_core::limits::OWN_LABELS;

use super::sql;
use crate::db::Db;
use crate::error::DbError;
use crate::sql::side;
use crate::value::{Value, args};
use crate::write::{Changed, Write, boxed, changed, json_text};

/// Gives a run that has ended other labels, and has it found by them. [`Changed::Gone`] where it lives, is not there, or has
/// other labels by now than those that the change was made from.
#[derive(Debug, Clone)]
pub struct ChangeLabels {
    pub tenant: TenantId,
    pub run: RunId,
    pub from: BTreeMap<String, String>,
    pub to: BTreeMap<String, String>,
}

impl Write for ChangeLabels {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let Self { tenant, run, from, to } = self;
        let text = |labels: &BTreeMap<String, String>| {
            if labels.is_empty() { Ok(None) } else { json_text(labels).map(Some) }
        };
        let values = args![text(to)?, *tenant, *run, text(from)?.unwrap_or_default()];
        if changed(db, &sql::RUN_RELABEL, values).await? == Changed::Gone {
            return Ok(Changed::Gone);
        }
        let attr = |(name, value): (&String, &String)| -> Vec<Value> { args![*tenant, name, value, *run] };
        let is_found_by = |(name, _): &(&String, &String)| !name.starts_with(OWN_LABELS);
        for gone in from.iter().filter(|(name, value)| to.get(*name) != Some(value)).filter(is_found_by) {
            db.execute(&sql::ATTR_REMOVE, attr(gone)).await?;
        }
        for new in to.iter().filter(|(name, value)| from.get(*name) != Some(value)).filter(is_found_by) {
            db.execute(&side::ATTR_INSERT, attr(new)).await?;
        }
        Ok(Changed::Done)
    }
}

//! The slow path: a group did not fit, so every set is asked which of its guards refuses it. Nothing is locked; the
//! next try of the group finds out whether the answer still holds.

use std::collections::HashMap;

use interlock_core::ids::RunId;

use super::connect::PgDb;
use crate::effect_holds::sql as effect_holds;
use crate::error::{DbError, Refusal};
use crate::sql::{Stmt, hot, side};
use crate::submit::{Guard, Prepared, SideStmt};
use crate::value::{Row, Value, args};

/// The refusals among these sets, by the index they came with.
pub(crate) async fn refusals(db: &PgDb, sets: &[(usize, &Prepared)]) -> Result<HashMap<usize, Refusal>, DbError> {
    let mut questions = Vec::new();
    let mut asked = Vec::new();
    for (index, set) in sets {
        let change = &set.change;
        let stmt = if change.expected.is_some() { &hot::INSPECT_VERSION } else { &hot::INSPECT_RUN };
        questions.push((stmt, args![change.tenant, change.run]));
        asked.push((*index, GuardQuestion::Run(change.expected)));
        for write in &set.side {
            // What the set itself takes away is still there for a look from outside.
            let makes_room = |other: &SideStmt| {
                std::ptr::eq(other.stmt, &raw const side::VOTE_DROP) && other.args[..3] == write.args[..3]
            };
            if write.guard == Guard::Vote && set.side.iter().any(makes_room) {
                continue;
            }
            if let Some(question) = question(write) {
                questions.push(question);
                asked.push((*index, GuardQuestion::Side(write)));
            }
        }
    }
    let mut refused = HashMap::new();
    for ((index, asked), rows) in asked.into_iter().zip(db.query_many(questions).await?) {
        if let Some(refusal) = asked.refusal(rows.into_iter().next())? {
            refused.entry(index).or_insert(refusal);
        }
    }
    Ok(refused)
}

/// What a question is about: the run's version, or a write with a guard.
enum GuardQuestion<'a> {
    Run(Option<u64>),
    Side(&'a SideStmt),
}

fn question(write: &SideStmt) -> Option<(&'static Stmt, Vec<Value>)> {
    let args = &write.args;
    let pick = |places: &[usize]| places.iter().map(|place| args[*place].clone()).collect();
    match write.guard {
        Guard::None => None,
        Guard::Idempotency => Some((&side::INSPECT_IDEMPOTENCY, pick(&[0, 1, 2]))),
        Guard::Subject => Some((&side::INSPECT_SUBJECT, pick(&[0, 1, 2]))),
        Guard::Queue => Some((&side::INSPECT_QUEUE, pick(&[0, 1, 5]))),
        Guard::Signal => Some((&side::INSPECT_SIGNAL, pick(&[3, 4]))),
        Guard::Heard => Some((&side::INSPECT_HEARD, pick(&[0, 1, 2]))),
        Guard::Vote => Some((&side::INSPECT_VOTE, pick(&[0, 1, 2]))),
        Guard::Account => Some((&side::INSPECT_ACCOUNT, pick(&[1, 2, 0, 3]))),
        Guard::Receipt => Some((&side::INSPECT_RECEIPT, pick(&[0, 6, 1, 8, 2]))),
        Guard::Hold => Some((&effect_holds::INSPECT_HOLD, pick(&[0, 1, 2]))),
        Guard::Successor => Some((&side::INSPECT_SUCCESSOR, pick(&[0, 1]))),
    }
}

impl GuardQuestion<'_> {
    fn refusal(&self, row: Option<Row>) -> Result<Option<Refusal>, DbError> {
        Ok(match (self, row) {
            (Self::Run(None), Some(_)) => Some(Refusal::RunExists),
            (Self::Run(None), None) => None,
            (Self::Run(Some(_)), None) => Some(Refusal::Version),
            (Self::Run(Some(expected)), Some(mut row)) => {
                (row.num::<u64>("version")? != *expected).then_some(Refusal::Version)
            }
            (Self::Side(write), row) => match (write.guard, row) {
                (Guard::Idempotency, Some(_)) => Some(Refusal::IdempotencyExists),
                (Guard::Vote, Some(_)) => Some(Refusal::VoteExists),
                (Guard::Account, None) => Some(Refusal::AccountChanged),
                (Guard::Signal, None) | (Guard::Heard, Some(_)) => Some(Refusal::SignalConsumed),
                (Guard::Subject, Some(mut row)) => {
                    let holder = row.opt_id::<RunId>("run_id")?.filter(|run| Value::from(*run) != write.args[2]);
                    holder.map(|run| Refusal::SubjectBusy { run })
                }
                (Guard::Queue, Some(_)) => Some(Refusal::SubjectQueueFull),
                (Guard::Receipt | Guard::Hold, Some(_)) => Some(Refusal::ReceiptExists),
                (Guard::Successor, Some(mut row)) => Some(Refusal::Continued { by: row.id("continued_by")? }),
                _ => None,
            },
        })
    }
}

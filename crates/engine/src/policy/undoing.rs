//! What rules say to a rollback that is not ordered yet.

use interlock_boxed::boxed;
use interlock_core::governance::action::Action;
use interlock_core::governance::judge::Decision;
use interlock_core::run::Run;
use interlock_core::run::undoing::{RollbackPreview, UndoRuling};

use crate::parts::Policies;

impl Policies {
    /// What a rollback from a position on would come to, with what the policy says to the undoing of each step. The steps are
    /// judged as they would be if the rollback were ordered now.
    #[boxed]
    pub async fn rollback_preview(&self, run: &Run, from: u32) -> RollbackPreview {
        let mut preview = run.rollback_preview(from);
        for (undone, position) in preview.undone.iter_mut().zip(run.steps.len() as u32..) {
            let Some((spec, given)) = run.undoing_of(undone.position) else { continue };
            let Some(action) = Action::of_step(&spec, position, given) else { continue };
            let judge = self.0.judge_for(action, &spec, run).await;
            undone.policy = Some(said(judge.decision()));
        }
        preview.say_who_is_asked();
        preview
    }
}

fn said(decision: &Decision) -> UndoRuling {
    let (reasons, gate) = match decision {
        Decision::Allow => (Vec::new(), None),
        Decision::Deny { reasons } => (reasons.clone(), None),
        Decision::NeedsApproval { reasons, terms } => (reasons.clone(), Some(&terms.gate)),
        Decision::Undecided { why } => (vec![why.clone()], None),
    };
    UndoRuling {
        verdict: decision.name().to_owned(),
        reasons,
        quorum: gate.map(|gate| gate.quorum),
        approvers: gate.map(|gate| gate.approvers.clone()).unwrap_or_default(),
    }
}

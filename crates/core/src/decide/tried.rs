//! What people have agreed to is for one try, where it reaches further than `low`: once an attempt may have done something, the
//! next one is judged anew before a worker gets it, and asks them again. Below that a step is tried as often as its workflow
//! says, and so is one that certainly did nothing (decision 0043).

use super::draft::Draft;
use crate::plan::BlastRadius;
use crate::planted::{Bug, is_planted};
use crate::run::Agreed;

fn of_step(draft: &Draft<'_>, position: u32) -> impl Fn(&Agreed) -> bool + use<> {
    let iteration = draft.step(position).iteration;
    move |agreed| (agreed.step, agreed.iteration) == (position, iteration)
}

fn change(draft: &mut Draft<'_>, position: u32, mut with: impl FnMut(&mut Agreed)) {
    let is_own = of_step(draft, position);
    if draft.notes().agreed.iter().any(&is_own) {
        draft.notes_mut().agreed.iter_mut().filter(|agreed| is_own(agreed)).for_each(&mut with);
    }
}

/// A worker that does not say what it does has the step, so it may do anything.
pub(super) fn claimed(draft: &mut Draft<'_>, position: u32) {
    change(draft, position, |agreed| {
        agreed.acted = agreed.acted.saturating_add(1);
        agreed.only_claimed = true;
    });
}

/// An effect is about to happen on what people have agreed to.
pub(super) fn acts(draft: &mut Draft<'_>, position: u32) {
    change(draft, position, |agreed| {
        agreed.acted = agreed.acted.saturating_add(1);
        agreed.only_claimed = false;
    });
}

/// That effect certainly did not happen.
pub(super) fn did_not_act(draft: &mut Draft<'_>, position: u32) {
    change(draft, position, |agreed| agreed.acted = agreed.acted.saturating_sub(1));
}

/// The worker says that it has done nothing with the step. Effects that it has named before count all the same.
pub(super) fn never_began(draft: &mut Draft<'_>, position: u32) {
    change(draft, position, |agreed| {
        if std::mem::take(&mut agreed.only_claimed) {
            agreed.acted = agreed.acted.saturating_sub(1);
        }
    });
}

/// An attempt is over, and the step will be tried again.
pub(super) fn ended(draft: &mut Draft<'_>, position: u32) {
    if is_planted(Bug::ApprovalInherited) {
        return;
    }
    let reaches_far = draft.spec(position).blast_radius() >= BlastRadius::Medium;
    change(draft, position, |agreed| {
        agreed.only_claimed = false;
        // Whatever is declared: where two had to agree, the policy knows better.
        if agreed.acted > 0 && (reaches_far || agreed.met.quorum > 1) {
            agreed.at = Agreed::OVER;
        }
    });
}

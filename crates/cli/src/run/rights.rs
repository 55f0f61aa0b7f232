//! Which of the remedies that `run why` names the caller may carry out, and who may carry out the others.

use interlock_core::ids::ApprovalId;
use interlock_core::run::why::{Cause, Explanation, Remedy};
use interlock_core::tenant::identity::Permission;
use interlock_core::text::visible::visible;
use interlock_protocol::approvals::{self, ApprovalView};
use interlock_protocol::identity::{self, Me};

use crate::client::{Client, fill};

/// What the caller may do about a run.
#[derive(Debug)]
pub struct CallerRights {
    me: Me,
    /// Whether the caller could decide the run's open approval now.
    may_decide: bool,
}

/// The caller's rights; none where the server does not say who the caller is.
pub async fn ask(client: &Client, explanation: &Explanation) -> Option<CallerRights> {
    let me: Me = client.get(identity::path::ME).send().await.ok()?;
    let may_decide = match open_approval(explanation) {
        Some((approval, excluded)) => {
            let path = fill(approvals::path::APPROVAL, &[("approval", &approval)]);
            let view = client.get(path).send::<ApprovalView>().await;
            // Where the approval cannot be read, as far as the roles tell.
            let is_excluded = me.person.as_ref().is_none_or(|person| excluded.contains(person));
            let by_role = !is_excluded && me.roles.grant(Permission::Vote);
            view.map_or(by_role, |view| view.may_decide == Some(true))
        }
        None => false,
    };
    Some(CallerRights { me, may_decide })
}

/// The approval that the run waits for, and the people who started or directed it.
fn open_approval(explanation: &Explanation) -> Option<(ApprovalId, &[String])> {
    explanation.because.iter().find_map(|cause| match cause {
        Cause::Approval { approval, excluded, .. } => Some((*approval, excluded.as_slice())),
        _ => None,
    })
}

impl CallerRights {
    fn permits(&self, remedy: Remedy) -> bool {
        let has = |permission| self.me.roles.grant(permission);
        match remedy {
            Remedy::Wait => true,
            Remedy::Approve | Remedy::Reject => self.may_decide,
            Remedy::StartWorker => has(Permission::Operate) || has(Permission::Work),
            Remedy::SwitchOn => has(Permission::Administer),
            Remedy::Signal
            | Remedy::Resolve
            | Remedy::Resume
            | Remedy::Retry
            | Remedy::Reassign
            | Remedy::Skip
            | Remedy::Rollback
            | Remedy::Restart
            | Remedy::Cancel => has(Permission::Operate),
        }
    }

    /// Takes from an explanation what the caller may not do, and answers who may do it: said where the caller can do
    /// nothing, and where it is a vote.
    pub fn withhold(&self, explanation: &mut Explanation) -> Vec<String> {
        let (kept, withheld): (Vec<Remedy>, Vec<Remedy>) =
            explanation.next.iter().copied().partition(|remedy| self.permits(*remedy));
        let mut told = Vec::new();
        if let Some((_, excluded)) = open_approval(explanation)
            && withheld.contains(&Remedy::Approve)
        {
            let but = match &self.me.person {
                None => "; a key cannot",
                Some(person) if excluded.contains(person) => {
                    "; you cannot, because you started or directed it, or wrote its workflow"
                }
                Some(_) => "",
            };
            told.push(format!("An approver can approve or reject it{but}."));
        }
        if kept.is_empty() {
            let verbs: Vec<&str> = withheld.iter().copied().filter_map(operator_verb).collect();
            if let Some((last, others)) = verbs.split_last() {
                let others = if others.is_empty() { String::new() } else { format!("{} or ", others.join(", ")) };
                told.push(format!("An operator can {others}{last} it."));
            }
            if withheld.contains(&Remedy::SwitchOn) {
                told.push("An admin can let workers elsewhere have it.".to_owned());
            }
            if withheld.contains(&Remedy::StartWorker) {
                told.push("An operator can start a worker that takes it.".to_owned());
            }
        }
        explanation.next = kept;
        told
    }
}

/// That people who started or directed a run may approve it.
pub fn allowed_for(people: &[String]) -> String {
    format!(
        "{} started or directed it and may approve it all the same: the tenant lets people approve their own runs.",
        visible(&people.join(", "))
    )
}

/// What an operator does to a run.
const fn operator_verb(remedy: Remedy) -> Option<&'static str> {
    Some(match remedy {
        Remedy::Wait | Remedy::StartWorker | Remedy::SwitchOn | Remedy::Approve | Remedy::Reject => return None,
        Remedy::Signal => "signal",
        Remedy::Resolve => "resolve",
        Remedy::Resume => "resume",
        Remedy::Retry => "retry",
        Remedy::Reassign => "reassign",
        Remedy::Skip => "skip",
        Remedy::Rollback => "roll back",
        Remedy::Restart => "restart",
        Remedy::Cancel => "cancel",
    })
}

#[cfg(test)]
mod tests {
    use interlock_core::ids::{RunId, TenantId};
    use interlock_core::run::approval::Purpose;
    use interlock_core::state::RunState;
    use interlock_core::tenant::identity::Role;
    use interlock_core::time::Timestamp;

    use super::*;

    fn caller(person: Option<&str>, roles: &[Role], may_decide: bool) -> CallerRights {
        let me = Me {
            tenant: TenantId::from_bytes([1; 16]),
            tenant_name: "default".into(),
            client: "c".into(),
            person: person.map(str::to_owned),
            key: None,
            roles: roles.iter().copied().collect(),
            groups: vec![],
            workspace: None,
            installation: false,
            flags: vec![],
            csrf: None,
        };
        CallerRights { me, may_decide }
    }

    fn waiting() -> Explanation {
        Explanation {
            run_id: RunId::from_bytes([1; 16]),
            state: RunState::WaitingApproval,
            step: "gate".into(),
            because: vec![Cause::Approval {
                approval: ApprovalId::from_bytes([2; 16]),
                purpose: Purpose::Gate,
                needed: 1,
                approved_by: vec![],
                fallen: vec![],
                approvers: vec![],
                excluded: vec!["olga".into()],
                self_approval: false,
                message: None,
                expires_at: Timestamp(0),
            }],
            next: vec![Remedy::Approve, Remedy::Reject, Remedy::Cancel],
        }
    }

    #[test]
    fn a_viewer_is_offered_nothing_and_told_who_can_act() {
        let mut explanation = waiting();
        let told = caller(Some("vera"), &[Role::Viewer], false).withhold(&mut explanation);
        assert!(explanation.next.is_empty(), "{:?}", explanation.next);
        assert_eq!(told, ["An approver can approve or reject it.", "An operator can cancel it."]);
        let mut failed = Explanation {
            state: RunState::Failed,
            because: vec![],
            next: vec![Remedy::Retry, Remedy::Restart],
            ..waiting()
        };
        let told = caller(None, &[Role::Viewer], false).withhold(&mut failed);
        assert_eq!((failed.next, told), (vec![], vec!["An operator can retry or restart it.".to_owned()]));
    }

    #[test]
    fn the_flag_is_for_an_admin_to_switch() {
        let held = || Explanation { because: vec![], next: vec![Remedy::SwitchOn, Remedy::Cancel], ..waiting() };
        for (role, offered, others) in [
            (Role::Admin, vec![Remedy::SwitchOn, Remedy::Cancel], vec![]),
            (Role::Operator, vec![Remedy::Cancel], vec![]),
            (Role::Viewer, vec![], vec!["An operator can cancel it.", "An admin can let workers elsewhere have it."]),
        ] {
            let mut explanation = held();
            let told = caller(Some("ada"), &[role], false).withhold(&mut explanation);
            assert_eq!((explanation.next, told), (offered, others.into_iter().map(str::to_owned).collect()));
        }
    }

    #[test]
    fn a_key_and_an_excluded_starter_are_not_offered_to_approve() {
        for (person, why) in [(None, "; a key cannot."), (Some("olga"), "; you cannot, because you started or")] {
            let mut explanation = waiting();
            let rights = caller(person, &[Role::Admin], false);
            let told = rights.withhold(&mut explanation);
            assert_eq!(explanation.next, [Remedy::Cancel]);
            assert!(told.len() == 1 && told[0].contains(why), "{told:?}");
        }
    }

    #[test]
    fn a_starter_who_may_approve_is_offered_it() {
        let mut explanation = waiting();
        let rights = caller(Some("olga"), &[Role::Operator, Role::Approver], true);
        assert!(rights.withhold(&mut explanation).is_empty());
        assert_eq!(explanation.next, waiting().next);
        let why = allowed_for(&["olga".to_owned()]);
        assert!(why.contains("olga") && why.contains("the tenant lets people approve their own runs"), "{why}");
    }
}

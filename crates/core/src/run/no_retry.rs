//! Why a step that has failed was not tried again, for people who wonder.

use super::{Phase, Run};
use crate::plan::StepSpec;
use crate::plan::retry::{ErrorClass, POLICY_UNAVAILABLE, StepError};
use crate::rejection::{SPEND_EXHAUSTED, WRITES_EXHAUSTED};
use crate::state::{EffectClass, Reason};

impl Run {
    /// Why a step has failed for good; nothing where it has not failed.
    pub fn why_no_retry(&self, position: u32) -> Option<String> {
        let step = self.steps.get(position as usize)?;
        if !matches!(step.phase, Phase::Failed | Phase::RolledBack) {
            return None;
        }
        let error = step.last_error.as_ref()?;
        let why = self.spec(position).no_retry(error, step.failures);
        Some(why.unwrap_or_else(|| match self.reason {
            _ if self.notes.cancellation.is_some() => "the run was being canceled".to_owned(),
            Some(Reason::Deadline) => "the run was past its deadline (`timeout` of the workflow)".to_owned(),
            _ if self.notes.assignment.as_ref().is_some_and(|assignment| assignment.lost_in_step) => {
                "the worker was lost, and with it the run's directory: an operator decides how it goes on".to_owned()
            }
            _ => "the run was ended while attempts were left".to_owned(),
        }))
    }
}

impl StepSpec {
    /// What speaks against another try after this failure, as far as the step itself knows.
    fn no_retry(&self, error: &StepError, failures: u32) -> Option<String> {
        let policy = self.retry_policy();
        let said = match error.class {
            _ if error.code == WRITES_EXHAUSTED => "the run has used up its writes (`limits.writes`)",
            _ if error.code == SPEND_EXHAUSTED => "the run has spent what it may (`limits.spend`)",
            ErrorClass::Invalid => "the request was wrong, and the same one would be wrong again",
            _ if error.code == POLICY_UNAVAILABLE => "the policy could not decide; retry it once the policy can",
            ErrorClass::Denied => "the policy has denied it",
            ErrorClass::Rejected => "people have rejected it",
            _ if error.code == "WAIT_TIMEOUT" => {
                "the signal did not come in time (`wait.timeout`), and a wait is not repeated by itself"
            }
            ErrorClass::Terminal if error.code.ends_with("_DATA_ERROR") => {
                "exit code 65 says that the same input would fail again"
            }
            ErrorClass::Terminal => "whatever ran it said that another try is useless",
            _ if failures < policy.max_attempts => return None,
            _ if self.retry.is_none() && policy.max_attempts == 1 => {
                let effect = self.effect_class();
                let what = if effect == EffectClass::Unsafe {
                    "cannot be repeated safely"
                } else {
                    "is not repeated by itself"
                };
                return Some(format!("its effect is `{effect}` and {what}; `retry.max_attempts` allows more tries"));
            }
            _ => {
                let (max, default) = (policy.max_attempts, if self.retry.is_none() { " by default" } else { "" });
                let attempts = if max == 1 { "the one attempt is" } else { "all attempts are" };
                return Some(format!("{attempts} spent (`retry.max_attempts` is {max}{default})"));
            }
        };
        Some(said.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::retry::{Backoff, RetryPolicy};
    use crate::plan::{Undo, Work};
    use crate::time::Millis;

    fn failed(class: ErrorClass, message: &str) -> StepError {
        StepError::new(class, "E", message)
    }

    #[test]
    fn the_reason_is_named() {
        let task = StepSpec::task("a", "a");
        let why = |spec: &StepSpec, error: &StepError, failures| spec.no_retry(error, failures).unwrap_or_default();
        let timeout = failed(ErrorClass::Timeout, "too long");
        assert!(why(&task, &timeout, 5).contains("all attempts are spent (`retry.max_attempts` is 5 by default)"));
        assert_eq!(why(&task, &timeout, 4), "", "there were tries left: the run has ended it");
        let retry = RetryPolicy { max_attempts: 1, backoff: Backoff::Fixed { delay: Millis(1) } };
        let once = StepSpec { retry: Some(retry), ..task.clone() };
        assert!(why(&once, &timeout, 1).starts_with("the one attempt is spent"));
        for (class, message, says) in [
            (ErrorClass::Invalid, "422", "would be wrong again"),
            (ErrorClass::Denied, "no", "policy"),
            (ErrorClass::Rejected, "no", "people"),
            (ErrorClass::Terminal, "enough", "useless"),
        ] {
            assert!(why(&task, &failed(class, message), 1).contains(says), "{class}");
        }
        let undecided = StepError::new(ErrorClass::Denied, POLICY_UNAVAILABLE, "no answer");
        assert!(why(&task, &undecided, 1).contains("could not decide"), "nothing was denied");
        let data = StepError::new(ErrorClass::Terminal, "TASK_DATA_ERROR", "ended with exit code 65");
        assert!(why(&task, &data, 1).contains("exit code 65"));
        let late = StepError::new(ErrorClass::Timeout, "WAIT_TIMEOUT", "no signal `go` for `INC-1` came in time");
        assert!(why(&task, &late, 1).contains("the signal did not come in time"));
        let work = Work::Rollback { undoes: 0, by: Undo::Handler("undo".into()), with: None, verifies: false };
        let undo = StepSpec { effect: Some(EffectClass::Unsafe), ..StepSpec::new("rollback:a".to_owned(), work) };
        assert!(why(&undo, &timeout, 1).contains("its effect is `unsafe`"));
    }
}

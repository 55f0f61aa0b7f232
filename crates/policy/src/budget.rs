//! What an evaluation may use: work, time, and what the limited functions make. The evaluator asks for the time after each
//! bit of work; the answer is the only way to stop it.
//!
//! The time is what this thread has computed, so that a busy machine stops no policy. Nothing is decided by it: a
//! policy cannot read it, and one that is stopped has given no answer.

use std::cell::RefCell;
use std::time::Duration;

use regorus::utils::limits::{ExecutionTimerConfig, TimeSource, set_time_source};
use rustix::time::{ClockId, clock_gettime};

use crate::decision::Undecided;
use crate::limits;

/// What is left for the evaluation on this thread, and why it was stopped.
#[derive(Default)]
struct Budget {
    work: u64,
    made: usize,
    stopped: Option<Undecided>,
    /// What the thread had computed when it was last asked, and when that was: asking is slow.
    computed: Duration,
    asked_at: Duration,
}

/// How long an answer is good enough.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(5);

impl Budget {
    fn computed(&mut self) -> Option<Duration> {
        let now = Duration::try_from(clock_gettime(ClockId::Monotonic)).ok()?;
        if now.saturating_sub(self.asked_at) >= ASK_AGAIN_AFTER {
            self.computed = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).ok()?;
            self.asked_at = now;
        }
        Some(self.computed)
    }
}

thread_local! {
    static BUDGET: RefCell<Budget> = RefCell::default();
}

struct Metered;

impl TimeSource for Metered {
    fn now(&self) -> Option<Duration> {
        BUDGET.with_borrow_mut(|budget| {
            budget.work = budget.work.saturating_sub(u64::from(limits::WORK_INTERVAL));
            if budget.work > 0 {
                return budget.computed();
            }
            budget.stopped.get_or_insert(Undecided::Work { max: limits::WORK_MAX });
            Some(Duration::MAX)
        })
    }
}

/// How the evaluator is told to look at the limits.
pub(crate) fn limit(time: Duration) -> ExecutionTimerConfig {
    static METER: Metered = Metered;
    // Refused if it is set already: then it is this one.
    let _ = set_time_source(&METER);
    let check_interval = limits::WORK_INTERVAL.try_into().expect("the interval is not zero");
    ExecutionTimerConfig { limit: time, check_interval }
}

/// Runs an evaluation on a fresh budget. With its result comes why it was stopped, if it was.
pub(crate) fn within<T>(work: u64, evaluate: impl FnOnce() -> T) -> (T, Option<Undecided>) {
    BUDGET.set(Budget { work, ..Budget::default() });
    let result = evaluate();
    (result, BUDGET.take().stopped)
}

/// Whether this much more may be made.
pub(crate) fn has_room(bytes: usize) -> bool {
    BUDGET.with_borrow_mut(|budget| {
        budget.made = budget.made.saturating_add(bytes);
        budget.made <= limits::MADE_BYTES_MAX
    })
}

/// Remembers why the evaluation must end; the first reason counts.
pub(crate) fn note(why: Undecided) {
    BUDGET.with_borrow_mut(|budget| _ = budget.stopped.get_or_insert(why));
}

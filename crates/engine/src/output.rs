//! Following what a step writes. Like events, it is read from the store behind a place, so nothing is missed and nothing comes
//! twice; a commit, here or on another server, only says that there is something to read.

use std::sync::Arc;

use interlock_boxed::boxed;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::state::{RunState, StepState};
use interlock_store::{OutputPlace, OutputRow};

use crate::Engine;
use crate::error::EngineError;
use crate::feed::{LOOK_EVERY, Topic, Watched};
use crate::parts::Events;

/// How many chunks one read takes: a megabyte at most.
pub const CHUNKS_READ_MAX: usize = 64;

/// What comes next for who follows a step.
#[derive(Debug)]
pub enum OutputNews {
    Chunks(Vec<OutputRow>),
    /// The step has ended, and this was all.
    End,
}

/// Which output is followed.
#[derive(Debug, Clone, Copy)]
pub struct OutputTopic {
    pub tenant: TenantId,
    pub run: RunId,
    pub position: u32,
    /// Only this attempt.
    pub attempt: Option<u32>,
}

/// Follows one step's output from a place on.
pub struct OutputWatcher {
    engine: Engine,
    topic: OutputTopic,
    watched: Arc<Watched>,
    place: OutputPlace,
}

impl Drop for OutputWatcher {
    fn drop(&mut self) {
        self.engine.0.feed.leave(Topic::Output(self.topic.tenant, self.topic.run), &self.watched);
    }
}

impl Events {
    /// Follows what a step writes, behind a place.
    pub fn watch_output(&self, topic: OutputTopic, place: OutputPlace) -> OutputWatcher {
        let watched = self.0.0.feed.join(Topic::Output(topic.tenant, topic.run));
        let place = topic.attempt.map_or(place, |attempt| place.max(OutputPlace { attempt, seq: 0 }));
        OutputWatcher { engine: self.0.clone(), topic, watched, place }
    }
}

impl OutputWatcher {
    /// The place behind the last chunk handed out.
    pub fn place(&self) -> OutputPlace {
        self.place
    }

    /// Goes on behind another place.
    pub fn move_to(&mut self, place: OutputPlace) {
        self.place = place;
    }

    /// The next chunks; waits for them. Dropping the future loses nothing.
    #[boxed]
    pub async fn next(&mut self) -> Result<OutputNews, EngineError> {
        let watched = Arc::clone(&self.watched);
        loop {
            let news = watched.news();
            tokio::pin!(news);
            news.as_mut().enable();
            if let Some(chunks) = self.read().await? {
                return Ok(OutputNews::Chunks(chunks));
            }
            // What was written before the end is there once the end is.
            if self.is_over().await? {
                return Ok(self.read().await?.map_or(OutputNews::End, OutputNews::Chunks));
            }
            tokio::select! {
                biased;
                () = self.engine.0.stopping.cancelled() => return Err(EngineError::Closed),
                () = news => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    async fn read(&mut self) -> Result<Option<Vec<OutputRow>>, EngineError> {
        let OutputTopic { tenant, run, position, attempt } = self.topic;
        let store = self.engine.0.store.for_tenant(tenant);
        let place = (position, self.place);
        let chunks = match attempt {
            Some(_) => store.output_of_attempt(run, place, CHUNKS_READ_MAX).await?,
            None => store.output_after(run, place, CHUNKS_READ_MAX).await?,
        };
        let Some(last) = chunks.last() else { return Ok(None) };
        self.place = OutputPlace { attempt: last.attempt, seq: last.seq };
        Ok(Some(chunks))
    }

    /// Whether the step, or the attempt, writes no more.
    async fn is_over(&self) -> Result<bool, EngineError> {
        let OutputTopic { tenant, run, position, attempt } = self.topic;
        let store = self.engine.0.store.for_tenant(tenant);
        // Retention may have taken it.
        let Some(overview) = store.run_overview(run).await? else { return Ok(true) };
        if overview.state.is_terminal() {
            return Ok(true);
        }
        // It has not come to the step, or is at it: then the step's own row tells. The steps are read only where they matter.
        if attempt.is_none() && overview.position == position && overview.state == RunState::Running {
            return Ok(false);
        }
        let steps = store.steps(run).await?;
        let Some(step) = steps.iter().find(|step| step.position == position) else { return Ok(true) };
        let is_later =
            |attempt| step.attempt > attempt || (step.attempt == attempt && step.state != StepState::Running);
        if attempt.is_some_and(is_later) {
            return Ok(true);
        }
        // An operator may have the failed step of a paused run done again.
        let may_run_again = step.state == StepState::Failed && overview.state == RunState::Paused;
        Ok(step.state.is_finished() && !may_run_again)
    }
}

//! When the process stops: it is asked to, by Ctrl-C or by SIGTERM from whatever runs it; its store commits nothing more; or a
//! part of it has ended by itself.

use std::fmt::Display;
use std::time::Duration;

use interlock_engine::Engine;
use interlock_store::SubmitError;
use interlock_worker::WorkerError;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{JoinError, JoinHandle};

pub async fn asked() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        // Without a handler for SIGTERM, Ctrl-C is still heard.
        let _ = tokio::signal::ctrl_c().await;
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

/// Waits until a server has to stop. `None`: a signal has asked for it. `Some`: its store was restored, has lost commits in
/// a failover, or one of its lanes has panicked. What the server has in memory is not to be trusted then, and only a new
/// process can go on.
pub async fn why(engine: &Engine) -> Option<SubmitError> {
    tokio::select! {
        () = asked() => None,
        why = engine.until_commits_end() => Some(why),
    }
}

/// A worker inside the server's process.
pub struct EmbeddedWorker {
    name: &'static str,
    running: JoinHandle<Result<(), WorkerError>>,
    /// How it ended, once it has.
    ended: Option<Result<Result<(), WorkerError>, JoinError>>,
}

impl EmbeddedWorker {
    pub fn new(name: &'static str, running: JoinHandle<Result<(), WorkerError>>) -> Self {
        Self { name, running, ended: None }
    }

    /// Waits until it fails, and says how: steps would wait for it in vain. One that an operator has drained has not
    /// failed, and the server goes on without it.
    pub async fn until_failed(&mut self) -> String {
        if self.ended.is_none() {
            self.ended = Some((&mut self.running).await);
        }
        let how = match &self.ended {
            Some(Ok(Err(error))) => error.to_string(),
            Some(Err(error)) => error.to_string(),
            Some(Ok(Ok(()))) | None => std::future::pending().await,
        };
        format!("the worker `{}` of this process has failed, and the server with it: {how}; start it again", self.name)
    }

    /// Waits for what it still does.
    pub async fn joined(self) -> anyhow::Result<()> {
        let ended = match self.ended {
            Some(ended) => ended,
            None => self.running.await,
        };
        Ok(ended??)
    }
}

/// Says how a part of the server has ended that ends when it is told to, and was not.
pub fn unasked<E: Display>(what: &str, ended: &Result<Result<(), E>, JoinError>) -> String {
    let how = match ended {
        Ok(Ok(())) => "nothing had asked it to".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    format!("{what} of this process has ended, and the process with it: {how}; start it again")
}

/// How long a process that stops waits for its store. A commit is tried for as long as the database is away, and the
/// operator does not wait for that: what was not committed was not acknowledged either.
const STORE_MAX: Duration = Duration::from_secs(15);

/// Ends what still works on the store, and the store.
pub async fn end(engine: &Engine) {
    let ended = async {
        engine.stop().await;
        engine.store().clone().close().await;
    };
    if tokio::time::timeout(STORE_MAX, ended).await.is_err() {
        tracing::warn!(
            "the store does not answer, and is not waited for: what was not acknowledged may not be committed"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::FutureExt as _;
    use interlock_store::{CommitFault, FaultFrom, Mode, Options, Store, StoreUrl, forget_memory};

    use super::*;
    use crate::server::open::{engine_options, fresh_server_id};

    #[tokio::test]
    async fn a_server_whose_lane_has_panicked_stops_and_says_why() {
        let faults = Arc::new(FaultFrom::new(CommitFault::Panic));
        let mode = Mode::Inline(Arc::clone(&faults) as _);
        let store_options = Options { mode, ..Options::new(fresh_server_id()) };
        let store = Store::open(&StoreUrl::SqliteMemory("lane-panics".to_owned()), store_options).await.unwrap();
        let engine = Engine::open(store, engine_options()).await.unwrap();
        faults.now();
        let refused = crate::server::tenant(&engine, "one").await;
        assert!(refused.is_err());
        let why = tokio::time::timeout(STORE_MAX, why(&engine)).await.expect("it stops").expect("no signal has come");
        assert!(why.to_string().contains("restart this server") && why.to_string().contains("fault injected"), "{why}");
        tokio::time::timeout(STORE_MAX, end(&engine)).await.expect("what is left ends");
        forget_memory("lane-panics");
    }

    #[tokio::test]
    async fn an_embedded_worker_that_fails_says_how() {
        let refused = || WorkerError::Refused { code: "NO".to_owned(), message: "not here".to_owned() };
        let mut worker = EmbeddedWorker::new("demo", tokio::spawn(async move { Err(refused()) }));
        let said = worker.until_failed().await;
        assert!(said.contains("`demo`") && said.contains("not here"), "{said}");
        assert_eq!(worker.until_failed().await, said, "it can be asked again");
        assert!(worker.joined().await.is_err());
        let mut worker = EmbeddedWorker::new("acting", tokio::spawn(async { panic!("a bug in a worker") }));
        let said = worker.until_failed().await;
        assert!(said.contains("a bug in a worker"), "{said}");
        assert!(worker.joined().await.is_err());
        let mut drained = EmbeddedWorker::new("drained", tokio::spawn(async { Ok(()) }));
        while !drained.running.is_finished() {
            tokio::task::yield_now().await;
        }
        assert_eq!(drained.until_failed().now_or_never(), None, "the server goes on");
        drained.joined().await.unwrap();
    }
}

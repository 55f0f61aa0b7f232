//! What every workload stands on: a store, an engine, embedded workers, tenants, a progress bar.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use interlock_core::ids::TenantId;
use interlock_core::json::Json;
use interlock_core::plan::{Plan, StepSpec};
use interlock_engine::{EncodedPlan, Engine, StartRun};
use interlock_store::Tenant;
use interlock_worker::{Commands, Tasks, Worker, WorkerOptions};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::BenchArgs;
use crate::output::say_aside;
use crate::server::embedded::Embedded;
use crate::server::open;

pub struct Harness {
    pub engine: Engine,
    pub store_name: String,
    pub tenants: Vec<TenantId>,
    workers: JoinSet<()>,
    stop: CancellationToken,
    folder: Option<PathBuf>,
}

impl Harness {
    pub async fn new(args: &BenchArgs) -> anyhow::Result<Self> {
        let (url, folder) = if let Some(url) = &args.store {
            (url.clone(), None)
        } else {
            let name = format!("interlock-bench-{}-{}", std::process::id(), fastrand::u32(..));
            let folder = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&folder)?;
            (format!("sqlite:{}", folder.join("bench.db").display()), Some(folder))
        };
        let engine = open::engine(&url, open::engine_options()).await?;
        let store_name = if url.starts_with("postgres") { "postgres" } else { "sqlite" }.to_owned();
        let mut harness = Self {
            engine,
            store_name,
            tenants: Vec::new(),
            workers: JoinSet::new(),
            stop: CancellationToken::new(),
            folder,
        };
        for number in 0..args.tenants.max(1) {
            let tenant = harness.tenant(&format!("bench-{number}")).await?;
            harness.tenants.push(tenant);
        }
        Ok(harness)
    }

    /// The tenant of this name, made if it is not there.
    pub async fn tenant(&self, name: &str) -> anyhow::Result<TenantId> {
        if let Some(tenant) = self.engine.store().tenant_by_name(name).await? {
            return Ok(tenant.id);
        }
        let id = TenantId(self.engine.fresh_id());
        self.engine.tenants().put(Tenant::new(id, name, self.engine.now())).await?;
        Ok(id)
    }

    /// Embedded workers with this many slots in all.
    pub fn work(&mut self, tasks: impl Fn() -> Tasks, workers: usize, slots: usize) {
        for number in 0..workers.max(1) {
            let options = WorkerOptions {
                name: format!("bench-{number}"),
                slots: slots.div_ceil(workers.max(1)) as u32,
                poll_wait: Duration::from_secs(5),
                seed: number as u64,
                ..WorkerOptions::default()
            };
            self.employ(Worker::new(Embedded(self.engine.clone()), tasks(), options));
        }
    }

    /// An embedded worker that runs commands of the first tenant, one at a time.
    pub fn work_on(&mut self, commands: Commands) {
        let options = WorkerOptions {
            name: "bench-commands".to_owned(),
            slots: 1,
            tenant: self.tenants.first().copied(),
            poll_wait: Duration::from_secs(5),
            ..WorkerOptions::default()
        };
        let worker = Worker::new(Embedded(self.engine.clone()), Tasks::new(), options);
        self.employ(worker.with_commands(commands));
    }

    fn employ(&mut self, worker: Worker<Embedded>) {
        let stop = self.stop.clone();
        self.workers.spawn(async move {
            if let Err(error) = Box::pin(worker.run(stop)).await {
                say_aside(&format!("the worker stopped: {error}"));
            }
        });
    }

    pub async fn close(mut self) {
        self.stop.cancel();
        while self.workers.join_next().await.is_some() {}
        self.engine.stop().await;
        self.engine.store().clone().close().await;
        if let Some(folder) = &self.folder
            && let Err(error) = std::fs::remove_dir_all(folder)
        {
            say_aside(&format!("the temporary folder {} could not be removed: {error}", folder.display()));
        }
    }
}

/// Tasks that do nothing, so that only the engine is measured.
pub fn no_ops() -> Tasks {
    Tasks::new().task("noop", |_ctx, (): ()| async { Ok(()) })
}

/// A workflow of no-op steps, one after the other.
pub fn chain(steps: u32) -> anyhow::Result<Arc<EncodedPlan>> {
    plan("bench-chain", (0..steps).map(|number| StepSpec::task(format!("s{number}"), "noop")).collect())
}

pub fn plan(name: &str, steps: Vec<StepSpec>) -> anyhow::Result<Arc<EncodedPlan>> {
    let plan = Plan::new(name, steps);
    Ok(EncodedPlan::new(plan)?)
}

pub fn start(tenant: TenantId, plan: &Arc<EncodedPlan>) -> StartRun {
    StartRun::new(tenant, Arc::clone(plan), Json::null())
}

/// The one clock of the benchmarks.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub fn now() -> Instant {
    Instant::now()
}

/// A bar on stderr; none where the output is for a program.
pub fn bar(total: u64, what: &str, json: bool) -> ProgressBar {
    if json {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg:<28} {wide_bar} {pos}/{len} {per_sec} {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total).with_style(style).with_message(what.to_owned())
}

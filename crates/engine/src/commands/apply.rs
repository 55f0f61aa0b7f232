//! Applying a workflow file: a new immutable version, or nothing where the file has not changed.

use std::sync::Arc;

use interlock_boxed::boxed;
use interlock_core::ids::TenantId;
use interlock_core::json::{Hash, Json};
use interlock_core::rejection::Rejection;
use interlock_store::{Changed, FinishIdempotency, PutWorkflow, SetWorkflowDisabled, WorkflowRow, WorkflowVersionRow};
use interlock_workflow::diagnostic::Diagnostics;
use interlock_workflow::expression::budget::Budget;
use serde_json::json;

use crate::audit::Actor;
use crate::encoded_plan::EncodedPlan;
use crate::error::EngineError;
use crate::parts::Workflows;
use crate::workflows::WorkflowVersion;

/// How often two who apply the same workflow at once may get in each other's way.
const TRIES_MAX: usize = 10;

/// A request to apply a file.
#[derive(Debug, Clone)]
pub struct ApplyWorkflow {
    pub tenant: TenantId,
    /// How the file is called in diagnostics.
    pub file: String,
    pub source: String,
    /// The name that the file must have, where the caller knows it.
    pub name: Option<String>,
    pub expected: Expected,
    /// Who answers for the version. Without a person the version keeps the actor.
    pub person: Option<String>,
    pub by: Actor,
}

/// What the caller believes to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    Anything,
    /// The name is new.
    Nothing,
    /// Some version, whichever.
    Something,
    /// The newest version is this one.
    Version(u32),
}

#[derive(Debug, Clone)]
pub struct Applied {
    pub head: WorkflowRow,
    pub version: Arc<WorkflowVersion>,
    pub created: bool,
    pub warnings: Diagnostics,
}

/// Why a file is not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error("{0}")]
    Invalid(Box<Diagnostics>),
    #[error("the file is the workflow `{found}`, not `{expected}`")]
    OtherName { expected: String, found: String },
    #[error("the workflow `{name}` has changed in the meantime: look at it again, then apply")]
    Changed { name: String },
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl Workflows {
    #[boxed]
    pub async fn apply(&self, request: ApplyWorkflow) -> Result<Applied, ApplyError> {
        self.apply_answering(request, |_, _| Ok(None)).await
    }

    /// The same, with the answer to the request that asks for it, which is kept in the commit that adds a version.
    pub async fn apply_answering(
        &self,
        request: ApplyWorkflow,
        answer: impl Fn(&WorkflowVersionRow, &Diagnostics) -> Result<Option<FinishIdempotency>, EngineError> + Send,
    ) -> Result<Applied, ApplyError> {
        let ApplyWorkflow { tenant, file, source, name, expected, person, by } = request;
        let text = source.clone();
        let read = move |budget: &Budget| {
            let checked = interlock_workflow::parse_within(&file, &text, budget)?;
            checked.check_runnable()?;
            Ok::<_, Diagnostics>(checked)
        };
        let checked = self.0.evaluate(tenant, read).await?;
        let checked = checked.map_err(|diagnostics| ApplyError::Invalid(Box::new(diagnostics)))?;
        let found = checked.definition.name.0.clone();
        if let Some(expected) = name.filter(|name| *name != found) {
            return Err(ApplyError::OtherName { expected, found });
        }
        if self.0.0.store.tenant(tenant).await.map_err(EngineError::from)?.is_none() {
            return Err(EngineError::from(Rejection::UnknownTenant { tenant }).into());
        }
        let name = found;
        let source_hash = Hash::of(source.as_bytes());
        let warnings = Diagnostics { source: checked.source.clone(), list: checked.warnings.clone() };
        for _ in 0..TRIES_MAX {
            let latest = self.0.0.store.workflow(tenant, &name).await.map_err(EngineError::from)?;
            let fits = match (expected, &latest) {
                (Expected::Anything, _) | (Expected::Nothing, None) | (Expected::Something, Some(_)) => true,
                (Expected::Version(version), Some(latest)) => latest.latest_version == version,
                (Expected::Nothing, Some(_)) | (Expected::Something | Expected::Version(_), None) => false,
            };
            if !fits {
                return Err(ApplyError::Changed { name });
            }
            let created = latest.as_ref().is_none_or(|latest| latest.source_hash != source_hash);
            if created {
                self.0.schedules().check_room_of(tenant, &checked.definition).await?;
                let number = latest.map_or(1, |latest| latest.latest_version + 1);
                let plan = EncodedPlan::new(checked.plan(number)).map_err(EngineError::from)?;
                let version = WorkflowVersionRow {
                    name: name.clone(),
                    version: number,
                    source: source.clone(),
                    source_hash,
                    definition: Json::trusted(checked.to_json().to_string()),
                    plan_hash: plan.hash,
                    created_at: self.0.now(),
                    created_by: person.clone().or_else(|| by.name().map(str::to_owned)),
                };
                let details = json!({ "version": number, "source_hash": source_hash.to_string() });
                let (what, answer) = (by.did("workflow.applied", &name, &details), answer(&version, &warnings)?);
                let put = PutWorkflow { tenant, version };
                if self.0.write_answering(tenant, put, what, answer).await? == Changed::Gone {
                    continue;
                }
            }
            self.refresh_workflow(tenant, &name).await?;
            let now = self.head(tenant, &name).await?;
            let (head, version) = now.ok_or_else(|| EngineError::Store(format!("workflow `{name}` is gone")))?;
            self.0.schedules().follow_schedules(tenant, &version, &by).await?;
            return Ok(Applied { head, version, created, warnings });
        }
        Err(EngineError::Overloaded.into())
    }

    /// Lets a workflow take no more starts, or take them again. Answers false if there is none of this name.
    #[boxed]
    pub async fn set_disabled(
        &self,
        tenant: TenantId,
        name: &str,
        disabled: bool,
        by: &Actor,
    ) -> Result<bool, EngineError> {
        let set = SetWorkflowDisabled { tenant, name: name.to_owned(), disabled, at: self.0.now() };
        let kind = if disabled { "workflow.disabled" } else { "workflow.enabled" };
        let what = by.did(kind, name, &json!({}));
        let found = self.0.write_noted(tenant, set, what).await? == Changed::Done;
        if found {
            self.refresh_workflow(tenant, name).await?;
        }
        Ok(found)
    }
}

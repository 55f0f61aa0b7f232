//! Rows of the store and diagnostics as answers.

use interlock_protocol::workflows::{Diagnostic, VersionDetail, VersionView, WorkflowView};
use interlock_store::{WorkflowRow, WorkflowVersionRow, WorkflowVersionSummary};
use interlock_workflow::diagnostic::{Diagnostic as WorkflowDiagnostic, Severity};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::identity::key_names::name_keys;
use crate::state::AppState;

/// A workflow for a caller, with the name of the key that applied it.
pub async fn workflow(state: &AppState, caller: &Caller, row: WorkflowRow) -> Result<WorkflowView, ApiError> {
    let mut workflow = workflow_view(row);
    name_keys(state, caller, workflow.applied_by.iter_mut().collect()).await?;
    Ok(workflow)
}

/// The same for a page of them.
pub async fn workflows(
    state: &AppState,
    caller: &Caller,
    rows: Vec<WorkflowRow>,
) -> Result<Vec<WorkflowView>, ApiError> {
    let mut workflows: Vec<WorkflowView> = rows.into_iter().map(workflow_view).collect();
    let names = workflows.iter_mut().filter_map(|workflow| workflow.applied_by.as_mut()).collect();
    name_keys(state, caller, names).await?;
    Ok(workflows)
}

/// The same for the versions of one.
pub async fn versions(
    state: &AppState,
    caller: &Caller,
    rows: Vec<WorkflowVersionSummary>,
) -> Result<Vec<VersionView>, ApiError> {
    let mut versions: Vec<VersionView> = rows.into_iter().map(version_view).collect();
    let names = versions.iter_mut().filter_map(|version| version.applied_by.as_mut()).collect();
    name_keys(state, caller, names).await?;
    Ok(versions)
}

/// One version with everything it says.
pub async fn detail(
    state: &AppState,
    caller: &Caller,
    row: WorkflowVersionRow,
    disabled: bool,
) -> Result<VersionDetail, ApiError> {
    let mut applied_by = row.created_by;
    name_keys(state, caller, applied_by.iter_mut().collect()).await?;
    let view = VersionView {
        workflow: row.name,
        version: row.version,
        source_hash: row.source_hash.to_string(),
        plan_hash: row.plan_hash.to_string(),
        applied_at: row.created_at,
        applied_by,
    };
    Ok(VersionDetail { view, disabled, source: row.source, definition: row.definition })
}

fn workflow_view(row: WorkflowRow) -> WorkflowView {
    WorkflowView {
        workflow: row.name,
        version: row.latest_version,
        disabled: row.disabled,
        source_hash: row.source_hash.to_string(),
        plan_hash: row.plan_hash.to_string(),
        created_at: row.created_at,
        updated_at: row.updated_at,
        applied_by: row.created_by,
    }
}

fn version_view(row: WorkflowVersionSummary) -> VersionView {
    VersionView {
        workflow: row.name,
        version: row.version,
        source_hash: row.source_hash.to_string(),
        plan_hash: row.plan_hash.to_string(),
        applied_at: row.created_at,
        applied_by: row.created_by,
    }
}

pub fn diagnostics(found: &[WorkflowDiagnostic]) -> Vec<Diagnostic> {
    found
        .iter()
        .map(|found| Diagnostic {
            severity: match found.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            }
            .to_owned(),
            code: found.code.as_str().to_owned(),
            line: found.span.start.line,
            column: found.span.start.column,
            end_line: found.span.end.line,
            end_column: found.span.end.column,
            message: found.message.clone(),
            help: found.help.clone(),
        })
        .collect()
}

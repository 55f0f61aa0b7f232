//! Rows of the store and diagnostics as answers.

use interlock_protocol::workflows::{Diagnostic, VersionView, WorkflowView};
use interlock_store::{WorkflowRow, WorkflowVersionSummary};
use interlock_workflow::diagnostic::{Diagnostic as WorkflowDiagnostic, Severity};

pub fn workflow(row: WorkflowRow) -> WorkflowView {
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

pub fn version(row: WorkflowVersionSummary) -> VersionView {
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

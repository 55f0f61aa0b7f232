//! A filter on an input that no run can be found by is refused, with the line that would make it one: an empty list would
//! say that there are no such runs.

use interlock_core::ids::TenantId;
use interlock_protocol::runs::RunQuery;

use crate::api_error::ApiError;
use crate::state::AppState;

/// Workflows that are looked at where the filter names none.
const WORKFLOWS_MAX: usize = 200;

pub async fn check(state: &AppState, tenant: TenantId, query: &RunQuery) -> Result<(), ApiError> {
    for name in query.inputs.keys() {
        if let Some(workflow) = declared_only(state, tenant, query.workflow.as_deref(), name).await? {
            return Err(ApiError::invalid(format!(
                "runs of workflow `{workflow}` cannot be found by the input `{name}`: write `searchable: true` under \
                 `inputs.{name}` in its file, and apply it; runs that are started from then on are found"
            )));
        }
    }
    Ok(())
}

/// A workflow that declares the input without being searchable by it, where none that the filter could mean is searchable
/// by it. An input that no workflow declares may be of a plan, or of a version that is gone.
async fn declared_only(
    state: &AppState,
    tenant: TenantId,
    workflow: Option<&str>,
    input: &str,
) -> Result<Option<String>, ApiError> {
    let workflows = if let Some(name) = workflow {
        vec![name.to_owned()]
    } else {
        let rows = state.for_tenant(tenant).list_workflows(None, WORKFLOWS_MAX).await?;
        rows.into_iter().map(|row| row.name).collect()
    };
    let mut declared = None;
    for name in workflows {
        let Some(version) = state.workflows().latest(tenant, &name).await? else { continue };
        let found = version.definition.inputs.0.iter().find(|(key, _)| key.name == *input);
        match found {
            Some((_, schema)) if schema.is_searchable() => return Ok(None),
            Some(_) => {
                declared.get_or_insert(name);
            }
            None => {}
        }
    }
    Ok(declared)
}

//! Checks a query for runs and turns it into the store's filter.

use interlock_core::limits::{INPUT_LABELS, KEY_BYTES_MAX};
use interlock_protocol::runs::RunQuery;
use interlock_store::{ATTR_FILTERS_MAX, RunFilter};

use crate::api_error::ApiError;
use crate::identity::Caller;

/// A caller that is confined to a workspace finds only what is there.
pub fn checked(query: RunQuery, caller: &Caller) -> Result<RunFilter, ApiError> {
    let query = confined(query, caller)?;
    let RunQuery { state, workflow, subject, trigger, workspace, labels, inputs, created_from, created_before } = query;
    let inputs = inputs.into_iter().map(|(name, value)| (format!("{INPUT_LABELS}{name}"), value));
    let attrs: Vec<_> = labels.into_iter().chain(inputs).collect();
    if attrs.len() > ATTR_FILTERS_MAX {
        let detail = format!("a filter has at most {ATTR_FILTERS_MAX} labels and inputs together");
        return Err(ApiError::invalid(detail));
    }
    let is_odd = |text: &String| text.is_empty() || text.len() > KEY_BYTES_MAX || text.contains('\0');
    if [&workflow, &subject, &trigger, &workspace].into_iter().flatten().any(is_odd)
        || attrs.iter().any(|(name, value)| is_odd(name) || is_odd(value))
    {
        return Err(ApiError::invalid(format!("the texts of a filter have 1 to {KEY_BYTES_MAX} bytes, and no NUL")));
    }
    Ok(RunFilter { states: state.0, workspace, workflow, subject, trigger, attrs, created_from, created_before })
}

/// The query of a caller that is confined to a workspace names it.
pub fn confined(query: RunQuery, caller: &Caller) -> Result<RunQuery, ApiError> {
    let workspace = caller.workspace_for(query.workspace.clone())?;
    Ok(RunQuery { workspace, ..query })
}

/// `name:value`, as a query string has it.
pub fn pair(text: &str, what: &str) -> Result<(String, String), ApiError> {
    let (name, value) =
        text.split_once(':').ok_or_else(|| ApiError::malformed(format!("write `{what}` as `name:value`")))?;
    Ok((name.to_owned(), value.to_owned()))
}

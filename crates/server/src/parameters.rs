//! The query of every guarded route, held against the route's own description: what is not described is refused, on every
//! route alike, whether or not its handler reads a query. Bounds of numbers stand here once ([`BOUNDS`]), for the check
//! and for the description; those of texts stand with the description ([`query_bytes_max`]).

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use interlock_protocol::runs::limits::PAGE_MAX;

use crate::api_error::ApiError;
use crate::openapi::{queries, query_bytes_max};
use crate::query::{self, Pairs};

/// Parameters that mean the same wherever they stand, with their least and greatest value.
pub const BOUNDS: &[(&str, usize, usize)] = &[("limit", 1, PAGE_MAX), ("count", 1, 100)];

/// Refuses a query that the route does not describe.
pub async fn check_query(request: Request, next: Next) -> Response {
    if request.uri().query().is_some_and(|query| !query.is_empty())
        && let Err(refused) = check(&request)
    {
        return refused.into_response();
    }
    next.run(request).await
}

fn check(request: &Request) -> Result<(), ApiError> {
    let pattern = queries::pattern(request.extensions());
    let known = queries::known(request.method(), request.extensions());
    let pairs = Pairs::of(request.uri());
    query::check(&pairs, known)?;
    for (name, value) in pairs.iter() {
        let bound = BOUNDS.iter().find(|(bounded, ..)| *bounded == name);
        if let Some((_, least, greatest)) = bound
            && !value.parse().is_ok_and(|number: usize| (*least..=*greatest).contains(&number))
        {
            let shown: String = value.chars().take(80).collect();
            let detail = format!("the query: `{name}` is a whole number from {least} to {greatest}, not `{shown}`");
            return Err(ApiError::malformed(detail));
        }
        if let Some(max) = query_bytes_max(pattern, name).filter(|max| value.len() > *max) {
            let detail = format!("the query: `{name}` is {} bytes long, the limit is {max}", value.len());
            return Err(ApiError::malformed(detail));
        }
    }
    Ok(())
}

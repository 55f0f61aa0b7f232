//! Delegations: a person's right to decide, lent to another for a time.

mod create;
mod get;
mod list;
mod revoke;
mod view;

use axum::http::StatusCode;
use interlock_core::tenant::identity::Permission;

use crate::api_error::ApiError;
use crate::identity::{Caller, Via};
use crate::listing::{Listing, routes};

pub fn routes<L: Listing>() -> L {
    L::default().routes(routes!(create::create, list::list)).routes(routes!(get::get, revoke::revoke))
}

/// People lend what is their own, signed in as themselves; an admin does it for them.
fn check_owner(caller: &Caller, delegator: &str) -> Result<(), ApiError> {
    let own = matches!(caller.via, Via::Session { .. }) && caller.person.as_deref() == Some(delegator);
    if own || caller.may(Permission::Administer) {
        return Ok(());
    }
    let detail =
        format!("the right to decide is {delegator}'s: they lend it signed in as themselves, or an admin does");
    Err(ApiError::new(StatusCode::FORBIDDEN, "PERMISSION_DENIED", detail))
}

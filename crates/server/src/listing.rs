//! One list of the routes, read for two purposes: by the server, which answers them, and by whoever describes them.
//!
//! A handler's description is long: types, examples, refusals. The server never makes it; it serves the text that the tests
//! hold to be fresh ([`crate::openapi`]). So the list is generic in what it is read for, and a binary that describes nothing
//! has nothing of it inside.

use axum::Router;
use axum::routing::MethodRouter;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use crate::state::AppState;

/// What a list of routes is read for.
pub trait Listing: Default {
    /// The handlers of one address, as [`routes!`] names them.
    #[must_use]
    fn routes<S, D>(self, routes: Routes<S, D>) -> Self
    where
        S: FnOnce() -> (String, MethodRouter<AppState>),
        D: FnOnce() -> UtoipaMethodRouter<AppState>;

    #[must_use]
    fn merge(self, other: Self) -> Self;
}

/// The handlers of one address: how they are served, and how they are described.
pub struct Routes<S, D> {
    pub serve: S,
    pub describe: D,
}

/// Names the handlers of one address, each of which says its method and path itself (`#[utoipa::path]`).
macro_rules! routes {
    ($first:ident $(:: $rest:ident)* $(, $other:ident $(:: $others:ident)*)* $(,)?) => {
        $crate::listing::Routes {
            serve: || {
                let router = axum::routing::MethodRouter::new();
                let router = $crate::listing::on!(router, $first $(:: $rest)*);
                $( let router = $crate::listing::on!(router, $other $(:: $others)*); )*
                (utoipa_axum::routes!(@path [path()] of $first $(:: $rest)*), router)
            },
            describe: || utoipa_axum::routes!($first $(:: $rest)* $(, $other $(:: $others)*)*),
        }
    };
}

/// A router with one more handler, under the methods that the handler says.
macro_rules! on {
    ($router:ident, $($handler:tt)+) => {
        utoipa_axum::routes!(@path [methods()] of $($handler)+).iter().fold($router, |router, method| {
            router.on(utoipa_axum::PathItemExt::to_method_filter(method), $($handler)+)
        })
    };
}

pub(crate) use {on, routes};

impl Listing for Router<AppState> {
    fn routes<S, D>(self, routes: Routes<S, D>) -> Self
    where
        S: FnOnce() -> (String, MethodRouter<AppState>),
        D: FnOnce() -> UtoipaMethodRouter<AppState>,
    {
        let (path, handlers) = (routes.serve)();
        self.route(&path, handlers)
    }

    fn merge(self, other: Self) -> Self {
        Router::merge(self, other)
    }
}

/// The routes as they describe themselves.
#[derive(Default)]
pub struct Described(OpenApiRouter<AppState>);

impl Described {
    pub fn into_openapi(self) -> OpenApi {
        self.0.into_openapi()
    }
}

impl Listing for Described {
    fn routes<S, D>(self, routes: Routes<S, D>) -> Self
    where
        S: FnOnce() -> (String, MethodRouter<AppState>),
        D: FnOnce() -> UtoipaMethodRouter<AppState>,
    {
        Self(self.0.routes((routes.describe)()))
    }

    fn merge(self, other: Self) -> Self {
        Self(self.0.merge(other.0))
    }
}

//! One list of the routes, read for two purposes: by the server, which answers them, and by whoever describes them.
//!
//! A handler's description is long: types, examples, refusals. The server never makes it; it serves the text that the tests
//! hold to be fresh ([`crate::openapi`]). So the list is generic in what it is read for, and a binary that describes nothing
//! has nothing of it inside.

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use axum::routing::MethodRouter;
use utoipa::openapi::path::{HttpMethod, Operation, Paths};
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{OpenApi, RefOr};
use utoipa_axum::router::OpenApiRouter;

use crate::state::AppState;

/// What a list of routes is read for.
pub trait Listing: Default {
    /// The handlers of one address, as [`routes!`] names them.
    #[must_use]
    fn routes<S, D>(self, routes: Routes<S, D>) -> Self
    where
        S: FnOnce() -> (String, MethodRouter<AppState>),
        D: FnOnce() -> Description;

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
            describe: || {
                let mut description = $crate::listing::Description::default();
                $crate::listing::describe!(description, $first $(:: $rest)*);
                $( $crate::listing::describe!(description, $other $(:: $others)*); )*
                description
            },
        }
    };
}

/// A router with one more handler, under the methods that the handler says.
macro_rules! on {
    ($router:ident, $($handler:tt)+) => {
        utoipa_axum::routes!(@path [methods()] of $($handler)+).iter().fold($router, |router, method| {
            router.on(utoipa_axum::PathItemExt::to_method_filter(method), $crate::listing::erased($($handler)+))
        })
    };
}

/// Adds what a handler says about itself.
macro_rules! describe {
    ($description:ident, $($handler:tt)+) => {
        utoipa_axum::routes!(@path [schemas(&mut $description.schemas)] of $($handler)+);
        $description.add(
            &utoipa_axum::routes!(@path [path()] of $($handler)+),
            utoipa_axum::routes!(@path [methods()] of $($handler)+),
            utoipa_axum::routes!(@path [operation()] of $($handler)+),
            &utoipa_axum::routes!(@path [tags()] of $($handler)+),
        );
    };
}

/// A handler whose own type nobody sees: the layers that the router puts around each are then compiled once, and not once
/// for every handler, which took as long as all the rest of this crate.
#[derive(Clone)]
pub struct Erased(Arc<dyn Fn(Request, AppState) -> Answer + Send + Sync>);

type Answer = Pin<Box<dyn Future<Output = Response> + Send>>;

pub fn erased<H: Handler<T, AppState, Future = Answer> + Sync, T: 'static>(handler: H) -> Erased {
    Erased(Arc::new(move |request, state| handler.clone().call(request, state)))
}

impl Handler<(), AppState> for Erased {
    type Future = Answer;

    fn call(self, request: Request, state: AppState) -> Answer {
        (self.0)(request, state)
    }
}

/// What the handlers of one address say about themselves.
#[derive(Default)]
pub struct Description {
    pub schemas: Vec<(String, RefOr<Schema>)>,
    paths: Paths,
}

impl Description {
    pub fn add(&mut self, path: &str, methods: Vec<HttpMethod>, mut operation: Operation, tags: &[&str]) {
        if !tags.is_empty() {
            operation.tags.get_or_insert_default().extend(tags.iter().map(ToString::to_string));
        }
        self.paths.add_path_operation(path, methods, operation);
    }
}

pub(crate) use {describe, on, routes};

impl Listing for Router<AppState> {
    fn routes<S, D>(self, routes: Routes<S, D>) -> Self
    where
        S: FnOnce() -> (String, MethodRouter<AppState>),
        D: FnOnce() -> Description,
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
        D: FnOnce() -> Description,
    {
        let Description { schemas, paths } = (routes.describe)();
        Self(self.0.routes((schemas, paths, MethodRouter::new())))
    }

    fn merge(self, other: Self) -> Self {
        Self(self.0.merge(other.0))
    }
}

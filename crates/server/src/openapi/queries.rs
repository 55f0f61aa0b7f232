//! What the query of each operation may hold. `queries.txt` is the list; the tests of the routes hold it against the
//! description. A server checks queries by it: making a description for that would put all that describes into the binary.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::extract::MatchedPath;
use axum::http::{Extensions, Method};

/// A parameter's name, and the form of its value.
pub type KnownParameter = (&'static str, &'static str);

const LIST: &str = include_str!("queries.txt");

type KnownByRoute = HashMap<(&'static str, &'static str), Vec<KnownParameter>>;

/// Lines like `GET /api/v1/audit/checkpoint log:whole`.
static BY_ROUTE: LazyLock<KnownByRoute> = LazyLock::new(|| {
    let lines = LIST.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some(((words.next()?, words.next()?), words.filter_map(|word| word.split_once(':')).collect()))
        })
        .collect()
});

/// What the query of the route may hold that a request has come to.
pub fn known(method: &Method, extensions: &Extensions) -> &'static [KnownParameter] {
    let line = crate::matrix::find(method.as_str(), pattern(extensions));
    line.and_then(|line| BY_ROUTE.get(&(line.method, line.path))).map_or(&[], Vec::as_slice)
}

/// The route that a request has come to, as the description names it.
pub fn pattern(extensions: &Extensions) -> &str {
    extensions.get::<MatchedPath>().map(MatchedPath::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_of_a_route_and_names_something() {
        for ((method, path), known) in &*BY_ROUTE {
            assert!(crate::matrix::find(method, path).is_some(), "{method} {path} is no route");
            assert!(!known.is_empty(), "{method} {path}");
        }
        let lines = LIST.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(lines.count(), BY_ROUTE.len(), "a route stands there twice");
    }
}

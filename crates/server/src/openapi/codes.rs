//! With which codes each operation refuses. `codes.txt` is the list; the tests of the routes hold every refusal that they meet
//! against it, so that it is complete as far as they go.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Every request can get these: they say something of the request as such, of its sender, or of the server.
pub const OF_ALL: &[&str] = &[
    "BODY_TIMEOUT",
    "CONNECTIONS_FULL",
    "CONTENT_TYPE_INVALID",
    "CSRF_INVALID",
    "HOST_REFUSED",
    "INPUT_INVALID",
    "METHOD_NOT_ALLOWED",
    "ORIGIN_REFUSED",
    "OVERLOADED",
    "PAYLOAD_TOO_LARGE",
    "PERMISSION_DENIED",
    "RATE_LIMITED",
    "RECORD_UNREADABLE",
    "REQUEST_INVALID",
    "ROUTE_NOT_FOUND",
    "SHUTTING_DOWN",
    "STORE_FULL",
    "STORE_UNAVAILABLE",
    "TENANT_DISABLED",
    "TLS_REQUIRED",
    "UNAUTHORIZED",
];

const LIST: &str = include_str!("codes.txt");

type CodesByRoute = HashMap<(&'static str, &'static str), Vec<&'static str>>;

/// Lines like `POST /api/v1/runs/{run}/cancel RUN_NOT_FOUND RUN_TERMINAL_STATE`.
static BY_ROUTE: LazyLock<CodesByRoute> = LazyLock::new(|| {
    let lines = LIST.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some(((words.next()?, words.next()?), words.collect()))
        })
        .collect()
});

/// The codes that are this operation's own.
pub fn of(method: &str, path: &str) -> &'static [&'static str] {
    let line = crate::matrix::find(method, path);
    line.and_then(|line| BY_ROUTE.get(&(line.method, line.path))).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_of_a_route_and_says_something() {
        for ((method, path), codes) in &*BY_ROUTE {
            assert!(crate::matrix::find(method, path).is_some(), "{method} {path} is no route");
            assert!(!codes.is_empty() && codes.is_sorted(), "{method} {path}: {codes:?}");
            let twice = codes.iter().find(|code| OF_ALL.contains(code));
            assert_eq!(twice, None, "{method} {path}: it is of all");
        }
        assert!(OF_ALL.is_sorted());
    }
}

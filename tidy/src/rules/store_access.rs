//! Routes reach the store through one tenant's handle.
//!
//! The server holds an engine, and an engine has the whole store. A route that asked it would read past row security,
//! with nothing but its own statement between two tenants. What has to look across tenants has a narrow handle that says
//! so: `sign_in`, `installation`, `store_health`.

use crate::{Finding, Tree};

/// The whole store, by the method that gives it and by its type.
const WHOLE_STORE: &[&str] = &["store()", "Store", "on_behalf_of"];

#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files() {
        if !file.path.starts_with("crates/server/src/") {
            continue;
        }
        for name in WHOLE_STORE {
            for offset in file.words(name).filter(|offset| is_meant(&file.code, *offset, name)) {
                if !file.is_test(offset) {
                    findings.push(Finding {
                        path: file.path.to_owned(),
                        line: file.line(offset),
                        what: format!("`{name}` reaches every tenant's rows"),
                        instead: "use `for_tenant(tenant)`, or the handle for what spans tenants (`sign_in`, …)"
                            .to_owned(),
                    });
                }
            }
        }
    }
    findings
}

/// A variant, a field or a function of the same name is something else: the method is called on something, and the type
/// is no part of another type's path.
fn is_meant(code: &str, offset: usize, name: &str) -> bool {
    let (before, after) = (code[..offset].trim_end(), &code[offset + name.len()..]);
    match name {
        "Store" => before.ends_with("interlock_store::") || is_imported(code, offset),
        "on_behalf_of" => before.ends_with('.') && after.starts_with('('),
        _ => before.ends_with('.'),
    }
}

/// Whether the offset stands in a `use interlock_store::{…}`.
fn is_imported(code: &str, offset: usize) -> bool {
    let statement = code[..offset].rfind(';').map_or(0, |end| end + 1);
    code[statement..offset].trim_start().starts_with("use interlock_store::{")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&Tree::planted(&[(path, text)])).len()
    }

    #[test]
    fn the_whole_store_is_refused_in_the_server() {
        let route = "crates/server/src/routes/runs/get.rs";
        assert_eq!(count(route, "fn f() { state.engine().store().run_overview(tenant, run); }"), 1);
        assert_eq!(count(route, "fn f() { engine\n    .store()\n    .tenants(); }"), 1);
        assert_eq!(count(route, "fn f() { reads.on_behalf_of(other); }"), 1);
        assert_eq!(count(route, "use interlock_store::{Page, Store};"), 1);
        assert_eq!(count(route, "fn f(store: &interlock_store::Store) {}"), 1);
    }

    #[test]
    fn handles_tests_and_the_binary_are_left_alone() {
        let text = "fn f() { engine.store().close(); }";
        assert_eq!(count("crates/cli/src/server.rs", text), 0);
        assert_eq!(count("crates/server/tests/routes/harness.rs", text), 0);
        let handles = "use interlock_store::{StoreUrl, TenantStore};
            fn f() -> Error { state.for_tenant(tenant).key(id); engine.sign_in().find_keys(text);
                vote.on_behalf_of.as_ref(); Error::Store(error) }";
        assert_eq!(count("crates/server/src/routes/keys/view.rs", handles), 0);
        let in_tests = format!("#[cfg(test)]\nmod tests {{ {text} }}");
        assert_eq!(count("crates/server/src/state.rs", &in_tests), 0);
    }
}

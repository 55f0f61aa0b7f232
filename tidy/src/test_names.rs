//! [`TestNames`]: whether a test exists, by the name under which nextest prints it.
//!
//! `interlock-server::routes policy::a_plain_task_passes_unasked` is the binary, the modules and the function. The modules
//! are followed from the binary's root file; only the files on that way are read. A macro that makes a module of tests for
//! each database is known by its definition.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::Tree;
use crate::rust_file::{RustFile, is_name_char, item_end, words};
use crate::tree::has_extension;

#[derive(Debug)]
pub(crate) struct TestNames<'a> {
    tree: &'a Tree,
    /// The folder of each package, by its name.
    packages: BTreeMap<&'a str, &'a str>,
    /// The modules that a macro makes, by the macro's name.
    macros: BTreeMap<String, BTreeSet<String>>,
}

/// A module's code, and the folder in which its own modules stand as files.
struct Module {
    code: String,
    folder: String,
}

impl<'a> TestNames<'a> {
    pub fn of(tree: &'a Tree) -> Self {
        let manifests = tree.iter().filter_map(|(path, text)| Some((path.strip_suffix("Cargo.toml")?, text)));
        let packages = manifests.filter_map(|(folder, text)| Some((package_name(text)?, folder))).collect();
        let mut macros: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let is_candidate = |path: &str, text: &str| {
            has_extension(path, &["rs"]) && text.contains("macro_rules!") && text.contains("test")
        };
        for (path, text) in tree.iter().filter(|(path, text)| is_candidate(path, text)) {
            let code = RustFile::new(path, text).code;
            for offset in words(&code, "macro_rules") {
                let definition = &code[offset..item_end(&code, offset)];
                let name = name_at(definition.trim_start_matches("macro_rules").trim_start_matches(['!', ' ']));
                let made =
                    modules(definition).into_iter().filter(|(_, block)| has_test_attribute(&definition[block.clone()]));
                macros.entry(name.to_owned()).or_default().extend(made.map(|(name, _)| name.to_owned()));
            }
        }
        macros.retain(|_, made| !made.is_empty());
        Self { tree, packages, macros }
    }

    /// Whether `binary module::…::function` is a test that runs.
    pub fn contains(&self, name: &str) -> bool {
        let Some((binary, path)) = name.split_once(' ') else { return false };
        let (modules, function) = path.rsplit_once("::").unwrap_or(("", path));
        let modules: Vec<&str> = modules.split("::").filter(|module| !module.is_empty()).collect();
        self.root(binary).is_some_and(|root| self.has_test(root, &modules, function))
    }

    fn has_test(&self, mut module: Module, path: &[&str], function: &str) -> bool {
        for (depth, name) in path.iter().enumerate() {
            module = match self.inside(&module, name) {
                Some(inner) => inner,
                None => return depth + 1 == path.len() && self.is_made(&module, name, function),
            };
        }
        is_test_function(&own_items(&module.code), function)
    }

    fn root(&self, binary: &str) -> Option<Module> {
        let (package, target) = binary.split_once("::").unwrap_or((binary, ""));
        let folder = *self.packages.get(package)?;
        let candidates = match target {
            "" => vec!["src/lib.rs".to_owned()],
            bin if bin.starts_with("bin/") => vec!["src/main.rs".to_owned()],
            test => vec![format!("tests/{test}/main.rs"), format!("tests/{test}.rs"), format!("{test}/main.rs")],
        };
        let path = candidates
            .into_iter()
            .map(|path| format!("{folder}{path}"))
            .find(|path| self.tree.get(path).is_some() && self.folder_of_package(path) == Some(folder))?;
        let parent = path.rsplit_once('/')?.0;
        // Modules of `tests/kill.rs` stand in `tests/kill/`, by an attribute each.
        let is_test_file = !target.is_empty() && path.ends_with(&format!("/{target}.rs"));
        let folder = if is_test_file { format!("{parent}/{target}") } else { parent.to_owned() };
        self.file(&path, folder)
    }

    /// The folder of the package that a file belongs to: a package may stand inside another.
    fn folder_of_package(&self, path: &str) -> Option<&str> {
        self.packages.values().copied().filter(|folder| path.starts_with(folder)).max_by_key(|folder| folder.len())
    }

    fn file(&self, path: &str, folder: String) -> Option<Module> {
        let code = RustFile::new(path, self.tree.get(path)?).code;
        Some(Module { code, folder })
    }

    fn inside(&self, module: &Module, name: &str) -> Option<Module> {
        let folder = format!("{}/{name}", module.folder);
        if let Some((_, block)) = modules(&module.code).into_iter().find(|(found, _)| *found == name) {
            return Some(Module { code: module.code[block].to_owned(), folder });
        }
        let is_declared = words(&module.code, name).any(|offset| {
            module.code[..offset].trim_end().ends_with("mod") && module.code[offset + name.len()..].starts_with(';')
        });
        let paths = [format!("{folder}.rs"), format!("{folder}/mod.rs")];
        let path = paths.iter().find(|path| is_declared && self.tree.get(path).is_some())?;
        self.file(path, folder)
    }

    /// Whether a macro of this module makes the module `name` with this test.
    fn is_made(&self, module: &Module, name: &str, function: &str) -> bool {
        let code = own_items(&module.code);
        let mut makers = self.macros.iter().filter(|(_, made)| made.contains(name));
        makers.any(|(maker, _)| {
            let calls = words(&code, maker).filter(|offset| code[offset + maker.len()..].starts_with('!'));
            calls.into_iter().any(|offset| declares(&code[offset..item_end(&code, offset)], function))
        })
    }
}

/// The name in a manifest, which stands first in it.
fn package_name(manifest: &str) -> Option<&str> {
    let (_, package) = manifest.split_once("[package]")?;
    package.split_once("name = \"")?.1.split('"').next()
}

/// Does a macro's call declare this function, as a whole or by its name in a list?
fn declares(call: &str, function: &str) -> bool {
    let mut depth = 0_usize;
    let depths: Vec<usize> = call
        .bytes()
        .map(|byte| {
            match byte {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth
        })
        .collect();
    words(call, function).any(|offset| {
        let (before, after) = (call[..offset].trim_end(), call[offset + function.len()..].trim_start());
        let is_listed = before.ends_with(['(', '{', ',']) && after.starts_with([')', '}', ',']);
        depths[offset] == 1 && (is_listed || before.ends_with("fn"))
    })
}

/// The modules that are written out in a piece of code, with their blocks; not those inside of them.
fn modules(code: &str) -> Vec<(&str, Range<usize>)> {
    let mut found: Vec<(&str, Range<usize>)> = Vec::new();
    for offset in words(code, "mod") {
        let rest = code[offset + "mod".len()..].trim_start();
        let name = name_at(rest);
        let is_inside = found.last().is_some_and(|(_, block)| block.contains(&offset));
        if !is_inside && !name.is_empty() && rest[name.len()..].trim_start().starts_with('{') {
            let open = offset + code[offset..].find('{').unwrap_or_default();
            found.push((name, open + 1..item_end(code, open)));
        }
    }
    found
}

/// The code without the modules that are written out in it.
fn own_items(code: &str) -> String {
    let mut own = code.to_owned();
    for (_, block) in modules(code) {
        let blank = " ".repeat(block.len());
        own.replace_range(block, &blank);
    }
    own
}

/// Is the function a test, and not one that is left out?
fn is_test_function(code: &str, function: &str) -> bool {
    words(code, function).any(|offset| {
        let before = code[..offset].trim_end();
        let Some(before) = before.strip_suffix("fn") else { return false };
        let start = before.rfind([';', '{', '}']).map_or(0, |at| at + 1);
        has_test_attribute(&before[start..]) && !before[start..].contains("#[ignore")
    })
}

fn has_test_attribute(code: &str) -> bool {
    code.contains("#[test]") || code.contains("#[tokio::test]") || code.contains("#[tokio::test(")
}

fn name_at(text: &str) -> &str {
    text.split(|c| !is_name_char(c)).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[(&str, &str)] = &[
        ("crates/core/Cargo.toml", "[package]\nname = \"interlock-core\"\n"),
        ("crates/core/src/lib.rs", "mod decide;\n#[test]\nfn at_the_root() {}\n"),
        (
            "crates/core/src/decide/mod.rs",
            "#[cfg(test)]\nmod tests {\n    mod approve;\n    mod deep { #[test] fn inner() {} }\n    #[test]\n    fn outer() {}\n}\n",
        ),
        (
            "crates/core/src/decide/tests/approve.rs",
            "proptest! {\n    #![config(4)]\n    /// It holds.\n    #[test]\n    fn holds(x in any()) {}\n}\n\
             fn no_test() {}\n#[test]\n#[ignore = \"slow\"]\nfn left_out() {}\n#[tokio::test(start_paused = true)]\nasync fn waits() {}\n",
        ),
        ("crates/core/src/decide/tests/orphan.rs", "#[test]\nfn nobody_compiles_it() {}\n"),
        ("crates/engine/Cargo.toml", "[package]\nname = \"interlock-engine\"\nautotests = false\n"),
        ("crates/engine/tests/Cargo.toml", "[package]\nname = \"interlock-engine-tests\"\n"),
        ("crates/engine/tests/engine/main.rs", "mod harness;\nmod runs;\nmod lists;\n"),
        (
            "crates/engine/tests/engine/harness.rs",
            "macro_rules! on_both {\n    ($(async fn $name:ident $body:block)+) => {\n        mod sqlite { $(#[tokio::test]\n async fn $name() {})+ }\n        \
             mod postgres { $(#[tokio::test]\n async fn $name() {})+ }\n        $(async fn $name $body)+\n    };\n}\n",
        ),
        (
            "crates/engine/tests/engine/runs.rs",
            "on_both! {\n    async fn on_each() { async fn step() {} call(step, 1); }\n}\nasync fn beside() {}\n",
        ),
        ("crates/engine/tests/engine/lists.rs", "async fn listed() {}\ncrate::on_both!(listed, other);\n"),
        ("crates/cli/Cargo.toml", "[package]\nname = \"interlock-cli\"\n"),
        ("crates/cli/src/main.rs", "mod run;\n"),
        ("crates/cli/src/run.rs", "mod tests {\n    #[test]\n    fn shows() {}\n}\n"),
        ("crates/cli/tests/kill.rs", "#[path = \"kill/cut.rs\"]\nmod cut;\n#[test]\nfn one_server() {}\n"),
        ("crates/cli/tests/kill/cut.rs", "#[test]\nfn cut_off() {}\n"),
    ];

    fn exists(name: &str) -> bool {
        TestNames::of(&Tree::planted(FILES)).contains(name)
    }

    #[test]
    fn tests_are_found_in_every_kind_of_binary() {
        for name in [
            "interlock-core at_the_root",
            "interlock-core decide::tests::outer",
            "interlock-core decide::tests::deep::inner",
            "interlock-core decide::tests::approve::holds",
            "interlock-core decide::tests::approve::waits",
            "interlock-cli::bin/interlock run::tests::shows",
            "interlock-cli::kill one_server",
            "interlock-cli::kill cut::cut_off",
        ] {
            assert!(exists(name), "{name}");
        }
    }

    #[test]
    fn a_name_is_whole_and_right_in_every_part() {
        for name in [
            "",
            "at_the_root",
            "interlock-core",
            "interlock-core outer",
            "interlock-core decide::outer",
            "interlock-core decide::tests::inner",
            "interlock-core decide::tests::oute",
            "interlock-core::decide outer",
            "interlock-cor at_the_root",
            "interlock-cli run::tests::shows",
            "interlock-engine::engine runs::sqlite::on_each",
        ] {
            assert!(!exists(name), "{name}");
        }
    }

    #[test]
    fn what_does_not_run_is_no_test() {
        assert!(!exists("interlock-core decide::tests::approve::no_test"));
        assert!(!exists("interlock-core decide::tests::approve::left_out"));
        assert!(!exists("interlock-core decide::tests::orphan::nobody_compiles_it"));
    }

    #[test]
    fn a_macro_makes_a_test_for_each_database() {
        for database in ["sqlite", "postgres"] {
            assert!(exists(&format!("interlock-engine-tests::engine runs::{database}::on_each")));
            assert!(exists(&format!("interlock-engine-tests::engine lists::{database}::listed")));
        }
        for name in ["runs::on_each", "runs::mysql::on_each", "runs::sqlite::beside", "runs::sqlite::step"] {
            assert!(!exists(&format!("interlock-engine-tests::engine {name}")), "{name}");
        }
        assert!(!exists("interlock-engine-tests::engine harness::sqlite::on_each"), "it is called elsewhere");
    }
}

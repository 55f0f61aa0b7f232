//! References to the input: a field that does not exist would silently be undefined, and a rule that asks for it would never
//! apply.

use interlock_core::text::nearest::nearest;
use regorus::unstable::Module;

use super::{at, each_node};
use crate::input::{PATHS, has_path};
use crate::problem::Problem;
use crate::syntax::{path, references};

pub(super) fn problems(module: &Module) -> Vec<Problem> {
    let mut found = Vec::new();
    for reference in references(|see| each_node(module, see)) {
        let Some((names, _)) = path(reference) else { continue };
        if names[0] != "input" || has_path(&names[1..]) {
            continue;
        }
        let asked = names[1..].join(".");
        let known = PATHS.iter().map(|path| path.trim_end_matches(".*"));
        let instead = match nearest(&asked, known) {
            Some(close) => format!("did you mean `input.{close}`?"),
            None => "docs/reference/policy.md lists the fields".to_owned(),
        };
        found.push(at(reference.span(), format!("there is no `input.{asked}`; {instead}")));
    }
    found
}

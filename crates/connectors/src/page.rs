//! The reference page, made from the declarations.

use std::fmt::Write;

use crate::connector::Connector;
use crate::declaration::{Declaration, Reversal};
use crate::registry::all;
use crate::schema::{Field, Kind, Need};

/// The whole page, as Markdown.
pub fn page() -> String {
    let mut page = String::from(
        "# Connectors\n\nMade from the declarations in `crates/connectors`; a test keeps it current. \
         [The guide](../guide/connectors.md) shows how to use them and how to add one. \
         Every field counts for an approval: people approve the digest of all of them, as they are sent.\n",
    );
    for connector in all() {
        operation(&mut page, *connector);
    }
    page
}

fn operation(page: &mut String, connector: &dyn Connector) {
    let Declaration { operation, about, fields, effect, key, reversal, reads_before, probe } = connector.declaration();
    let _ = write!(page, "\n## `{operation}`\n\n{about}\n\n| field | what it holds | |\n|---|---|---|\n");
    rows(page, "", fields);
    let _ = write!(page, "\n- Effect class: `{effect}`");
    page.push_str(if connector.effect_varies() {
        " at worst; safer with some fields, as the guide says.\n"
    } else {
        ".\n"
    });
    let _ = writeln!(page, "- Effect key: `{key}`, made unique to the step of the run.");
    let _ = match reversal {
        Reversal::NotNeeded => writeln!(page, "- Undone: there is nothing to undo."),
        Reversal::Inverse { by, about } => writeln!(page, "- Undone by `{by}`: {about}."),
        Reversal::Irreversible(why) => writeln!(page, "- Undone: not by itself; {why}."),
    };
    if *reads_before {
        page.push_str("- The present state is read first, for the approvers and for the inverse.\n");
    }
    let _ = match probe {
        Some(probe) => writeln!(page, "- A lost answer: {probe}."),
        None if *effect == interlock_core::state::EffectClass::Unsafe => {
            writeln!(page, "- A lost answer: the target cannot be asked; the step is in doubt until a person says.")
        }
        None => writeln!(page, "- A lost answer: the call is repeated, which is harmless."),
    };
}

fn rows(page: &mut String, within: &str, fields: &[Field]) {
    for field in fields {
        let name = format!("{within}{}", field.name);
        let need = match field.need {
            Need::Required => "required".to_owned(),
            Need::Optional => String::new(),
            Need::Default(text) => format!("default `{text}`"),
        };
        let _ = writeln!(page, "| `{name}` | {}: {} | {need} |", kind(field.kind), field.about);
        match field.kind {
            Kind::Record(inner) => rows(page, &format!("{name}."), inner),
            Kind::Records { of, .. } => rows(page, &format!("{name}[]."), of),
            _ => {}
        }
    }
}

fn kind(kind: Kind) -> String {
    match kind {
        Kind::Text(max) => format!("text up to {max} bytes"),
        Kind::Id(_) => "letters, digits, `_`, `-`, `.`".to_owned(),
        Kind::OneOf(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Kind::Whole { min, max: i64::MAX } => format!("whole number from {min}"),
        Kind::Whole { min, max } => format!("whole number {min} to {max}"),
        Kind::Number { min, max } => format!("number {min} to {max}"),
        Kind::Truth => "`true` or `false`".to_owned(),
        Kind::Texts { items, bytes } => format!("up to {items} texts of {bytes} bytes"),
        Kind::Headers => "names and texts".to_owned(),
        Kind::Values { items, .. } => format!("up to {items} names with texts, numbers or truth values"),
        Kind::Any { bytes, .. } => format!("any value up to {bytes} bytes"),
        Kind::Secret => "a secret".to_owned(),
        Kind::Record(_) => "a mapping".to_owned(),
        Kind::Records { items, .. } => format!("a list of up to {items} mappings"),
    }
}

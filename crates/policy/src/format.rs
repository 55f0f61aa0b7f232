//! Texts with values in them. They stop growing at a limit, however large the values are.

use std::fmt::Write;

use regorus::Value;

use crate::argument::{Failure, list, text, within};

/// Knows `%s`, `%v`, `%d` and `%%`.
pub(crate) fn sprintf(arguments: &[Value]) -> Result<Value, Failure> {
    let [form, values] = arguments else { return Err(Failure::Argument) };
    let (form, values) = (text(form)?, list(values)?);
    let (mut out, mut values) = (String::new(), values.iter());
    let mut rest = form;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let verb = rest[at + 1..].chars().next();
        match verb {
            Some('%') => out.push('%'),
            Some('s' | 'v' | 'd') => show(values.next().ok_or(Failure::Argument)?, &mut out)?,
            _ => return Err(Failure::Argument),
        }
        within(out.len())?;
        rest = &rest[at + 1 + verb.map_or(0, char::len_utf8)..];
    }
    out.push_str(rest);
    within(out.len())?;
    match values.next() {
        Some(_) => Err(Failure::Argument),
        None => Ok(out.into()),
    }
}

/// A value as text. It stops where the text becomes too long, however large the value is.
fn show(value: &Value, out: &mut String) -> Result<(), Failure> {
    within(out.len())?;
    match value {
        Value::String(text) => {
            within(out.len() + text.len())?;
            out.push_str(text);
        }
        Value::Array(items) => show_items(items.iter(), out)?,
        Value::Set(items) => show_items(items.iter(), out)?,
        Value::Object(fields) => {
            out.push('{');
            for (index, (key, value)) in fields.iter_sorted().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                show(key, out)?;
                out.push_str(": ");
                show(value, out)?;
            }
            out.push('}');
        }
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(_) => write!(out, "{value}").map_err(|_| Failure::Argument)?,
        Value::Undefined => return Err(Failure::Argument),
    }
    Ok(())
}

fn show_items<'a>(items: impl Iterator<Item = &'a Value>, out: &mut String) -> Result<(), Failure> {
    out.push('[');
    for (index, item) in items.enumerate() {
        out.push_str(if index > 0 { ", " } else { "" });
        show(item, out)?;
    }
    out.push(']');
    Ok(())
}

//! `max` and `min`: of several arguments, or of the items of one list.

use std::cmp::Ordering;

use cel::extractors::Arguments;
use cel::{Context, ExecutionError, Value};

/// Makes both functions.
pub(super) fn equip(context: &mut Context<'_, '_>) -> Result<(), String> {
    let max = |Arguments(given): Arguments| extreme("max", &given, Ordering::Greater);
    let min = |Arguments(given): Arguments| extreme("min", &given, Ordering::Less);
    context.add_function("max", max).map_err(|error| error.to_string())?;
    context.add_function("min", min).map_err(|error| error.to_string())
}

fn extreme(name: &str, given: &[Value], wanted: Ordering) -> Result<Value, ExecutionError> {
    let refused = |why: String| ExecutionError::function_error(name, why);
    let items = match given {
        [Value::List(items)] => items.as_slice(),
        several => several,
    };
    let Some((first, rest)) = items.split_first() else {
        return Err(refused(format!("there is no `{name}` of nothing")));
    };
    let mut found = first;
    for item in rest {
        match item.partial_cmp(found) {
            Some(order) if order == wanted => found = item,
            Some(_) => {}
            None => return Err(refused(format!("`{name}` compares numbers with numbers and texts with texts"))),
        }
    }
    Ok(found.clone())
}

//! What is wrong with a JSON text, in Interlock's own words: what the parser says is written for its developers, and
//! names the types of the code.

use std::borrow::Cow;

use serde_json::error::Category;

use crate::text::visible::visible;

/// So much of a value is repeated.
const VALUE_CHARS_MAX: usize = 80;

/// What is wrong, and where: `expected a text, found the number 1 at line 1 column 13`.
pub fn json_error(error: &serde_json::Error) -> String {
    let whole = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let (said, place) = match whole.strip_suffix(&place) {
        Some(said) => (said, place.as_str()),
        None => (whole.as_str(), ""),
    };
    let what: Cow<'_, str> = match error.classify() {
        Category::Eof => "the text ends too early: a value, a quote or a closing bracket is missing".into(),
        Category::Syntax => syntax(said),
        Category::Data => data(said),
        Category::Io => said.into(),
    };
    format!("{what}{place}")
}

fn syntax(said: &str) -> Cow<'_, str> {
    match said {
        "expected value" => "here is no value; texts stand in double quotes".into(),
        "expected `:`" => "a `:` is missing behind the name of a field".into(),
        "expected `,` or `}`" => "a `,` or the closing `}` is missing".into(),
        "expected `,` or `]`" => "a `,` or the closing `]` is missing".into(),
        "expected ident" => "here is no value; did you mean `true`, `false` or `null`?".into(),
        "key must be a string" => "the name of a field stands in double quotes".into(),
        "trailing comma" => "a `,` has nothing behind it".into(),
        "trailing characters" => "something stands behind the value".into(),
        "invalid number" => "this is no number".into(),
        "number out of range" => "this number is too large".into(),
        "invalid escape" => r"a text has an escape that there is not; `\\` stands for a backslash".into(),
        "recursion limit exceeded" => "it is nested too deeply".into(),
        said if said.starts_with("control character") => {
            r"a text has a line break or another control character; write it as an escape, such as `\n`".into()
        }
        said if said.contains("surrogate") || said.contains("unicode") => {
            "a text has an escape that is half of a character".into()
        }
        said => said.into(),
    }
}

/// Names of fields are the document's own, and stay as they are.
fn data(said: &str) -> Cow<'_, str> {
    for prefix in ["invalid type: ", "invalid value: "] {
        let Some((found, expected)) = said.strip_prefix(prefix).and_then(|rest| rest.rsplit_once(", expected ")) else {
            continue;
        };
        return format!("expected {}, found {}", wanted(expected), given(found)).into();
    }
    if said.starts_with("invalid length ")
        && let Some((_, expected)) = said.rsplit_once(", expected ")
    {
        let expected = if expected.starts_with("struct ") { "an object" } else { "a list of another length" };
        return format!("expected {expected}, found a list").into();
    }
    if let Some(rest) = said.strip_prefix("unknown variant ") {
        return format!("unknown value {rest}").into();
    }
    if said.starts_with("data did not match any variant") {
        return "it has none of the forms that are taken here".into();
    }
    said.into()
}

fn given(found: &str) -> String {
    let short = |text: &str| visible(text).chars().take(VALUE_CHARS_MAX).collect::<String>();
    match found.split_once(' ') {
        Some(("string", text)) => format!("the text {}", short(text)),
        Some(("integer", number)) => format!("the number {}", short(number)),
        Some(("floating", rest)) => format!("the number {}", short(rest.trim_start_matches("point "))),
        Some(("boolean", truth)) => truth.to_owned(),
        Some(("unit", "value")) => "`null`".to_owned(),
        _ => match found {
            "null" => "`null`".to_owned(),
            "sequence" => "a list".to_owned(),
            "map" => "an object".to_owned(),
            other => short(other),
        },
    }
}

fn wanted(expected: &str) -> Cow<'_, str> {
    let below = |max: u64| -> Cow<'static, str> { format!("a whole number from 0 to {max}").into() };
    match expected {
        "a string" | "a borrowed string" | "a character" => "a text".into(),
        "a boolean" => "`true` or `false`".into(),
        "a sequence" => "a list".into(),
        "a map" => "an object".into(),
        "u8" => below(u8::MAX.into()),
        "u16" => below(u16::MAX.into()),
        "u32" => below(u32::MAX.into()),
        "u64" | "usize" => below(u64::MAX),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".into(),
        "f32" | "f64" => "a number".into(),
        "unit" => "`null`".into(),
        expected if expected.starts_with("struct ") => "an object".into(),
        expected if expected.contains("tagged enum ") => "an object that says its kind".into(),
        expected if expected.starts_with("tuple ") => "a list".into(),
        expected => expected.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only what is refused is looked at")]
    struct Order {
        name: String,
        #[serde(default)]
        cents: u32,
        #[serde(default)]
        gift: bool,
        #[serde(default)]
        items: Vec<String>,
        #[serde(default)]
        state: Option<OrderState>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum OrderState {
        Open,
    }

    /// Nothing of what the library says about types reaches people.
    #[test]
    fn errors_are_in_our_words_with_the_place() {
        for (text, says) in [
            ("", "the text ends too early: a value, a quote or a closing bracket is missing at line 1 column 0"),
            ("hello", "here is no value; texts stand in double quotes at line 1 column 1"),
            (r#"{"name" "a"}"#, "a `:` is missing behind the name of a field at line 1"),
            (r#"{"name":"a" "b"}"#, "a `,` or the closing `}` is missing"),
            (r#"{"name":"a",}"#, "a `,` has nothing behind it"),
            (r#"{"name":"a"} {}"#, "something stands behind the value"),
            ("{name:1}", "the name of a field stands in double quotes"),
            (r#"{"name":1}"#, "expected a text, found the number `1` at line 1"),
            (r#"{"name":null}"#, "expected a text, found `null`"),
            (r#"{"name":"a","cents":"five"}"#, "expected a whole number from 0 to 4294967295, found the text \"five\""),
            (r#"{"name":"a","cents":-1}"#, "expected a whole number from 0 to 4294967295, found the number `-1`"),
            (r#"{"name":"a","gift":0}"#, "expected `true` or `false`, found the number `0`"),
            (r#"{"name":"a","items":{}}"#, "expected a list, found an object"),
            (r#"{"name":"a","state":"shut"}"#, "unknown value `shut`, expected `open`"),
            (r#"{"cents":1}"#, "missing field `name`"),
            ("[]", "expected an object, found a list at line 1"),
            ("7", "expected an object, found the number `7`"),
            (r#"{"name":"a","colour":1}"#, "unknown field `colour`, expected one of `name`"),
        ] {
            let error = json_error(&serde_json::from_str::<Order>(text).unwrap_err());
            assert!(error.starts_with(says), "{text}: {error}");
            for word in
                ["invalid type", "invalid value", "EOF", "u32", "struct", "sequence", "variant", "trailing", "length"]
            {
                assert!(!error.contains(word), "{text}: {error}");
            }
        }
        let long = format!(r#"{{"name":"a","cents":"{}"}}"#, "x".repeat(5_000));
        let error = json_error(&serde_json::from_str::<Order>(&long).unwrap_err());
        assert!(error.len() < 300, "{error}");
    }
}

//! What an operation takes: a list of [`Field`]s, each with a [`Kind`] and a bound. The same list checks what stands in a
//! workflow file, where texts may still hold expressions, and what they have come to once they are rendered.

use interlock_core::plan::is_template;
use interlock_core::secret_name::is_secret_name;
use interlock_core::text::nearest::hint;
use serde_json::{Map, Value};

use crate::limits;

/// The field that marks a reference to a secret inside a value: `{"$secret": "NAME"}`.
pub const SECRET: &str = "$secret";

/// One field of an operation.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    pub need: Need,
    pub about: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Required,
    Optional,
    /// JSON text of what it is where it is not given.
    Default(&'static str),
}

/// What a field may hold, and how much of it.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Text of at most this many bytes.
    Text(usize),
    /// Text that stands in an address: letters, digits, `_`, `-` and `.`.
    Id(usize),
    OneOf(&'static [&'static str]),
    Whole {
        min: i64,
        max: i64,
    },
    Number {
        min: f64,
        max: f64,
    },
    Truth,
    /// A list of texts.
    Texts {
        items: usize,
        bytes: usize,
    },
    /// Names and texts; a value may be a secret.
    Headers,
    /// Names and plain values: texts, numbers, truth values.
    Values {
        items: usize,
        bytes: usize,
    },
    /// Any JSON up to this many bytes.
    Any {
        bytes: usize,
        secrets: bool,
    },
    /// A reference to a secret.
    Secret,
    Record(&'static [Field]),
    /// A list of records.
    Records {
        items: usize,
        of: &'static [Field],
    },
}

impl Field {
    pub const fn new(name: &'static str, kind: Kind, need: Need, about: &'static str) -> Self {
        Self { name, kind, need, about }
    }
}

/// Whether expressions have been evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filling {
    /// As it is written: a text with `${{ … }}` may become anything.
    Written,
    Rendered,
}

/// What is wrong with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// There is none of this name.
    Unknown,
    /// It is not there; the path leads to where it should be.
    Missing,
    Value,
}

/// Something that an operation does not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldFault {
    /// The way to it: names of fields, and positions in lists.
    pub path: Vec<String>,
    pub kind: FaultKind,
    pub what: String,
    pub help: Option<String>,
}

impl FieldFault {
    /// `fields.work_notes: expected text`.
    pub fn sentence(&self) -> String {
        let at = if self.path.is_empty() { "with".to_owned() } else { self.path.join(".") };
        match &self.help {
            Some(help) => format!("`{at}`: {} ({help})", self.what),
            None => format!("`{at}`: {}", self.what),
        }
    }
}

/// Everything that is wrong with a value.
pub fn faults(fields: &[Field], value: &Value, filling: Filling) -> Vec<FieldFault> {
    let mut checker = Checker { filling, path: Vec::new(), found: Vec::new() };
    checker.record(fields, value);
    checker.found
}

/// Puts in what was not given and has a default.
pub fn fill_defaults(fields: &[Field], value: &mut Value) {
    let Value::Object(given) = value else { return };
    for field in fields {
        if given.get(field.name).is_some_and(Value::is_null) {
            given.remove(field.name);
        }
        match (field.need, given.get_mut(field.name)) {
            (Need::Default(text), None) => {
                let default = serde_json::from_str(text).expect("defaults are JSON, which a test checks");
                given.insert(field.name.to_owned(), default);
            }
            (_, Some(inner)) => {
                if let Kind::Record(fields) = field.kind {
                    fill_defaults(fields, inner);
                }
            }
            _ => {}
        }
    }
}

/// The name of the secret that a rendered value refers to.
pub fn secret_name(value: &Value) -> Option<&str> {
    let fields = value.as_object()?;
    fields.get(SECRET)?.as_str().filter(|name| fields.len() == 1 && is_secret_name(name))
}

struct Checker {
    filling: Filling,
    path: Vec<String>,
    found: Vec<FieldFault>,
}

impl Checker {
    fn fault(&mut self, what: impl Into<String>) {
        let (path, kind) = (self.path.clone(), FaultKind::Value);
        self.found.push(FieldFault { path, kind, what: what.into(), help: None });
    }

    fn fault_with(&mut self, what: impl Into<String>, help: impl Into<String>) {
        let (path, kind) = (self.path.clone(), FaultKind::Value);
        self.found.push(FieldFault { path, kind, what: what.into(), help: Some(help.into()) });
    }

    fn within(&mut self, name: impl Into<String>, check: impl FnOnce(&mut Self)) {
        self.path.push(name.into());
        check(self);
        self.path.pop();
    }

    fn is_open(&self, value: &Value) -> bool {
        self.filling == Filling::Written && value.as_str().is_some_and(is_template)
    }

    fn record(&mut self, fields: &[Field], value: &Value) {
        let Value::Object(given) = value else {
            if !self.is_open(value) {
                self.fault(format!("expected a mapping, found {}", kind_of(value)));
            }
            return;
        };
        for name in given.keys().filter(|name| fields.iter().all(|field| field.name != name.as_str())) {
            let known = fields.iter().map(|field| field.name);
            let mut path = self.path.clone();
            path.push(name.clone());
            let what = format!("there is no field `{name}` here");
            let kind = FaultKind::Unknown;
            self.found.push(FieldFault { path, kind, what, help: Some(hint(name, known)) });
        }
        for field in fields {
            match given.get(field.name).filter(|value| !value.is_null()) {
                Some(value) => self.within(field.name, |this| this.value(field.kind, value)),
                None if field.need == Need::Required => {
                    let (path, kind) = (self.path.clone(), FaultKind::Missing);
                    let what = format!("`{}` is missing", field.name);
                    self.found.push(FieldFault { path, kind, what, help: Some(field.about.to_owned()) });
                }
                None => {}
            }
        }
    }

    fn value(&mut self, kind: Kind, value: &Value) {
        let takes_secrets = matches!(kind, Kind::Secret | Kind::Headers | Kind::Any { secrets: true, .. });
        let is_reference = secret_name(value).is_some() || is_written_secret(value);
        if is_reference && !takes_secrets {
            return self.fault_with("a secret cannot stand here", "its value would be shown, stored and approved");
        }
        if let Kind::Secret = kind {
            // An input that is declared as a secret renders to a reference as well.
            if !is_reference && !self.is_open(value) {
                self.fault_with("a secret is given by reference only", "write `${{ secrets.NAME }}`");
            }
            return;
        }
        if self.is_open(value) {
            return;
        }
        match kind {
            Kind::Text(max) => self.text(value, max),
            Kind::Id(max) => {
                self.text(value, max);
                let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
                // Nothing but dots would climb in an address.
                let fits = |text: &str| text.chars().all(plain) && text.chars().any(|c| c != '.');
                if value.as_str().is_some_and(|text| !fits(text)) {
                    self.fault("expected letters, digits, `_`, `-` and `.` only");
                }
            }
            Kind::OneOf(words) => {
                if !value.as_str().is_some_and(|text| words.contains(&text)) {
                    self.fault(format!("expected one of {}", words.join(", ")));
                }
            }
            Kind::Whole { min, max } => {
                if !value.as_i64().is_some_and(|number| (min..=max).contains(&number)) {
                    self.fault(format!("expected a whole number from {min} to {max}"));
                }
            }
            Kind::Number { min, max } => {
                if !value.as_f64().is_some_and(|number| (min..=max).contains(&number)) {
                    self.fault(format!("expected a number from {min} to {max}"));
                }
            }
            Kind::Truth => {
                if !value.is_boolean() {
                    self.fault(format!("expected `true` or `false`, found {}", kind_of(value)));
                }
            }
            Kind::Texts { items, bytes } => self.list(value, items, |this, item| this.value(Kind::Text(bytes), item)),
            Kind::Headers => self.headers(value),
            Kind::Values { items, bytes } => self.values(value, items, bytes),
            Kind::Any { bytes, secrets } => {
                let length = value.to_string().len();
                if length > bytes {
                    self.fault(format!("it is {length} bytes long, the limit is {bytes}"));
                }
                if !secrets && holds_secret(value) {
                    self.fault("a secret cannot stand here");
                }
            }
            Kind::Record(fields) => self.record(fields, value),
            Kind::Records { items, of } => self.list(value, items, |this, item| this.record(of, item)),
            Kind::Secret => {}
        }
    }

    fn text(&mut self, value: &Value, max: usize) {
        match value.as_str() {
            None => {
                let what = format!("expected text, found {}", kind_of(value));
                if value.is_number() || value.is_boolean() {
                    self.fault_with(what, "put it in quotes");
                } else {
                    self.fault(what);
                }
            }
            Some(text) if text.len() > max => {
                self.fault(format!("the text is {} bytes long, the limit is {max}", text.len()));
            }
            Some(text) if text.contains('\0') => self.fault("the text holds a NUL character"),
            Some(_) => {}
        }
    }

    fn list(&mut self, value: &Value, max: usize, mut check: impl FnMut(&mut Self, &Value)) {
        let Value::Array(items) = value else {
            return self.fault(format!("expected a list, found {}", kind_of(value)));
        };
        if items.len() > max {
            return self.fault(format!("there are {} items, the limit is {max}", items.len()));
        }
        for (at, item) in items.iter().enumerate() {
            self.within(at.to_string(), |this| check(this, item));
        }
    }

    fn map(&mut self, value: &Value, max: usize, mut check: impl FnMut(&mut Self, &str, &Value)) {
        let Value::Object(given) = value else {
            return self.fault(format!("expected a mapping, found {}", kind_of(value)));
        };
        if given.len() > max {
            return self.fault(format!("there are {} entries, the limit is {max}", given.len()));
        }
        for (name, item) in given {
            self.within(name.as_str(), |this| check(this, name, item));
        }
    }

    fn headers(&mut self, value: &Value) {
        self.map(value, limits::ITEMS, |this, name, item| {
            let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
            if name.is_empty() || name.len() > limits::SHORT_TEXT || !name.chars().all(token) {
                return this.fault("this is not the name of a header");
            }
            if secret_name(item).is_some() || is_written_secret(item) || this.is_open(item) {
                return;
            }
            this.text(item, limits::LONG_TEXT);
            if item.as_str().is_some_and(|text| text.contains(['\r', '\n'])) {
                this.fault("a header has one line");
            }
        });
    }

    fn values(&mut self, value: &Value, items: usize, bytes: usize) {
        self.map(value, items, |this, name, item| {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            if name.is_empty() || name.len() > limits::SHORT_TEXT || !name.chars().all(plain) {
                return this.fault("names of fields have small letters, digits and `_`");
            }
            if secret_name(item).is_some() || is_written_secret(item) {
                return this.fault_with("a secret cannot stand here", "its value would be shown, stored and approved");
            }
            match item {
                Value::Bool(_) | Value::Number(_) => {}
                item => this.text(item, bytes),
            }
        });
    }
}

/// The name in `${{ secrets.NAME }}`, as it stands in a file.
fn written_secret(value: &Value) -> Option<&str> {
    let inner = value.as_str()?.trim().strip_prefix("${{")?.strip_suffix("}}")?;
    inner.trim().strip_prefix("secrets.").filter(|name| is_secret_name(name))
}

fn is_written_secret(value: &Value) -> bool {
    written_secret(value).is_some()
}

/// What a written value comes to where nothing in it has to be evaluated.
pub fn settled(value: &Value) -> Option<Value> {
    if let Some(name) = written_secret(value) {
        return Some(serde_json::json!({ SECRET: name }));
    }
    match value {
        Value::String(text) if is_template(text) => None,
        Value::Array(items) => items.iter().map(settled).collect::<Option<Vec<_>>>().map(Value::Array),
        Value::Object(fields) => {
            let all = fields.iter().map(|(name, value)| Some((name.clone(), settled(value)?)));
            all.collect::<Option<Map<_, _>>>().map(Value::Object)
        }
        other => Some(other.clone()),
    }
}

fn holds_secret(value: &Value) -> bool {
    let is_marked = |fields: &Map<String, Value>| fields.contains_key(SECRET);
    match value {
        Value::Object(fields) => is_marked(fields) || fields.values().any(holds_secret),
        Value::Array(items) => items.iter().any(holds_secret),
        other => is_written_secret(other),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SOME: &[Field] = &[
        Field::new("to", Kind::Id(40), Need::Required, "whom it goes to"),
        Field::new("many", Kind::Texts { items: 2, bytes: 3 }, Need::Optional, "texts"),
        Field::new("count", Kind::Whole { min: 1, max: 9 }, Need::Default("3"), "how many"),
        Field::new("key", Kind::Secret, Need::Optional, "a secret"),
        Field::new("headers", Kind::Headers, Need::Optional, "headers"),
        Field::new("free", Kind::Any { bytes: 40, secrets: false }, Need::Optional, "free"),
        Field::new("inner", Kind::Record(INNER), Need::Optional, "inner"),
    ];
    const INNER: &[Field] = &[Field::new("on", Kind::Truth, Need::Default("true"), "a switch")];

    fn found(value: Value, filling: Filling) -> Vec<String> {
        faults(SOME, &value, filling).iter().map(FieldFault::sentence).collect()
    }

    #[test]
    fn what_is_not_taken_is_refused_with_its_place() {
        let value = json!({
            "to": "a/b", "many": ["ab", "abcd"], "count": 10, "key": "plain", "headers": { "a b": "x", "c": "a\nb" },
            "free": { "$secret": "X" }, "inner": { "of": true },
        });
        let places = faults(SOME, &value, Filling::Rendered);
        let places: Vec<_> = places.iter().map(|fault| fault.path.join(".")).collect();
        assert_eq!(places, ["to", "many.1", "count", "key", "headers.a b", "headers.c", "free", "inner.of"]);
        assert_eq!(found(json!({}), Filling::Rendered), ["`with`: `to` is missing (whom it goes to)"]);
        assert_eq!(found(json!("x"), Filling::Rendered), ["`with`: expected a mapping, found text"]);
        assert!(found(json!({ "to": "a", "cuont": 1 }), Filling::Rendered)[0].contains("`count`"));
    }

    #[test]
    fn expressions_may_become_anything_until_they_are_rendered() {
        let value = json!({ "to": "${{ inputs.to }}", "many": "${{ inputs.list }}", "count": "${{ inputs.n }}" });
        assert_eq!(found(value.clone(), Filling::Written), [""; 0]);
        assert_eq!(faults(SOME, &value, Filling::Rendered).len(), 3);
    }

    #[test]
    fn a_secret_stands_only_where_it_is_asked_for() {
        let written = json!({ "to": "a", "key": "${{ secrets.KEY }}", "headers": { "x": "${{ secrets.KEY }}" } });
        assert_eq!(found(written, Filling::Written), [""; 0]);
        let rendered = json!({ "to": "a", "key": { "$secret": "KEY" }, "headers": { "x": { "$secret": "KEY" } } });
        assert_eq!(found(rendered, Filling::Rendered), [""; 0]);
        for value in [json!({ "to": "${{ secrets.KEY }}" }), json!({ "to": "a", "free": ["${{ secrets.KEY }}"] })] {
            assert!(found(value.clone(), Filling::Written)[0].contains("secret cannot stand here"), "{value}");
        }
        assert!(found(json!({ "to": { "$secret": "KEY" } }), Filling::Rendered)[0].contains("secret cannot"));
        assert!(secret_name(&json!({ "$secret": "../../etc/passwd" })).is_none());
        assert!(secret_name(&json!({ "$secret": "A", "more": 1 })).is_none());
    }

    #[test]
    fn defaults_are_put_in_also_further_inside() {
        let mut value = json!({ "to": "a", "many": null, "inner": {} });
        fill_defaults(SOME, &mut value);
        assert_eq!(value, json!({ "to": "a", "count": 3, "inner": { "on": true } }));
    }
}

//! YAML text to a [`Node`] tree. The parser gives events; the tree is built here, without recursion, and within
//! bounds: a file that nests too deep or grows too large through aliases is refused before it is built.

use std::collections::HashMap;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle};

use crate::diagnostic::{Code, Report};
use crate::limits::{DEPTH_MAX, EXPANDED_BYTES_MAX, NODES_MAX, SOURCE_BYTES_MAX};
use crate::node::{Key, LineColumn, Node, Span, Value};
use crate::source::Source;

/// The document, or nothing where the report says why.
pub fn parse(source: &Source, report: &mut Report) -> Option<Node> {
    if source.text.len() > SOURCE_BYTES_MAX {
        let (bytes, max) = (source.text.len(), SOURCE_BYTES_MAX);
        report.error(Code::TooLarge, Span::FIRST, format!("the file is {bytes} bytes long, the limit is {max}"));
        return None;
    }
    let mut builder = Builder::default();
    for event in Parser::new_from_str(&source.text) {
        match event {
            Ok((event, span)) => {
                let mut span = place_of(span);
                if matches!(event, Event::Scalar(..)) {
                    // In a flow collection the parser counts the space behind a scalar.
                    let written = source.slice(span).trim_end().len();
                    span = source.within(span, 0, written);
                }
                if !builder.take(event, span, report) {
                    return None;
                }
            }
            Err(error) => {
                let at = LineColumn { line: error.marker().line().max(1), column: error.marker().col() + 1 };
                let span = Span { start: at, end: LineColumn { column: at.column + 1, ..at } };
                report.error(Code::Syntax, span, format!("this is not YAML: {}", error.info()));
                return None;
            }
        }
    }
    if builder.root.is_none() {
        report
            .error(Code::Syntax, Span::FIRST, "the file is empty")
            .help("begin with `name:` and a list of `steps:`; docs/guide/workflows.md has examples");
    }
    builder.root
}

fn place_of(span: saphyr_parser::Span) -> Span {
    let place = |marker: saphyr_parser::Marker| LineColumn { line: marker.line().max(1), column: marker.col() + 1 };
    Span { start: place(span.start), end: place(span.end) }
}

/// A collection that is still open.
struct Open {
    anchor: usize,
    span: Span,
    items: Items,
    /// What the document had come to when the collection began.
    before: Size,
}

enum Items {
    List(Vec<Node>),
    Map { fields: Vec<(Key, Node)>, key: Option<Key>, lines: HashMap<String, usize> },
}

/// How much a document, or a part of it, is: with every alias counted as often as it is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Size {
    nodes: usize,
    bytes: usize,
}

impl Size {
    fn of(value: &Value) -> Self {
        let text = if let Value::Text(text) = value { text.len() } else { 0 };
        Self { nodes: 1, bytes: NODE_BYTES + text }
    }

    fn plus(self, other: Self) -> Self {
        Self { nodes: self.nodes + other.nodes, bytes: self.bytes + other.bytes }
    }

    fn minus(self, other: Self) -> Self {
        Self { nodes: self.nodes - other.nodes, bytes: self.bytes - other.bytes }
    }
}

/// What a value counts beside its text: about what it takes wherever it is written out.
const NODE_BYTES: usize = 16;

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, (Node, Size)>,
    root: Option<Node>,
    size: Size,
    documents: usize,
}

impl Builder {
    /// Answers false where it makes no sense to go on.
    fn take(&mut self, event: Event<'_>, span: Span, report: &mut Report) -> bool {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    report
                        .error(Code::Syntax, span, "a second document begins here")
                        .help("write one workflow in one file; remove `---`");
                    return false;
                }
                true
            }
            Event::Scalar(text, style, anchor, tag) => {
                if tag.is_some() {
                    report.error(Code::Syntax, span, "tags have no meaning here").help("remove the `!…`");
                }
                if style == ScalarStyle::Plain && is_beyond_64_bits(&text) {
                    report
                        .error(Code::InvalidValue, span, format!("{text} is more than a number can hold exactly"))
                        .help("whole numbers have 64 bits and a sign; put it in quotes");
                }
                let node = Node { span, value: resolve(&text, style) };
                let size = Size::of(&node.value);
                self.put(node, anchor, size, report)
            }
            Event::SequenceStart(anchor, _) => self.begin(anchor, span, Items::List(Vec::new()), report),
            Event::MappingStart(anchor, _) => {
                self.begin(anchor, span, Items::Map { fields: Vec::new(), key: None, lines: HashMap::new() }, report)
            }
            Event::SequenceEnd | Event::MappingEnd => self.finish(span, report),
            Event::Alias(id) => {
                let Some((node, size)) = self.anchors.get(&id).cloned() else {
                    report.error(Code::Syntax, span, "this alias refers to itself");
                    return false;
                };
                self.put(node, 0, size, report)
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => true,
        }
    }

    fn begin(&mut self, anchor: usize, span: Span, items: Items, report: &mut Report) -> bool {
        if self.open.len() >= DEPTH_MAX {
            report.error(Code::TooLarge, span, format!("this is nested deeper than {DEPTH_MAX} levels"));
            return false;
        }
        self.open.push(Open { anchor, span, items, before: self.size });
        true
    }

    fn finish(&mut self, span: Span, report: &mut Report) -> bool {
        let Some(open) = self.open.pop() else { return true };
        let span = Span { start: open.span.start, end: span.end.max(open.span.end) };
        let value = match open.items {
            Items::List(items) => Value::List(Arc::new(items)),
            Items::Map { fields, .. } => Value::Map(Arc::new(fields)),
        };
        let own = Size::of(&value);
        // What is inside was counted when it was put there; an alias of the whole counts all of it again.
        let whole = self.size.minus(open.before).plus(own);
        self.put_counted(Node { span, value }, (open.anchor, whole), own, report)
    }

    fn put(&mut self, node: Node, anchor: usize, size: Size, report: &mut Report) -> bool {
        self.put_counted(node, (anchor, size), size, report)
    }

    /// Takes a node that adds `added` to the document; its anchor, if it has one, stands for the size beside it.
    fn put_counted(&mut self, node: Node, anchor: (usize, Size), added: Size, report: &mut Report) -> bool {
        self.size = self.size.plus(added);
        if self.size.nodes > NODES_MAX || self.size.bytes > EXPANDED_BYTES_MAX {
            let (limit, what) = if self.size.nodes > NODES_MAX {
                (NODES_MAX, "values")
            } else {
                (EXPANDED_BYTES_MAX, "bytes of values")
            };
            let message = format!("the file holds more than {limit} {what}, aliases counted as often as they are used");
            report.error(Code::TooLarge, node.span, message).help("use fewer aliases (`*name`), or shorter values");
            return false;
        }
        let (anchor, whole) = anchor;
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), whole));
        }
        match self.open.last_mut().map(|open| &mut open.items) {
            None => self.root = Some(node),
            Some(Items::List(items)) => items.push(node),
            Some(Items::Map { fields, key, lines }) => match key.take() {
                Some(key) => {
                    if let Some(line) = lines.get(&key.name) {
                        report
                            .error(Code::DuplicateKey, key.span, format!("`{}` is given twice", key.name))
                            .help(format!("the first one is on line {line}; remove one of them"));
                    } else {
                        lines.insert(key.name.clone(), key.span.start.line);
                        fields.push((key, node));
                    }
                }
                None => *key = Some(key_of(node, report)),
            },
        }
        true
    }
}

fn key_of(node: Node, report: &mut Report) -> Key {
    let name = match &node.value {
        Value::Text(text) => text.to_string(),
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Null => "null".to_owned(),
        Value::List(_) | Value::Map(_) => {
            report
                .error(Code::Syntax, node.span, format!("{} cannot be a key", node.kind()))
                .help("an expression needs quotes where a value begins with it: \"${{ … }}\"");
            String::new()
        }
    };
    if name == "<<" {
        report.error(Code::Syntax, node.span, "merge keys are not part of YAML 1.2").help("write the fields out");
    }
    Key { name, span: node.span }
}

/// Whether this is a whole number that would be rounded.
fn is_beyond_64_bits(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<i64>().is_err()
}

/// The core schema of YAML 1.2: only plain text can be anything but text, and `on`, `yes` and `no` are text.
fn resolve(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::Text(text.into());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let digits = text.trim_start_matches(['-', '+']);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Value::Text(text.into());
    }
    if let Some(hex) = text.strip_prefix("0x")
        && let Ok(number) = i64::from_str_radix(hex, 16)
    {
        return Value::Int(number);
    }
    if let Ok(number) = text.parse::<i64>() {
        return Value::Int(number);
    }
    let is_number = text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    match text.parse::<f64>() {
        Ok(number) if is_number && number.is_finite() => Value::Float(number),
        _ => Value::Text(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn read(text: &str) -> (Option<Node>, Vec<String>) {
        let mut report = Report::default();
        let node = parse(&Source::new("t", text), &mut report);
        (node, report.into_diagnostics().into_iter().map(|diagnostic| diagnostic.message).collect())
    }

    fn says(text: &str, what: &str) {
        let (_, messages) = read(text);
        assert!(messages.iter().any(|message| message.contains(what)), "{text:?}: {messages:?}");
    }

    #[test]
    fn scalars_are_what_yaml_1_2_says() {
        let (node, messages) =
            read("a: 1\nb: 1.5\nc: yes\nd: 'true'\ne: true\nf:\non: 0x10\ng: 1.2.3\nh: 10m\ni: -4\n");
        assert_eq!(messages, Vec::<String>::new());
        let json = node.unwrap().to_json();
        assert_eq!(
            json,
            serde_json::json!({"a": 1, "b": 1.5, "c": "yes", "d": "true", "e": true, "f": null, "on": 16,
                "g": "1.2.3", "h": "10m", "i": -4})
        );
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_place() {
        says("a: 1\na: 2\n", "`a` is given twice");
        says("a: [1\n", "not YAML");
        says("a: 1\n---\nb: 2\n", "second document");
        says("", "empty");
        says("a: &x [*x]\n", "refers to itself");
        says("<<: {a: 1}\n", "merge keys");
        says("a: !!str 1\n", "tags");
        says("a: 9223372036854775808\n", "hold exactly");
        says("a: -99999999999999999999\n", "hold exactly");
        says("a: {{ x }}\n", "cannot be a key");
        says(&format!("a: {}1{}", "[".repeat(40), "]".repeat(40)), "deeper");
        says(&"x".repeat(SOURCE_BYTES_MAX + 1), "the limit is");
    }

    #[test]
    fn a_bomb_of_aliases_does_not_go_off() {
        let mut text = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for level in 1..10 {
            let before = level - 1;
            let row = format!("*a{before}, ").repeat(10);
            let _ = writeln!(text, "a{level}: &a{level} [{row}x]");
        }
        says(&text, "more than");
    }

    /// One long value and thousands of aliases of it: few values, and gigabytes if each were written out.
    #[test]
    fn a_long_value_that_is_repeated_counts_by_its_bytes() {
        let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(110_000), "*a,".repeat(48_000));
        assert!(text.len() < SOURCE_BYTES_MAX);
        says(&text, "bytes of values");
        let nested = format!("a: &a [{}]\nb: [{}]\n", "y".repeat(110_000), "*a,".repeat(20_000));
        says(&nested, "bytes of values");
    }

    #[test]
    fn an_alias_shares_what_it_stands_for() {
        let (node, messages) = read(&format!("a: &a [{}]\nb: [*a, *a, *a]\nc: *a\n", "x".repeat(1_000)));
        assert_eq!(messages, Vec::<String>::new());
        let Value::Map(fields) = node.unwrap().value else { unreachable!() };
        let Value::List(first) = &fields[0].1.value else { unreachable!() };
        assert_eq!(Arc::strong_count(first), 5, "the anchor's place and its four aliases");
    }

    #[test]
    fn what_a_collection_holds_counts_again_for_each_alias() {
        let count = |text: &str| {
            let mut builder = Builder::default();
            let mut report = Report::default();
            for event in Parser::new_from_str(text) {
                let (event, span) = event.unwrap();
                assert!(builder.take(event, place_of(span), &mut report));
            }
            builder.size.nodes
        };
        // The mapping, two keys, the list, and its two values.
        assert_eq!(count("{a: [x, y], b: }"), 7);
        assert_eq!(count("{a: &a [x, y], b: *a}"), 9);
        assert_eq!(count("{a: &a [&b [x], *b], b: *a}"), 13);
    }

    #[test]
    fn an_alias_stands_for_its_value() {
        let (node, _) = read("a: &x {b: 1}\nc: *x\n");
        assert_eq!(node.unwrap().to_json(), serde_json::json!({"a": {"b": 1}, "c": {"b": 1}}));
    }
}

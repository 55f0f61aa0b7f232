//! Entries of a stream, out of replies that may be anything: what has not the form of an entry is left out.

use redis::Value;

/// One entry: its id and its fields, which may be any bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEntry {
    pub id: String,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
}

impl StreamEntry {
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields.iter().find(|(field, _)| field == name.as_bytes()).map(|(_, value)| &**value)
    }

    /// The bytes that it holds.
    pub fn length(&self) -> usize {
        self.fields.iter().map(|(name, value)| name.len() + value.len()).sum()
    }

    /// `[ID, [NAME, VALUE, …]]`.
    fn of(value: Value) -> Option<Self> {
        let [id, fields] = <[Value; 2]>::try_from(array(value)?).ok()?;
        let id = String::from_utf8(bytes(id)?).ok()?;
        let mut values = array(fields)?.into_iter();
        let mut fields = Vec::new();
        while let (Some(name), Some(value)) = (values.next(), values.next()) {
            fields.push((bytes(name)?, bytes(value)?));
        }
        Some(Self { id, fields })
    }
}

/// `[ENTRY, …]`.
pub fn entries(value: Value) -> Vec<StreamEntry> {
    array(value).unwrap_or_default().into_iter().filter_map(StreamEntry::of).collect()
}

/// `[[STREAM, [ENTRY, …]]]`, or nothing.
pub fn entries_of_only_stream(value: Value) -> Vec<StreamEntry> {
    let stream = array(value).and_then(|streams| streams.into_iter().next()).and_then(array);
    stream.and_then(|stream| stream.into_iter().nth(1)).map(entries).unwrap_or_default()
}

pub fn array(value: Value) -> Option<Vec<Value>> {
    if let Value::Array(values) = value { Some(values) } else { None }
}

pub fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.into_bytes()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &[u8]) -> Value {
        Value::BulkString(text.to_vec())
    }

    #[test]
    fn what_is_no_entry_is_left_out() {
        let entry = |fields: &[&[u8]]| {
            Value::Array(vec![text(b"1-0"), Value::Array(fields.iter().map(|field| text(field)).collect())])
        };
        let reply = Value::Array(vec![Value::Array(vec![
            text(b"stream"),
            Value::Array(vec![
                Value::Nil,
                Value::Array(vec![text(b"1-0")]),
                Value::Array(vec![text(b"1-0"), Value::Nil]),
                entry(&[b"\xff\xfe", b"\x00", b"type", b"a"]),
                entry(&[b"type", b"b", b"odd"]),
                Value::Array(vec![text(b"\xff"), Value::Array(Vec::new())]),
            ]),
        ])]);
        let read = entries_of_only_stream(reply);
        assert_eq!(read.iter().filter_map(|entry| entry.field("type")).collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(read[0].length(), 8);
        for nothing in [Value::Nil, Value::Int(1), Value::Array(Vec::new()), text(b"x")] {
            assert_eq!(entries_of_only_stream(nothing), []);
        }
    }
}

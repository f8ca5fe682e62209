//! Reads descriptions in JSON.

use std::borrow::Cow;
use std::ops::Range;

use crate::format::bytes::{json_text, read_bytes};
use crate::source::{Folder, SourceError};
use crate::volume::NativeJson;

/// Bytes of the longest description that is read, apart from what it repeats of others.
const MAX_BYTES: u64 = 8 << 20;
/// Bytes of the longest text that has the descriptions of many nodes.
const MAX_CONSOLIDATED: u64 = 64 << 20;
/// The most names of a group that are looked at.
pub(super) const MAX_NAMES: usize = 1 << 17;

/// Reads a description, and returns the bytes of its text, too; `None` if there is none. The value of the key `left_out`
/// is not looked at.
pub(in crate::format) fn read(
    folder: &dyn Folder,
    path: &str,
    left_out: Option<&str>,
) -> Result<Option<(Parsed, u64)>, SourceError> {
    let Some(length) = folder.len(path)? else { return Ok(None) };
    let too_long = |length| Ok(Some((Err(format!("{path} has {length} bytes")), 0)));
    if length > if left_out.is_some() { MAX_CONSOLIDATED } else { MAX_BYTES } {
        return too_long(length);
    }
    let Some(mut text) = read_bytes(folder, path, 0, length)? else { return Ok(None) };
    if let Some(value) = left_out.and_then(|key| value(&text, key)) {
        text.splice(value, *b" null");
    }
    let length = text.len() as u64;
    if length > MAX_BYTES {
        return too_long(length);
    }
    Ok(Some((parse(&text).map_err(|why| format!("{path}: {why}")), length)))
}

/// Returns the names in an object of a description, which is found by the keys on the way to it; none if there is no such
/// description, or it makes no sense.
pub(in crate::format) fn names_in(folder: &dyn Folder, path: &str, keys: &[&str]) -> Result<Vec<String>, SourceError> {
    let Some(length) = folder.len(path)?.filter(|length| *length <= MAX_CONSOLIDATED) else { return Ok(Vec::new()) };
    let Some(text) = read_bytes(folder, path, 0, length)? else { return Ok(Vec::new()) };
    let (mut object, mut names) = (&text[..], Vec::new());
    for key in keys {
        object = value(object, key).map_or(&[], |value| &object[value]);
    }
    visit_members(object, |name, _| {
        names.extend(serde_json::from_slice::<String>(name));
        names.len() < MAX_NAMES
    });
    Ok(names)
}

/// Returns where the value of a key is in the text of an object.
fn value(text: &[u8], key: &str) -> Option<Range<usize>> {
    let mut found = None;
    visit_members(text, |name, value| {
        let is_it = name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")) == Some(key.as_bytes());
        found = is_it.then_some(value);
        !is_it
    });
    found
}

/// Visits the members of the object that a text begins with, until `visit` returns `false`: each one's name with its
/// quotes, and where its value is. Texts that are no JSON have any members.
fn visit_members(text: &[u8], mut visit: impl FnMut(&[u8], Range<usize>) -> bool) {
    let (mut at, mut depth, mut string, mut name, mut value) = (0, 0u32, 0..0, 0..0, 0);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                let begin = at;
                at += 1;
                while text.get(at).is_some_and(|byte| *byte != b'"') {
                    at += if text[at] == b'\\' { 2 } else { 1 };
                }
                string = begin..(at + 1).min(text.len());
            }
            b'{' | b'[' => depth += 1,
            b':' if depth == 1 => (name, value) = (string.clone(), at + 1),
            b',' | b'}' | b']' => {
                let is_end = depth == 1 && !name.is_empty();
                if is_end && !visit(&text[std::mem::take(&mut name)], value..at) {
                    return;
                }
                depth = depth.saturating_sub(u32::from(*byte != b','));
                if depth == 0 {
                    return;
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// A description, or what is wrong with its text.
pub(in crate::format) type Parsed = Result<NativeJson, String>;

/// Parses an object in JSON, in which numbers may be `NaN` and `Infinity`: Python writes them so.
fn parse(text: &[u8]) -> Result<NativeJson, String> {
    let text = json_text(text)?;
    match serde_json::from_slice(text) {
        Ok(object) => Ok(object),
        Err(error) => match quoted(text) {
            Cow::Borrowed(_) => Err(error.to_string()),
            Cow::Owned(quoted) => serde_json::from_slice(&quoted).map_err(|_| error.to_string()),
        },
    }
}

/// Puts quotes around numbers that JSON does not have.
fn quoted(text: &[u8]) -> Cow<'_, [u8]> {
    let (mut out, mut done, mut at, mut in_string) = (Vec::new(), 0, 0, false);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => at += 1,
            b'N' | b'I' | b'-' if !in_string => {
                let names: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];
                if let Some(name) = names.into_iter().find(|name| text[at..].starts_with(name)) {
                    out.extend_from_slice(&text[done..at]);
                    out.push(b'"');
                    out.extend_from_slice(name);
                    out.push(b'"');
                    at += name.len();
                    done = at;
                    continue;
                }
            }
            _ => {}
        }
        at += 1;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.extend_from_slice(&text[done..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::test_support::memory_folder::MemoryFolder;

    #[test]
    fn numbers_that_json_does_not_have_are_read() {
        let text = br#"{"a": NaN, "b": [-Infinity, Infinity, "NaN \" NaN"], "c": -1}"#;
        let parsed = parse(text).unwrap();
        assert_eq!(Value::from(parsed), json!({"a": "NaN", "b": ["-Infinity", "Infinity", "NaN \" NaN"], "c": -1}));
        for wrong in ["", "[]", "{", "NaN", "{\"a\": Nan}", "{\"a\": N"] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_are_found_in_texts_and_left_out() {
        let text =
            br#" {"a": "}\"{", "k\u0065y": [1, {"x": 2}], "b": {"key": 1, "c": NaN}, "key": {"p/q": {}, "r": [] }} "#;
        let found =
            |text: &[u8], key: &str| value(text, key).map(|value| String::from_utf8_lossy(&text[value]).into_owned());
        assert_eq!(found(text, "key").as_deref(), Some(r#" {"p/q": {}, "r": [] }"#));
        assert_eq!(found(text, "b").as_deref(), Some(r#" {"key": 1, "c": NaN}"#));
        assert_eq!((found(text, "c"), found(b"[1]", "key"), found(b"", "key")), (None, None, None));
        let files = [("a", &text[..]), ("b", br#"{"x": {"y\"": 1, "z": [{}]"#), ("c", b"{\"x\": \"")];
        let files = files.map(|(name, text)| (name.to_owned(), text.to_vec()));
        let folder = MemoryFolder::new(files.into_iter().collect());
        assert_eq!(names_in(&folder, "a", &["key"]).unwrap(), ["p/q", "r"]);
        assert_eq!(names_in(&folder, "b", &["x"]).unwrap(), Vec::<String>::new(), "it does not end");
        assert!(
            ["b", "c", "d"].map(|path| names_in(&folder, path, &[]).unwrap().len()).into_iter().sum::<usize>() <= 1
        );
        let (parsed, length) = read(&folder, "a", Some("key")).unwrap().unwrap();
        let mut parsed = parsed.unwrap();
        assert_eq!((parsed.remove("b"), parsed.len()), (Some(json!({"key": 1, "c": "NaN"})), 2));
        assert!(length < text.len() as u64);
    }
}

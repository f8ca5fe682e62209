//! Reads descriptions in JSON.

use std::borrow::Cow;

use crate::format::bytes::{json_text, read_bytes};
use crate::source::{Folder, SourceError};
use crate::volume::NativeJson;

/// Bytes of the longest description that is read.
const MAX_BYTES: u64 = 8 << 20;

/// Reads a description, and returns the bytes of its text, too; `None` if there is none.
pub(in crate::format) fn read(folder: &dyn Folder, path: &str) -> Result<Option<(Parsed, u64)>, SourceError> {
    let Some(length) = folder.len(path)? else { return Ok(None) };
    if length > MAX_BYTES {
        return Ok(Some((Err(format!("{path} has {length} bytes")), 0)));
    }
    let Some(text) = read_bytes(folder, path, 0, length)? else { return Ok(None) };
    Ok(Some((parse(&text).map_err(|why| format!("{path}: {why}")), length)))
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

    #[test]
    fn numbers_that_json_does_not_have_are_read() {
        let text = br#"{"a": NaN, "b": [-Infinity, Infinity, "NaN \" NaN"], "c": -1}"#;
        let parsed = parse(text).unwrap();
        assert_eq!(Value::from(parsed), json!({"a": "NaN", "b": ["-Infinity", "Infinity", "NaN \" NaN"], "c": -1}));
        for wrong in ["", "[]", "{", "NaN", "{\"a\": Nan}", "{\"a\": N"] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}

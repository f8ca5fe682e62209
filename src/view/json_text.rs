//! Formats JSON for people: indented, but with lists of scalars on one line.

use serde_json::Value;

/// Longer lists of scalars are broken into lines of about this many characters.
const LINE: usize = 100;

/// Returns the text of a value, with a newline.
#[must_use]
pub(crate) fn format(value: &Value) -> String {
    let mut out = String::new();
    write(value, 0, &mut out);
    out.push('\n');
    out
}

fn write(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Array(items) if items.iter().all(|v| !v.is_array() && !v.is_object()) => row(items, depth, out),
        Value::Array(items) => {
            block(out, depth, ['[', ']'], items.iter(), |item, out| write(item, depth + 1, out));
        }
        Value::Object(map) if map.is_empty() => out.push_str("{}"),
        Value::Object(map) => block(out, depth, ['{', '}'], map.iter(), |(key, value), out| {
            out.push_str(&Value::from(key.as_str()).to_string());
            out.push_str(": ");
            write(value, depth + 1, out);
        }),
        scalar => out.push_str(&scalar.to_string()),
    }
}

/// Writes a list of scalars on one line, or on several if it is long.
fn row(items: &[Value], depth: usize, out: &mut String) {
    let mut width = 2 * depth;
    out.push('[');
    for (n, item) in items.iter().enumerate() {
        let text = item.to_string();
        if n > 0 {
            out.push(',');
            if width + text.len() > LINE {
                new_line(out, depth + 1);
                width = 2 * depth;
            } else {
                out.push(' ');
            }
        }
        width += text.len() + 2;
        out.push_str(&text);
    }
    out.push(']');
}

/// Writes the items of a list or an object, each on a line of its own.
fn block<T>(
    out: &mut String,
    depth: usize,
    [open, close]: [char; 2],
    items: impl Iterator<Item = T>,
    mut each: impl FnMut(T, &mut String),
) {
    out.push(open);
    for (n, item) in items.enumerate() {
        if n > 0 {
            out.push(',');
        }
        new_line(out, depth + 1);
        each(item, out);
    }
    new_line(out, depth);
    out.push(close);
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_of_numbers_stay_on_one_line() {
        let value = json!({"shape": [1, 2], "axes": [{"name": "a\"b", "unit": null}], "own": {}, "none": []});
        let expected = "{\n  \"shape\": [1, 2],\n  \"axes\": [\n    {\n      \"name\": \"a\\\"b\",\n      \
            \"unit\": null\n    }\n  ],\n  \
            \"own\": {},\n  \"none\": []\n}\n";
        assert_eq!(format(&value), expected);
    }

    #[test]
    fn written_values_read_back() {
        let value =
            json!({"bins": (0..256).map(|n| n * 1000).collect::<Vec<_>>(), "x": [[1.5], [-2e300]], "s": "\u{1b}é"});
        let text = format(&value);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert!(text.lines().all(|line| line.len() <= LINE + 10));
    }
}

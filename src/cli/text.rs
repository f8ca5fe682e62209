//! Text for people: escaped names, sizes, numbers, durations and JSON values; and values and names that people type.

use std::fmt;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub(super) use crate::logging::one_line as escaped;
pub(super) use crate::logging::timestamp;
use crate::view::find_name;

/// Returns a path on one line with control characters escaped, and bytes that are not UTF-8 as `\xff`.
pub(super) fn escaped_path(path: &Path) -> String {
    let invalid = |bytes: &[u8]| bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
    let chunks = path.as_os_str().as_bytes().utf8_chunks();
    chunks.map(|chunk| escaped(chunk.valid()).into_owned() + &invalid(chunk.invalid())).collect()
}

/// Returns a path as a Python string literal in double quotes, which opens exactly this file.
pub(super) fn python_literal(path: &Path) -> String {
    let valid = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        _ if escaped(&c.to_string()) == c.to_string() => c.to_string(),
        _ => format!("\\U{:08x}", u32::from(c)),
    };
    // Python's surrogateescape maps bytes that are not UTF-8 to these code points
    let invalid = |byte: &u8| format!("\\udc{byte:02x}");
    let chunks = path.as_os_str().as_bytes().utf8_chunks();
    let code = chunks.flat_map(|chunk| chunk.valid().chars().map(valid).chain(chunk.invalid().iter().map(invalid)));
    format!("\"{}\"", code.collect::<String>())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Size(pub(super) u64);

/// Each is 1024 of the one before.
const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

impl Size {
    /// Reads digits, with KiB, MiB, GiB, K, M, G or nothing after them.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        if number.is_empty() {
            return Err("not a size; write it as 512MiB or 2GiB".to_owned());
        }
        // K, M and G in any case too: they are not ambiguous here
        let factor = match unit.trim_start().to_ascii_lowercase().as_str() {
            "" => 1,
            "k" | "kib" => 1 << 10,
            "m" | "mib" => 1 << 20,
            "g" | "gib" => 1 << 30,
            _ => return Err(format!("{} is not a unit of size; use KiB, MiB or GiB", unit.trim_start())),
        };
        let bytes = number.parse::<u64>().ok().and_then(|n| n.checked_mul(factor));
        bytes.map(Self).ok_or_else(|| "larger than any memory".to_owned())
    }
}

impl fmt::Display for Size {
    /// Writes the size in the largest unit of which it is at least 1. TiB and above are written only, not read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = (self.0.checked_ilog2().unwrap_or(0) / 10) as usize;
        match step.checked_sub(1).and_then(|i| UNITS.get(i)) {
            None => write!(f, "{} bytes", self.0),
            #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
            Some(name) => write!(f, "{:.2} {name}", self.0 as f64 / (1_u64 << (10 * step)) as f64),
        }
    }
}

/// Formats how fast bytes came: `1.50 MiB/s`.
pub(super) fn rate(bytes: u64, time: Duration) -> String {
    format!("{}/s", Size((bytes as f64 / time.as_secs_f64().max(0.001)) as u64))
}

/// Formats a number of things: `1 file`, `2 files`.
pub(super) fn counted(n: u64, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

/// Formats a number with at most `digits` significant digits, without trailing zeros.
pub(super) fn float(number: f64, digits: usize) -> String {
    let text = format!("{number:.*e}", digits.saturating_sub(1));
    let near: f64 = text.parse().unwrap_or(number);
    // no minus before a zero
    let near = if near == 0.0 { 0.0 } else { near };
    let size = near.abs();
    if size != 0.0 && !(1e-4..1e15).contains(&size) { format!("{near:e}") } else { format!("{near}") }
}

/// Formats a duration in its two largest units: `2 d 3 h`, `5 min 7 s`.
pub(super) fn duration(seconds: f64) -> String {
    let units = [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)];
    let mut left = seconds as u64;
    let mut parts = Vec::new();
    for (name, length) in units {
        if left >= length || (length == 1 && parts.is_empty()) {
            parts.push(format!("{} {name}", left / length));
        }
        left %= length;
    }
    parts.truncate(2);
    parts.join(" ")
}

pub(super) fn number_in<T>(range: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: FromStr + PartialOrd + fmt::Display + Clone,
{
    move |text| match text.parse() {
        Ok(n) if range.contains(&n) => Ok(n),
        _ => Err(format!("not a number from {} to {}", range.start(), range.end())),
    }
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    match text.trim_end_matches('s').parse::<f64>() {
        Ok(n) if (0.1..=86_400.0).contains(&n) => Ok(Duration::from_secs_f64(n)),
        _ => Err("not a number of seconds from 0.1 to 86400".to_owned()),
    }
}

/// Cuts `text` to at most `width` columns. A text that was cut ends with `...`.
pub(super) fn truncated(text: &str, width: usize) -> String {
    const MARK: &str = "...";
    if text.width() <= width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(MARK.len());
    let fits = |c: &char| {
        let rest = left.checked_sub(c.width().unwrap_or(0));
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    let kept: String = text.chars().take_while(fits).collect();
    kept + MARK
}

/// Names of this similarity (Jaro) and above are suggested.
const ALIKE: f64 = 0.75;

/// Returns the index of the name that a user means: the name itself, or the only one that differs in case alone, or the
/// only one that begins with it.
/// The error suggests the most similar name and lists all: `there is no layer x; did you mean y? there are y, z`.
pub(super) fn choose(kind: &str, names: &[&str], typed: &str) -> Result<usize, String> {
    let lower = typed.to_lowercase();
    let begins = |n: &usize| !lower.is_empty() && names[*n].to_lowercase().starts_with(&lower);
    let found = match find_name(names, typed) {
        Ok(Some(found)) => return Ok(found),
        Ok(None) => (0..names.len()).filter(begins).collect(),
        Err(several) => several,
    };
    match found[..] {
        [] => {}
        [one] => return Ok(one),
        _ => {
            let several: Vec<&str> = found.iter().map(|n| names[*n]).collect();
            return Err(format!("{typed} may be any of {}; give more of the name", several.join(", ")));
        }
    }
    let all = names.join(", ");
    Err(match (similar(names, typed), names.len()) {
        (Some(name), 1) => format!("there is no {kind} {typed}; did you mean {name}?"),
        (Some(name), _) => format!("there is no {kind} {typed}; did you mean {name}? there are {all}"),
        (None, 1) => format!("there is no {kind} {typed}; there is {all}"),
        (None, _) => format!("there is no {kind} {typed}; there are {all}"),
    })
}

/// Returns the most similar name, if one is similar enough to be suggested.
pub(super) fn similar<'a>(names: &[&'a str], typed: &str) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let likeness = |name: &str| strsim::jaro(&name.to_lowercase(), &typed);
    let alike = names.iter().map(|name| (likeness(name), *name)).filter(|(likeness, _)| *likeness > ALIKE);
    alike.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, name)| name)
}

/// Significant digits of a float32.
const DIGITS: usize = 7;

/// Entries of an object that fit on a line.
const MAX_INLINE: usize = 4;

/// Formats a number, text or boolean. Returns `None` for null, empty text, lists and objects.
pub(super) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => (!text.trim().is_empty()).then(|| text.clone()),
        Value::Number(_) => number(value),
        Value::Bool(truth) => Some(if *truth { "yes" } else { "no" }.to_owned()),
        _ => None,
    }
}

/// Formats a number: all digits of an integer, the significant digits of a float32.
pub(super) fn number(value: &Value) -> Option<String> {
    rounded(value, DIGITS)
}

/// Formats a number: all digits of an integer, at most this many of a float.
pub(super) fn rounded(value: &Value, digits: usize) -> Option<String> {
    if value.is_i64() || value.is_u64() {
        return Some(value.to_string());
    }
    value.as_f64().map(|number| float(number, digits))
}

/// Formats a list of two numbers as `first to last`.
pub(super) fn range(value: &Value) -> Option<String> {
    let [least, greatest] = value.as_array()?.as_slice() else { return None };
    Some(format!("{} to {}", number(least)?, number(greatest)?))
}

/// Returns the entries of a list; none of any other value.
pub(super) fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Joins the entries of a list: `512 x 512 x 1024`. Returns `None` unless all are scalars.
pub(super) fn joined(value: &Value, between: &str) -> Option<String> {
    let entries: Option<Vec<String>> = value.as_array()?.iter().map(scalar).collect();
    entries.filter(|entries| !entries.is_empty()).map(|entries| entries.join(between))
}

/// Formats any value, short enough for a line.
pub(super) fn brief(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Array(items) if items.is_empty() => None,
        Value::Object(items) if items.is_empty() => None,
        Value::Array(items) => Some(joined(value, ", ").unwrap_or_else(|| hidden(items.len()))),
        Value::Object(items) if items.len() <= MAX_INLINE && items.values().all(|item| scalar(item).is_some()) => {
            let parts = items.iter().filter_map(|(key, item)| Some(format!("{key} {}", scalar(item)?)));
            Some(parts.collect::<Vec<_>>().join(", "))
        }
        Value::Object(items) => Some(hidden(items.len())),
        _ => scalar(value),
    }
}

fn hidden(items: usize) -> String {
    format!("{} (--json shows them)", counted(items as u64, "item"))
}

/// Formats a time, given in seconds since 1970 or as text.
pub(super) fn time(value: &Value) -> Option<String> {
    match value.as_f64().map(Duration::try_from_secs_f64) {
        Some(Ok(since)) => Some(timestamp(UNIX_EPOCH.checked_add(since)?)),
        _ => scalar(value),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_cannot_control_the_terminal() {
        assert_eq!(escaped_path(Path::new("/a/é\x1b[31m\n")), "/a/é\\u{1b}[31m\\n");
        assert_eq!(escaped_path(Path::new(OsStr::from_bytes(b"/a\xff\xfe/b"))), "/a\\xff\\xfe/b");
    }

    #[test]
    fn python_opens_the_same_file() {
        assert_eq!(python_literal(Path::new("/a \"b\"\\c")), r#""/a \"b\"\\c""#);
        assert_eq!(python_literal(Path::new("/é\x1b")), r#""/é\U0000001b""#);
        assert_eq!(python_literal(Path::new(OsStr::from_bytes(b"/\xff"))), r#""/\udcff""#);
    }

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("1KiB", 1024),
            ("3K", 3072),
            ("64MiB", 64 << 20),
            ("64 MiB", 64 << 20),
            ("64m", 64 << 20),
            ("2GiB", 2 << 30),
            ("2gib", 2 << 30),
            ("16G", 16 << 30),
        ] {
            assert_eq!(Size::read(text).map(|Size(bytes)| bytes), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        for text in [
            "",
            "MiB",
            "-1",
            "+1",
            "1.5GiB",
            "1TiB",
            "1KB",
            "1 2",
            "0x10",
            "ä",
            "1i",
            "18446744073709551616",
            "17179869184GiB",
        ] {
            assert!(Size::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_written_for_people() {
        for (bytes, text) in
            [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.50 KiB"), (3 << 30, "3.00 GiB"), (u64::MAX, "16.00 EiB")]
        {
            assert_eq!(Size(bytes).to_string(), text);
        }
    }

    #[test]
    fn durations_have_two_units() {
        for (seconds, text) in [
            (0.4, "0 s"),
            (59.9, "59 s"),
            (61.0, "1 min 1 s"),
            (3600.0, "1 h"),
            (93_784.0, "1 d 2 h"),
            (86_460.0, "1 d 1 min"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }

    #[test]
    fn wide_characters_take_two_columns_and_marks_none() {
        assert_eq!("abc".width(), 3);
        assert_eq!("脳皮質".width(), 6);
        assert_eq!("e\u{301}".width(), 1);
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(truncated("abcdef", 6), "abcdef");
        assert_eq!(truncated("äbcdefg", 6), "äbc...");
        assert_eq!(truncated("脳皮質", 6), "脳皮質");
        assert_eq!(truncated("脳皮質の", 6), "脳...");
    }

    #[test]
    fn a_name_may_be_short_and_in_any_case() {
        let names = ["Amplitude", "Trace", "SEGYTraceHeader", "amplitude2", "ÄRA"];
        for (typed, index) in [("Amplitude", 0), ("amplitude", 0), ("AMPLITUDE2", 3), ("tr", 1), ("seg", 2), ("ära", 4)]
        {
            assert_eq!(choose("layer", &names, typed), Ok(index), "{typed}");
        }
        assert_eq!(choose("layer", &["a", "A"], "A"), Ok(1));
    }

    #[test]
    fn a_name_that_is_not_there_is_an_error_that_names_what_is() {
        let names = ["Amplitude", "Trace", "amplitude2"];
        for (typed, error) in [
            ("ampl", "ampl may be any of Amplitude, amplitude2; give more of the name"),
            (
                "Amplitdue",
                "there is no layer Amplitdue; did you mean Amplitude? there are Amplitude, Trace, amplitude2",
            ),
            ("xyz", "there is no layer xyz; there are Amplitude, Trace, amplitude2"),
            ("", "there is no layer ; there are Amplitude, Trace, amplitude2"),
        ] {
            assert_eq!(choose("layer", &names, typed).unwrap_err(), error);
        }
        assert_eq!(choose("layer", &["data"], "x").unwrap_err(), "there is no layer x; there is data");
        assert_eq!(choose("layer", &["data"], "dtaa").unwrap_err(), "there is no layer dtaa; did you mean data?");
        assert!(choose("layer", &["a", "A"], "").is_err());
    }

    #[test]
    fn numbers_have_the_digits_that_count() {
        for (value, text) in [
            (json!(268_435_456), "268435456"),
            (json!(0.100_000_001_490_116_12), "0.1"),
            (json!(-32768.0), "-32768"),
            (json!(-0.0), "0"),
            (json!(1.5e-9), "1.5e-9"),
            (json!(3.402_823_466e38), "3.402823e38"),
            (json!(1_000_000.0), "1000000"),
        ] {
            assert_eq!(number(&value).as_deref(), Some(text));
        }
        assert_eq!(rounded(&json!(6_200_123.456_789), 11).as_deref(), Some("6200123.4568"));
        assert_eq!(number(&json!(null)), None);
    }

    #[test]
    fn values_become_text() {
        assert_eq!(scalar(&json!("  ")), None);
        assert_eq!(time(&json!(951_782_400)).as_deref(), Some("2000-02-29T00:00:00.000Z"));
        assert_eq!(time(&json!("today")).as_deref(), Some("today"));
        assert_eq!(time(&json!(-1e300)).as_deref(), Some("-1e300"));
        assert_eq!(range(&json!([-1, 2.5])).as_deref(), Some("-1 to 2.5"));
        assert_eq!(range(&json!(null)), None);
        assert_eq!(joined(&json!([64, 64, 32]), " x ").as_deref(), Some("64 x 64 x 32"));
        assert_eq!(joined(&json!([]), " x "), None);
        assert_eq!(brief(&json!([1, "a"])).as_deref(), Some("1, a"));
        assert_eq!(brief(&json!([{}, {}])).as_deref(), Some("2 items (--json shows them)"));
        assert_eq!(brief(&json!({"a": 1, "b": "c"})).as_deref(), Some("a 1, b c"));
        assert_eq!(brief(&json!({"a": [1]})).as_deref(), Some("1 item (--json shows them)"));
        assert_eq!(brief(&json!({})), None);
        assert_eq!(brief(&json!(true)).as_deref(), Some("yes"));
    }
}

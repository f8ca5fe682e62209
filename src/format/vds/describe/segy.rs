//! The headers of the SEG-Y file that the data were imported from, if the import kept them as metadata.

use serde_json::{Value, json};

use super::super::description::{Description, MetadataValue};
use super::ebcdic;
use crate::volume::NativeJson;

const TEXT_BYTES: usize = 3200;
const BINARY_BYTES: usize = 400;
const LINE_BYTES: usize = 80;

/// Fields of the binary header: name, offset, bytes, and whether they are signed. (SEG-Y revision 2, without the 3200
/// bytes before)
const FIELDS: [(&str, usize, usize, bool); 33] = [
    ("job_id", 0, 4, true),
    ("line_number", 4, 4, true),
    ("reel_number", 8, 4, true),
    ("traces_per_ensemble", 12, 2, true),
    ("auxiliary_traces_per_ensemble", 14, 2, true),
    ("sample_interval", 16, 2, false),
    ("original_sample_interval", 18, 2, false),
    ("samples_per_trace", 20, 2, false),
    ("original_samples_per_trace", 22, 2, false),
    ("sample_format_code", 24, 2, true),
    ("ensemble_fold", 26, 2, true),
    ("trace_sorting_code", 28, 2, true),
    ("vertical_sum_code", 30, 2, true),
    ("sweep_frequency_at_start", 32, 2, true),
    ("sweep_frequency_at_end", 34, 2, true),
    ("sweep_length", 36, 2, true),
    ("sweep_type_code", 38, 2, true),
    ("sweep_channel_trace_number", 40, 2, true),
    ("sweep_taper_length_at_start", 42, 2, true),
    ("sweep_taper_length_at_end", 44, 2, true),
    ("taper_type", 46, 2, true),
    ("correlated_data_traces", 48, 2, true),
    ("binary_gain_recovered", 50, 2, true),
    ("amplitude_recovery_method", 52, 2, true),
    ("measurement_system", 54, 2, true),
    ("impulse_signal_polarity", 56, 2, true),
    ("vibratory_polarity_code", 58, 2, true),
    ("revision_number", 300, 2, false),
    ("fixed_length_trace_flag", 302, 2, true),
    ("extended_textual_headers", 304, 2, true),
    // of revision 2
    ("extended_traces_per_ensemble", 60, 4, false),
    ("extended_auxiliary_traces_per_ensemble", 64, 4, false),
    ("extended_samples_per_trace", 68, 4, false),
];
/// The number of fields in headers of all revisions.
const IN_ALL_REVISIONS: usize = 30;
/// The revision number of revision 2.0.
const REVISION_2: i64 = 0x200;

/// The headers that an import kept.
struct Kept<'a> {
    text: Option<&'a MetadataValue>,
    binary: Option<&'a MetadataValue>,
    /// The byte order of the binary header if the metadata do not have it.
    little: bool,
}

/// Returns the headers as JSON; `None` if the import kept none.
pub(crate) fn headers(description: &Description) -> Option<NativeJson> {
    let entry = |name: &str| description.entry("SEGY", name);
    let kept = Kept { text: entry("TextHeader"), binary: entry("BinaryHeader"), little: false };
    let old = |name: &str| description.entry("", name);
    let kept = if kept.text.is_some() || kept.binary.is_some() {
        kept
    } else {
        Kept { text: old("SEGYTextHeader"), binary: old("SEGYBinaryHeader"), little: true }
    };
    if kept.text.is_none() && kept.binary.is_none() {
        return None;
    }
    let int = |name: &str| match entry(name) {
        Some(MetadataValue::Int(values)) => values.first().copied(),
        _ => None,
    };
    let order = |little: bool| if little { "little" } else { "big" };
    let little = int("Endianness").map_or(kept.little, |code| code == 1);
    let mut native = NativeJson::new();
    let mut warnings = Vec::new();
    let mut put = |key: &str, value: Value| native.insert(key.to_owned(), value);
    if let Some(text) = blob(kept.text, "the text header", TEXT_BYTES, &mut warnings) {
        let is_ebcdic = ebcdic::is_likely(text);
        put("textHeader", lines(text, is_ebcdic).into());
        put("textHeaderEncoding", if is_ebcdic { "EBCDIC" } else { "ASCII" }.into());
    }
    let mut code = int("DataSampleFormatCode").map(i64::from);
    if let Some(binary) = blob(kept.binary, "the binary header", BINARY_BYTES, &mut warnings) {
        let fields = binary_fields(binary, little);
        code = code.or_else(|| fields.get("sample_format_code").and_then(Value::as_i64));
        put("binaryHeader", fields.into());
    }
    // without a header the byte order is not known
    let known = kept.binary.is_some() || entry("Endianness").is_some();
    if known {
        put("endianness", order(little).into());
    }
    // an older import has swapped the header's bytes, so that its byte order is not that of the data
    let data = int("DataEndianness").map(|code| code == 1).or((known && !kept.little).then_some(little));
    if let Some(little) = data {
        put("dataEndianness", order(little).into());
    }
    put("sampleFormat", code.map(|code| json!({"code": code, "name": format_name(code)})).unwrap_or_default());
    if let Some(MetadataValue::Text(axis)) = entry("PrimaryKey") {
        put("primaryKey", axis.as_str().into());
    }
    if !warnings.is_empty() {
        put("warnings", warnings.into());
    }
    Some(native)
}

/// Returns the first `needed` bytes of a header; adds a warning if it is shorter.
fn blob<'a>(
    value: Option<&'a MetadataValue>,
    what: &str,
    needed: usize,
    warnings: &mut Vec<String>,
) -> Option<&'a [u8]> {
    let fault = match value? {
        MetadataValue::Blob(bytes) if bytes.len() >= needed => return bytes.get(..needed),
        MetadataValue::Blob(bytes) => format!("{what} has {} bytes, not {needed}: it is left out", bytes.len()),
        _ => format!("{what} is no BLOB: it is left out"),
    };
    warnings.push(fault);
    None
}

/// Returns the lines of a text header, without trailing blanks.
fn lines(text: &[u8], is_ebcdic: bool) -> Vec<String> {
    let line = |bytes: &[u8]| {
        let line = if is_ebcdic { ebcdic::text(bytes) } else { bytes.iter().copied().map(char::from).collect() };
        line.trim_end_matches(|letter: char| letter.is_whitespace() || letter == '\0').to_owned()
    };
    text.chunks(LINE_BYTES).map(line).collect()
}

fn binary_fields(header: &[u8], little: bool) -> NativeJson {
    let value = |&(name, at, bytes, signed): &(&str, usize, usize, bool)| {
        let number = header.get(at..at + bytes).map_or(0, |field| number(field, little, signed));
        (name.to_owned(), Value::from(number))
    };
    let (all, later) = FIELDS.split_at(IN_ALL_REVISIONS);
    let mut fields: NativeJson = all.iter().map(value).collect();
    if fields.get("revision_number").and_then(Value::as_i64).is_some_and(|revision| revision >= REVISION_2) {
        fields.extend(later.iter().map(value));
    }
    fields
}

fn number(field: &[u8], little: bool, signed: bool) -> i64 {
    let push = |number: i64, byte: &u8| number << 8 | i64::from(*byte);
    let number = if little { field.iter().rev().fold(0, push) } else { field.iter().fold(0, push) };
    let bits = 64 - 8 * field.len() as u32;
    if signed { number << bits >> bits } else { number }
}

/// Returns the name of a sample format code of the standard.
fn format_name(code: i64) -> Option<&'static str> {
    let name = match code {
        1 => "4-byte IBM floating point",
        2 => "4-byte integer",
        3 => "2-byte integer",
        4 => "4-byte fixed point with gain",
        5 => "4-byte IEEE floating point",
        6 => "8-byte IEEE floating point",
        7 => "3-byte integer",
        8 => "1-byte integer",
        9 => "8-byte integer",
        10 => "4-byte unsigned integer",
        11 => "2-byte unsigned integer",
        12 => "8-byte unsigned integer",
        15 => "3-byte unsigned integer",
        16 => "1-byte unsigned integer",
        _ => return None,
    };
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::super::super::description::MetadataEntry;
    use super::*;

    fn with(entries: Vec<(&str, &str, MetadataValue)>) -> Option<NativeJson> {
        let entry = |(category, name, value): (&str, &str, _)| MetadataEntry {
            category: category.into(),
            name: name.into(),
            value,
        };
        headers(&Description { metadata: entries.into_iter().map(entry).collect(), ..Description::default() })
    }

    fn binary(little: bool) -> Vec<u8> {
        let mut header = vec![0; BINARY_BYTES];
        let mut put = |at: usize, bytes: &[u8]| {
            header[at..at + bytes.len()].copy_from_slice(bytes);
            if little {
                header[at..at + bytes.len()].reverse();
            }
        };
        put(4, &(-70_000_i32).to_be_bytes());
        put(16, &50_000_u16.to_be_bytes());
        put(24, &5_i16.to_be_bytes());
        put(28, &(-1_i16).to_be_bytes());
        put(300, &0x100_u16.to_be_bytes());
        header
    }

    #[test]
    fn headers_of_a_present_import() {
        // "C01" and blanks in EBCDIC
        let text = [0xc3, 0xf0, 0xf1].into_iter().chain([0x40; 77]).cycle().take(TEXT_BYTES).collect();
        let found = with(vec![
            ("SEGY", "TextHeader", MetadataValue::Blob(text)),
            ("SEGY", "BinaryHeader", MetadataValue::Blob(binary(false))),
            ("SEGY", "Endianness", MetadataValue::Int(vec![0])),
            ("SEGY", "DataEndianness", MetadataValue::Int(vec![1])),
            ("SEGY", "DataSampleFormatCode", MetadataValue::Int(vec![1])),
            ("SEGY", "PrimaryKey", MetadataValue::Text("Inline".into())),
        ]);
        let found = found.unwrap();
        assert_eq!(found["textHeader"], Value::from(vec!["C01"; 40]));
        assert_eq!(found["textHeaderEncoding"], "EBCDIC");
        let fields = &found["binaryHeader"];
        assert_eq!(fields.as_object().unwrap().len(), IN_ALL_REVISIONS);
        let of = |name: &str| fields[name].as_i64().unwrap();
        assert_eq!(
            ["job_id", "line_number", "sample_interval", "trace_sorting_code"].map(of),
            [0, -70_000, 50_000, -1]
        );
        assert_eq!(["sample_format_code", "revision_number"].map(of), [5, 256]);
        assert_eq!(found["sampleFormat"], json!({"code": 1, "name": "4-byte IBM floating point"}));
        assert_eq!([&found["endianness"], &found["dataEndianness"]], ["big", "little"]);
        assert_eq!(found["primaryKey"], "Inline");
        assert!(!found.contains_key("warnings"));
    }

    #[test]
    fn headers_of_an_old_import() {
        let text = b"C 1 CLIENT".iter().copied().chain([b' '; 70]).cycle().take(TEXT_BYTES).collect();
        let found = with(vec![
            ("", "SEGYTextHeader", MetadataValue::Blob(text)),
            ("", "SEGYBinaryHeader", MetadataValue::Blob(binary(true))),
        ]);
        let found = found.unwrap();
        assert_eq!(found["textHeader"], Value::from(vec!["C 1 CLIENT"; 40]));
        assert_eq!(found["textHeaderEncoding"], "ASCII");
        assert_eq!(found["binaryHeader"]["line_number"], -70_000);
        assert_eq!(found["endianness"], "little");
        assert_eq!(found["sampleFormat"]["code"], 5);
        assert!(!found.contains_key("dataEndianness"));
        let text = with(vec![("", "SEGYTextHeader", MetadataValue::Blob(vec![b' '; TEXT_BYTES]))]).unwrap();
        assert_eq!(text.keys().collect::<Vec<_>>(), ["textHeader", "textHeaderEncoding", "sampleFormat"]);
    }

    #[test]
    fn fields_of_revision_2() {
        let mut header = binary(false);
        header[300] = 2;
        header[68..72].copy_from_slice(&100_000_u32.to_be_bytes());
        let found = with(vec![("SEGY", "BinaryHeader", MetadataValue::Blob(header))]).unwrap();
        assert_eq!(found["binaryHeader"]["extended_samples_per_trace"], 100_000);
        assert!(!found.contains_key("textHeader"));
    }

    #[test]
    fn short_headers_are_left_out() {
        let found = with(vec![
            ("SEGY", "TextHeader", MetadataValue::Blob(vec![0x40; TEXT_BYTES - 1])),
            ("SEGY", "BinaryHeader", MetadataValue::Text("?".into())),
        ]);
        let found = found.unwrap();
        assert_eq!(found["warnings"].as_array().unwrap().len(), 2);
        assert!(!found.contains_key("textHeader") && !found.contains_key("binaryHeader"));
        assert_eq!(found["sampleFormat"], Value::Null);
        assert_eq!(with(vec![("SEGY", "PrimaryKey", MetadataValue::Text("Inline".into()))]), None);
    }

    #[test]
    fn fields_do_not_overlap() {
        let mut places: Vec<_> = FIELDS.iter().map(|(_, at, bytes, _)| (*at, at + bytes)).collect();
        places.sort_unstable();
        assert!(places.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        assert!(places.iter().all(|place| place.1 <= BINARY_BYTES));
    }
}

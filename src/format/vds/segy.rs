//! The SEG-Y file that a VDS was imported from: its headers, if the import kept them as metadata, and whether the file
//! can be made again, byte for byte.

use serde_json::{Value, json};

use super::bricks::VdsArray;
use super::description::{Channel, Description, MetadataValue, SampleFormat};
use super::layers::Layers;
use super::store::CompressionMethod;
use crate::format::segy::format_name;
use crate::format::{Array, SegyImport, SegySample};
use crate::volume::NativeJson;

const TEXT_BYTES: usize = 3200;
const BINARY_BYTES: usize = 400;
const LINE_BYTES: usize = 80;

/// Fields of the binary header (SEG-Y revision 2, without the 3200 bytes before): the offset of the first, the bytes of
/// each, and the names of fields that follow one another. Those with a `+` are unsigned.
const FIELDS: [(usize, usize, &str); 4] = [
    (0, 4, "job_id line_number reel_number"),
    (
        12,
        2,
        "traces_per_ensemble auxiliary_traces_per_ensemble +sample_interval +original_sample_interval \
         +samples_per_trace +original_samples_per_trace sample_format_code ensemble_fold trace_sorting_code \
         vertical_sum_code sweep_frequency_at_start sweep_frequency_at_end sweep_length sweep_type_code \
         sweep_channel_trace_number sweep_taper_length_at_start sweep_taper_length_at_end taper_type \
         correlated_data_traces binary_gain_recovered amplitude_recovery_method measurement_system \
         impulse_signal_polarity vibratory_polarity_code",
    ),
    (300, 2, "+revision_number fixed_length_trace_flag extended_textual_headers"),
    FIELDS_OF_REVISION_2,
];
const FIELDS_OF_REVISION_2: (usize, usize, &str) =
    (60, 4, "+extended_traces_per_ensemble +extended_auxiliary_traces_per_ensemble +extended_samples_per_trace");
/// The revision number of revision 2.0.
const REVISION_2: i64 = 0x200;
const REVISIONS: [i64; 4] = [0, 0x100, REVISION_2, 0x201];

/// Returns the headers as JSON; `None` if the import kept none.
pub(crate) fn headers<'a>(description: &'a Description) -> Option<NativeJson> {
    let entry = |name: &str| description.entry("SEGY", name);
    let (mut text, mut binary) = (entry("TextHeader"), entry("BinaryHeader"));
    // an older import has swapped the bytes of the binary header, so that its byte order is not that of the data
    let is_old = text.is_none() && binary.is_none();
    if is_old {
        (text, binary) = (description.entry("", "SEGYTextHeader"), description.entry("", "SEGYBinaryHeader"));
    }
    if text.is_none() && binary.is_none() {
        return None;
    }
    let int = |name: &str| int(description, name);
    let order = |little: bool| if little { "little" } else { "big" };
    let little = int("Endianness").map_or(is_old, |code| code == 1);
    let mut native = NativeJson::new();
    let mut warnings = Vec::new();
    // returns the first `needed` bytes of a header
    let mut blob = |value: Option<&'a MetadataValue>, what: &str, needed: usize| {
        let fault = match value? {
            MetadataValue::Blob(bytes) if bytes.len() >= needed => return bytes.get(..needed),
            MetadataValue::Blob(bytes) => format!("{what} has {} bytes, not {needed}: it is left out", bytes.len()),
            _ => format!("{what} is no BLOB: it is left out"),
        };
        warnings.push(fault);
        None
    };
    let mut put = |key: &str, value: Value| native.insert(key.to_owned(), value);
    if let Some(text) = blob(text, "the text header", TEXT_BYTES) {
        let is_ebcdic = is_ebcdic(text);
        put("textHeader", lines(text, is_ebcdic).into());
        put("textHeaderEncoding", if is_ebcdic { "EBCDIC" } else { "ASCII" }.into());
    }
    let mut code = int("DataSampleFormatCode");
    // without a header the byte order is not known
    let known = binary.is_some() || entry("Endianness").is_some();
    if let Some(binary) = blob(binary, "the binary header", BINARY_BYTES) {
        let fields = binary_fields(binary, little);
        code = code.or_else(|| fields.get("sample_format_code").and_then(Value::as_i64));
        put("binaryHeader", fields.into());
    }
    if known {
        put("endianness", order(little).into());
    }
    let data = int("DataEndianness").map(|code| code == 1).or((known && !is_old).then_some(little));
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

/// Returns an integer among the metadata of the import.
fn int(description: &Description, name: &str) -> Option<i64> {
    match description.entry("SEGY", name)? {
        MetadataValue::Int(values) => values.first().copied().map(i64::from),
        _ => None,
    }
}

/// Returns the lines of a text header, without trailing blanks.
fn lines(text: &[u8], is_ebcdic: bool) -> Vec<String> {
    let line = |bytes: &[u8]| {
        let line = if is_ebcdic { ebcdic_text(bytes) } else { bytes.iter().copied().map(char::from).collect() };
        line.trim_end_matches(|letter: char| letter.is_whitespace() || letter == '\0').to_owned()
    };
    text.chunks(LINE_BYTES).map(line).collect()
}

fn binary_fields(header: &[u8], little: bool) -> NativeJson {
    let mut fields = NativeJson::new();
    for (first, bytes, names) in FIELDS {
        let revision = fields.get("revision_number").and_then(Value::as_i64).unwrap_or(0);
        if (first, bytes, names) == FIELDS_OF_REVISION_2 && revision < REVISION_2 {
            break;
        }
        let places = header.get(first..).unwrap_or_default().chunks_exact(bytes);
        for (name, field) in names.split(' ').zip(places) {
            let unsigned = name.strip_prefix('+');
            let mut number = number(field, little, unsigned.is_none());
            // from revision 2 on these are two numbers of a byte, in this order in files of either byte order
            if name == "+revision_number" && !REVISIONS.contains(&number) {
                number = self::number(field, false, false);
            }
            fields.insert(unsigned.unwrap_or(name).to_owned(), number.into());
        }
    }
    fields
}

fn number(field: &[u8], little: bool, signed: bool) -> i64 {
    let push = |number: i64, byte: &u8| number << 8 | i64::from(*byte);
    let number = if little { field.iter().rev().fold(0, push) } else { field.iter().fold(0, push) };
    let bits = 64 - 8 * field.len() as u32;
    if signed { number << bits >> bits } else { number }
}

/// The Latin-1 character of each byte.
#[rustfmt::skip]
const LATIN_1: [u8; 256] = [
    0x00, 0x01, 0x02, 0x03, 0x9c, 0x09, 0x86, 0x7f, 0x97, 0x8d, 0x8e, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
    0x10, 0x11, 0x12, 0x13, 0x9d, 0x85, 0x08, 0x87, 0x18, 0x19, 0x92, 0x8f, 0x1c, 0x1d, 0x1e, 0x1f,
    0x80, 0x81, 0x82, 0x83, 0x84, 0x0a, 0x17, 0x1b, 0x88, 0x89, 0x8a, 0x8b, 0x8c, 0x05, 0x06, 0x07,
    0x90, 0x91, 0x16, 0x93, 0x94, 0x95, 0x96, 0x04, 0x98, 0x99, 0x9a, 0x9b, 0x14, 0x15, 0x9e, 0x1a,
    0x20, 0xa0, 0xe2, 0xe4, 0xe0, 0xe1, 0xe3, 0xe5, 0xe7, 0xf1, 0x5b, 0x2e, 0x3c, 0x28, 0x2b, 0x21,
    0x26, 0xe9, 0xea, 0xeb, 0xe8, 0xed, 0xee, 0xef, 0xec, 0xdf, 0x5d, 0x24, 0x2a, 0x29, 0x3b, 0x5e,
    0x2d, 0x2f, 0xc2, 0xc4, 0xc0, 0xc1, 0xc3, 0xc5, 0xc7, 0xd1, 0xa6, 0x2c, 0x25, 0x5f, 0x3e, 0x3f,
    0xf8, 0xc9, 0xca, 0xcb, 0xc8, 0xcd, 0xce, 0xcf, 0xcc, 0x60, 0x3a, 0x23, 0x40, 0x27, 0x3d, 0x22,
    0xd8, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0xab, 0xbb, 0xf0, 0xfd, 0xfe, 0xb1,
    0xb0, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f, 0x70, 0x71, 0x72, 0xaa, 0xba, 0xe6, 0xb8, 0xc6, 0xa4,
    0xb5, 0x7e, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0xa1, 0xbf, 0xd0, 0xdd, 0xde, 0xae,
    0xa2, 0xa3, 0xa5, 0xb7, 0xa9, 0xa7, 0xb6, 0xbc, 0xbd, 0xbe, 0xac, 0x7c, 0xaf, 0xa8, 0xb4, 0xd7,
    0x7b, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0xad, 0xf4, 0xf6, 0xf2, 0xf3, 0xf5,
    0x7d, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f, 0x50, 0x51, 0x52, 0xb9, 0xfb, 0xfc, 0xf9, 0xfa, 0xff,
    0x5c, 0xf7, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0xb2, 0xd4, 0xd6, 0xd2, 0xd3, 0xd5,
    0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0xb3, 0xdb, 0xdc, 0xd9, 0xda, 0x9f,
];

/// Decodes bytes in EBCDIC.
fn ebcdic_text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(LATIN_1[usize::from(*byte)])).collect()
}

/// Returns whether bytes look like text in EBCDIC rather than in ASCII. EBCDIC has letters and digits above 0x80, and
/// blanks at 0x40.
fn is_ebcdic(bytes: &[u8]) -> bool {
    let ebcdic = bytes.iter().filter(|byte| **byte == 0x40 || **byte >= 0x80).count();
    let ascii = bytes.iter().filter(|byte| byte.is_ascii_alphanumeric() || **byte == b' ').count();
    ebcdic > ascii
}

const TRACE_HEADER_BYTES: u64 = 240;

/// Describes the file, or returns the reason why it cannot be made again.
pub(super) fn import(description: &Description, layers: &Layers) -> Result<SegyImport, String> {
    let entry = |name: &str| description.entry("SEGY", name);
    match (entry("TextHeader"), entry("BinaryHeader")) {
        (Some(MetadataValue::Blob(text)), Some(MetadataValue::Blob(binary))) => {
            with_headers(description, layers, text, binary)
        }
        (None, None) if description.entry("", "SEGYTextHeader").is_none() => {
            Err("its metadata have no SEG-Y headers: the import did not keep them, or no SEG-Y file was imported"
                .into())
        }
        (None, None) => Err("the import did not keep the headers of the file as they were".into()),
        _ => Err("the import did not keep both headers of the file".into()),
    }
}

fn with_headers(description: &Description, layers: &Layers, text: &[u8], binary: &[u8]) -> Result<SegyImport, String> {
    if (text.len(), binary.len()) != (TEXT_BYTES, BINARY_BYTES) {
        return Err(format!("the headers have {} and {} bytes, not 3200 and 400", text.len(), binary.len()));
    }
    let little_headers = int(description, "Endianness") == Some(1);
    let fields = binary_fields(binary, little_headers);
    let field = |name: &str| fields.get(name).and_then(Value::as_i64).unwrap_or(0);
    // before revision 1 these bytes have no meaning
    if field("revision_number") >= 0x100 && field("extended_textual_headers") != 0 {
        return Err("the file has extended textual headers, which the import did not keep".into());
    }
    let code = int(description, "DataSampleFormatCode").unwrap_or_else(|| field("sample_format_code"));
    let sample = SegySample::from_code(code).ok_or_else(|| format!("samples of format code {code} are not exact"))?;

    let primary = description.channels.first().ok_or("there are no samples")?;
    let [samples, traces, trace_headers] = [primary.name.as_str(), "Trace", "SEGYTraceHeader"].map(|channel| {
        let (number, array) = finest(layers, channel).ok_or_else(|| format!("the channel {channel:?} is not there"))?;
        match is_lossless(array) {
            true => Ok((number, array)),
            false => {
                Err(format!("the samples of {channel:?} are not stored without loss ({})", array.stored.method.name()))
            }
        }
    });
    let ((samples, array), (traces, live), (trace_headers, headers)) = (samples?, traces?, trace_headers?);
    if !is_invertible(sample, &array.channel) {
        return Err("the samples were converted by the import".into());
    }
    let no_fit = || "the channels of samples, traces and trace headers do not fit together".to_owned();
    let shapes = [array, live, headers].map(|array| array.info().shape());
    let [samples_of, traces_of, headers_of] = shapes.each_ref().map(|shape| shape.split_last());
    let (count, grid) = samples_of.ok_or_else(no_fit)?;
    let in_file = field("samples_per_trace");
    if in_file != 0 && in_file as u64 != *count {
        return Err(format!("a trace has {count} samples here, and {in_file} by the header of the file"));
    }
    if grid.is_empty() || traces_of != Some((&1, grid)) || headers_of != Some((&TRACE_HEADER_BYTES, grid)) {
        return Err(no_fit());
    }
    if [live, headers].iter().any(|array| array.channel.format != SampleFormat::U8) {
        return Err("the channels of traces and trace headers are not bytes".into());
    }
    let sorted_by = match description.entry("SEGY", "PrimaryKey") {
        Some(MetadataValue::Text(key)) => description.axes.iter().rev().position(|axis| axis.name == *key),
        _ => None,
    };
    let file_bytes = match description.entry("ImportInformation", "InputFileSize") {
        Some(MetadataValue::Double(sizes)) => sizes.first().filter(|size| (0.0..9e15).contains(*size)),
        _ => None,
    };
    Ok(SegyImport {
        headers: [text, binary].concat().into(),
        sample,
        little_headers,
        little_samples: int(description, "DataEndianness").map_or(little_headers, |code| code == 1),
        samples,
        traces,
        trace_headers,
        sorted_by,
        file_bytes: file_bytes.map(|size| *size as u64),
    })
}

/// Returns the number of the layer of a channel, and its array at LOD 0.
fn finest<'a>(layers: &'a Layers, channel: &str) -> Option<(usize, &'a VdsArray)> {
    let (name, array) =
        layers.checked.arrays.iter().find(|(_, array)| array.channel.name == channel && array.info().lod == 0)?;
    let number = layers.shown.iter().position(|layer| layer.name == *name)?;
    Some((number, array))
}

/// Returns whether decoding gives the samples that were stored.
fn is_lossless(array: &VdsArray) -> bool {
    use CompressionMethod::{None, Rle, WaveletLossless, Zip};
    let is_whole = array.quality.is_none() || !array.stored.method.is_wavelet();
    is_whole && matches!(array.stored.method, None | Rle | Zip | WaveletLossless)
}

/// Returns whether the samples of the file can be computed from those that a channel stores.
fn is_invertible(sample: SegySample, channel: &Channel) -> bool {
    let (format, offset) = match sample {
        SegySample::Ibm | SegySample::Float | SegySample::Int32 | SegySample::UInt32 => (SampleFormat::R32, None),
        SegySample::Int16 => (SampleFormat::U16, Some(-32768.0)),
        SegySample::UInt16 => (SampleFormat::U16, Some(0.0)),
        SegySample::Int8 => (SampleFormat::U8, Some(-128.0)),
        SegySample::UInt8 => (SampleFormat::U8, Some(0.0)),
    };
    let is_scaled = offset.is_some_and(|offset| channel.integer_scale != 1.0 || channel.integer_offset != offset);
    channel.format == format && channel.components == 1 && channel.per_trace.is_none() && !is_scaled
}

#[cfg(test)]
mod tests {
    use super::super::description::MetadataEntry;
    use super::*;

    /// Places of fields in the binary header.
    const FORMAT: usize = 24;
    const REVISION: usize = 300;
    const EXTENDED_HEADERS: usize = 304;

    fn described(entries: Vec<(&str, &str, MetadataValue)>) -> Description {
        let entry = |(category, name, value): (&str, &str, _)| MetadataEntry {
            category: category.into(),
            name: name.into(),
            value,
        };
        Description { metadata: entries.into_iter().map(entry).collect(), ..Description::default() }
    }

    fn with(entries: Vec<(&str, &str, MetadataValue)>) -> Option<NativeJson> {
        headers(&described(entries))
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
        assert_eq!(fields.as_object().unwrap().len(), 30);
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
        let found = with(vec![("SEGY", "BinaryHeader", MetadataValue::Blob(header.clone()))]).unwrap();
        assert_eq!(found["binaryHeader"]["extended_samples_per_trace"], 100_000);
        assert!(!found.contains_key("textHeader"));
        for (revision, number) in [([2, 1], 0x201), ([0, 2], 0x200), ([0, 1], 0x100), ([1, 0], 0x100), ([0, 0], 0)] {
            header[300..302].copy_from_slice(&revision);
            assert_eq!(binary_fields(&header, true)["revision_number"], number);
        }
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
        let place = |(first, bytes, names): (usize, usize, &str)| (first, first + bytes * names.split(' ').count());
        let mut places: Vec<_> = FIELDS.into_iter().map(place).collect();
        places.sort_unstable();
        assert!(places.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        assert!(places.iter().all(|place| place.1 <= BINARY_BYTES));
    }

    #[test]
    fn letters_digits_and_punctuation() {
        assert_eq!(ebcdic_text(&[0xc3, 0xf0, 0xf1, 0x40, 0x81, 0xa9, 0x4f, 0x5a, 0x4a, 0x6d, 0x7c]), "C01 az!][_@");
        assert_eq!(ebcdic_text(b"\x40\x79\x15\x25"), " `\u{85}\n");
        let mut sorted = LATIN_1;
        sorted.sort_unstable();
        assert!(sorted.iter().enumerate().all(|(at, byte)| usize::from(*byte) == at), "a byte is there twice");
    }

    #[test]
    fn the_code_is_found_by_content() {
        assert!(is_ebcdic(&[0xc3, 0x40, 0xf1, 0x40, 0x40, 0x40]));
        assert!(!is_ebcdic(b"C 1 CLIENT: SOMEONE@SOMEWHERE"));
        assert!(!is_ebcdic(&[0; 80]) && !is_ebcdic(b""));
    }

    fn imported(entries: Vec<(&str, &str, MetadataValue)>) -> String {
        import(&described(entries), &Layers::default()).unwrap_err()
    }

    /// Returns the metadata of an import whose binary header has these fields.
    fn of_headers(fields: &[(usize, u16)]) -> Vec<(&'static str, &'static str, MetadataValue)> {
        let mut binary = vec![0; BINARY_BYTES];
        fields.iter().for_each(|(at, value)| binary[*at..at + 2].copy_from_slice(&value.to_be_bytes()));
        let blob = MetadataValue::Blob;
        vec![("SEGY", "TextHeader", blob(vec![0x40; TEXT_BYTES])), ("SEGY", "BinaryHeader", blob(binary))]
    }

    #[test]
    fn what_is_no_import_says_so() {
        for entries in [vec![], vec![("SEGY", "PrimaryKey", MetadataValue::Text("Inline".into()))]] {
            assert!(imported(entries).contains("no SEG-Y headers"));
        }
    }

    #[test]
    fn headers_have_to_be_as_they_were() {
        let blob = |bytes| MetadataValue::Blob(vec![0; bytes]);
        let cases = [
            (vec![("", "SEGYTextHeader", blob(3200))], "did not keep the headers of the file as they were"),
            (vec![("SEGY", "TextHeader", blob(3200))], "did not keep both headers"),
            (vec![("SEGY", "TextHeader", blob(3199)), ("SEGY", "BinaryHeader", blob(400))], "3199 and 400 bytes"),
            (vec![("SEGY", "TextHeader", blob(3200)), ("SEGY", "BinaryHeader", blob(401))], "3200 and 401 bytes"),
            (of_headers(&[(REVISION, 0x100), (EXTENDED_HEADERS, 1)]), "extended textual headers"),
            (of_headers(&[(REVISION, 0x200), (EXTENDED_HEADERS, 0xffff)]), "extended textual headers"),
            (of_headers(&[(FORMAT, 6)]), "format code 6"),
            // the bytes mean nothing before revision 1, and then the samples are missed
            (of_headers(&[(FORMAT, 5), (EXTENDED_HEADERS, 1)]), "there are no samples"),
        ];
        for (entries, reason) in cases {
            let found = imported(entries);
            assert!(found.contains(reason), "{found} is not {reason}");
        }
        let mut little = of_headers(&[]);
        little.push(("SEGY", "Endianness", MetadataValue::Int(vec![1])));
        little[1].2 = MetadataValue::Blob([vec![0; FORMAT], vec![6, 0], vec![0; 400 - FORMAT - 2]].concat());
        assert!(imported(little).contains("format code 6"));
        let mut overridden = of_headers(&[(FORMAT, 6)]);
        overridden.push(("SEGY", "DataSampleFormatCode", MetadataValue::Int(vec![1])));
        assert_eq!(imported(overridden), "there are no samples");
    }

    #[test]
    fn samples_must_not_have_been_converted() {
        let channel = |format, scale: f32, offset: f32| Channel {
            format,
            components: 1,
            integer_scale: scale,
            integer_offset: offset,
            ..Channel::default()
        };
        for (code, format, offset) in [
            (1, SampleFormat::R32, 0.0),
            (2, SampleFormat::R32, 0.0),
            (3, SampleFormat::U16, -32768.0),
            (5, SampleFormat::R32, 0.0),
            (8, SampleFormat::U8, -128.0),
            (10, SampleFormat::R32, 0.0),
            (11, SampleFormat::U16, 0.0),
            (16, SampleFormat::U8, 0.0),
        ] {
            let sample = SegySample::from_code(code).unwrap();
            assert!(is_invertible(sample, &channel(format, 1.0, offset)), "{code}");
            let is_integer = format != SampleFormat::R32;
            assert_eq!(is_invertible(sample, &channel(format, 0.5, offset)), !is_integer, "{code} scaled");
            assert_eq!(is_invertible(sample, &channel(format, 1.0, offset + 1.0)), !is_integer, "{code} moved");
            let other = if format == SampleFormat::U8 { SampleFormat::U16 } else { SampleFormat::U8 };
            assert!(!is_invertible(sample, &channel(other, 1.0, offset)), "{code} as another format");
        }
        assert!([4, 6, 7, 9, 12, 15, 0, -1].into_iter().all(|code| SegySample::from_code(code).is_none()));
    }
}

//! Finds out whether the SEG-Y file that a VDS was imported from can be made again, byte for byte.

use super::array::VdsArray;
use super::description::{Channel, Description, MetadataValue, SampleFormat};
use super::layers::Layers;
use super::store::CompressionMethod;
use crate::format::{Array, SegyImport, SegySample};

const TEXT_BYTES: usize = 3200;
const BINARY_BYTES: usize = 400;
const TRACE_HEADER_BYTES: u64 = 240;

/// Fields of the binary header.
const SAMPLES: usize = 20;
const FORMAT: usize = 24;
const REVISION: usize = 300;
const EXTENDED_HEADERS: usize = 304;

/// Returns what is known of the file; the error is the reason why it cannot be made again. `None` if the dataset does
/// not come from a SEG-Y file.
pub(super) fn import(description: &Description, layers: &Layers) -> Option<Result<SegyImport, String>> {
    let entry = |name: &str| description.entry("SEGY", name);
    match (entry("TextHeader"), entry("BinaryHeader")) {
        (Some(MetadataValue::Blob(text)), Some(MetadataValue::Blob(binary))) => {
            Some(with_headers(description, layers, text, binary))
        }
        (None, None) if description.entry("", "SEGYTextHeader").is_none() => None,
        (None, None) => Some(Err("the import did not keep the headers of the file as they were".into())),
        _ => Some(Err("the import did not keep both headers of the file".into())),
    }
}

fn with_headers(description: &Description, layers: &Layers, text: &[u8], binary: &[u8]) -> Result<SegyImport, String> {
    if (text.len(), binary.len()) != (TEXT_BYTES, BINARY_BYTES) {
        return Err(format!("the headers have {} and {} bytes, not 3200 and 400", text.len(), binary.len()));
    }
    let is_little = |name: &str| match description.entry("SEGY", name) {
        Some(MetadataValue::Int(codes)) => codes.first().map(|code| *code == 1),
        _ => None,
    };
    let little_headers = is_little("Endianness").unwrap_or(false);
    let field = |at: usize| {
        let bytes = [binary[at], binary[at + 1]];
        if little_headers { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) }
    };
    // before revision 1 these bytes have no meaning
    if field(REVISION) >= 0x100 && field(EXTENDED_HEADERS) != 0 {
        return Err("the file has extended textual headers, which the import did not keep".into());
    }
    let code = match description.entry("SEGY", "DataSampleFormatCode") {
        Some(MetadataValue::Int(codes)) => codes.first().copied().map(i64::from),
        _ => None,
    };
    let code = code.unwrap_or_else(|| field(FORMAT).into());
    let sample = SegySample::of_code(code).ok_or_else(|| format!("samples of format code {code} are not exact"))?;

    let primary = description.channels.first().ok_or("there are no samples")?;
    let [samples, traces, trace_headers] = [primary.name.as_str(), "Trace", "SEGYTraceHeader"].map(|channel| {
        let (number, array) = finest(layers, channel).ok_or_else(|| format!("the channel {channel:?} is not there"))?;
        match is_lossless(array) {
            true => Ok((number, array)),
            false => Err(format!("the samples of {channel:?} are not stored without loss ({})", array.method.name())),
        }
    });
    let ((samples, array), (traces, live), (trace_headers, headers)) = (samples?, traces?, trace_headers?);
    if !is_invertible(sample, &array.channel) {
        return Err("the samples were converted by the import".into());
    }
    let shape = |array: &VdsArray, last: u64| {
        let mut shape = array.info().shape();
        let is_fit = shape.last().is_some_and(|values| *values == last);
        shape.last_mut().into_iter().for_each(|values| *values = 0);
        is_fit.then_some(shape)
    };
    let in_file = u64::from(field(SAMPLES));
    let count = array.info().shape().last().copied().unwrap_or(0);
    if in_file != 0 && in_file != count {
        return Err(format!("a trace has {count} samples here, and {in_file} by the header of the file"));
    }
    let grid = shape(array, count).filter(|grid| grid.len() > 1);
    if grid.is_none() || grid != shape(live, 1) || grid != shape(headers, TRACE_HEADER_BYTES) {
        return Err("the channels of samples, traces and trace headers do not fit together".into());
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
        little_samples: is_little("DataEndianness").unwrap_or(little_headers),
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
    let is_whole = array.quality.is_none() || !array.method.is_wavelet();
    is_whole && matches!(array.method, None | Rle | Zip | WaveletLossless)
}

/// Returns whether a channel stores samples of this type so that they can be told from the stored ones.
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

    fn with(entries: Vec<(&str, &str, MetadataValue)>) -> Option<String> {
        let entry = |(category, name, value): (&str, &str, _)| MetadataEntry {
            category: category.into(),
            name: name.into(),
            value,
        };
        let metadata = entries.into_iter().map(entry).collect();
        let found = import(&Description { metadata, ..Description::default() }, &Layers::default());
        found.map(|import| import.unwrap_err())
    }

    /// Returns the metadata of an import whose binary header has these fields.
    fn headers(fields: &[(usize, u16)]) -> Vec<(&'static str, &'static str, MetadataValue)> {
        let mut binary = vec![0; BINARY_BYTES];
        fields.iter().for_each(|(at, value)| binary[*at..at + 2].copy_from_slice(&value.to_be_bytes()));
        let blob = MetadataValue::Blob;
        vec![("SEGY", "TextHeader", blob(vec![0x40; TEXT_BYTES])), ("SEGY", "BinaryHeader", blob(binary))]
    }

    #[test]
    fn what_is_no_import_has_no_reason() {
        assert_eq!(with(Vec::new()), None);
        assert_eq!(with(vec![("SEGY", "PrimaryKey", MetadataValue::Text("Inline".into()))]), None);
    }

    #[test]
    fn headers_have_to_be_as_they_were() {
        let blob = |bytes| MetadataValue::Blob(vec![0; bytes]);
        let cases = [
            (vec![("", "SEGYTextHeader", blob(3200))], "did not keep the headers of the file as they were"),
            (vec![("SEGY", "TextHeader", blob(3200))], "did not keep both headers"),
            (vec![("SEGY", "TextHeader", blob(3199)), ("SEGY", "BinaryHeader", blob(400))], "3199 and 400 bytes"),
            (vec![("SEGY", "TextHeader", blob(3200)), ("SEGY", "BinaryHeader", blob(401))], "3200 and 401 bytes"),
            (headers(&[(REVISION, 0x100), (EXTENDED_HEADERS, 1)]), "extended textual headers"),
            (headers(&[(REVISION, 0x200), (EXTENDED_HEADERS, 0xffff)]), "extended textual headers"),
            (headers(&[(FORMAT, 6)]), "format code 6"),
            // the bytes mean nothing before revision 1, and then the samples are missed
            (headers(&[(FORMAT, 5), (EXTENDED_HEADERS, 1)]), "there are no samples"),
        ];
        for (entries, reason) in cases {
            let found = with(entries).unwrap();
            assert!(found.contains(reason), "{found} is not {reason}");
        }
        let mut little = headers(&[]);
        little.push(("SEGY", "Endianness", MetadataValue::Int(vec![1])));
        little[1].2 = MetadataValue::Blob([vec![0; FORMAT], vec![6, 0], vec![0; 400 - FORMAT - 2]].concat());
        assert!(with(little).unwrap().contains("format code 6"));
        let mut overridden = headers(&[(FORMAT, 6)]);
        overridden.push(("SEGY", "DataSampleFormatCode", MetadataValue::Int(vec![1])));
        assert_eq!(with(overridden).unwrap(), "there are no samples");
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
            let sample = SegySample::of_code(code).unwrap();
            assert!(is_invertible(sample, &channel(format, 1.0, offset)), "{code}");
            let is_integer = format != SampleFormat::R32;
            assert_eq!(is_invertible(sample, &channel(format, 0.5, offset)), !is_integer, "{code} scaled");
            assert_eq!(is_invertible(sample, &channel(format, 1.0, offset + 1.0)), !is_integer, "{code} moved");
            let other = if format == SampleFormat::U8 { SampleFormat::U16 } else { SampleFormat::U8 };
            assert!(!is_invertible(sample, &channel(other, 1.0, offset)), "{code} as another format");
        }
        assert!([4, 6, 7, 9, 12, 15, 0, -1].into_iter().all(|code| SegySample::of_code(code).is_none()));
    }
}

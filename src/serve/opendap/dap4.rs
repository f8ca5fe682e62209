//! DAP4: the document that describes a dataset (DMR), and answers in chunks with a checksum behind each variable.

use std::collections::VecDeque;
use std::fmt::Write;
use std::future::poll_fn;
use std::mem::take;

use bytes::{Bytes, BytesMut};
use flate2::Crc;

use super::answer::{Answer, Wire};
use super::constraint::{Chosen, Dap4};
use super::model::{Model, Variable};
use crate::serve::response::Body;
use crate::view::CfValue;
use crate::volume::Dtype;

/// The most bytes of a chunk, whose length has 24 bits.
const CHUNK: u64 = 1 << 20;
/// Smaller pieces of an answer are sent together.
const GATHERED: usize = 8 << 10;
const LITTLE_ENDIAN: u8 = 4;
const LAST: u8 = 1;
const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
const NAMESPACE: &str = "xmlns=\"http://xml.opendap.org/ns/DAP/4.0#\"";

fn type_name(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Int8 => "Int8",
        Dtype::UInt8 => "UInt8",
        Dtype::Int16 => "Int16",
        Dtype::UInt16 => "UInt16",
        Dtype::Int32 => "Int32",
        Dtype::UInt32 => "UInt32",
        Dtype::Int64 => "Int64",
        Dtype::UInt64 => "UInt64",
        Dtype::Float32 => "Float32",
        _ => "Float64",
    }
}

/// Returns the document of what is wanted. It has no elements but those that all clients know.
pub(super) fn dmr(model: &Model, wanted: &Dap4) -> String {
    let mut text =
        format!("{DECLARATION}<Dataset {NAMESPACE} name=\"{}\" dapVersion=\"4.0\" dmrVersion=\"1.0\">\n", model.name);
    for (n, (name, _)) in model.dimensions.iter().enumerate() {
        let uses_it = |chosen: &Chosen| {
            let dimensions = model.variables[chosen.variable].dimensions.iter();
            dimensions.zip(&chosen.slices).any(|(dimension, slice)| *dimension == n && !slice.is_own)
        };
        if wanted.chosen.iter().any(uses_it) {
            let _ = writeln!(text, "    <Dimension name=\"{name}\" size=\"{}\"/>", wanted.dimensions[n]);
        }
    }
    for chosen in &wanted.chosen {
        let variable = &model.variables[chosen.variable];
        let (dtype, name) = (model.stored(variable), &variable.name);
        let kind = type_name(dtype);
        let _ = writeln!(text, "    <{kind} name=\"{name}\">");
        for (dimension, slice) in variable.dimensions.iter().zip(&chosen.slices) {
            let _ = match slice.is_own {
                true => writeln!(text, "        <Dim size=\"{}\"/>", slice.count),
                false => writeln!(text, "        <Dim name=\"/{}\"/>", model.dimensions[*dimension].0),
            };
        }
        for (key, value) in &variable.attributes {
            attribute(&mut text, "        ", (key, value), dtype);
        }
        let _ = writeln!(text, "    </{kind}>");
    }
    for (key, value) in &model.global {
        attribute(&mut text, "    ", (key, value), Dtype::Float64);
    }
    text + "</Dataset>\n"
}

/// Writes an attribute. netCDF reads numbers of type Float32 wrong, so those are sent as others, and texts with special
/// characters only in this form; other clients read only the other form.
fn attribute(text: &mut String, indent: &str, (key, value): (&str, &CfValue), dtype: Dtype) {
    let (key, kind, number) = match value {
        CfValue::Text(value) => {
            let is_special =
                |c: char| c.is_control() || matches!(c, '&' | '<' | '>' | '"' | '\'' | '\\' | '\u{fffe}' | '\u{ffff}');
            let _ = match value.is_empty() || value.contains(is_special) {
                true => {
                    writeln!(text, "{indent}<Attribute name=\"{key}\" type=\"String\" value=\"{}\"/>", escaped(value))
                }
                false => writeln!(
                    text,
                    "{indent}<Attribute name=\"{key}\" type=\"String\"><Value>{value}</Value></Attribute>"
                ),
            };
            return;
        }
        CfValue::Number(number) => (key, "Float64", format!("{number:?}")),
        CfValue::Sample(number) if dtype == Dtype::Float32 => ("missing_value", "Float64", format!("{number:?}")),
        CfValue::Sample(number) if dtype.is_integer() => (key, type_name(dtype), format!("{number}")),
        CfValue::Sample(number) => (key, "Float64", format!("{number:?}")),
    };
    let _ = writeln!(text, "{indent}<Attribute name=\"{key}\" type=\"{kind}\"><Value>{number}</Value></Attribute>");
}

/// Returns a text for XML. Characters that XML cannot have are left out.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\t' | '\n' | '\r' => {
                let _ = write!(escaped, "&#{};", u32::from(c));
            }
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => escaped.push(c),
        }
    }
    escaped
}

/// Returns an error as clients of DAP4 read it.
pub(super) fn error(code: u16, message: &str) -> String {
    format!("{DECLARATION}<Error {NAMESPACE} httpcode=\"{code}\"><Message>{}</Message></Error>\n", escaped(message))
}

/// Returns the bytes of the values that are chosen.
pub(super) fn bytes(model: &Model, chosen: &[Chosen]) -> u128 {
    chosen.iter().map(|chosen| bytes_of(model, chosen)).fold(0, u128::saturating_add)
}

fn bytes_of(model: &Model, chosen: &Chosen) -> u128 {
    let size = model.stored(&model.variables[chosen.variable]).size();
    chosen.elements().saturating_mul(size as u128)
}

/// Fills an answer with the values, one variable directly behind the other.
pub(super) fn values(model: &Model, chosen: &[Chosen], answer: &mut Answer) {
    for chosen in chosen {
        let variable: &Variable = &model.variables[chosen.variable];
        answer.add_values(variable.values, chosen, Wire::AsStored);
    }
}

/// How the values of an answer become chunks.
pub(super) struct Chunks {
    /// The chunk with the document.
    head: Bytes,
    /// The bytes of each variable that are still to come, the next one last.
    variables: Vec<u64>,
    /// Where checksums are wanted, that of the variable that is being sent.
    checksum: Option<Crc>,
    /// Bytes that are still to come: all, and of the chunk that has begun.
    left: u64,
    left_of_chunk: u64,
    out: VecDeque<Bytes>,
}

impl Chunks {
    pub(super) fn new(model: &Model, wanted: &Dap4) -> Self {
        let document = dmr(model, wanted) + "\r\n";
        let mut head = BytesMut::new();
        // its length has 24 bits, and a name of an axis 255 bytes
        head.extend_from_slice(&chunk_head(LITTLE_ENDIAN, document.len() as u64));
        head.extend_from_slice(document.as_bytes());
        let bytes = |chosen: &Chosen| u64::try_from(bytes_of(model, chosen)).unwrap_or(u64::MAX);
        let variables: Vec<u64> = wanted.chosen.iter().rev().map(bytes).collect();
        let checksums = if wanted.has_checksums { 4 * variables.len() as u64 } else { 0 };
        let left = variables.iter().fold(checksums, |sum, bytes| sum.saturating_add(*bytes));
        let checksum = wanted.has_checksums.then(Crc::new);
        Self { head: head.freeze(), variables, checksum, left, left_of_chunk: 0, out: VecDeque::new() }
    }

    /// Returns the bytes of the whole answer.
    pub(super) fn len(&self) -> u64 {
        let chunks = self.left.div_ceil(CHUNK).max(1);
        (self.head.len() as u64).saturating_add(self.left).saturating_add(4 * chunks)
    }

    /// Returns the chunks of a body of values.
    pub(super) fn of(mut self, values: Body) -> Body {
        self.out.push_back(take(&mut self.head));
        Body::stream((values, self, false), |(mut values, mut chunks, mut has_ended)| async move {
            while chunks.out.is_empty() || (!has_ended && chunks.gathered() < GATHERED) {
                if has_ended {
                    return None;
                }
                match poll_fn(|context| values.poll_next(context)).await {
                    Some(Ok(piece)) => chunks.push(piece),
                    // the client notices that the last chunk is missing
                    Some(Err(error)) => return Some((Err(error), None)),
                    None => {
                        has_ended = true;
                        if chunks.left > 0 {
                            return Some((Err(std::io::Error::other("an answer is too short")), None));
                        }
                    }
                }
            }
            let piece = chunks.next_piece();
            Some((Ok(piece), Some((values, chunks, has_ended))))
        })
    }

    fn gathered(&self) -> usize {
        self.out.iter().map(Bytes::len).sum()
    }

    /// Returns what is sent next: small pieces together.
    fn next_piece(&mut self) -> Bytes {
        let first = self.out.pop_front().unwrap_or_default();
        if first.len() >= GATHERED || self.out.front().is_none_or(|next| first.len() + next.len() > GATHERED) {
            return first;
        }
        let mut gathered = BytesMut::with_capacity(GATHERED);
        gathered.extend_from_slice(&first);
        while self.out.front().is_some_and(|next| gathered.len() + next.len() <= GATHERED) {
            gathered.extend_from_slice(&self.out.pop_front().unwrap_or_default());
        }
        gathered.freeze()
    }

    /// Takes values.
    fn push(&mut self, mut values: Bytes) {
        while !values.is_empty() {
            let Some(left) = self.variables.last_mut() else { return };
            let part = values.split_to(usize::try_from(*left).unwrap_or(usize::MAX).min(values.len()));
            *left -= part.len() as u64;
            let has_ended = *left == 0;
            if let Some(checksum) = &mut self.checksum {
                checksum.update(&part);
            }
            self.add(part);
            if has_ended {
                self.variables.pop();
                if let Some(checksum) = &mut self.checksum {
                    let sum = std::mem::replace(checksum, Crc::new()).sum();
                    self.add(Bytes::copy_from_slice(&sum.to_le_bytes()));
                }
            }
        }
    }

    /// Adds bytes to the chunk that has begun, and begins others.
    fn add(&mut self, mut bytes: Bytes) {
        while !bytes.is_empty() {
            if self.left_of_chunk == 0 {
                self.left_of_chunk = self.left.min(CHUNK);
                let flags = if self.left_of_chunk == self.left { LITTLE_ENDIAN | LAST } else { LITTLE_ENDIAN };
                self.out.push_back(Bytes::copy_from_slice(&chunk_head(flags, self.left_of_chunk)));
            }
            let part = bytes.split_to((self.left_of_chunk as usize).min(bytes.len()));
            self.left_of_chunk -= part.len() as u64;
            self.left -= part.len() as u64;
            self.out.push_back(part);
        }
    }
}

/// Returns flags and length of a chunk, big-endian.
fn chunk_head(flags: u8, length: u64) -> [u8; 4] {
    let [_, length @ ..] = (length as u32).to_be_bytes();
    let [a, b, c] = length;
    [flags, a, b, c]
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::super::constraint;
    use super::super::model::tests::{array, model};
    use super::*;

    fn wanted(query: &str, model: &Model) -> Dap4 {
        constraint::dap4(query, model).unwrap()
    }

    /// Sends values in pieces of this length.
    fn sent(model: &Model, query: &str, values: &[u8], piece: usize) -> Vec<u8> {
        let chunks = Chunks::new(model, &wanted(query, model));
        let length = chunks.len();
        let mut pieces: VecDeque<Bytes> = values.chunks(piece).map(Bytes::copy_from_slice).collect();
        let source = Body::stream((), move |()| {
            let piece = pieces.pop_front();
            async move { piece.map(|piece| (Ok(piece), Some(()))) }
        });
        let mut body = chunks.of(source);
        let mut out = Vec::new();
        while let Some(piece) = poll_fn(|context| body.poll_next(context)).now_or_never().unwrap() {
            out.extend(piece.unwrap());
        }
        assert_eq!(out.len() as u64, length);
        out
    }

    #[test]
    fn the_document_has_what_is_wanted() {
        let model = model();
        let got = dmr(&model, &wanted("dap4.ce=/data[][0:1][2]", &model));
        let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
            <Dataset xmlns=\"http://xml.opendap.org/ns/DAP/4.0#\" name=\"north_zgy\" dapVersion=\"4.0\" dmrVersion=\"1.0\">\n    \
            <Dimension name=\"z\" size=\"5\"/>\n    <Float32 name=\"data\">\n        <Dim name=\"/z\"/>\n        \
            <Dim size=\"2\"/>\n        <Dim size=\"1\"/>\n        \
            <Attribute name=\"long_name\" type=\"String\" value=\"a &quot;b&quot;\"/>\n        \
            <Attribute name=\"missing_value\" type=\"Float64\"><Value>-999.25</Value></Attribute>\n    </Float32>\n    \
            <Attribute name=\"Conventions\" type=\"String\"><Value>CF-1.8</Value></Attribute>\n    \
            <Attribute name=\"title\" type=\"String\" value=\"north.zgy, layer a &quot;b&quot;, LOD 0\"/>\n</Dataset>\n";
        assert_eq!(got, expected);
        let sliced = dmr(&model, &wanted("dap4.ce=/z=[0:2];/z;/data&dap4.checksum=true", &model));
        assert!(
            sliced.contains("<Dimension name=\"z\" size=\"3\"/>")
                && sliced.contains("<Dimension name=\"y\" size=\"3\"/>")
        );
        assert_eq!(escaped("a\u{1}b\n'"), "ab&#10;&#39;");
        let sample = |dtype| {
            let mut text = String::new();
            attribute(&mut text, "", ("_FillValue", &CfValue::Sample(-1.0)), dtype);
            text
        };
        assert!(sample(Dtype::Float64).contains("type=\"Float64\"><Value>-1.0<"), "{}", sample(Dtype::Float64));
        assert!(sample(Dtype::Int16).contains("type=\"Int16\"><Value>-1<"), "{}", sample(Dtype::Int16));
        assert!(error(413, "a<b").contains(
            "<Error xmlns=\"http://xml.opendap.org/ns/DAP/4.0#\" httpcode=\"413\"><Message>a&lt;b</Message></Error>"
        ));
    }

    #[test]
    fn a_variable_is_followed_by_its_checksum() {
        let model = Model::of(array(Dtype::Int8, &[("x", 3)]), "t");
        for piece in 1..4 {
            let got = sent(&model, "dap4.ce=/data", &[0x80, 0x3e, 0x8f], piece);
            assert!(got.ends_with(b"</Dataset>\n\r\n\x05\x00\x00\x07\x80\x3e\x8f\x5e\x47\xb6\x22"), "{got:x?}");
            assert_eq!(u32::from_be_bytes([0, got[1], got[2], got[3]]) as usize, got.len() - 4 - 11);
            let bare = sent(&model, "dap4.ce=/data&dap4.checksum=false", &[0x80, 0x3e, 0x8f], piece);
            assert!(bare.ends_with(b"\r\n\x05\x00\x00\x03\x80\x3e\x8f"));
        }
    }

    #[test]
    fn long_answers_have_several_chunks() {
        let model = Model::of(array(Dtype::UInt8, &[("y", 1 << 20), ("x", 3)]), "t");
        let values = vec![7; 3 << 20];
        for piece in [100_000, 3 << 20] {
            let got = sent(&model, "dap4.ce=/data", &values, piece);
            let (mut rest, mut payload, mut flags) = (&got[..], Vec::new(), Vec::new());
            while let [flag, a, b, c, after @ ..] = rest {
                let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
                flags.push(*flag);
                payload.push(&after[..length]);
                rest = &after[length..];
            }
            assert_eq!(flags, [4, 4, 4, 4, 5]);
            let mut crc = Crc::new();
            crc.update(&values);
            assert!(payload[1..].concat() == [&values[..], &crc.sum().to_le_bytes()].concat());
        }
    }
}

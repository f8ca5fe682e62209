//! The attributes of groups and datasets as JSON, and the references of dimension scales.

use serde_json::Value;

use super::data_type::{Class, DataType, integer_of};
use super::file::{Fields, address, uint};
use super::header::{Dataspace, Header, Place, kind};
use super::heap::{BTree2, FractalHeap, global_value};
use crate::format::FormatError;
use crate::volume::NativeJson;

/// The most attributes of an object, values of an attribute, and texts of variable length in one.
const MAX_ATTRIBUTES: usize = 1 << 12;
const MAX_VALUES: u64 = 1 << 12;
const MAX_TEXTS: u64 = 1 << 8;
/// Bytes of the names and values of all attributes of an object.
const MAX_BYTES: u64 = 16 << 20;
/// Bytes of memory of a member of a compound, without its name and value.
const PER_MEMBER: usize = 64;
/// The attribute with the scales of each axis.
const SCALES: &str = "DIMENSION_LIST";

#[derive(Default)]
pub(super) struct Attributes {
    pub values: NativeJson,
    /// The first scale of each axis: the address of its header.
    pub scales: Vec<Option<u64>>,
    /// Bytes of names and values.
    pub bytes: u64,
    /// Why some are not known.
    pub fault: Option<String>,
}

impl Attributes {
    /// Reads all attributes of an object. Those that cannot be read are left out.
    pub(super) fn read(at: &Place<'_>, header: &Header) -> Result<Self, FormatError> {
        let mut found = Self::default();
        for message in header.messages.iter().filter(|message| message.kind == kind::ATTRIBUTE) {
            let added = header.content(at, message).and_then(|content| found.add(at, &content));
            found.note(added)?;
        }
        if let Some(message) = header.find(kind::ATTRIBUTE_INFO) {
            let added = header.content(at, message).and_then(|content| found.dense(at, &content));
            found.note(added)?;
        }
        Ok(found)
    }

    /// Remembers a fault of the file; fails if the system has failed.
    fn note(&mut self, added: Result<(), FormatError>) -> Result<(), FormatError> {
        match added {
            Err(FormatError::Damaged(why) | FormatError::Unsupported(why)) => self.fault = Some(why),
            added => added?,
        }
        Ok(())
    }

    /// Adds the attributes in a heap.
    fn dense(&mut self, at: &Place<'_>, content: &[u8]) -> Result<(), FormatError> {
        const PART: &str = "attribute info";
        let mut fields = at.file.fields(PART, content);
        fields.version(&[0], PART)?;
        let flags = fields.u8()?;
        fields.take(if flags & 1 != 0 { 2 } else { 0 })?;
        let (Some(heap), Some(tree)) = (fields.address()?, fields.address()?) else { return Ok(()) };
        let heap = FractalHeap::open(at.file, heap)?;
        BTree2::open(at.file, tree)?.visit(at.file, &mut |record| {
            // flags, the order of creation and a hash come behind the identifier
            let (id, rest) = record.split_at_checked(8).ok_or("a record of an attribute is too short")?;
            let is_shared = rest.first().is_some_and(|flags| flags & 2 != 0);
            let content = if is_shared { at.in_heap(kind::ATTRIBUTE, id)? } else { heap.object(at.file, id)? };
            let is_full = self.is_full();
            let added = self.add(at, &content);
            self.note(added)?;
            Ok(!is_full)
        })
    }

    fn is_full(&self) -> bool {
        self.values.len() >= MAX_ATTRIBUTES || self.bytes >= MAX_BYTES
    }

    fn add(&mut self, at: &Place<'_>, content: &[u8]) -> Result<(), FormatError> {
        if self.is_full() {
            let too_many = format!("it has more than {MAX_ATTRIBUTES} attributes, or {MAX_BYTES} bytes of them");
            return Err(FormatError::Unsupported(too_many));
        }
        let mut fields = at.file.fields("attribute", content);
        let version = fields.version(&[1, 2, 3], "attribute")?;
        let flags = fields.u8()?;
        let lengths = [fields.u16()?, fields.u16()?, fields.u16()?].map(usize::from);
        if version == 3 {
            fields.u8()?;
        }
        // parts of the first version end at a multiple of 8 bytes
        let mut part = |length: usize| fields.take(if version == 1 { length.next_multiple_of(8) } else { length });
        let (name, data_type, space) = (part(lengths[0])?, part(lengths[1])?, part(lengths[2])?);
        let name = String::from_utf8_lossy(name.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned();
        let flag = |bit: u8| version > 1 && flags & bit != 0;
        let data_type = DataType::of_attribute(at, data_type, flag(1))?;
        let space = if flag(2) {
            let space = at.shared(kind::DATASPACE, space)?;
            Dataspace::parse(at.file.fields("attribute", &space))?
        } else {
            Dataspace::parse(at.file.fields("attribute", space))?
        };
        let data = fields.rest();
        if name == SCALES {
            self.scales = scales(at, &data_type, data).unwrap_or_default();
            return Ok(());
        }
        if ["REFERENCE_LIST"].contains(&name.as_str()) {
            return Ok(());
        }
        at.file.count_names(name.len())?;
        let value = space.shape.map_or(Value::Null, |shape| values(at, &data_type, &shape, data).unwrap_or_default());
        self.bytes += (name.len() + data.len() + 64) as u64;
        self.values.insert(name, value);
        Ok(())
    }

    /// Returns the text of an attribute, which may be one of single characters.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self.values.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Array(list) => list.iter().map(Value::as_str).collect(),
            _ => None,
        }
    }
}

/// Returns the first scale of each axis.
fn scales(at: &Place<'_>, data_type: &DataType, data: &[u8]) -> Option<Vec<Option<u64>>> {
    let Class::Variable { is_text: false, of } = &data_type.class else { return None };
    if of.class != Class::Reference {
        return None;
    }
    let first = |element: &[u8]| {
        let list = variable(at, of.size, element)?;
        address(list.get(..at.file.widths.offset)?).filter(|address| *address != 0)
    };
    Some(data.chunks_exact(data_type.size).take(crate::volume::MAX_AXES).map(first).collect())
}

/// Returns the bytes that an element of variable length leads to, whose parts have `size` bytes each.
fn variable(at: &Place<'_>, size: usize, element: &[u8]) -> Option<Vec<u8>> {
    let mut fields = Fields::new("value of variable length", element, at.file.widths);
    let (length, collection, number) = (fields.u32().ok()?, fields.address().ok()?, fields.u32().ok()?);
    match collection {
        Some(collection) if length > 0 && collection > 0 => {
            let mut bytes = global_value(at.file, collection, number).ok()?;
            bytes.truncate((length as usize).saturating_mul(size));
            Some(bytes)
        }
        _ => Some(Vec::new()),
    }
}

/// Returns the values of an attribute: one by itself, more as a list of all of them; `None` if they are not known.
fn values(at: &Place<'_>, data_type: &DataType, shape: &[u64], data: &[u8]) -> Option<Value> {
    let count = shape.iter().try_fold(1u64, |all, n| all.checked_mul(*n))?;
    let is_long = matches!(data_type.class, Class::Variable { .. });
    if count > if is_long { MAX_TEXTS } else { MAX_VALUES } {
        return None;
    }
    let mut values = Vec::new();
    for element in data.chunks_exact(data_type.size).take(count as usize) {
        values.push(value(at, data_type, element)?);
    }
    Some(match values.len() {
        1 => values.remove(0),
        _ => Value::Array(values),
    })
}

fn value(at: &Place<'_>, data_type: &DataType, element: &[u8]) -> Option<Value> {
    at.file.count_values(size_of::<Value>())?;
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default());
        at.file.count_values(text.len())?;
        Some(Value::from(text.trim_end_matches(' ')))
    };
    match &data_type.class {
        Class::Text => text(element),
        Class::Variable { is_text: true, .. } => variable(at, 1, element).and_then(|bytes| text(&bytes)),
        Class::Reference | Class::Opaque | Class::Time | Class::Variable { .. } => None,
        Class::Compound(members) if data_type.sample().is_err() => {
            let member = |(name, offset, of): &(Vec<u8>, usize, DataType)| {
                at.file.count_values(name.len() + PER_MEMBER)?;
                let bytes = element.get(*offset..offset.checked_add(of.size)?)?;
                Some((String::from_utf8_lossy(name).into_owned(), value(at, of, bytes)?))
            };
            members.iter().map(member).collect::<Option<NativeJson>>().map(Value::Object)
        }
        Class::Array(_, base) => {
            let list = element.chunks_exact(base.size).map(|element| value(at, base, element));
            list.collect::<Option<Vec<_>>>().map(Value::Array)
        }
        _ => {
            let sample = data_type.sample().ok()?;
            let element = sample.element(element);
            if sample.dtype.is_complex() {
                let half = sample.dtype.size() / 2;
                let part = |bytes: &[u8]| match half {
                    4 => f64::from(f32::from_bits(uint(bytes) as u32)),
                    _ => f64::from_bits(uint(bytes)),
                };
                let (re, im) = element.bytes().split_at_checked(half)?;
                return Some(Value::from(vec![part(re), part(im)]));
            }
            match integer_of(&sample, &element) {
                Some(whole) => {
                    i64::try_from(whole).map(Value::from).or_else(|_| u64::try_from(whole).map(Value::from)).ok()
                }
                None => Some(Value::from(sample.dtype.number(element.bytes()))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::format::hdf5::file::{File, MAX_VALUES as MAX_MEMORY};
    use crate::format::hdf5::header::SharedMessages;
    use crate::source::{IndexCache, WHOLE};
    use crate::test_support::memory_folder::MemoryFolder;
    use crate::test_support::test_data;

    #[test]
    fn values_take_no_more_memory_than_those_of_a_file_may() {
        let bytes = std::fs::read(test_data("hdf5").join("types.h5")).unwrap();
        let source = Arc::new(MemoryFolder::of_one_file(bytes));
        let (file, _) = File::open((source, WHOLE.into()), &IndexCache::new(1 << 20)).ok().unwrap();
        let shared = SharedMessages::default();
        let at = Place::new(&file, &shared);
        let texts = |count: u64| DataType {
            size: count as usize,
            class: Class::Array(vec![count], DataType { size: 1, class: Class::Text }.into()),
        };
        // members may overlap: each of the others would take as much
        let member = |name: u8| (vec![name], 0, texts(1000));
        let compound = DataType { size: 1000, class: Class::Compound((b'a'..=b'z').map(member).collect()) };
        let element = [b'x'; 1000];
        let most = MAX_MEMORY as usize;
        assert_eq!(value(&at, &texts(2), b"xy"), Some(Value::from(vec!["x", "y"])));
        file.count_values(most - 10_000 * size_of::<Value>()).unwrap();
        assert_eq!(value(&at, &compound, &element), None);
        assert_eq!(value(&at, &texts(2), b"xy"), None, "nothing is left");
        // a name, a type of one byte and no axes
        let named = b"\x03\0\x02\0\x0c\0\x04\0\0n\0\x10\x08\0\0\x01\0\0\0\0\0\x08\0\x02\0\0\0\x07";
        assert!(matches!(Attributes::default().add(&at, named), Err(FormatError::Unsupported(_))));
        let (file, _) = File::with_part(&[], file.widths);
        let mut found = Attributes::default();
        found.add(&Place::new(&file, &shared), named).unwrap();
        found.bytes = MAX_BYTES;
        assert!(found.add(&Place::new(&file, &shared), named).is_err());
        assert_eq!(Value::Object(found.values), serde_json::json!({"n": 7}));
    }
}

//! Messages of datasets: where samples are stored, filters, fill values.

use super::data_type::Sample;
use super::file::{Fields, uint};
use crate::format::FormatError;
use crate::volume::Element;

/// Where and how the samples are stored.
pub(super) enum Layout {
    /// In the header: the address and the bytes.
    Compact(u64, u64),
    /// One piece: its address, and its bytes where they are known.
    Contiguous(Option<u64>, Option<u64>),
    Chunked {
        chunk: Vec<u64>,
        index: IndexKind,
        address: Option<u64>,
        whole_edges: bool,
    },
    /// The samples of other datasets: the collection and the number of the list of mappings; `None` if there are none.
    Virtual(Option<(u64, u32)>),
}

/// How chunks are found, and what only the message says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IndexKind {
    BTree1,
    /// Bytes and filter mask of the only chunk, where it has filters.
    Single(Option<(u64, u32)>),
    Implicit,
    FixedArray,
    ExtensibleArray,
    BTree2,
}

impl Layout {
    /// Parses the message, which begins at `address`.
    pub(super) fn parse(mut fields: Fields<'_>, address: u64) -> Result<Self, FormatError> {
        let version = fields.version(&[1, 2, 3, 4, 5], "layout")?;
        if version < 3 {
            return Self::old(fields, address);
        }
        match fields.u8()? {
            0 => {
                let bytes = u64::from(fields.u16()?);
                let at = address + fields.position() as u64;
                fields.take(bytes as usize)?;
                Ok(Self::Compact(at, bytes))
            }
            1 => Ok(Self::Contiguous(fields.address()?, Some(fields.length()?))),
            2 if version == 3 => {
                let axes = usize::from(fields.u8()?);
                let address = fields.address()?;
                let chunk = extents(&mut fields, axes, 4)?;
                Ok(Self::Chunked { chunk, index: IndexKind::BTree1, address, whole_edges: false })
            }
            2 => Self::new(fields),
            3 => match fields.address()? {
                Some(collection) => Ok(Self::Virtual(Some((collection, fields.u32()?)))),
                None => Ok(Self::Virtual(None)),
            },
            other => Err(format!("its layout is of the unknown class {other}").into()),
        }
    }

    fn old(mut fields: Fields<'_>, address: u64) -> Result<Self, FormatError> {
        let (axes, class) = (usize::from(fields.u8()?), fields.u8()?);
        if axes == 0 {
            return Err("its layout has no axes".into());
        }
        fields.take(5)?;
        let at = if class == 0 { None } else { fields.address()? };
        let chunk = extents(&mut fields, axes, 4)?;
        Ok(match class {
            0 => {
                let bytes = u64::from(fields.u32()?);
                let at = address + fields.position() as u64;
                fields.take(bytes as usize)?;
                Self::Compact(at, bytes)
            }
            1 => Self::Contiguous(at, None),
            2 => Self::Chunked { chunk, index: IndexKind::BTree1, address: at, whole_edges: false },
            other => return Err(format!("its layout is of the unknown class {other}").into()),
        })
    }

    fn new(mut fields: Fields<'_>) -> Result<Self, FormatError> {
        let (flags, axes, width) = (fields.u8()?, usize::from(fields.u8()?), usize::from(fields.u8()?));
        if !(1..=8).contains(&width) {
            return Err(format!("its layout has extents of {width} bytes").into());
        }
        let chunk = extents(&mut fields, axes, width)?;
        let index = match fields.u8()? {
            1 if flags & 2 != 0 => IndexKind::Single(Some((fields.length()?, fields.u32()?))),
            1 => IndexKind::Single(None),
            2 => IndexKind::Implicit,
            // what else is said stands in the index, too
            3 => {
                fields.take(1)?;
                IndexKind::FixedArray
            }
            4 => {
                fields.take(5)?;
                IndexKind::ExtensibleArray
            }
            5 => {
                fields.take(6)?;
                IndexKind::BTree2
            }
            other => return Err(format!("its chunks have an index of the unknown type {other}").into()),
        };
        Ok(Self::Chunked { chunk, index, address: fields.address()?, whole_edges: flags & 1 != 0 })
    }
}

fn extents(fields: &mut Fields<'_>, axes: usize, width: usize) -> Result<Vec<u64>, FormatError> {
    if axes > 33 {
        return Err(format!("its layout has {axes} axes").into());
    }
    Ok(fields.take(axes * width)?.chunks_exact(width).map(uint).collect())
}

/// The most parameters of a filter, and the most bytes of its name: those that are known have far fewer.
const MAX_OF_FILTER: usize = 256;

/// A filter of chunks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Filter {
    pub id: u16,
    pub name: String,
    pub parameters: Vec<u32>,
    /// Whether writers go on without it where it fails.
    pub is_optional: bool,
}

pub(super) fn filters(mut fields: Fields<'_>) -> Result<Vec<Filter>, FormatError> {
    let version = fields.version(&[1, 2], "list of filters")?;
    let count = fields.u8()?;
    if count > 32 {
        return Err(format!("it has {count} filters").into());
    }
    fields.take(if version == 1 { 6 } else { 0 })?;
    let mut filters = Vec::new();
    for _ in 0..count {
        let id = fields.u16()?;
        let name = if version == 1 || id >= 256 { usize::from(fields.u16()?) } else { 0 };
        let (flags, numbers) = (fields.u16()?, usize::from(fields.u16()?));
        if name.max(numbers) > MAX_OF_FILTER {
            let why = format!("its filter {id} has {numbers} parameters, and a name of {name} bytes");
            return Err(FormatError::Unsupported(why));
        }
        let name = fields.take(if version == 1 { name.next_multiple_of(8) } else { name })?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let parameters = fields.take(4 * numbers)?.chunks_exact(4).map(|word| uint(word) as u32).collect();
        if version == 1 && numbers % 2 == 1 {
            fields.take(4)?;
        }
        let name = String::from_utf8_lossy(name).into_owned();
        filters.push(Filter { id, name, parameters, is_optional: flags & 1 == 1 });
    }
    Ok(filters)
}

/// Parses the message of a fill value: the bytes of an element; `None` if there is none.
pub(super) fn fill_value(mut fields: Fields<'_>, is_old: bool) -> Result<Option<Vec<u8>>, FormatError> {
    if !is_old {
        match fields.version(&[1, 2, 3], "fill value")? {
            3 => {
                if fields.u8()? & 0x20 == 0 {
                    return Ok(None);
                }
            }
            version => {
                fields.take(2)?;
                if fields.u8()? == 0 && version == 2 {
                    return Ok(None);
                }
            }
        }
    }
    let length = fields.u32()? as usize;
    // -1 is what there is none is
    if length == 0 || length == u32::MAX as usize {
        return Ok(None);
    }
    Ok(Some(fields.take(length)?.to_vec()))
}

/// Returns the sample that all of a fill value consists of, or why there is none.
pub(super) fn fill_sample(sample: &Sample, value: Option<&[u8]>) -> Result<Element, String> {
    let Some(value) = value else { return Ok(Element::zero(sample.dtype.size())) };
    if value.len() != sample.element_bytes() {
        return Err(format!("its fill value has {} bytes, not {}", value.len(), sample.element_bytes()));
    }
    let (first, _) = value.split_at(sample.stored);
    if value.chunks_exact(sample.stored).any(|other| other != first) {
        return Err("its fill value is an array of several values, which is not supported".into());
    }
    Ok(sample.element(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::hdf5::file::Widths;

    #[test]
    fn filters_have_no_more_parameters_than_any_that_is_known() {
        let parsed = |id: u16, name: u16, numbers: u16| {
            let mut bytes = [[2, 1].to_vec(), id.to_le_bytes().to_vec()].concat();
            bytes.extend((id >= 256).then(|| name.to_le_bytes()).into_iter().flatten());
            bytes.extend([0, 0].into_iter().chain(numbers.to_le_bytes()));
            bytes.resize(bytes.len() + usize::from(name) + 4 * usize::from(numbers), b'x');
            filters(Fields::new("list of filters", &bytes, Widths { offset: 8, length: 8 }))
        };
        assert_eq!(parsed(1, 0, 256).unwrap()[0].parameters.len(), 256);
        assert_eq!(parsed(32026, 256, 1).unwrap()[0].name.len(), 256);
        for (id, name, numbers) in [(1, 0, 257), (32026, 257, 1)] {
            assert!(matches!(parsed(id, name, numbers), Err(FormatError::Unsupported(_))), "{id}");
        }
    }
}

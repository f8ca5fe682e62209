//! The mappings of a virtual dataset: which elements of which dataset stand where (sections III.E and VIII of the
//! specification: the global heap block for virtual datasets, and selections of dataspaces).

use std::collections::BTreeSet;
use std::rc::Rc;

use super::file::{Fields, check_sum, uint};
use crate::format::FormatError;
use crate::volume::MAX_AXES;

const PART: &str = "list of mappings";
/// The most mappings of all datasets of a file that are read.
pub(super) const MAX_MAPPINGS: u64 = 1 << 16;
/// Bytes of the longest name of a file or dataset.
const MAX_NAME: usize = 64 << 10;
/// A number of blocks, or of the elements of one, that grows with the dataset.
const UNLIMITED: u64 = u64::MAX;

/// Elements of one dataset that stand in the place of as many elements of the virtual one, in C order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    /// The name of the file, `.` for the one that the virtual dataset is in. In this and the next, `%b` stands for the
    /// number of a block where the blocks have no limit, and `%%` for a percent sign.
    pub file: Rc<str>,
    pub dataset: Rc<str>,
    pub from: Selection,
    pub to: Selection,
}

/// Some elements of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    None,
    All,
    /// For each axis, which of its positions.
    Steps(Vec<Steps>),
}

/// Positions along an axis: `length` of them, in blocks of `block` that begin `stride` apart. A `length` without limit,
/// or both it and `block`, are [`u64::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steps {
    pub start: u64,
    pub stride: u64,
    pub block: u64,
    pub length: u64,
}

impl Steps {
    /// The positions from `start` on, one after the other.
    pub(super) fn run(start: u64, length: u64) -> Self {
        Self { start, stride: length.max(1), block: length.max(1), length }
    }

    pub(super) fn is_unlimited(&self) -> bool {
        self.length == UNLIMITED
    }

    /// Returns whether there are gaps between positions.
    pub(super) fn has_blocks(&self) -> bool {
        self.length > self.block
    }

    /// The position of element `n`, which must be one of the first `length`.
    pub(super) fn at(&self, n: u64) -> u64 {
        self.start + n / self.block * self.stride + n % self.block
    }

    /// The element at a position, if it is one of these.
    pub(super) fn element(&self, position: u64) -> Option<u64> {
        let from_start = position.checked_sub(self.start)?;
        let (block, within) =
            if self.has_blocks() { (from_start / self.stride, from_start % self.stride) } else { (0, from_start) };
        let n = block * self.block + within;
        (within < self.block && n < self.length).then_some(n)
    }

    /// One past the last position, 0 if there is none.
    pub(super) fn end(&self) -> u64 {
        self.length.checked_sub(1).map_or(0, |last| self.at(last) + 1)
    }

    /// Cuts positions without limit off at the end of an axis.
    pub(super) fn within(self, extent: u64) -> Self {
        let reach = extent.saturating_sub(self.start);
        let length = match self.block {
            UNLIMITED => reach,
            block => (reach / self.stride).saturating_mul(block).saturating_add(block.min(reach % self.stride)),
        };
        self.of_length(length)
    }

    /// The first `length` of positions without limit; none if they would not be numbers.
    pub(super) fn of_length(self, length: u64) -> Self {
        let cut = Self { block: self.block.min(length.max(1)), length, ..self };
        let cut = Self { stride: cut.stride.max(cut.block), ..cut };
        if cut.checked_end().is_some() { cut } else { Self { length: 0, ..cut } }
    }

    /// Block `n` of blocks without limit.
    pub(super) fn block(&self, n: u64) -> Option<Self> {
        let start = n.checked_mul(self.stride)?.checked_add(self.start)?;
        let block = Self::run(start, self.block);
        block.checked_end().map(|_| block)
    }

    fn checked_end(&self) -> Option<u64> {
        let Some(last) = self.length.checked_sub(1) else { return Some(0) };
        let end = (last / self.block).checked_mul(self.stride)?.checked_add(self.start)?.checked_add(self.block)?;
        (end <= i64::MAX as u64).then_some(end)
    }
}

/// Returns a name with the number of a block in it.
pub(super) fn numbered(pattern: &str, number: u64) -> String {
    let mut parts = pattern.split("%%").map(|part| part.replace("%b", &number.to_string()));
    let first = parts.next().unwrap_or_default();
    parts.fold(first, |name, part| name + "%" + &part)
}

/// Returns whether a name has the number of a block in it.
pub(super) fn has_number(pattern: &str) -> bool {
    pattern.split("%%").any(|part| part.contains("%b"))
}

/// Parses the block of the global heap that lists all mappings.
pub(super) fn mappings(mut fields: Fields<'_>) -> Result<Vec<Mapping>, FormatError> {
    let bytes = fields.rest();
    let has_flags = fields.version(&[0, 1], PART)? == 1;
    let count = fields.length()?;
    if count > MAX_MAPPINGS {
        return Err(FormatError::Unsupported(format!("it has {count} mappings, and at most {MAX_MAPPINGS} are read")));
    }
    let mut mappings: Vec<Mapping> = Vec::new();
    for _ in 0..count {
        let flags = if has_flags { fields.u8()? } else { 0 };
        let file: Rc<str> = match flags {
            4..8 => ".".into(),
            8.. => return Err(FormatError::Unsupported(format!("a mapping has the unknown flags {flags}"))),
            _ => name(&mut fields, flags & 1 != 0, |n| mappings.get(n).map(|mapping| &mapping.file))?,
        };
        let dataset = name(&mut fields, flags & 2 != 0, |n| mappings.get(n).map(|mapping| &mapping.dataset))?;
        mappings.push(Mapping { file, dataset, from: selection(&mut fields)?, to: selection(&mut fields)? });
    }
    check_sum(bytes, fields.position(), PART)?;
    Ok(mappings)
}

/// Reads a name, or the number of the mapping before that has the same one.
fn name<'a>(
    fields: &mut Fields<'_>,
    is_shared: bool,
    of: impl Fn(usize) -> Option<&'a Rc<str>>,
) -> Result<Rc<str>, FormatError> {
    if !is_shared {
        let name = fields.text(1)?;
        if name.len() > MAX_NAME {
            return Err(FormatError::Unsupported(format!("a mapping has a name of {} bytes", name.len())));
        }
        return Ok(String::from_utf8_lossy(name).into());
    }
    let number = fields.length()?;
    let found = usize::try_from(number).ok().and_then(of);
    found.cloned().ok_or_else(|| format!("a mapping has the name of mapping {number}").into())
}

fn selection(fields: &mut Fields<'_>) -> Result<Selection, FormatError> {
    let (kind, version) = (fields.u32()?, fields.u32()?);
    match (kind, version) {
        (0 | 3, 1) => {
            fields.take(8)?;
            Ok(if kind == 0 { Selection::None } else { Selection::All })
        }
        (1, _) => Err(FormatError::Unsupported("a selection of its mappings is a list of points".into())),
        (2, 1) => {
            fields.take(8)?;
            let (axes, count) = (axes(fields)?, fields.u32()?);
            boxes(fields, axes, 4, count.into())
        }
        (2, 2 | 3) => {
            let flags = fields.u8()?;
            let width = if version == 3 { usize::from(fields.u8()?) } else { 8 };
            fields.take(if version == 2 { 4 } else { 0 })?;
            if ![2, 4, 8].contains(&width) {
                return Err(format!("a selection has numbers of {width} bytes").into());
            }
            let axes = axes(fields)?;
            if flags & 1 == 0 {
                let count = fields.uint(width)?;
                return boxes(fields, axes, width, count);
            }
            let steps = (0..axes).map(|_| steps(fields, width)).collect::<Result<Vec<_>, _>>()?;
            Ok(if steps.iter().any(|steps| steps.length == 0) { Selection::None } else { Selection::Steps(steps) })
        }
        _ => Err(format!("a selection is of the unknown kind {kind}, version {version}").into()),
    }
}

fn axes(fields: &mut Fields<'_>) -> Result<usize, FormatError> {
    let axes = fields.u32()?;
    if axes == 0 || axes as usize > MAX_AXES {
        return Err(FormatError::Unsupported(format!("a selection of its mappings has {axes} axes")));
    }
    Ok(axes as usize)
}

/// Reads a list of boxes, which must be all those of some positions along each axis.
fn boxes(fields: &mut Fields<'_>, axes: usize, width: usize, count: u64) -> Result<Selection, FormatError> {
    let numbers = usize::try_from(count).ok().and_then(|count| count.checked_mul(2 * axes * width));
    let bytes = fields.take(numbers.unwrap_or(usize::MAX))?;
    let numbers: Vec<u64> = bytes.chunks_exact(width).map(uint).collect();
    let boxes: Vec<(&[u64], &[u64])> = numbers.chunks_exact(2 * axes).map(|corners| corners.split_at(axes)).collect();
    let mut steps = Vec::new();
    for axis in 0..axes {
        let blocks: BTreeSet<(u64, u64)> = boxes.iter().map(|(first, last)| (first[axis], last[axis])).collect();
        steps.push(blocks.into_iter().collect::<Vec<_>>());
    }
    let all = steps.iter().map(Vec::len).try_fold(1, usize::checked_mul);
    let is_product = all == Some(boxes.len()) && boxes.iter().collect::<BTreeSet<_>>().len() == boxes.len();
    let steps = steps.iter().map(|blocks| evenly_spaced(blocks)).collect::<Option<Vec<_>>>();
    match steps.filter(|_| is_product) {
        _ if count == 0 => Ok(Selection::None),
        Some(steps) => Ok(Selection::Steps(steps)),
        None => Err(FormatError::Unsupported(format!("{count} boxes of its mappings are in no regular order"))),
    }
}

/// Returns the positions of blocks, which are given by their first and last positions.
fn evenly_spaced(blocks: &[(u64, u64)]) -> Option<Steps> {
    let (start, last) = *blocks.first()?;
    let block = last.checked_sub(start)?.checked_add(1)?;
    let stride = blocks.get(1).map_or(block, |(second, _)| second - start);
    let steps = Steps { start, stride, block, length: block.checked_mul(blocks.len() as u64)? };
    steps.checked_end()?;
    let is_next =
        |pair: &[(u64, u64)]| pair[1].0 - pair[0].0 == stride && pair[1].1.checked_sub(pair[1].0) == Some(block - 1);
    (stride >= block && blocks.windows(2).all(is_next)).then_some(steps)
}

/// Reads what a regular selection says of one axis.
fn steps(fields: &mut Fields<'_>, width: usize) -> Result<Steps, FormatError> {
    let mut number = || -> Result<u64, FormatError> {
        let bytes = fields.take(width)?;
        Ok(if bytes.iter().all(|byte| *byte == 0xff) { UNLIMITED } else { uint(bytes) })
    };
    let (start, stride, count, block) = (number()?, number()?, number()?, number()?);
    let wrong = || format!("a selection has {count} blocks of {block} from {start} on, {stride} apart");
    if count == 0 || block == 0 {
        return Ok(Steps::run(start, 0));
    }
    if count != 1 && (block == UNLIMITED || stride < block) || start > i64::MAX as u64 {
        return Err(wrong().into());
    }
    if block == UNLIMITED || count == UNLIMITED {
        return Ok(Steps { start, stride, block, length: UNLIMITED });
    }
    let length = count.checked_mul(block).ok_or_else(wrong)?;
    let steps = Steps { start, stride: stride.max(block), block, length };
    steps.checked_end().map(|_| steps).ok_or_else(|| wrong().into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::hdf5::file::{Widths, lookup3};

    proptest! {
        #[test]
        fn positions_and_elements_are_each_others_inverse(
            start in 0u64..9, gap in 0u64..4, block in 1u64..5, length in 0u64..20, extent in 0u64..40
        ) {
            let steps = Steps { start, stride: block + gap, block, length };
            let positions: Vec<u64> = (0..length).map(|n| steps.at(n)).collect();
            prop_assert!((0..99).all(|at| steps.element(at) == positions.iter().position(|p| *p == at).map(|n| n as u64)));
            prop_assert_eq!(steps.end(), positions.last().map_or(0, |last| last + 1));
            let endless = Steps { length: UNLIMITED, ..steps };
            let cut = endless.within(extent);
            prop_assert_eq!(cut.length, (0..99).filter(|n| endless.at(*n) < extent).count() as u64);
            prop_assert!((0..cut.length).all(|n| cut.at(n) == endless.at(n)));
            prop_assert_eq!(endless.block(2).unwrap(), Steps::run(endless.at(2 * block), block));
            let run = Steps { start, stride: 1, block: UNLIMITED, length: UNLIMITED };
            prop_assert_eq!(run.within(extent).length, extent.saturating_sub(start));
        }
    }

    /// Parses a list of two mappings of all elements, the second one of which has the names of the first one.
    fn parsed(dataset: &[u8]) -> Result<Vec<Mapping>, FormatError> {
        let all = [3u8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].repeat(2);
        let first = [&[0][..], b"a.h5\0", dataset, b"\0", &all].concat();
        let mut bytes = [&[1, 2, 0, 0, 0, 0, 0, 0, 0][..], &first, &[3], &[0; 16], &all].concat();
        bytes.extend(lookup3(&bytes).to_le_bytes());
        mappings(Fields::new(PART, &bytes, Widths { offset: 8, length: 8 }))
    }

    #[test]
    fn names_are_kept_once_and_are_not_endless() {
        let found = parsed(b"d").unwrap();
        assert_eq!((&*found[1].file, &*found[1].dataset), ("a.h5", "d"));
        assert!(Rc::ptr_eq(&found[0].file, &found[1].file) && Rc::ptr_eq(&found[0].dataset, &found[1].dataset));
        assert!(parsed(&[b'x'; MAX_NAME]).is_ok());
        assert!(matches!(parsed(&[b'x'; MAX_NAME + 1]), Err(FormatError::Unsupported(_))));
    }

    #[test]
    fn names_have_the_numbers_of_blocks() {
        assert_eq!(numbered("a%b/%%b%%%b.h5", 7), "a7/%b%7.h5");
        assert!(has_number("%%%b") && !has_number("100%%b"));
    }
}

//! What is in a file of the cache. All numbers are little-endian.
//!
//! | bytes | |
//! |---|---|
//! | 8 | `volfsDC1` |
//! | 4 | CRC-32 of the header from here to its end |
//! | 4 | bytes of the header |
//! | 8 | offset of the range in the object |
//! | 8 | bytes of the range |
//! | 16 | lengths of the four names that follow, 4 bytes each |
//! | ... | store, dataset, object, version: see [`ObjectNames`] |
//! | 4 each | CRC-32 of each block of 64 KiB of the range, the last one being shorter |
//! | ... | the range |

use super::object_version::{ObjectNames, ObjectVersion};
use super::stored_range::{BLOCK, StoredRange};

const MAGIC: &[u8; 8] = b"volfsDC1";
/// Where the part of the header that its checksum covers begins.
const CHECKED: usize = 12;
/// Where the names begin.
const NAMES: usize = 32;

/// Returns the header of a file; `None` if it were too long.
pub(crate) fn header(object: &ObjectVersion, offset: u64, bytes: &[u8]) -> Option<Vec<u8>> {
    let length = header_length(object, u32::try_from(bytes.len()).ok()?);
    let mut header = Vec::with_capacity(length);
    header.extend(MAGIC);
    header.extend([0; 4]);
    header.extend(u32::try_from(length).ok()?.to_le_bytes());
    header.extend(offset.to_le_bytes());
    header.extend((bytes.len() as u64).to_le_bytes());
    header.extend(object.identity());
    bytes.chunks(BLOCK).for_each(|block| header.extend(crc(block).to_le_bytes()));
    let sum = crc(&header[CHECKED..]);
    header[CHECKED - 4..CHECKED].copy_from_slice(&sum.to_le_bytes());
    Some(header)
}

/// Returns the bytes that the header of a range has.
pub(crate) fn header_length(object: &ObjectVersion, length: u32) -> usize {
    NAMES + object.identity().len() + 4 * (length as usize).div_ceil(BLOCK)
}

/// Returns whether a header is whole, and that of this range of this object.
pub(crate) fn is_header_of(header: &[u8], object: &ObjectVersion, range: StoredRange) -> bool {
    let identity = object.identity();
    header.len() == header_length(object, range.length)
        && is_whole(header)
        && number(header, 16) == Some(range.offset)
        && number(header, 24) == Some(u64::from(range.length))
        && header[NAMES..].starts_with(identity)
}

/// Returns whether blocks, of which `first` is the number of the first one, have the checksums of the header.
pub(crate) fn are_blocks_good(header: &[u8], object: &ObjectVersion, first: usize, bytes: &[u8]) -> bool {
    let sums = header.get(NAMES + object.identity().len()..).unwrap_or_default();
    are_sums(sums.get(4 * first..).unwrap_or_default(), bytes)
}

fn are_sums(sums: &[u8], bytes: &[u8]) -> bool {
    let mut sums = sums.chunks_exact(4);
    bytes.chunks(BLOCK).all(|block| sums.next().is_some_and(|sum| *sum == crc(block).to_le_bytes()))
}

/// What the beginning of a file says, of which nothing is known but its name.
pub(crate) struct Opening {
    pub names: ObjectNames,
    /// The bytes that the file should have.
    pub size: u64,
}

/// Reads the beginning of the file of a range: 4 KiB of it, or all. `None` if it is not a file of the cache.
pub(crate) fn read_opening(bytes: &[u8], range: StoredRange) -> Option<Opening> {
    let (names, identity) = ObjectNames::read(bytes.get(NAMES..)?)?;
    let length = NAMES as u64 + identity as u64 + 4 * u64::from(range.length).div_ceil(BLOCK as u64);
    let is_good = bytes.starts_with(MAGIC)
        && header_size(bytes).map(u64::from) == Some(length)
        && number(bytes, 16) == Some(range.offset)
        && number(bytes, 24) == Some(u64::from(range.length));
    is_good.then(|| Opening { names, size: length + u64::from(range.length) })
}

/// Returns whether all checksums of a whole file, whose beginning was read, are right.
pub(crate) fn is_file_good(file: &[u8], range: StoredRange) -> bool {
    let parts = header_size(file).and_then(|length| file.split_at_checked(length as usize));
    let Some((header, bytes)) = parts else { return false };
    let sums = 4 * (range.length as usize).div_ceil(BLOCK);
    is_whole(header)
        && bytes.len() == range.length as usize
        && header.len().checked_sub(sums).is_some_and(|from| are_sums(&header[from..], bytes))
}

/// Returns whether the header's own checksum is right.
fn is_whole(header: &[u8]) -> bool {
    header.starts_with(MAGIC)
        && header.get(CHECKED - 4..CHECKED).is_some_and(|sum| *sum == crc(&header[CHECKED..]).to_le_bytes())
        && header_size(header).is_some_and(|length| length as usize == header.len())
}

fn header_size(header: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(header.get(CHECKED..CHECKED + 4)?.try_into().ok()?))
}

fn number(header: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(header.get(at..at + 8)?.try_into().ok()?))
}

fn crc(bytes: &[u8]) -> u32 {
    libdeflater::crc32(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_changed_byte_is_noticed() {
        let object = ObjectVersion::new("s3://b", "d", "o", "e");
        let bytes: Vec<u8> = (0..BLOCK + 100).map(|n| (n % 251) as u8).collect();
        let range = StoredRange { object: object.digest(), offset: 4096, length: bytes.len() as u32 };
        let header = header(&object, range.offset, &bytes).unwrap();
        assert!(is_header_of(&header, &object, range));
        assert!(are_blocks_good(&header, &object, 0, &bytes));
        assert!(are_blocks_good(&header, &object, 1, &bytes[BLOCK..]));
        assert!(!are_blocks_good(&header, &object, 1, &bytes[..BLOCK]));
        let file = [&header[..], &bytes].concat();
        assert!(is_file_good(&file, range));
        let opening = read_opening(&file[..file.len().min(4096)], range).unwrap();
        assert_eq!((opening.names.object.as_str(), opening.size), ("o", file.len() as u64));
        for at in (0..header.len()).chain([header.len(), header.len() + BLOCK, file.len() - 1]) {
            let mut damaged = file.clone();
            damaged[at] ^= 1;
            let (head, rest) = damaged.split_at(header.len());
            assert!(!is_header_of(head, &object, range) || !are_blocks_good(head, &object, 0, rest), "byte {at}");
            assert!(!is_file_good(&damaged, range), "byte {at}");
        }
        for length in 0..header.len() {
            assert!(!is_header_of(&header[..length], &object, range));
            assert!(!is_file_good(&file[..length], range));
            drop(read_opening(&file[..length], range));
        }
        let other = ObjectVersion::new("s3://b", "d", "o", "f");
        assert!(!is_header_of(&header, &other, range));
        assert!(!is_header_of(&header, &object, StoredRange { offset: 0, ..range }));
    }
}

//! The bytes of a file: its superblock, checked reads of metadata at addresses, and fields of variable width.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::format::FormatError;
use crate::format::bytes::{ByteReader, PastEnd};
use crate::memory::try_zeroed;
use crate::source::{Blocking, Index, IndexCache, Source, SourceError};
use crate::sync::Mutex;
use crate::volume::ObjectName;

/// What the superblock begins with.
pub(super) const MAGIC: [u8; 8] = *b"\x89HDF\r\n\x1a\n";
/// The last place where a superblock is looked for: they are at 0 and at powers of two from 512 on.
const LAST_PLACE: u64 = 1 << 24;
/// Bytes of the longest part of the metadata that is read in one piece.
pub(super) const MAX_PART: u64 = 16 << 20;
/// The most bytes of headers and heaps that are read because something names them, and of the memory of all names and
/// values of attributes, links and filters: a file may name one of them as often as it likes.
const MAX_NAMED: u64 = 4 << 30;
pub(super) const MAX_VALUES: u64 = 256 << 20;
/// Bytes that are read of a part whose length is not yet known.
const FIRST_READ: u64 = 512;

/// Where a request takes long, the metadata are read in blocks of this many bytes...
const BLOCK: u64 = 64 << 10;
/// ... until two of them are wanted in a region of this many bytes: then all of it is read.
const REGION: u64 = 1 << 20;
/// The most regions that are remembered, and the most bytes of a page of a file that is written in pages.
const MAX_REGIONS: usize = 4096;
const MAX_FILE_PAGE: u64 = 8 << 20;

/// Widths of addresses and lengths in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Widths {
    pub offset: usize,
    pub length: usize,
}

/// What the superblock says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Superblock {
    pub version: u8,
    /// The header of the root group.
    pub root: u64,
    /// The header of what extends the superblock.
    pub extension: Option<u64>,
    /// Whether a program has the file open for writing, or has not closed it.
    pub is_open_for_writing: bool,
    /// Bytes before the superblock.
    pub user_block: u64,
}

/// An open file.
pub(super) struct File {
    pub source: Arc<dyn Source>,
    /// The object of the source that is the file.
    pub object: ObjectName,
    pub widths: Widths,
    /// What addresses count from.
    pub base: u64,
    /// The bytes of the file.
    pub end: u64,
    pub cache: Arc<IndexCache>,
    /// The first number of keys of nodes in the cache.
    id: u64,
    /// All of the file in pages, for the small parts that are read once.
    pages: Index,
    /// Bytes of the pages of a file that keeps metadata together in pages.
    file_page: Option<u64>,
    /// The block that was wanted in each region; `None` if all of it was read.
    regions: Mutex<HashMap<u64, Option<u64>>>,
    /// Bytes that were read because something names them, and those of names and values.
    named: AtomicU64,
    values: AtomicU64,
}

/// Adds to a sum of bytes; `None` if that has become more than `most`.
fn spend(sum: &AtomicU64, bytes: usize, most: u64) -> Option<()> {
    let before = sum.fetch_add(bytes as u64, Ordering::Relaxed);
    (before.saturating_add(bytes as u64) <= most).then_some(())
}

impl File {
    /// Finds and reads the superblock.
    pub(super) fn open(
        (source, object): (Arc<dyn Source>, ObjectName),
        cache: &Arc<IndexCache>,
    ) -> Result<(Self, Superblock), FormatError> {
        let end = source.len(&object)?.ok_or(SourceError::Changed)?;
        let mut at = 0;
        loop {
            let mut magic = [0; 8];
            if at + 8 > end || at > LAST_PLACE {
                return Err(FormatError::NotThisFormat("it is no HDF5 file: it has no superblock".into()));
            }
            if source.read_at(&object, at, &mut magic, Blocking::Yes)? && magic == MAGIC {
                break;
            }
            at = if at == 0 { 512 } else { 2 * at };
        }
        let pages = Index::new(Arc::clone(&source), &object, 0, end, Arc::clone(cache));
        let (widths, id, cache) = (Widths { offset: 8, length: 8 }, IndexCache::new_id(), Arc::clone(cache));
        let (named, values, regions) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::default());
        let mut file =
            Self { source, object, widths, base: 0, end, cache, id, pages, file_page: None, regions, named, values };
        let superblock = file.superblock(at)?;
        Ok((file, superblock))
    }

    /// Counts bytes that are read because something names them; an error if there have been too many.
    pub(super) fn count_named(&self, bytes: usize) -> Result<(), FormatError> {
        spend(&self.named, bytes, MAX_NAMED)
            .ok_or_else(|| "its messages and texts lead to more than 4 GiB of shared headers and heaps".into())
    }

    /// Counts memory of names and values; `None` if they have too much.
    pub(super) fn count_values(&self, bytes: usize) -> Option<()> {
        spend(&self.values, bytes, MAX_VALUES)
    }

    /// The same for names that cannot be left out.
    pub(super) fn count_names(&self, bytes: usize) -> Result<(), FormatError> {
        let too_many = "its links, attributes, filters and mappings take more than 256 MiB of memory";
        self.count_values(bytes).ok_or_else(|| FormatError::Unsupported(too_many.into()))
    }

    fn superblock(&mut self, at: u64) -> Result<Superblock, FormatError> {
        const PART: &str = "superblock";
        let bytes = self.read_most(at, 128, PART)?;
        let mut fields = self.fields(PART, &bytes);
        fields.take(MAGIC.len())?;
        let mut found = Superblock { version: fields.u8()?, user_block: at, ..Superblock::default() };
        let old = found.version < 2;
        if found.version > 3 {
            return Err(FormatError::Unsupported(format!("its superblock has version {}, not 0 to 3", found.version)));
        }
        if old {
            fields.take(4)?;
        }
        let (offset, length) = (usize::from(fields.u8()?), usize::from(fields.u8()?));
        if ![2, 4, 8].contains(&offset) || ![2, 4, 8].contains(&length) {
            return Err(format!("damaged superblock: addresses of {offset} bytes, lengths of {length}").into());
        }
        self.widths = Widths { offset, length };
        fields.widths = self.widths;
        let mut flags = 0;
        if old {
            // the sizes of nodes of B-trees: nodes say how many entries they have
            fields.take(if found.version == 1 { 13 } else { 9 })?;
        } else {
            flags = fields.u8()?;
        }
        let base = fields.address()?.ok_or("damaged superblock: it has no base address")?;
        let second = fields.address()?;
        let stored_end = fields.address()?;
        if old {
            fields.address()?;
            // the place of a name is as wide as a length
            fields.length()?;
            found.root = fields.address()?.ok_or("damaged superblock: there is no root group")?;
        } else {
            found.extension = second;
            found.root = fields.address()?.ok_or("damaged superblock: there is no root group")?;
            check_sum(&bytes, fields.position(), PART)?;
        }
        // one bit for a writer, another for a writer with readers
        found.is_open_for_writing = flags & 5 != 0;
        // a user block that was put before a file later changes neither the addresses in it nor its base
        self.base = at;
        let wanted = stored_end.and_then(|end| end.checked_sub(base)?.checked_add(at)).unwrap_or(0);
        if wanted > self.end {
            return Err(format!("the file is truncated: it has {} of {wanted} bytes", self.end).into());
        }
        Ok(found)
    }

    /// Returns a reader of the fields of some bytes.
    pub(super) fn fields<'a>(&self, part: &'static str, bytes: &'a [u8]) -> Fields<'a> {
        Fields { reader: ByteReader::new(part, bytes), widths: self.widths }
    }

    /// Returns the place in the file of `length` bytes at an address, which must lie in it.
    pub(super) fn place(&self, address: u64, length: u64, part: &str) -> Result<u64, FormatError> {
        let place = self.base.checked_add(address);
        place.filter(|at| at.checked_add(length).is_some_and(|end| end <= self.end)).ok_or_else(|| {
            let end = self.end;
            format!("the {part} at address {address} ({length} bytes) lies beyond the end of the file ({end} bytes)")
                .into()
        })
    }

    /// Reads a part of the metadata. May wait.
    pub(super) fn read(&self, address: u64, length: u64, part: &str) -> Result<Vec<u8>, FormatError> {
        let at = self.place(address, length, part)?;
        if length > MAX_PART {
            return Err(format!("the {part} at address {address} has {length} bytes").into());
        }
        self.read_in_pages(at, length)
    }

    /// Reads a part of at most `most` bytes, which the end of the file may cut off. May wait.
    pub(super) fn read_most(&self, address: u64, most: u64, part: &str) -> Result<Vec<u8>, FormatError> {
        let at = self.place(address, 0, part)?;
        self.read_in_pages(at, most.min(self.end - at))
    }

    fn read_in_pages(&self, at: u64, length: u64) -> Result<Vec<u8>, FormatError> {
        if self.source.fetches_ahead() {
            self.load_region(at)?;
        }
        let mut bytes = try_zeroed(length as usize)?;
        self.pages.read(at, &mut bytes, Blocking::Yes)?;
        Ok(bytes)
    }

    /// Says that metadata are together in pages of so many bytes.
    pub(super) fn set_file_page(&mut self, bytes: u64) {
        self.file_page = Some(bytes.clamp(BLOCK, MAX_FILE_PAGE));
    }

    /// Reads all of the region around a byte if more of it is likely to be wanted.
    fn load_region(&self, at: u64) -> Result<(), FormatError> {
        let (block, region) = (at / BLOCK, self.file_page.unwrap_or(REGION));
        let number = at / region;
        let mut regions = self.regions.lock();
        if regions.len() >= MAX_REGIONS {
            regions.clear();
        }
        let is_wanted = match regions.get(&number) {
            None => self.file_page.is_some(),
            Some(wanted) => wanted.is_some_and(|wanted| wanted != block),
        };
        if is_wanted {
            regions.insert(number, None);
        } else {
            regions.entry(number).or_insert(Some(block));
        }
        drop(regions);
        if is_wanted {
            self.pages.load(number * region..(number + 1) * region)?;
        }
        Ok(())
    }

    /// Reads a part whose beginning tells how long it is.
    pub(super) fn read_sized(
        &self,
        address: u64,
        part: &'static str,
        length: impl Fn(&mut Fields<'_>) -> Result<u64, FormatError>,
    ) -> Result<Vec<u8>, FormatError> {
        let mut bytes = self.read_most(address, FIRST_READ, part)?;
        let length = length(&mut self.fields(part, &bytes))?;
        if length > bytes.len() as u64 {
            return self.read(address, length, part);
        }
        bytes.truncate(length as usize);
        Ok(bytes)
    }

    /// Returns a node of an index from the cache, or reads it: `length` bytes that `check` accepts.
    pub(super) fn node(
        &self,
        (address, length): (u64, u64),
        part: &'static str,
        blocking: Blocking,
        check: impl FnOnce(&[u8]) -> Result<(), FormatError>,
    ) -> Result<Arc<Vec<u8>>, FormatError> {
        self.sized_node(address, part, blocking, (length, |_: &[u8]| Ok(length)), check)
    }

    /// Like [`File::node`], for nodes whose beginning tells how long they are; most have `usual` bytes.
    pub(super) fn sized_node(
        &self,
        address: u64,
        part: &'static str,
        blocking: Blocking,
        (usual, length): (u64, impl FnOnce(&[u8]) -> Result<u64, FormatError>),
        check: impl FnOnce(&[u8]) -> Result<(), FormatError>,
    ) -> Result<Arc<Vec<u8>>, FormatError> {
        // the last number only spreads the nodes over what a thread keeps
        let key = (self.id, address, address >> 6 & 3);
        if let Some(node) = self.cache.get(key) {
            return Ok(node);
        }
        if blocking == Blocking::No {
            return Err(SourceError::WouldBlock.into());
        }
        let at = self.place(address, 0, part)?;
        let first = self.read_node(at, usual.min(self.end - at).min(MAX_PART))?;
        let length = length(&first)?;
        self.place(address, length, part)?;
        if length > MAX_PART {
            return Err(format!("the {part} at address {address} has {length} bytes").into());
        }
        let mut node = if length > first.len() as u64 { self.read_node(at, length)? } else { first };
        node.truncate(length as usize);
        node.shrink_to_fit();
        check(&node)?;
        let node = Arc::new(node);
        self.cache.insert(key, &node, node.capacity());
        Ok(node)
    }

    fn read_node(&self, at: u64, length: u64) -> Result<Vec<u8>, FormatError> {
        if self.source.fetches_ahead() {
            return self.read_in_pages(at, length);
        }
        let mut node = try_zeroed(length as usize)?;
        if !self.source.read_at(&self.object, at, &mut node, Blocking::Yes)? {
            return Err(SourceError::Changed.into());
        }
        self.source.check_unchanged()?;
        Ok(node)
    }
}

/// A position in bytes of a file: [`ByteReader`] with numbers of the widths that the file has.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    reader: ByteReader<'a>,
    pub widths: Widths,
}

impl<'a> Fields<'a> {
    pub(super) fn new(part: &'static str, bytes: &'a [u8], widths: Widths) -> Self {
        Self { reader: ByteReader::new(part, bytes), widths }
    }

    pub(super) fn position(&self) -> usize {
        self.reader.position()
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.reader.rest()
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], PastEnd> {
        self.reader.take(count)
    }

    pub(super) fn u8(&mut self) -> Result<u8, PastEnd> {
        self.reader.u8()
    }

    pub(super) fn u16(&mut self) -> Result<u16, PastEnd> {
        self.reader.bytes().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, PastEnd> {
        self.reader.u32()
    }

    pub(super) fn u64(&mut self) -> Result<u64, PastEnd> {
        self.reader.u64()
    }

    /// Reads a number of `width` bytes, at most 8.
    pub(super) fn uint(&mut self, width: usize) -> Result<u64, PastEnd> {
        self.reader.take(width).map(uint)
    }

    pub(super) fn length(&mut self) -> Result<u64, PastEnd> {
        self.uint(self.widths.length)
    }

    /// Reads an address; `None` if it is undefined.
    pub(super) fn address(&mut self) -> Result<Option<u64>, PastEnd> {
        self.reader.take(self.widths.offset).map(address)
    }

    /// Reads an address that must be defined.
    pub(super) fn defined(&mut self, what: &str) -> Result<u64, FormatError> {
        self.address()?.ok_or_else(|| format!("{what} has no address").into())
    }

    /// Checks the signature that a part begins with.
    pub(super) fn signature(&mut self, expected: &[u8; 4], part: &str) -> Result<(), FormatError> {
        if self.take(4)? == expected { Ok(()) } else { Err(format!("damaged {part}: it has another signature").into()) }
    }

    /// Reads the version of a part, which must be one of `known`.
    pub(super) fn version(&mut self, known: &[u8], part: &str) -> Result<u8, FormatError> {
        let version = self.u8()?;
        if known.contains(&version) { Ok(version) } else { Err(format!("its {part} has version {version}").into()) }
    }

    /// Reads a text that ends with a zero, and skips to a multiple of `alignment` bytes from where it began.
    pub(super) fn text(&mut self, alignment: usize) -> Result<&'a [u8], FormatError> {
        let rest = self.rest();
        let length = rest.iter().position(|byte| *byte == 0).ok_or("a name has no end")?;
        self.take((length + 1).next_multiple_of(alignment).min(rest.len()))?;
        Ok(&rest[..length])
    }
}

/// Returns a little-endian number of at most 8 bytes.
pub(super) fn uint(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
    u64::from_le_bytes(wide)
}

/// Returns an address; `None` if all its bits are set.
pub(super) fn address(bytes: &[u8]) -> Option<u64> {
    bytes.iter().any(|byte| *byte != 0xff).then(|| uint(bytes))
}

/// Returns how many bytes a number up to `most` takes.
pub(super) fn width_of(most: u64) -> usize {
    most.max(1).ilog2() as usize / 8 + 1
}

/// Checks the checksum that stands behind the first `length` bytes.
pub(super) fn check_sum(bytes: &[u8], length: usize, part: &str) -> Result<(), FormatError> {
    let parts = bytes.split_at_checked(length).and_then(|(checked, rest)| Some((checked, rest.first_chunk::<4>()?)));
    match parts {
        // nearly all changes would end here
        Some(_) if cfg!(fuzzing) => Ok(()),
        Some((checked, sum)) if lookup3(checked) == u32::from_le_bytes(*sum) => Ok(()),
        Some(_) => Err(format!("damaged {part}: its checksum is wrong").into()),
        None => Err(PastEnd("checksum").into()),
    }
}

/// Like [`check_sum`], with nothing behind the checksum.
pub(super) fn check_sum_at_end(bytes: &[u8], part: &str) -> Result<(), FormatError> {
    check_sum(bytes, bytes.len().saturating_sub(4), part)
}

/// Returns Jenkins' hash `lookup3` of bytes, with the initial value 0.
pub(super) fn lookup3(bytes: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let (mut a, mut b, mut c) = (start, start, start);
    let word = |bytes: &[u8], at: usize| uint(bytes.get(at..).map_or(&[], |rest| &rest[..rest.len().min(4)])) as u32;
    let mut rest = bytes;
    while rest.len() > 12 {
        a = a.wrapping_add(word(rest, 0));
        b = b.wrapping_add(word(rest, 4));
        c = c.wrapping_add(word(rest, 8));
        for (n, turn) in [4, 6, 8, 16, 19, 4].into_iter().enumerate() {
            let (x, y, z) = match n % 3 {
                0 => (&mut a, &mut c, &mut b),
                1 => (&mut b, &mut a, &mut c),
                _ => (&mut c, &mut b, &mut a),
            };
            *x = x.wrapping_sub(*y) ^ y.rotate_left(turn);
            *y = y.wrapping_add(*z);
        }
        rest = &rest[12..];
    }
    if rest.is_empty() {
        return c;
    }
    a = a.wrapping_add(word(rest, 0));
    b = b.wrapping_add(word(rest, 4));
    c = c.wrapping_add(word(rest, 8));
    for (n, turn) in [14, 11, 25, 16, 4, 14, 24].into_iter().enumerate() {
        let (x, y) = match n % 3 {
            0 => (&mut c, &b),
            1 => (&mut a, &c),
            _ => (&mut b, &a),
        };
        *x = (*x ^ *y).wrapping_sub(y.rotate_left(turn));
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::hdf5::Hdf5;
    use crate::source::WHOLE;
    use crate::test_support::memory_folder::{MemoryFolder, open_file};
    use crate::test_support::{naive, test_data};

    impl File {
        /// A file with some bytes behind those of a fixture, and their address. Its numbers have these widths.
        pub(in crate::format::hdf5) fn with_part(part: &[u8], widths: Widths) -> (Self, u64) {
            let mut bytes = std::fs::read(test_data("hdf5").join("types.h5")).unwrap();
            let at = bytes.len() as u64;
            bytes.extend_from_slice(part);
            let source = Arc::new(MemoryFolder::of_one_file(bytes));
            let (mut file, _) = Self::open((source, WHOLE.into()), &IndexCache::new(1 << 20)).unwrap();
            file.widths = widths;
            (file, at)
        }
    }

    #[test]
    fn the_hash_is_that_of_its_author() {
        // of the self-test of lookup3.c
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }

    /// Returns all that is said of a file whose first part with this signature has other bytes, and the right checksum.
    fn said_of(name: &str, signature: &[u8; 4], length: usize, at: usize, value: u64, width: usize) -> String {
        said_of_part(name, (signature, 0), length, (at, value, width)).unwrap()
    }

    /// The same of the part with this number; `None` if there are fewer.
    fn said_of_part(
        name: &str,
        (signature, number): (&[u8; 4], usize),
        length: usize,
        (at, value, width): (usize, u64, usize),
    ) -> Option<String> {
        let mut bytes = std::fs::read(test_data("hdf5").join(name)).unwrap();
        let (begin, _) = bytes.windows(4).enumerate().filter(|(_, window)| *window == signature).nth(number)?;
        let part = &mut bytes[begin..begin + length];
        assert!(check_sum_at_end(part, "part").is_ok());
        part[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        if at < length - 4 {
            let sum = lookup3(&part[..length - 4]);
            part[length - 4..].copy_from_slice(&sum.to_le_bytes());
        }
        let dataset = match open_file(&Hdf5, bytes) {
            Ok(dataset) => dataset,
            Err(error) => return Some(error.to_string()),
        };
        let mut said = dataset.info().warnings.clone();
        said.extend(dataset.hidden().iter().map(|layer| layer.reason.clone()));
        let arrays = dataset.layers().iter().map(|layer| &*layer.levels[0]);
        said.extend(arrays.filter_map(|array| naive::read_all(array).err()).map(|error| error.to_string()));
        Some(said.join("\n"))
    }

    #[test]
    fn sizes_that_make_no_sense_are_refused_each_by_itself() {
        let array = "damaged extensible array: the sizes of its blocks make no sense";
        let fixed = "damaged fixed array: its elements are none of chunks";
        let heap = "damaged fractal heap: the sizes of its blocks make no sense";
        // bytes of a header, the place of a number in it, a wrong value, its width
        for (at, value) in [(5, 2), (6, 255), (7, 65), (9, 3), (10, 1), (10, 3), (11, 33)] {
            let said = said_of("layouts-latest.h5", b"EAHD", 72, at, value, 1);
            assert!(said.contains(array), "{at}, {value}: {said}");
        }
        for (at, value) in [(5, 2), (6, 255), (7, 33)] {
            let said = said_of("layouts-latest.h5", b"FAHD", 28, at, value, 1);
            assert!(said.contains(fixed), "{at}, {value}: {said}");
        }
        for (at, value, width) in [
            (110, 3, 2),
            (112, 3, 8),
            (112, 1 << 40, 8),
            (120, 3 << 16, 8),
            (120, 1 << 41, 8),
            (128, 0, 2),
            (128, 65, 2),
        ] {
            let said = said_of("links-latest.h5", b"FRHP", 146, at, value, width);
            assert!(said.contains(heap), "{at}, {value}: {said}");
        }
        assert!(said_of("links-latest.h5", b"FRHP", 146, 7, 1, 2).contains("a heap of its metadata has filters"));
        // of attributes, and of a group
        for number in 0..2 {
            let said = said_of_part("links-latest.h5", (b"FRHP", number), 146, (142, 0, 4)).unwrap();
            assert!(said.contains("damaged fractal heap: its checksum is wrong"), "{number}: {said}");
        }
    }

    #[test]
    fn numbers_have_any_width() {
        let widths = Widths { offset: 4, length: 2 };
        let mut fields = Fields::new("test", &[1, 0, 0, 0, 255, 255, 255, 255, 2, 1, 9, 8, 7, 97, 98, 0, 1], widths);
        assert_eq!((fields.address(), fields.address(), fields.length()), (Ok(Some(1)), Ok(None), Ok(258)));
        assert_eq!((fields.uint(3), fields.text(4).ok(), fields.rest()), (Ok(0x0007_0809), Some(&b"ab"[..]), &[][..]));
        assert!(fields.u8().is_err() && fields.text(1).is_err());
    }
}

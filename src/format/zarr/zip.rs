//! A zip file as the folder of a hierarchy: its entries are objects. Stored entries are ranges of the file; those that
//! are compressed are decoded as a whole.
//!
//! The public description is PKWARE's `APPNOTE.TXT`.

use std::collections::BTreeMap;
use std::io;
use std::ops::{Bound, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Map;

use crate::codec::{codec, deflate};
use crate::format::FormatError;
use crate::format::bytes::{ByteReader, read_bytes};
use crate::memory::{LruByWeight, try_zeroed};
use crate::source::{Blocking, EntryKind, Folder, NoFolder, Source, SourceError, WHOLE, hash_of, new_number};
use crate::sync::{LazyPerProcess, Mutex};

/// What a zip file begins with, unless it is empty.
pub(super) const MAGIC: [u8; 4] = *b"PK\x03\x04";
const END: [u8; 4] = *b"PK\x05\x06";
const END_64: [u8; 4] = *b"PK\x06\x06";
const LOCATOR_64: [u8; 4] = *b"PK\x06\x07";
const ENTRY: [u8; 4] = *b"PK\x01\x02";
const END_BYTES: u64 = 22;
const LOCATOR_BYTES: u64 = 20;
/// Bytes of the header before an entry's data, without its name and extra fields.
const LOCAL_BYTES: u64 = 30;
/// Bytes of the largest directory that is read: some hundred thousand entries.
const MAX_DIRECTORY: u64 = 8 << 20;
/// Bytes of the largest compressed entry that is read, decoded.
const MAX_DECODED: u64 = 64 << 20;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// Bytes of decoded entries that are kept, of all zip files: parts of an entry are read one after another.
const KEPT: usize = 64 << 20;
/// No byte of deflate data adds more bytes than this.
const MAX_RATIO: u64 = 1032;

/// The decoded entries that were read last, by the number of their file and their name.
static DECODED: LazyPerProcess<Mutex<LruByWeight<EntryKey, Arc<Vec<u8>>>>> =
    LazyPerProcess::new(|| Mutex::new(LruByWeight::new(KEPT)));
type EntryKey = (u64, Box<str>);

struct Entry {
    method: u16,
    is_encrypted: bool,
    crc: u32,
    stored: u64,
    size: u64,
    /// Where the header before the data begins.
    header: u64,
    /// Where the data begin; 0 if that is not known.
    data: AtomicU64,
}

/// The entries of a zip file by their names.
pub(super) struct ZipFolder {
    number: u64,
    file: Arc<dyn Source>,
    /// The bytes of the file.
    size: u64,
    entries: BTreeMap<Box<str>, Entry>,
}

impl ZipFolder {
    pub(super) fn open(file: Arc<dyn Source>) -> Result<Self, FormatError> {
        let size = file.len(WHOLE)?.ok_or(SourceError::Changed)?;
        let (count, directory) = find_directory(&*file, size)?;
        let bytes = read_bytes(&*file, WHOLE, directory.start, directory.end - directory.start)?;
        let bytes = bytes.ok_or(SourceError::Changed)?;
        let mut fields = ByteReader::new("directory of the zip file", &bytes);
        let mut entries = BTreeMap::new();
        for _ in 0..count {
            if let Some((name, entry)) = Entry::parse(&mut fields)? {
                entries.insert(name.into(), entry);
            }
        }
        Ok(Self { number: new_number(), file, size, entries })
    }

    fn refuse(name: &str, why: String) -> SourceError {
        let doing = format!("cannot read {name} in the zip file");
        SourceError::Io { doing, message: why, kind: io::ErrorKind::Unsupported }
    }

    /// Returns where the data of an entry begin: behind a header whose length only the header tells.
    fn data(&self, name: &str, entry: &Entry, blocking: Blocking) -> Result<u64, SourceError> {
        let known = entry.data.load(Ordering::Relaxed);
        if known > 0 {
            return Ok(known);
        }
        let mut header = [0; LOCAL_BYTES as usize];
        self.file.read_at(WHOLE, entry.header, &mut header, blocking)?;
        if !header.starts_with(&MAGIC) {
            return Err(Self::refuse(name, "the directory leads to something else".into()));
        }
        let number = |at: usize| u64::from(u16::from_le_bytes([header[at], header[at + 1]]));
        let data = entry.header + LOCAL_BYTES + number(26) + number(28);
        entry.data.store(data, Ordering::Relaxed);
        Ok(data)
    }

    /// Returns a decoded entry, which is decoded now unless it was read lately.
    fn decoded(&self, name: &str, entry: &Entry) -> Result<Arc<Vec<u8>>, SourceError> {
        let key = (self.number, name.into());
        let known = DECODED.lock().get(&key);
        if let Some(known) = known {
            return Ok(known);
        }
        let decoded = Arc::new(self.decode(name, entry)?);
        let evicted = DECODED.lock().insert(key, Arc::clone(&decoded), decoded.len());
        drop(evicted);
        Ok(decoded)
    }

    fn decode(&self, name: &str, entry: &Entry) -> Result<Vec<u8>, SourceError> {
        if entry.method != DEFLATED {
            return Err(Self::refuse(name, format!("it is compressed by method {}", entry.method)));
        }
        if entry.size > MAX_DECODED || entry.size > entry.stored.saturating_mul(MAX_RATIO) {
            return Err(Self::refuse(name, format!("it is compressed, and has {} bytes", entry.size)));
        }
        let codec = codec("deflate", &Map::new()).map_err(|why| Self::refuse(name, why))?;
        if entry.stored > codec.longest(entry.size) {
            return Err(Self::refuse(name, format!("it is longer than what it has: {} bytes", entry.stored)));
        }
        let data = self.data(name, entry, Blocking::Yes)?;
        if data.checked_add(entry.stored).is_none_or(|end| end > self.size) {
            return Err(Self::refuse(name, "the file ends within it".into()));
        }
        let (mut stored, mut out) = (try_zeroed(entry.stored as usize)?, try_zeroed(entry.size as usize)?);
        self.file.read_at(WHOLE, data, &mut stored, Blocking::Yes)?;
        codec.decode(&stored, &mut out).map_err(|why| Self::refuse(name, why))?;
        if deflate::crc32(&[&out]) != entry.crc {
            return Err(Self::refuse(name, "its checksum is wrong".into()));
        }
        Ok(out)
    }
}

/// Finds the number of entries, and where the directory of a zip file lies.
fn find_directory(file: &dyn Source, size: u64) -> Result<(u64, Range<u64>), FormatError> {
    let none = || FormatError::NotThisFormat("it is no zip file: it has no directory".into());
    // a comment of 16 bits may follow
    let tail = size.min(END_BYTES + LOCATOR_BYTES + u64::from(u16::MAX));
    let begin = size - tail;
    let bytes = read_bytes(file, WHOLE, begin, tail)?.ok_or(SourceError::Changed)?;
    let at = bytes.windows(END.len()).rposition(|window| window == END).ok_or_else(none)?;
    let mut end = ByteReader::new("end of the zip file", &bytes[at + 4..]);
    end.take(6)?;
    let count = u16::from_le_bytes(end.bytes()?);
    let (mut count, mut length, mut offset) = (u64::from(count), u64::from(end.u32()?), u64::from(end.u32()?));
    let locator = at.checked_sub(LOCATOR_BYTES as usize).map(|at| &bytes[at..]);
    if let Some(locator) = locator.filter(|locator| locator.starts_with(&LOCATOR_64)) {
        let mut locator = ByteReader::new("end of the zip file", &locator[8..]);
        let at = locator.u64()?;
        let within = at.checked_add(56).is_some_and(|end| end <= size);
        let end = if within { read_bytes(file, WHOLE, at, 56)? } else { None };
        let end = end.filter(|end| end.starts_with(&END_64)).ok_or_else(none)?;
        let mut end = ByteReader::new("end of the zip file", &end[32..]);
        (count, length, offset) = (end.u64()?, end.u64()?, end.u64()?);
    }
    let directory = offset.checked_add(length).filter(|end| *end <= size).map(|end| offset..end).ok_or_else(none)?;
    if length > MAX_DIRECTORY {
        return Err(FormatError::Unsupported(format!("the directory of the zip file has {length} bytes")));
    }
    Ok((count, directory))
}

impl Entry {
    /// Parses an entry of the directory; `None` for a folder, or a name that is none of an object.
    fn parse(fields: &mut ByteReader<'_>) -> Result<Option<(String, Self)>, FormatError> {
        let number = |fields: &mut ByteReader<'_>| fields.bytes().map(u16::from_le_bytes);
        if fields.bytes::<4>()? != ENTRY {
            return Err(FormatError::Damaged("the directory of the zip file is damaged".into()));
        }
        fields.take(4)?;
        let (flags, method) = (number(fields)?, number(fields)?);
        fields.take(4)?;
        let (crc, mut stored, mut size) = (fields.u32()?, u64::from(fields.u32()?), u64::from(fields.u32()?));
        let [name, extra, comment] = fields.several::<u16, 3>(number)?.map(usize::from);
        fields.take(8)?;
        let mut header = u64::from(fields.u32()?);
        let (name, extra) = (fields.take(name)?, fields.take(extra)?);
        fields.take(comment)?;
        // numbers that do not fit 32 bits
        let mut rest = ByteReader::new("directory of the zip file", extra);
        while rest.rest().len() >= 4 {
            let (kind, length) = (number(&mut rest)?, number(&mut rest)?);
            let mut field = ByteReader::new("directory of the zip file", rest.take(length.into())?);
            if kind == 1 {
                for value in
                    [&mut size, &mut stored, &mut header].into_iter().filter(|value| **value == u64::from(u32::MAX))
                {
                    *value = field.u64()?;
                }
            }
        }
        let name = std::str::from_utf8(name).ok().map(|name| name.trim_start_matches('/'));
        let is_object = |name: &&str| name.split('/').all(|part| !matches!(part, "" | "." | ".."));
        let data = AtomicU64::new(0);
        let entry = Self { method, is_encrypted: flags & 1 != 0, crc, stored, size, header, data };
        Ok(name.filter(is_object).map(|name| (name.to_owned(), entry)))
    }
}

impl Source for ZipFolder {
    fn len(&self, object: &str) -> Result<Option<u64>, SourceError> {
        Ok(self.entries.get(object).map(|entry| entry.size))
    }

    fn read_at(&self, object: &str, offset: u64, out: &mut [u8], blocking: Blocking) -> Result<bool, SourceError> {
        let Some(entry) = self.entries.get(object) else { return Ok(false) };
        let (length, size) = (out.len() as u64, entry.size);
        if offset.checked_add(length).is_none_or(|end| end > size) {
            return Err(SourceError::TooShort { offset, length, size });
        }
        if entry.is_encrypted {
            return Err(Self::refuse(object, "it is encrypted".into()));
        }
        if entry.method == STORED {
            let data = self.data(object, entry, blocking)?;
            return self.file.read_at(WHOLE, data.saturating_add(offset), out, blocking);
        }
        if blocking == Blocking::No {
            return Err(SourceError::WouldBlock);
        }
        out.copy_from_slice(&self.decoded(object, entry)?[offset as usize..][..out.len()]);
        Ok(true)
    }

    fn fetches_ahead(&self) -> bool {
        self.file.fetches_ahead()
    }

    fn will_need(&self, ranges: &[(&str, Range<u64>)], awaited: bool) -> bool {
        let in_file = |(object, range): &(&str, Range<u64>)| {
            let entry = self.entries.get(*object)?;
            let first = entry.stored.saturating_sub(range.end.saturating_sub(range.start)).min(range.start);
            let (begin, end) = match entry.data.load(Ordering::Relaxed) {
                // where the last bytes are is known when the header was read
                0 if range.start > entry.stored => return None,
                // the header is read first
                0 => (entry.header, entry.header.saturating_add(LOCAL_BYTES + object.len() as u64)),
                data => (data.saturating_add(first), data),
            };
            Some((WHOLE, begin..end.saturating_add(range.end.min(entry.stored))))
        };
        let ranges: Vec<_> = ranges.iter().filter_map(in_file).collect();
        ranges.is_empty() || self.file.will_need(&ranges, awaited)
    }

    fn check_unchanged(&self) -> Result<(), SourceError> {
        self.file.check_unchanged()
    }

    fn check_unchanged_or(&self, blocking: Blocking) -> Result<(), SourceError> {
        self.file.check_unchanged_or(blocking)
    }
}

impl Folder for ZipFolder {
    fn folder(&self, _path: &str) -> Result<Arc<dyn Folder>, NoFolder> {
        Err(NoFolder::NotAFolder)
    }

    fn list(&self, below: &str, visit: &mut dyn FnMut(&str, EntryKind) -> bool) -> Result<bool, SourceError> {
        let prefix = if below.is_empty() { String::new() } else { format!("{below}/") };
        let mut from = Bound::Included(prefix.clone().into_boxed_str());
        while let Some((path, _)) = self.entries.range((from.clone(), Bound::Unbounded)).next() {
            let Some(rest) = path.strip_prefix(&prefix) else { break };
            let (name, kind) = match rest.split_once('/') {
                Some((name, _)) => (name, EntryKind::Folder),
                None => (rest, EntryKind::File),
            };
            if !visit(name, kind) {
                break;
            }
            // what is in a folder stands together: the next name is behind the character that follows the slash
            from = match kind {
                EntryKind::Folder => Bound::Included(format!("{prefix}{name}0").into()),
                _ => Bound::Excluded(path.clone()),
            };
        }
        Ok(true)
    }

    fn identity(&self) -> (u64, u64) {
        (0, hash_of(Arc::as_ptr(&self.file).addr()))
    }

    fn is_changed(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::memory_folder::MemoryFolder;

    /// Makes a zip file of stored entries.
    fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let (mut file, mut directory) = (Vec::new(), Vec::new());
        for (name, data) in entries {
            let (length, size) = ((name.len() as u16).to_le_bytes(), (data.len() as u32).to_le_bytes());
            let facts = [&[0; 14][..], &size, &size, &length, &[0; 2]].concat();
            let header = (file.len() as u32).to_le_bytes();
            directory.extend([&ENTRY[..], &[0; 2], &facts, &[0; 10], &header, name.as_bytes()].concat());
            file.extend([&MAGIC[..], &facts, name.as_bytes(), data].concat());
        }
        let count = (entries.len() as u16).to_le_bytes();
        let place = [directory.len(), file.len()].map(|n| (n as u32).to_le_bytes()).concat();
        let end = [&END[..], &[0; 4], &count, &count, &place, &[0; 2]];
        [file, directory, end.concat()].concat()
    }

    fn names(folder: &ZipFolder, below: &str) -> Vec<String> {
        let mut names = Vec::new();
        let listed = folder.list(below, &mut |name, kind| {
            names.push(format!("{name}{}", if kind == EntryKind::Folder { "/" } else { "" }));
            true
        });
        assert_eq!(listed, Ok(true));
        names
    }

    #[test]
    fn entries_are_objects_of_folders() {
        let file = zip(&[
            ("a/c/0", b"chunk"),
            ("a/c/1", b""),
            ("a/zarr.json", b"{}"),
            ("a0", b"x"),
            ("b/", b""),
            ("../c", b""),
        ]);
        let folder = ZipFolder::open(Arc::new(MemoryFolder::of_one_file(file))).ok().unwrap();
        assert_eq!(
            (names(&folder, ""), names(&folder, "a"), names(&folder, "a/c")),
            (
                vec!["a/".to_owned(), "a0".into()],
                vec!["c/".to_owned(), "zarr.json".into()],
                vec!["0".to_owned(), "1".into()],
            )
        );
        let mut out = [0; 3];
        assert_eq!(folder.read_at("a/c/0", 1, &mut out, Blocking::Yes), Ok(true));
        assert_eq!((&out, folder.len("a/c/1"), folder.len("a/c")), (b"hun", Ok(Some(0)), Ok(None)));
        assert!(folder.read_at("a/c/0", 3, &mut out, Blocking::Yes).is_err());
    }

    #[test]
    fn numbers_of_more_than_32_bits_stand_behind_the_name() {
        let mut file = zip(&[("a/0", b"chunk")]);
        let [entry, end] = [ENTRY, END].map(|signature| file.windows(4).position(|w| *w == signature[..]).unwrap());
        file[entry + 20..][..8].fill(0xff);
        file[entry + 30] = 20;
        file[end + 12] += 20;
        let further = [&[1, 0, 16, 0][..], &5u64.to_le_bytes(), &5u64.to_le_bytes()].concat();
        file.splice(entry + 46 + 3..entry + 46 + 3, further);
        let folder = ZipFolder::open(Arc::new(MemoryFolder::of_one_file(file))).ok().unwrap();
        let mut out = [0; 5];
        assert_eq!(folder.read_at("a/0", 0, &mut out, Blocking::Yes), Ok(true));
        assert_eq!((&out, folder.len("a/0")), (b"chunk", Ok(Some(5))));
    }

    /// Changes the only entry of a zip file: 16-bit or 32-bit numbers at places behind a signature.
    fn with(mut file: Vec<u8>, changes: &[(&[u8], usize, u32, usize)]) -> ZipFolder {
        for (signature, at, value, width) in changes {
            let begin = file.windows(4).position(|window| window == *signature).unwrap();
            file[begin + at..][..*width].copy_from_slice(&value.to_le_bytes()[..*width]);
        }
        ZipFolder::open(Arc::new(MemoryFolder::of_one_file(file))).ok().unwrap()
    }

    #[test]
    fn compressed_entries_are_decoded_and_checked() {
        let text = b"{\"zarr_format\": 3, \"zarr_format \": 3}".repeat(9);
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut encoder, &text).unwrap();
        let stored = encoder.finish().unwrap();
        let (length, crc) = (text.len() as u32, deflate::crc32(&[&text]));
        let read = |changes: &[(&[u8], usize, u32, usize)]| {
            let all = [&[(&ENTRY[..], 10, DEFLATED.into(), 2), (&ENTRY, 16, crc, 4), (&ENTRY, 24, length, 4)], changes]
                .concat();
            let folder = with(zip(&[("zarr.json", &stored)]), &all);
            let mut out = vec![0; text.len() - 1];
            folder.read_at("zarr.json", 1, &mut out, Blocking::Yes).map(|_| out).map_err(|error| error.to_string())
        };
        assert_eq!(read(&[]).as_deref(), Ok(&text[1..]));
        let folder = |crc| {
            let changes = [(&ENTRY[..], 10, DEFLATED.into(), 2), (&ENTRY, 16, crc, 4), (&ENTRY, 24, length, 4)];
            with(zip(&[("zarr.json", &stored)]), &changes)
        };
        let (folder, other) = (folder(crc), folder(crc ^ 1));
        let part = |folder: &ZipFolder, at| {
            let mut out = [0; 7];
            folder.read_at("zarr.json", at, &mut out, Blocking::Yes).map(|_| out)
        };
        assert_eq!(part(&folder, 0).unwrap(), text[..7]);
        assert!(DECODED.lock().contains(&(folder.number, "zarr.json".into())), "it is decoded once");
        assert_eq!(part(&folder, 300).unwrap(), text[300..307]);
        assert!(part(&other, 0).is_err(), "each file has its own entries");
        for (change, reason) in [
            ((&ENTRY[..], 10, 12, 2), "it is compressed by method 12"),
            ((&ENTRY, 16, crc ^ 1, 4), "its checksum is wrong"),
            ((&ENTRY, 24, length + 1, 4), "deflate"),
            ((&ENTRY, 24, u32::MAX, 4), "it is compressed, and has 4294967295 bytes"),
            // before memory is allocated for them
            ((&ENTRY, 20, u32::MAX, 4), "it is longer than what it has"),
        ] {
            let error = read(&[change]).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn damaged_files_are_refused() {
        let file = zip(&[("a", b"chunk"), ("b", b"more")]);
        // the last two bytes are the length of a comment
        for length in 0..file.len() - 2 {
            assert!(ZipFolder::open(Arc::new(MemoryFolder::of_one_file(file[..length].to_vec()))).is_err());
        }
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0xff;
            if let Ok(folder) = ZipFolder::open(Arc::new(MemoryFolder::of_one_file(damaged))) {
                for name in folder.entries.keys() {
                    let _ = folder.read_at(name, 0, &mut [0; 4], Blocking::Yes);
                }
            }
        }
    }
}

//! Object headers: the messages that say what a group or a dataset is.

use std::borrow::Cow;
use std::ops::Range;

use super::file::{Fields, File, MAX_PART, check_sum_at_end, uint};
use super::heap::FractalHeap;
use crate::format::FormatError;

/// The kinds of messages.
pub(super) mod kind {
    pub(in super::super) const DATASPACE: u16 = 0x01;
    pub(in super::super) const LINK_INFO: u16 = 0x02;
    pub(in super::super) const DATATYPE: u16 = 0x03;
    pub(in super::super) const OLD_FILL: u16 = 0x04;
    pub(in super::super) const FILL: u16 = 0x05;
    pub(in super::super) const LINK: u16 = 0x06;
    pub(in super::super) const EXTERNAL_FILES: u16 = 0x07;
    pub(in super::super) const LAYOUT: u16 = 0x08;
    pub(in super::super) const GROUP_INFO: u16 = 0x0a;
    /// Reserved: no message.
    pub(in super::super) const NONE: u16 = 0x09;
    pub(in super::super) const FILTERS: u16 = 0x0b;
    pub(in super::super) const ATTRIBUTE: u16 = 0x0c;
    pub(in super::super) const SHARED_TABLE: u16 = 0x0f;
    pub(in super::super) const CONTINUATION: u16 = 0x10;
    pub(in super::super) const SYMBOL_TABLE: u16 = 0x11;
    pub(in super::super) const ATTRIBUTE_INFO: u16 = 0x15;
    pub(in super::super) const FILE_SPACE: u16 = 0x17;
    pub(in super::super) const CACHE_IMAGE: u16 = 0x18;
    /// The last one that is known.
    pub(in super::super) const LAST: u16 = CACHE_IMAGE;
}

/// The message is stored elsewhere.
const SHARED: u8 = 2;
/// Programs that do not know the kind of the message may not open the object.
const MUST_BE_KNOWN: u8 = 0x80;
/// Shared messages may be in headers that share theirs, but not deeper than this.
const MAX_SHARING: u32 = 4;

const PART: &str = "object header";

pub(super) struct Message {
    pub kind: u16,
    flags: u8,
    /// The bytes among those of the header.
    bytes: Range<usize>,
    /// The address of the first byte.
    pub address: u64,
}

/// The messages of an object.
pub(super) struct Header {
    pub messages: Vec<Message>,
    bytes: Vec<u8>,
}

/// Where messages are that several objects share: the fractal heaps by the kinds of messages.
#[derive(Default)]
pub(super) struct SharedMessages {
    heaps: Vec<(u16, u64)>,
}

impl Header {
    pub(super) fn read(file: &File, address: u64) -> Result<Self, FormatError> {
        let mut reading =
            Reading { file, header: Self { messages: Vec::new(), bytes: Vec::new() }, tracks_order: false };
        let first = file.read_most(address, 4, PART)?;
        let mut parts = if first == *b"OHDR" { reading.new_style(address)? } else { reading.old_style(address)? };
        let is_new = first == *b"OHDR";
        while let Some((address, length)) = parts.pop() {
            let total = reading.header.bytes.len() as u64;
            // parts that name each other would be read again and again
            if length < 8 || total.saturating_add(length) > MAX_PART.min(file.end) {
                return Err(format!("damaged {PART}: a continuation of {length} bytes after {total}").into());
            }
            // many headers may go on in the same place
            file.count_named(length as usize)?;
            let bytes = file.read(address, length, PART)?;
            if is_new {
                let mut fields = file.fields(PART, &bytes);
                fields.signature(b"OCHK", PART)?;
                check_sum_at_end(&bytes, PART)?;
                reading.messages((address + 4, &bytes[4..bytes.len() - 4]), true, &mut parts)?;
            } else {
                reading.messages((address, &bytes), false, &mut parts)?;
            }
        }
        Ok(reading.header)
    }

    /// Returns whether there is a message of this kind.
    pub(super) fn has(&self, kind: u16) -> bool {
        self.messages.iter().any(|message| message.kind == kind)
    }

    /// Returns the message of this kind.
    pub(super) fn find(&self, kind: u16) -> Option<&Message> {
        self.messages.iter().find(|message| message.kind == kind)
    }

    /// Returns the bytes of a message, from where they are stored.
    pub(super) fn content(&self, at: &Place<'_>, message: &Message) -> Result<Cow<'_, [u8]>, FormatError> {
        let bytes = self.bytes.get(message.bytes.clone()).unwrap_or_default();
        if message.flags & SHARED == 0 {
            return Ok(Cow::Borrowed(bytes));
        }
        at.shared(message.kind, bytes).map(Cow::Owned)
    }

    /// Returns the bytes of the message of this kind; `None` if there is none.
    pub(super) fn content_of(&self, at: &Place<'_>, kind: u16) -> Result<Option<Cow<'_, [u8]>>, FormatError> {
        self.find(kind).map(|message| self.content(at, message)).transpose()
    }

    /// Returns the kind of a message that this program would have to know; `None` if there is none.
    pub(super) fn unknown(&self) -> Option<u16> {
        let is_known = |kind: u16| kind <= kind::LAST && kind != kind::NONE;
        let unknown = |message: &&Message| !is_known(message.kind) && message.flags & MUST_BE_KNOWN != 0;
        self.messages.iter().find(unknown).map(|message| message.kind)
    }
}

/// A file, and what its objects share.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub file: &'a File,
    pub shared: &'a SharedMessages,
    /// How many headers led here.
    depth: u32,
}

impl<'a> Place<'a> {
    pub(super) fn new(file: &'a File, shared: &'a SharedMessages) -> Self {
        Self { file, shared, depth: 0 }
    }

    /// Returns the bytes of a message that is stored elsewhere, by what stands in its place.
    pub(super) fn shared(&self, kind: u16, bytes: &[u8]) -> Result<Vec<u8>, FormatError> {
        let mut fields = self.file.fields("shared message", bytes);
        let version = fields.version(&[1, 2, 3], "shared message")?;
        let place = fields.u8()?;
        if version == 1 {
            fields.take(6)?;
        }
        if version == 3 && place == 1 {
            return self.in_heap(kind, fields.take(8)?);
        }
        let address = fields.defined("a shared message")?;
        if self.depth >= MAX_SHARING {
            return Err("shared messages lead in a circle".into());
        }
        self.file.count_named(0)?;
        let header = Header::read(self.file, address)?;
        self.file.count_named(header.bytes.len())?;
        let deeper = Self { depth: self.depth + 1, ..*self };
        let found = header.content_of(&deeper, kind)?;
        found.map(Cow::into_owned).ok_or_else(|| "a shared message is not where it should be".into())
    }

    /// Returns the message with an identifier in the heap of those of its kind that objects share.
    pub(super) fn in_heap(&self, kind: u16, id: &[u8]) -> Result<Vec<u8>, FormatError> {
        let heap = self.shared.heaps.iter().find(|(known, _)| *known == kind);
        let (_, heap) = heap.ok_or("a shared message is in no heap of the file")?;
        let object = FractalHeap::open(self.file, *heap)?.object(self.file, id)?;
        self.file.count_named(object.len()).map(|()| object)
    }
}

impl SharedMessages {
    /// Reads the table that the message `content` of the superblock's extension names.
    pub(super) fn read(file: &File, content: &[u8]) -> Result<Self, FormatError> {
        const TABLE: &str = "table of shared messages";
        let mut fields = file.fields(TABLE, content);
        fields.version(&[0], TABLE)?;
        let (address, count) = (fields.defined(TABLE)?, u64::from(fields.u8()?));
        let (offset, entry) = (file.widths.offset, 14 + 2 * file.widths.offset as u64);
        let bytes = file.read(address, 4 + count * entry + 4, TABLE)?;
        let mut fields = file.fields(TABLE, &bytes);
        fields.signature(b"SMTB", TABLE)?;
        check_sum_at_end(&bytes, TABLE)?;
        let mut heaps = Vec::new();
        for _ in 0..count {
            fields.take(2)?;
            let kinds = fields.u16()?;
            fields.take(10 + offset)?;
            if let Some(heap) = fields.address()? {
                heaps.extend((0..16).filter(|kind| kinds >> kind & 1 == 1).map(|kind| (kind, heap)));
            }
        }
        Ok(Self { heaps })
    }
}

/// A header while it is read.
struct Reading<'a> {
    file: &'a File,
    header: Header,
    tracks_order: bool,
}

/// Addresses and lengths of the continuations of a header.
type Parts = Vec<(u64, u64)>;

impl Reading<'_> {
    fn old_style(&mut self, address: u64) -> Result<Parts, FormatError> {
        let prefix = self.file.read(address, 16, PART)?;
        let mut fields = self.file.fields(PART, &prefix);
        if fields.u8()? != 1 {
            return Err(format!("there is no {PART} at address {address}").into());
        }
        fields.take(7)?;
        let length = u64::from(fields.u32()?);
        let bytes = self.file.read(address + 16, length, PART)?;
        let mut parts = Parts::new();
        self.messages((address + 16, &bytes), false, &mut parts)?;
        Ok(parts)
    }

    fn new_style(&mut self, address: u64) -> Result<Parts, FormatError> {
        let mut begin = (0, 0);
        let prefix = |fields: &mut Fields<'_>| -> Result<(usize, u64, bool), FormatError> {
            fields.take(4)?;
            fields.version(&[2], PART)?;
            let flags = fields.u8()?;
            // times, and the numbers of attributes at which their storage changes
            fields.take(if flags & 0x20 != 0 { 16 } else { 0 })?;
            fields.take(if flags & 0x10 != 0 { 4 } else { 0 })?;
            let length = fields.uint(1 << (flags & 3))?;
            Ok((fields.position(), length, flags & 4 != 0))
        };
        let bytes = self.file.read_sized(address, PART, |fields| {
            let (begin, length, _) = prefix(fields)?;
            Ok(length.saturating_add(begin as u64 + 4))
        })?;
        (begin.0, begin.1, self.tracks_order) = prefix(&mut self.file.fields(PART, &bytes))?;
        check_sum_at_end(&bytes, PART)?;
        let mut parts = Parts::new();
        self.messages((address + begin.0 as u64, &bytes[begin.0..bytes.len() - 4]), true, &mut parts)?;
        Ok(parts)
    }

    /// Adds the messages of one part of the header.
    fn messages(&mut self, (address, bytes): (u64, &[u8]), is_new: bool, parts: &mut Parts) -> Result<(), FormatError> {
        let begin = self.header.bytes.len();
        self.header.bytes.extend_from_slice(bytes);
        let mut fields = self.file.fields(PART, bytes);
        let least = if !is_new {
            8
        } else if self.tracks_order {
            6
        } else {
            4
        };
        // a part may end with a gap that is too short for a message
        while fields.rest().len() >= least {
            let kind = if is_new { fields.u8()?.into() } else { fields.u16()? };
            let (length, flags) = (usize::from(fields.u16()?), fields.u8()?);
            fields.take(if !is_new {
                3
            } else if self.tracks_order {
                2
            } else {
                0
            })?;
            let at = fields.position();
            let content = fields.take(length)?;
            if kind == kind::CONTINUATION {
                let mut fields = self.file.fields(PART, content);
                parts.push((fields.defined("a continuation")?, fields.length()?));
            }
            let message = Message { kind, flags, bytes: begin + at..begin + at + length, address: address + at as u64 };
            self.header.messages.push(message);
        }
        Ok(())
    }
}

/// What a dataspace says of an array.
pub(super) struct Dataspace {
    /// Empty for one element without axes; `None` without any element.
    pub shape: Option<Vec<u64>>,
    /// The greatest extents; unlimited ones are [`u64::MAX`].
    pub most: Vec<u64>,
}

impl Dataspace {
    pub(super) fn parse(mut fields: Fields<'_>) -> Result<Self, FormatError> {
        let version = fields.version(&[1, 2], "dataspace")?;
        let (rank, flags) = (usize::from(fields.u8()?), fields.u8()?);
        let is_null = if version == 1 {
            fields.take(5)?;
            false
        } else {
            fields.u8()? == 2
        };
        if rank > 32 {
            return Err(format!("its dataspace has {rank} axes").into());
        }
        let width = fields.widths.length;
        let extents = |fields: &mut Fields<'_>| -> Result<Vec<u64>, FormatError> {
            let bytes = fields.take(rank * width)?;
            let extent = |bytes: &[u8]| if bytes.iter().all(|byte| *byte == 0xff) { u64::MAX } else { uint(bytes) };
            Ok(bytes.chunks_exact(width).map(extent).collect())
        };
        let shape = extents(&mut fields)?;
        let most = if flags & 1 == 1 { extents(&mut fields)? } else { shape.clone() };
        Ok(Self { shape: (!is_null).then_some(shape), most })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::format::hdf5::attributes::Attributes;
    use crate::format::hdf5::file::lookup3;
    use crate::format::hdf5::groups::{Target, links};
    use crate::source::{IndexCache, WHOLE};
    use crate::test_support::memory_folder::MemoryFolder;
    use crate::test_support::test_data;

    /// Returns the bytes of a fixture of links.
    fn bytes_of(name: &str) -> Vec<u8> {
        std::fs::read(test_data("hdf5").join(name)).unwrap()
    }

    /// Opens such a file; also returns the address of the header of its dataset with many attributes.
    fn opened(bytes: Vec<u8>) -> (File, u64) {
        let source = Arc::new(MemoryFolder::of_one_file(bytes));
        let (file, superblock) = File::open((source, WHOLE.into()), &IndexCache::new(1 << 20)).unwrap();
        let none = SharedMessages::default();
        let root = Header::read(&file, superblock.root).unwrap();
        let all = links(&Place::new(&file, &none), &root).unwrap();
        let hard = all.iter().find(|link| link.name == "hard").unwrap();
        let Target::Object(address) = hard.to else { panic!("it is a hard link") };
        (file, address)
    }

    #[test]
    fn shared_attributes_are_in_the_heap_of_all_attributes() {
        let mut bytes = bytes_of("links-latest.h5");
        let mut shared_records = 0;
        for at in 0..bytes.len() - 512 {
            // leaves of the tree of the attributes' names: each has as many records as its checksum says
            let is_leaf = bytes[at..].starts_with(b"BTLF\0\x08");
            let count = (1..=29).find(|&n| is_leaf && check_sum_at_end(&bytes[at..at + 10 + 17 * n], "leaf").is_ok());
            let Some(count) = count else { continue };
            (0..count).for_each(|n| bytes[at + 6 + 17 * n + 8] |= SHARED);
            let sum = lookup3(&bytes[at..at + 6 + 17 * count]);
            bytes[at + 6 + 17 * count..at + 10 + 17 * count].copy_from_slice(&sum.to_le_bytes());
            shared_records += count;
        }
        assert!(shared_records > 9, "{shared_records}");
        let (file, address) = opened(bytes);
        let header = Header::read(&file, address).unwrap();
        let read = |shared: &SharedMessages| Attributes::read(&Place::new(&file, shared), &header).unwrap();
        let none = read(&SharedMessages::default());
        assert_eq!(none.fault.as_deref(), Some("a shared message is in no heap of the file"));
        // the heap of the object's own attributes stands for that of all: identifiers mean the same in both
        let info = header.content_of(&Place::new(&file, &SharedMessages::default()), kind::ATTRIBUTE_INFO).unwrap();
        let info = info.unwrap();
        let begin = if info[1] & 1 != 0 { 4 } else { 2 };
        let heap = uint(&info[begin..begin + 8]);
        let found = read(&SharedMessages { heaps: vec![(kind::ATTRIBUTE, heap)] });
        assert_eq!((found.values.len(), found.fault), (30, None));
        assert_eq!(found.values["attribute 29"], "text 29");
    }

    #[test]
    fn continuations_are_read_until_they_are_too_many_bytes() {
        let (file, address) = opened(bytes_of("links-earliest.h5"));
        assert!(Header::read(&file, address).is_ok());
        assert!(file.count_named(usize::MAX / 2).is_err());
        assert!(Header::read(&file, address).is_err());
    }
}

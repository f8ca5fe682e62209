//! The links of a group, wherever they are stored: in a table of symbols, in messages, or in a heap.

use super::file::{Fields, File};
use super::header::{Header, Place, kind};
use super::heap::{BTree2, FractalHeap, LocalHeap};
use crate::format::FormatError;
use crate::format::bytes::decimal;

/// The most links of a group that are read.
const MAX_LINKS: usize = 1 << 17;
/// Levels of the tree of a table of symbols.
const MAX_LEVELS: u8 = 40;

pub(super) struct Link {
    pub name: String,
    pub to: Target,
    /// When it was made among the links of the group, where that is known.
    order: Option<u64>,
}

pub(super) enum Target {
    /// The header of an object.
    Object(u64),
    /// A path in the file.
    Path(String),
    /// Something outside of the file.
    Elsewhere,
}

/// Returns whether a header is that of a group.
pub(super) fn is_group(header: &Header) -> bool {
    [kind::SYMBOL_TABLE, kind::LINK_INFO, kind::LINK, kind::GROUP_INFO].into_iter().any(|kind| header.has(kind))
}

/// Returns the links of a group in the order in which they were made, or by their names.
pub(super) fn links(at: &Place<'_>, header: &Header) -> Result<Vec<Link>, FormatError> {
    let mut links = Vec::new();
    if let Some(content) = header.content_of(at, kind::SYMBOL_TABLE)? {
        let mut fields = at.file.fields("symbol table", &content);
        let (tree, heap) = (fields.defined("a symbol table")?, fields.defined("a symbol table")?);
        symbols(at.file, tree, &LocalHeap::read(at.file, heap)?, &mut links)?;
    }
    for message in header.messages.iter().filter(|message| message.kind == kind::LINK) {
        let content = header.content(at, message)?;
        add(at.file, link(at.file.fields("link", &content))?, &mut links)?;
    }
    if let Some(content) = header.content_of(at, kind::LINK_INFO)? {
        dense(at.file, &content, &mut links)?;
    }
    if links.iter().all(|link| link.order.is_some()) {
        links.sort_by_key(|link| link.order);
    } else {
        // numbers in their order, then texts
        links.sort_by_cached_key(|link| (decimal(&link.name).is_none(), decimal(&link.name), link.name.clone()));
    }
    Ok(links)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Adds a link. All of a file are counted: they may have one long name in a heap together.
fn add(file: &File, link: Link, links: &mut Vec<Link>) -> Result<(), FormatError> {
    if links.len() >= MAX_LINKS {
        return Err(FormatError::Unsupported(format!("a group has more than {MAX_LINKS} links")));
    }
    let target = if let Target::Path(to) = &link.to { to.len() } else { 0 };
    file.count_names(size_of::<Link>() + link.name.len() + target)?;
    links.push(link);
    Ok(())
}

/// Adds the links of a table of symbols: a B-tree of nodes of names in a heap.
fn symbols(file: &File, tree: u64, heap: &LocalHeap, links: &mut Vec<Link>) -> Result<(), FormatError> {
    const TREE: &str = "B-tree of a group";
    let (offset, length) = (file.widths.offset, file.widths.length);
    let mut left = vec![(tree, None)];
    // each node takes more bytes than this
    let mut nodes = file.end / 8;
    while let Some((at, level)) = left.pop() {
        nodes = nodes.checked_sub(1).ok_or("damaged B-tree: it has more nodes than the file has room for")?;
        if level == Some(0) {
            symbol_node(file, at, heap, links)?;
            continue;
        }
        let head = 8 + 2 * offset;
        let bytes = file.read_sized(at, TREE, |fields| {
            fields.signature(b"TREE", TREE)?;
            fields.take(2)?;
            Ok((head + usize::from(fields.u16()?) * (length + offset)) as u64)
        })?;
        let mut fields = file.fields(TREE, &bytes);
        fields.take(4)?;
        let (kind, own, entries) = (fields.u8()?, fields.u8()?, fields.u16()?);
        if kind != 0 || own > MAX_LEVELS || level.is_some_and(|level| level != own + 1) {
            return Err(format!("damaged {TREE}: the node at address {at} has another level than it should").into());
        }
        fields.take(2 * offset)?;
        let mut children = Vec::new();
        for _ in 0..entries {
            fields.length()?;
            children.push((fields.defined("a child of a B-tree")?, Some(own)));
        }
        left.extend(children.into_iter().rev());
    }
    Ok(())
}

fn symbol_node(file: &File, at: u64, heap: &LocalHeap, links: &mut Vec<Link>) -> Result<(), FormatError> {
    const NODE: &str = "node of symbols";
    // the place of a name is as wide as a length
    let entry = file.widths.length + file.widths.offset + 24;
    let bytes = file.read_sized(at, NODE, |fields| {
        fields.signature(b"SNOD", NODE)?;
        fields.take(2)?;
        Ok((8 + usize::from(fields.u16()?) * entry) as u64)
    })?;
    let mut fields = file.fields(NODE, &bytes);
    fields.take(8)?;
    while !fields.rest().is_empty() {
        let (name, header) = (fields.length()?, fields.address()?);
        let is_soft = fields.u32()? == 2;
        fields.take(4)?;
        let mut scratch = Fields::new(NODE, fields.take(16)?, file.widths);
        let to = match header {
            _ if is_soft => Target::Path(text(heap.text(scratch.u32()?.into())?)),
            Some(header) => Target::Object(header),
            None => return Err(format!("damaged {NODE}: a link leads nowhere").into()),
        };
        add(file, Link { name: text(heap.text(name)?), to, order: None }, links)?;
    }
    Ok(())
}

fn link(mut fields: Fields<'_>) -> Result<Link, FormatError> {
    fields.version(&[1], "link")?;
    let flags = fields.u8()?;
    let kind = if flags & 8 != 0 { fields.u8()? } else { 0 };
    let order = if flags & 4 != 0 { Some(fields.u64()?) } else { None };
    if flags & 0x10 != 0 {
        fields.u8()?;
    }
    let length = fields.uint(1 << (flags & 3))?;
    let name = text(fields.take(usize::try_from(length).unwrap_or(usize::MAX))?);
    let to = match kind {
        0 => Target::Object(fields.defined("a link")?),
        1 => {
            let length = usize::from(fields.u16()?);
            Target::Path(text(fields.take(length)?))
        }
        _ => Target::Elsewhere,
    };
    Ok(Link { name, to, order })
}

/// Adds the links that are in a heap, if there are any there.
fn dense(file: &File, content: &[u8], links: &mut Vec<Link>) -> Result<(), FormatError> {
    const PART: &str = "link info";
    let mut fields = file.fields(PART, content);
    fields.version(&[0], PART)?;
    let flags = fields.u8()?;
    fields.take(if flags & 1 != 0 { 8 } else { 0 })?;
    let (Some(heap), Some(tree)) = (fields.address()?, fields.address()?) else { return Ok(()) };
    let heap = FractalHeap::open(file, heap)?;
    BTree2::open(file, tree)?.visit(file, &mut |record| {
        // a hash of the name is before the identifier
        let id = record.get(4..).unwrap_or_default();
        add(file, link(file.fields("link", &heap.object(file, id)?))?, links)?;
        Ok(true)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::hdf5::file::{MAX_VALUES, Widths};

    #[test]
    fn names_have_places_as_wide_as_lengths_and_take_no_more_memory_than_a_file_may() {
        let widths = Widths { offset: 8, length: 4 };
        let mut part = b"SNOD\x01\0\x02\0".to_vec();
        for (name, header, kind, target) in [(8u32, 77u64, 0u32, 0u32), (8, 0, 2, 16)] {
            part.extend(name.to_le_bytes().into_iter().chain(header.to_le_bytes()).chain(kind.to_le_bytes()));
            part.extend([0; 4].into_iter().chain(target.to_le_bytes()).chain([0; 12]));
        }
        let heap = part.len() as u64;
        let (_, end) = File::with_part(&[], widths);
        // the bytes of the heap are behind its header
        part.extend(b"HEAP\0\0\0\0\x18\0\0\0\xff\xff\xff\xff");
        part.extend((end + heap + 24).to_le_bytes());
        part.extend(b"\0\0\0\0\0\0\0\0a name\0\0/target\0");
        let (file, at) = File::with_part(&part, widths);
        let heap = LocalHeap::read(&file, at + heap).unwrap();
        let mut links = Vec::new();
        symbol_node(&file, at, &heap, &mut links).unwrap();
        let found: Vec<(&str, Option<u64>, &str)> = links
            .iter()
            .map(|link| match &link.to {
                Target::Object(address) => (&*link.name, Some(*address), ""),
                Target::Path(to) => (&*link.name, None, &**to),
                Target::Elsewhere => (&*link.name, None, "elsewhere"),
            })
            .collect();
        assert_eq!(found, [("a name", Some(77), ""), ("a name", None, "/target")]);
        file.count_values(MAX_VALUES as usize - 4 * size_of::<Link>()).unwrap();
        let error = symbol_node(&file, at, &heap, &mut Vec::new()).unwrap_err();
        assert!(matches!(&error, FormatError::Unsupported(why) if why.contains("256 MiB of memory")), "{error}");
    }
}

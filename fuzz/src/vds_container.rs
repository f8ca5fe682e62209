//! Opens single-file VDS containers that are built from the input: its tables name files, pages and chunks that mostly
//! exist, with numbers that mostly fit.

use std::collections::BTreeMap;

use super::bricks::Kept;
use super::bytes::Bytes;
use super::vds_open;

/// Names of files, and their kinds.
const FILES: [(&[u8; 4], &str); 8] = [
    (b"VDS ", "Dimensions_012LOD0"),
    (b"VDS ", "Dimensions_012LOD1"),
    (b"VDS ", "TraceDimensions_012LOD0"),
    (b"VDS ", "Dimensions_01LOD0"),
    (b"JSON", "VolumeDataLayout"),
    (b"OBJ ", "VDSObject"),
    (b"JSON", "LayerStatus"),
    (b"VDS ", "AmplitudeDimensions_012LOD0"),
];
/// Bytes of the longest name of a file.
const NAME: usize = 32;
/// The description: two channels of 40 x 33 x 20 samples.
const LAYOUT: &str = include_str!("vds_container_layout.json");

/// Reads one input, and returns the number of bricks.
#[must_use]
pub fn run(input: &[u8]) -> u64 {
    let mut input = Bytes(input);
    let mut file = vec![0; 32];
    let mut table = Vec::new();
    let count = 1 + input.below(5);
    for number in 0..count {
        let (kind, name) = if number == 0 { FILES[4] } else { input.one(&FILES) };
        let text = if name == "VolumeDataLayout" && number == 0 { LAYOUT.as_bytes() } else { &[] };
        let entry = add_file(&mut file, &mut input, text);
        table.extend(entry.directory.to_le_bytes());
        for number in [entry.chunks, 0, entry.per_page] {
            table.extend(number.to_le_bytes());
        }
        table.extend(kind);
        for number in [entry.chunk_metadata, entry.file_metadata] {
            table.extend(number.to_le_bytes());
        }
        table.extend(name.as_bytes());
        table.resize(table.len() + NAME - name.len(), 0);
    }
    let head = [&b"HueDataStore"[..], &(1u32 << 16).to_le_bytes(), &(file.len() as i64).to_le_bytes()].concat();
    file[..24].copy_from_slice(&head);
    file[24..28].copy_from_slice(&(count as i32).to_le_bytes());
    file[28..32].copy_from_slice(&(NAME as i32).to_le_bytes());
    file.extend(table);
    // now and then one number of the file is anything
    while !input.0.is_empty() {
        let at = (usize::from(input.u8()) | usize::from(input.u8()) << 8) % file.len();
        let number = match input.u8() {
            byte @ 0..200 => u64::from(byte),
            200..220 => file.len() as u64 - u64::from(input.u8()),
            220..240 => u64::MAX - u64::from(input.u8()),
            _ => input.u64(),
        };
        let bytes = number.to_le_bytes();
        let length = [1, 2, 4, 8][input.below(4)].min(file.len() - at);
        file[at..at + length].copy_from_slice(&bytes[..length]);
    }
    vds_open::read(BTreeMap::from([(String::new(), file)]), Kept::InOneFile)
}

/// The numbers of an entry of the file table.
struct Entry {
    directory: i64,
    chunks: i32,
    per_page: i32,
    chunk_metadata: i32,
    file_metadata: i32,
}

/// Appends the chunks of a file, its index pages and its page directory. A file with a `text` has it as its only chunk.
fn add_file(file: &mut Vec<u8>, input: &mut Bytes<'_>, text: &[u8]) -> Entry {
    let chunk_metadata = if text.is_empty() { input.one(&[8, 24]) } else { 0 };
    let chunks = if text.is_empty() { input.one(&[2, 1, 4, 8, 0, 3, 5, 12]) } else { 1 };
    let per_page = 1 + input.below(4);
    let mut pages: Vec<u64> = Vec::new();
    for first in (0..chunks).step_by(per_page) {
        let mut page = Vec::new();
        for _ in first..(first + per_page).min(chunks) {
            let (at, length, metadata) = add_chunk(file, input, text);
            page.extend((at as u64).to_le_bytes());
            page.extend((length as i32).to_le_bytes());
            page.extend([0; 4]);
            page.extend(metadata);
            page.resize(page.len() + chunk_metadata - 8.min(chunk_metadata), 0);
            page.truncate(page.len() - 8 + 8.min(chunk_metadata));
        }
        let written = input.u8() != 255;
        pages.push(if written { file.len() as u64 } else { 0 });
        page.resize(per_page * (16 + chunk_metadata), 0);
        file.extend(page);
    }
    let directory = file.len() as i64;
    file.extend([0; 16]);
    let method = if text.is_empty() { i32::from(input.u8() % 8) } else { 0 };
    file.extend([method.to_le_bytes(), 0.01f32.to_le_bytes()].concat());
    pages.iter().for_each(|page| file.extend(page.to_le_bytes()));
    Entry {
        directory,
        chunks: chunks as i32,
        per_page: per_page as i32,
        chunk_metadata: chunk_metadata as i32,
        file_metadata: 8,
    }
}

/// Appends a chunk; returns its offset, its length and its hash.
fn add_chunk(file: &mut Vec<u8>, input: &mut Bytes<'_>, text: &[u8]) -> (usize, usize, [u8; 8]) {
    let at = file.len();
    if !text.is_empty() {
        file.extend(text);
        return (at, text.len(), [1; 8]);
    }
    match input.u8() {
        0 => (0, 0, [0; 8]),
        1 => (0, 0, [255; 8]),
        2 => (0, 0, [input.u8(), 0, 0x80, 0x3f, 1, 1, 1, 1]),
        choice => {
            // the header of a chunk of 32 x 32 x 20 float32, or of the rest beyond it
            let size = [[32, 32, 20], [8, 32, 20], [32, 1, 20], [8, 1, 20]][usize::from(choice) % 4];
            let header = [3, size[0], size[1], size[2], 3, 1];
            header.iter().for_each(|n: &i32| file.extend(n.to_le_bytes()));
            let body = input.u8();
            let length = if body == 255 { size.iter().product::<i32>() as usize * 4 } else { usize::from(body) };
            file.extend(input.take(length));
            if body == 255 {
                file.resize(at + 24 + length, 7);
            }
            (at, file.len() - at, [choice; 8])
        }
    }
}

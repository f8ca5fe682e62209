//! Faults of single chunks in a container.

use std::io::Write;

use crate::source::Blocking;
use crate::volume::Brick;
use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::{BITS, LAYER, PLAIN, RLE, U8, ZIP, changed, chunk_fails};
use crate::test_support::naive;
use crate::test_support::vds_dataset::{Container, find};

#[test]
fn chunks_outside_of_the_file() {
    let end = Container::read(RLE).0.len() as i64;
    for offset in [-1, i64::MIN, i64::MAX, end, end - 1, 1 << 62] {
        chunk_fails(RLE, LAYER, 4, &[], |c| c.put_i64(c.index(LAYER, 4), offset));
        chunk_fails(PLAIN, U8, 3, &[], |c| c.put_i64(c.index(U8, 3), offset));
    }
    for length in [-1, i32::MIN, i32::MAX] {
        chunk_fails(RLE, LAYER, 4, &[], |c| c.put_i32(c.index(LAYER, 4) + 8, length));
        chunk_fails(PLAIN, U8, 0, &[], |c| c.put_i32(c.index(U8, 0) + 8, length));
    }
}

/// Each page has four entries here; the chunks of the other pages can still be read.
#[test]
fn index_pages_outside_of_the_file() {
    let c = Container::read(RLE);
    let (entry, total) = (c.entry(LAYER), 6);
    assert_eq!((c.i32(entry + 16), c.i32(entry + 8)), (4, total));
    for offset in [-1, i64::MIN, i64::MAX, c.0.len() as i64, c.0.len() as i64 - 1] {
        let dataset = changed(RLE, |c| c.put_i64(c.page(LAYER, 4), offset)).open().unwrap();
        let (_, damaged) = naive::read_what_can_be(&*find(&*dataset, LAYER));
        assert_eq!(damaged.len(), 2, "{offset}: {damaged:?}");
        assert!(damaged.iter().all(|(_, error)| error.to_string().contains("index page")), "{damaged:?}");
    }
}

#[test]
fn an_index_page_that_was_never_written() {
    let dataset = changed(RLE, |c| c.put_i64(c.page(LAYER, 4), 0)).open().unwrap();
    let array = find(&*dataset, LAYER);
    naive::read_all(&*array).unwrap();
    assert_eq!(array.census().unwrap().unwrap().counts.missing, 2);
}

#[test]
fn data_chunks_of_no_bytes() {
    for (name, layer) in [(RLE, LAYER), (ZIP, LAYER), (PLAIN, U8), (PLAIN, BITS)] {
        chunk_fails(name, layer, 1, &["no bytes"], |c| c.put_i32(c.index(layer, 1) + 8, 0));
    }
}

#[test]
fn chunk_headers_that_contradict_the_layer() {
    for (name, layer) in [(RLE, LAYER), (ZIP, LAYER), (PLAIN, U8), (PLAIN, BITS)] {
        for (field, number, word) in [
            (0, 0, "dimensions"),
            (0, 4, "dimensions"),
            (0, -1, "dimensions"),
            (0, 2, "samples"),
            (1, 31, "samples"),
            (2, i32::MAX, "samples"),
            (3, 0, "samples"),
            (3, -1, "samples"),
            (4, 3, "format"),
            (4, -1, "format"),
            (5, 2, "components"),
            (5, 0, "components"),
        ] {
            chunk_fails(name, layer, 2, &["header", word], |c| c.put_i32(c.chunk(layer, 2).start + 4 * field, number));
        }
    }
}

#[test]
fn chunks_shorter_than_their_header() {
    for (name, layer) in [(RLE, LAYER), (ZIP, LAYER), (PLAIN, U8), (PLAIN, BITS)] {
        for length in [1, 23] {
            chunk_fails(name, layer, 0, &[], |c| c.put_i32(c.index(layer, 0) + 8, length));
        }
    }
}

#[test]
fn too_few_or_too_many_samples() {
    for by in [-1, 1, 100] {
        for layer in [U8, BITS, LAYER] {
            chunk_fails(PLAIN, layer, 1, &["bytes"], |c| {
                let length = c.chunk(layer, 1).len() as i32;
                c.put_i32(c.index(layer, 1) + 8, length + by);
            });
        }
    }
}

#[test]
fn damaged_zlib_streams() {
    let stored = |c: &Container| c.0[c.chunk(LAYER, 2)].to_vec();
    let with = |words: &[&str], change: &dyn Fn(&mut Vec<u8>)| {
        chunk_fails(ZIP, LAYER, 2, words, |c| {
            let mut chunk = stored(c);
            change(&mut chunk);
            c.replace(LAYER, 2, &chunk);
        });
    };
    with(&["zlib"], &|chunk| chunk[24] ^= 0xff);
    with(&["zlib"], &|chunk| chunk[40..60].fill(0xff));
    with(&["zlib"], &|chunk| *chunk.last_mut().unwrap() ^= 1);
    with(&["zlib", "cut off"], &|chunk| chunk.truncate(chunk.len() - 1));
    with(&["zlib", "cut off"], &|chunk| chunk.truncate(24));
    let packed = |samples: usize| {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&vec![7; samples]).unwrap();
        encoder.finish().unwrap()
    };
    let dataset = Container::read(ZIP).open().unwrap();
    let array = find(&*dataset, LAYER);
    let at = array.info().grid.count().index_of(2);
    let Brick::Coded(coded) = array.brick(&at, Blocking::Yes).unwrap() else { panic!() };
    let refit = |samples: usize| move |chunk: &mut Vec<u8>| drop(chunk.splice(24.., packed(samples)));
    with(&["zlib", "holds"], &refit(coded.decoded - 1));
    with(&["zlib", "holds more"], &refit(coded.decoded + 1));
    with(&["zlib", "holds more"], &refit(1 << 20));
    // a chunk longer than any compression of these samples is not even read
    with(&["bytes"], &|chunk| chunk.resize(1 << 20, 0));
}

/// Changes one word of a wavelet chunk: version, size, thresholds (which follow the zero runs and NoValue), counts.
#[test]
fn damaged_wavelet_chunks() {
    const NAME: &str = "wavelet-lossless.vds";
    let sound = Container::read(NAME);
    let layer = sound.files().into_iter().find(|name| name.ends_with(LAYER)).unwrap();
    let chunk = sound.chunk(&layer, 1);
    let word = |at: usize| sound.i32(chunk.start + at);
    // the zero runs begin with their length; a single word follows where there is no NoValue
    let thresholds = 24 + (word(24) as usize).next_multiple_of(4) + 4;
    assert_eq!(word(thresholds - 4), -1);
    let cases: [(&[&str], usize, i32); 7] = [
        (&["version"], 0, 674),
        (&["bytes"], 4, 20),
        (&["samples"], 8, 512),
        (&["threshold"], thresholds, f32::NAN.to_bits() as i32),
        (&["threshold"], thresholds, 0),
        (&["bit-plane stream"], thresholds + 8, i32::MAX),
        (&["count"], thresholds + 12, word(thresholds + 12) + 1),
    ];
    for (words, at, number) in cases {
        chunk_fails(NAME, &layer, 1, words, |c| c.put_i32(c.chunk(&layer, 1).start + at, number));
    }
    chunk_fails(NAME, &layer, 1, &[], |c| {
        let bytes = c.chunk(&layer, 1);
        let half = c.0[bytes.clone()][..bytes.len() / 2].to_vec();
        c.replace(&layer, 1, &half);
    });
}

#[test]
fn run_lengths_that_do_not_fit_the_chunk() {
    let with = |words: &[&str], change: &dyn Fn(&mut Vec<u8>)| {
        chunk_fails(RLE, LAYER, 2, words, |c| {
            let mut chunk = c.0[c.chunk(LAYER, 2)].to_vec();
            change(&mut chunk);
            c.replace(LAYER, 2, &chunk);
        });
    };
    let put =
        |at: usize, number: i32| move |chunk: &mut Vec<u8>| chunk[at..at + 4].copy_from_slice(&number.to_le_bytes());
    for size in [-1, 0, 11, i32::MAX] {
        with(&["run lengths"], &put(24, size));
    }
    for unpacked in [-1, 0, 7, i32::MAX] {
        with(&["run lengths"], &put(28, unpacked));
    }
    for unit in [-1, 0, 3, 16, 256] {
        with(&["run lengths", "units"], &put(32, unit));
    }
    // runs that end before or after the chunk does
    with(&["run lengths"], &|chunk| chunk.truncate(36));
    with(&["run lengths"], &|chunk| {
        let less = chunk.len() as i32 - 24 - 1;
        put(24, less)(chunk);
    });
    with(&["run lengths"], &|chunk| chunk[36..].fill(0xff));
    with(&["run lengths"], &|chunk| chunk[36..].fill(0));
    with(&["run lengths"], &|chunk| chunk[36..].fill(0xbf));
}

//! Measures what the memory of the machine gives for gathering: rows of a volume are copied from bricks in the page cache to
//! warm buffers, as O_DIRECT reads of a plain volume do, with neither FUSE nor any other work.
//!
//! `gather FILE EDGE BYTES [THREADS]` takes the bytes of FILE as bricks of EDGE^3 samples of BYTES bytes, one after
//! another, of a volume of 512^3 samples, and prints GB/s: the most of five passes. FILE has as many bytes as the volume.

use std::env;
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use memmap2::Mmap;

/// Samples along an axis of the volume.
const EXTENT: usize = 512;
/// Bytes of a read.
const READ: usize = 1 << 20;
const PASSES: usize = 5;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (path, numbers) = match arguments.as_slice() {
        [path, numbers @ ..] if (2..=3).contains(&numbers.len()) => (path, numbers),
        _ => {
            return Err(io::Error::other(
                "give a file, the edge of a brick, the bytes of a sample, and perhaps threads",
            ));
        }
    };
    let numbers: Vec<usize> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
    let (&[edge, size], threads) = (numbers.first_chunk().unwrap_or(&[0; 2]), numbers.get(2).copied().unwrap_or(1));
    let bytes = EXTENT * EXTENT * EXTENT * size;
    let bricks = map(&File::open(path)?)?;
    if edge == 0 || !EXTENT.is_multiple_of(edge) || size == 0 || bricks.len() < bytes {
        return Err(io::Error::other("bricks do not fill the volume, or the file is too short"));
    }
    let mut best = f64::MAX;
    for _ in 0..PASSES {
        let (next, begin) = (AtomicUsize::new(0), Instant::now());
        thread::scope(|scope| {
            for _ in 0..threads.max(1) {
                scope.spawn(|| pass(&bricks, edge, size, &next));
            }
        });
        best = best.min(begin.elapsed().as_secs_f64());
    }
    println!("{:.2} GB/s", bytes as f64 / best / 1e9);
    Ok(())
}

#[allow(unsafe_code)]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: nobody changes the file of a benchmark while it runs
    let map = unsafe { Mmap::map(file)? };
    black_box(map.iter().step_by(4096).map(|byte| u64::from(*byte)).sum::<u64>());
    Ok(map)
}

/// Gathers reads until none is left.
fn pass(bricks: &[u8], edge: usize, size: usize, next: &AtomicUsize) {
    let row = edge * size;
    let mut reply = vec![0; READ];
    loop {
        let read = next.fetch_add(READ, Ordering::Relaxed);
        if read >= EXTENT * EXTENT * EXTENT * size {
            return;
        }
        match row {
            32 => gather::<32>(bricks, edge, size, read, &mut reply),
            64 => gather::<64>(bricks, edge, size, read, &mut reply),
            256 => gather::<256>(bricks, edge, size, read, &mut reply),
            _ => panic!("rows of 32, 64 or 256 bytes"),
        }
        black_box(&reply);
    }
}

/// Gathers the bytes of a volume from `read` on. `ROW` is the length of a brick's row in bytes.
fn gather<const ROW: usize>(bricks: &[u8], edge: usize, size: usize, read: usize, reply: &mut [u8]) {
    let (count, line) = (EXTENT / edge, EXTENT * size);
    for (n, to) in reply.chunks_exact_mut(line).enumerate() {
        let number = read / line + n;
        let (x, y) = (number / EXTENT, number % EXTENT);
        let first = (x / edge * count + y / edge) * count * edge * edge * ROW + (x % edge * edge + y % edge) * ROW;
        for (brick, to) in to.chunks_exact_mut(ROW).enumerate() {
            to.copy_from_slice(&bricks[first + brick * edge * edge * ROW..][..ROW]);
        }
    }
}

//! Measures the speed of the wavelet decoder: `cargo run --release --example wavelet -- FILE.vds [SECONDS]`.
//!
//! Reads the stored chunks of each wavelet layer of a single-file VDS into memory, decodes them repeatedly in one
//! thread, and prints the MB of samples decoded per second of processor time. Neither the file system nor the cache
//! takes part.

use std::env;
use std::fs;
use std::io::{Error, Result};
use std::time::Duration;

use volfs::internals::Wavelet;

/// Codes of the wavelet methods: lossy, normalised, lossless, normalised lossless.
const METHODS: [i32; 4] = [1, 4, 5, 6];

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let Some(file) = arguments.next() else { return Err(Error::other("give a .vds file")) };
    let seconds = arguments.next().and_then(|s| s.parse().ok()).unwrap_or(2.0);
    let data = fs::read(&file)?;
    let layers = layers(&data).ok_or_else(|| Error::other("not a .vds file that can be read"))?;
    let mut decoder = Wavelet::default();
    for (name, chunks) in &layers {
        let mut out = vec![0; chunks.iter().map(Chunk::bytes).max().unwrap_or(0)];
        let (mut decoded, start) = (0, processor_time()?);
        let mut took = Duration::ZERO;
        while took.as_secs_f64() < seconds && !chunks.is_empty() {
            for chunk in chunks {
                let out = &mut out[..chunk.bytes()];
                decoder.decode(chunk.stored, chunk.size, chunk.sample, chunk.method, out)?;
                decoded += out.len();
            }
            took = processor_time()? - start;
        }
        let rate = decoded as f64 / 1e6 / took.as_secs_f64().max(1e-9);
        println!(
            "{name}: {} chunks, {rate:.0} MB of samples per CPU second, {} bytes of scratch",
            chunks.len(),
            decoder.scratch()
        );
    }
    Ok(())
}

/// Returns the processor time of this process so far.
fn processor_time() -> Result<Duration> {
    let stat = fs::read_to_string("/proc/self/schedstat")?;
    let time = stat.split(' ').next().and_then(|t| t.parse().ok()).ok_or_else(|| Error::other("no processor time"))?;
    Ok(Duration::from_nanos(time))
}

/// A stored chunk, with the parameters in its header, unchecked.
struct Chunk<'a> {
    size: [usize; 3],
    /// Bytes of a sample.
    sample: usize,
    method: i32,
    stored: &'a [u8],
}

impl Chunk<'_> {
    fn bytes(&self) -> usize {
        self.size.iter().product::<usize>() * self.sample
    }
}

type Layer<'a> = (String, Vec<Chunk<'a>>);

/// Returns the wavelet layers of a file, and their stored chunks.
fn layers(data: &[u8]) -> Option<Vec<Layer<'_>>> {
    let read_offset = |at| usize::try_from(i64::from_le_bytes(*data.get(at..)?.first_chunk()?)).ok();
    let (table, files, name) = (read_offset(16)?, read_i32(data, 24)?, read_i32(data, 28)? as usize);
    let mut layers = Vec::new();
    for file in 0..files as usize {
        let at = table + file * (32 + name);
        let (head, chunks, per_page) = (read_offset(at)?, read_i32(data, at + 8)?, read_i32(data, at + 16)?);
        let (chunk_metadata, file_metadata) = (read_i32(data, at + 24)? as usize, read_i32(data, at + 28)? as usize);
        if data.get(at + 20..at + 24)? != b"VDS " || !METHODS.contains(&read_i32(data, head + 16)?) {
            continue;
        }
        let method = read_i32(data, head + 16)?;
        let mut stored = Vec::new();
        for chunk in 0..chunks {
            let page = read_offset(head + 16 + file_metadata + 8 * (chunk / per_page) as usize)?;
            let entry = page + (chunk % per_page) as usize * (16 + chunk_metadata);
            let length = if page == 0 { 0 } else { read_i32(data, entry + 8)? as usize };
            if length > 0 {
                let chunk = data.get(read_offset(entry)?..)?.get(..length)?;
                stored.push(parse(chunk, method)?);
            }
        }
        let text = data.get(at + 32..at + 32 + name)?;
        layers.push((String::from_utf8_lossy(text).trim_end_matches('\0').to_owned(), stored));
    }
    Some(layers)
}

fn read_i32(data: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_le_bytes(*data.get(at..)?.first_chunk()?))
}

fn parse(stored: &[u8], method: i32) -> Option<Chunk<'_>> {
    let flags = read_i32(stored, 20)?;
    let side = |d: usize| if d < (flags & 255) as usize { read_i32(stored, 8 + 4 * d) } else { Some(1) };
    let sample = match (flags >> 8 & 1, flags >> 11 & 1) {
        (0, _) => 4,
        (_, 0) => 1,
        _ => 2,
    };
    Some(Chunk { size: [side(0)? as usize, side(1)? as usize, side(2)? as usize], sample, method, stored })
}

//! Measures the decoder of ZFP beside libzfp: `cargo run --release --example zfp -- ROUNDS [FILE.zgy...]`.
//!
//! Decodes the compressed bricks of ZGY files, or without files samples of its own: all types, dimensions and modes.
//! libzfp and the decoder of volfs, with the instructions of every machine and with the fastest ones, take turns in
//! one thread. Prints a line for each stream or file, with tabs between: what it is, bits for each sample, and MB of
//! samples for each second of processor time, of the least times of the rounds. Neither the file system nor the cache
//! takes part.

#[path = "../src/codec/zfp/tests/compressor.rs"]
mod compressor;

use std::env;
use std::io::{Error, Result};
use std::path::Path;
use std::time::Duration;

use compressor::{Mode, compress};
use nix::time::{ClockId, clock_gettime};
use volfs::internals::{Zfp, ZfpSize, levels};

/// The most bytes of samples of a file that are decoded in a round.
const MOST_BYTES: usize = 64 << 20;

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let rounds = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(10);
    let files: Vec<String> = arguments.collect();
    if files.is_empty() {
        for (name, stream) in made() {
            measure(&name, &[stream], rounds)?;
        }
    }
    for file in files {
        measure(&file, &stored(Path::new(&file))?, rounds)?;
    }
    Ok(())
}

/// Decodes all streams in each round, and prints what they took.
fn measure(name: &str, streams: &[Vec<u8>], rounds: usize) -> Result<()> {
    let sizes: Vec<ZfpSize> = streams.iter().map(|stream| Zfp::size(stream)).collect::<Result<_>>()?;
    let samples: u64 = sizes.iter().map(|size| size.samples).sum();
    let bits = streams.iter().map(Vec::len).sum::<usize>() as f64 * 8.0 / samples as f64;
    let most =
        sizes.iter().map(|size| size.bytes).max().ok_or_else(|| Error::other("there are no compressed bricks"))?;
    let (mut theirs, mut ours) = (vec![0; most], vec![0; most]);
    // libzfp alone needs zeros behind a stream, or copies it
    let padded: Vec<Vec<u8>> = streams
        .iter()
        .zip(&sizes)
        .map(|(stream, size)| [&stream[..], &vec![0; size.longest.saturating_sub(stream.len())]].concat())
        .collect();
    // the least time of each stream, since other programs can only add to it
    let mut best = vec![[f64::MAX; 3]; streams.len()];
    for _ in 0..rounds {
        for (((stream, padded), size), best) in streams.iter().zip(&padded).zip(&sizes).zip(&mut best) {
            let (theirs, ours) = (&mut theirs[..size.bytes], &mut ours[..size.bytes]);
            best[0] = timed(|| Zfp::Libzfp.decode(padded, theirs))?.min(best[0]);
            for (at, decoder) in [(1, Zfp::Portable), (2, Zfp::Best)] {
                let took = timed(|| decoder.decode(stream, ours))?;
                best[at] = took.min(best[at]);
                if theirs != ours {
                    return Err(Error::other(format!("{name}: the decoders differ")));
                }
            }
        }
    }
    let megabytes = sizes.iter().map(|size| size.bytes).sum::<usize>() as f64 / 1e6;
    let rate = |at: usize| megabytes / best.iter().map(|best| best[at]).sum::<f64>().max(1e-9);
    println!("{name}\t{bits:.2}\t{:.0}\t{:.0}\t{:.0}", rate(0), rate(1), rate(2));
    Ok(())
}

/// Returns the processor time that `work` takes, in seconds.
fn timed(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let now = || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from);
    let start = now()?;
    work()?;
    Ok(now()?.saturating_sub(start).as_secs_f64())
}

/// Returns the compressed bricks of the finest level of a ZGY file, the first ones.
fn stored(file: &Path) -> Result<Vec<Vec<u8>>> {
    let levels = levels(file)?;
    levels.first().ok_or_else(|| Error::other("there is no level"))?.coded_bricks(MOST_BYTES)
}

/// Returns streams of waves with noise, of every dimension, type and mode.
fn made() -> Vec<(String, Vec<u8>)> {
    let modes = [
        ("rate\t4", Mode::Rate(4.0)),
        ("rate\t8", Mode::Rate(8.0)),
        ("rate\t16", Mode::Rate(16.0)),
        ("precision\t8", Mode::Precision(8)),
        ("precision\t16", Mode::Precision(16)),
        ("accuracy\t1", Mode::Accuracy(1.0)),
        ("accuracy\t0.001", Mode::Accuracy(1e-3)),
        ("reversible\t", Mode::Reversible),
        // at most 6 bits a sample of 3 dimensions
        ("expert\t384, 24", Mode::Expert(1, 384, 24, -20)),
    ];
    let shapes = [&[65_536][..], &[256, 256], &[64, 64, 64], &[16, 16, 16, 16]];
    let mut streams = Vec::new();
    for (axes, shape) in (1..).zip(shapes) {
        for (scalar, kind) in (1..).zip(["int32", "int64", "float32", "float64"]) {
            let samples = waves(shape, scalar);
            for (name, mode) in modes {
                // integers have no accuracy
                if scalar > 2 || !matches!(mode, Mode::Accuracy(_)) {
                    streams.push((format!("{axes}\t{kind}\t{name}"), compress(&samples, scalar, shape, mode)));
                }
            }
        }
    }
    streams
}

/// Returns samples of the type that a header has as `scalar`: waves of 1000 with noise of 5 %.
fn waves(shape: &[usize], scalar: u8) -> Vec<u8> {
    let mut random = 1u64;
    let sample = |at: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (mut rest, mut value) = (at, 1000.0);
        for (axis, extent) in shape.iter().enumerate() {
            value *= ((rest % extent) as f64 * (0.21 - 0.04 * axis as f64) + 0.3 * axis as f64).cos();
            rest /= extent;
        }
        value + 50.0 * ((random >> 33) as f64 / f64::from(1u32 << 31) - 0.5)
    };
    let values = (0..shape.iter().product()).map(sample);
    match scalar {
        1 => values.flat_map(|value| ((value * 1e5) as i32).to_ne_bytes()).collect(),
        2 => values.flat_map(|value| ((value * 1e14) as i64).to_ne_bytes()).collect(),
        3 => values.flat_map(|value| (value as f32).to_ne_bytes()).collect(),
        _ => values.flat_map(f64::to_ne_bytes).collect(),
    }
}

//! Measures the decoder of ZFP beside libzfp: `cargo run --release --features libzfp --example zfp -- ROUNDS [FILE.zgy...]`.
//!
//! Decodes the compressed bricks of ZGY files, or without files samples of its own in all modes. libzfp and the decoder of
//! volfs, with the instructions of every machine and with the fastest ones, take turns in one thread. Prints a line for
//! each stream or file, with tabs between: what it is, bits for each sample, and MB of samples for each second of processor
//! time, of the least times of the rounds. Neither the file system nor the cache takes part.

use std::env;
use std::io::{Error, Result};
use std::path::Path;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use volfs::internals::{ZfpStream, levels};

/// The most bytes of samples of a file that are decoded in a round.
const MOST_BYTES: usize = 64 << 20;

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let rounds = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(10);
    let files: Vec<String> = arguments.collect();
    if files.is_empty() {
        made().iter().try_for_each(|(name, stream)| measure(name, std::slice::from_ref(stream), rounds))?;
    }
    files.iter().try_for_each(|file| measure(file, &stored(Path::new(file))?, rounds))
}

/// Decodes all streams, each of as many samples, in each round, and prints what they took.
fn measure(name: &str, streams: &[ZfpStream], rounds: usize) -> Result<()> {
    let samples = streams.first().ok_or_else(|| Error::other("there are no compressed bricks"))?.samples();
    let bytes: usize = streams.iter().map(|stream| stream.stored.len()).sum();
    let (mut theirs, mut ours) = (vec![0.0; samples], vec![0; 4 * samples]);
    // the least time of each stream, since other programs can only add to it
    let mut best = vec![[f64::MAX; 3]; streams.len()];
    for _ in 0..rounds {
        for (stream, best) in streams.iter().zip(&mut best) {
            best[0] = timed(|| stream.decode_by_libzfp(&mut theirs))?.min(best[0]);
            for (is_fastest, best) in [false, true].into_iter().zip(&mut best[1..]) {
                *best = timed(|| stream.decode(is_fastest, &mut ours))?.min(*best);
                if !theirs.iter().flat_map(|sample| sample.to_ne_bytes()).eq(ours.iter().copied()) {
                    return Err(Error::other(format!("{name}: the decoders differ")));
                }
            }
        }
    }
    let megabytes = (4 * samples * streams.len()) as f64 / 1e6;
    let rate = |at: usize| megabytes / best.iter().map(|best| best[at]).sum::<f64>().max(1e-9);
    let bits = bytes as f64 * 8.0 / (samples * streams.len()) as f64;
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
fn stored(file: &Path) -> Result<Vec<ZfpStream>> {
    let levels = levels(file)?;
    let level = levels.first().ok_or_else(|| Error::other("there is no level"))?;
    let shape = level.brick_shape().try_into().map_err(|_| Error::other("bricks have no three axes"))?;
    Ok(level.coded_bricks(MOST_BYTES)?.into_iter().map(|stored| ZfpStream::new(stored, shape)).collect())
}

/// Returns streams of waves of 1000 with noise of 5 %, in all modes.
fn made() -> Vec<(String, ZfpStream)> {
    const EDGE: u64 = 64;
    let mut random = 1u64;
    let sample = |at: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (mut rest, mut value) = (at, 1000.0);
        for axis in 0..3 {
            value *= ((rest % EDGE) as f64 * (0.21 - 0.04 * f64::from(axis)) + 0.3 * f64::from(axis)).cos();
            rest /= EDGE;
        }
        (value + 50.0 * ((random >> 33) as f64 / f64::from(1u32 << 31) - 0.5)) as f32
    };
    let samples: Vec<f32> = (0..EDGE.pow(3)).map(sample).collect();
    // the fewest and most bits of a block, the most bit planes, and the exponent of the lowest
    let modes = [
        ("rate\t4", (256, 256, 64, -1074)),
        ("rate\t8", (512, 512, 64, -1074)),
        ("rate\t16", (1024, 1024, 64, -1074)),
        ("precision\t8", (1, 16_658, 8, -1074)),
        ("precision\t16", (1, 16_658, 16, -1074)),
        ("accuracy\t1", (1, 16_658, 64, 0)),
        ("accuracy\t0.001", (1, 16_658, 64, -10)),
        ("reversible\t", (1, 16_658, 64, -1075)),
        ("expert\t384, 24", (1, 384, 24, -20)),
    ];
    modes.map(|(name, limits)| (name.to_owned(), ZfpStream::compress(&samples, [EDGE; 3], limits))).into()
}

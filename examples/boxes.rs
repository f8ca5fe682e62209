//! Reads boxes, slices, traces and the whole of a dataset in process, by the data path and without a mount, and prints
//! what they cost: `boxes PATH [THREADS [NAME [TIMES]]]`, with the name of one row to measure that one alone.
//!
//! Each row reads its boxes with one cache: cold, and then again, so many TIMES (1). The times of other processes count in
//! the wall time and not in the processor time.

use std::env;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use volfs::internals::{Level, LevelReader, levels};

/// Bytes of the cache.
const CACHE: usize = 2 << 30;

/// The first sample and the shape of a box.
type Part = (Vec<u64>, Vec<u64>);

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n.max(1)
    }

    /// A box of this shape anywhere in an array.
    fn part(&mut self, array: &[u64], shape: Vec<u64>) -> Part {
        let start = array.iter().zip(&shape).map(|(all, some)| self.below(all.saturating_sub(*some) + 1)).collect();
        (start, shape)
    }
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().collect();
    let number = |at: usize, or: usize| arguments.get(at).map_or(Ok(or), |text| text.parse().map_err(io::Error::other));
    let path = arguments.get(1).ok_or_else(|| io::Error::other("give a dataset"))?;
    let (threads, times) = (number(2, 2)?, number(4, 1)?);
    let level = levels(Path::new(path))?.into_iter().next().ok_or_else(|| io::Error::other("there is no layer"))?;
    for (name, cache, parts) in rows(&level.shape()) {
        if arguments.get(3).is_none_or(|only| *only == name) {
            measure(&name, &level, &LevelReader::new(&level, cache, threads), &parts, times)?;
        }
    }
    Ok(())
}

/// Returns the rows: a name, the bytes of the cache, and boxes of an array.
fn rows(array: &[u64]) -> Vec<(String, usize, Vec<Part>)> {
    let (mut random, mut rows) = (Random(12345), Vec::new());
    for (edge, count) in [(64, 60), (128, 24)] {
        let cube: Vec<u64> = array.iter().map(|n| edge.min(*n)).collect();
        let cubes: Vec<Part> = (0..count).map(|_| random.part(array, cube.clone())).collect();
        rows.push((format!("box-{edge}"), CACHE, cubes.clone()));
        rows.push((format!("box-{edge}-no-cache"), 0, cubes));
    }
    let across = |axis: usize, from: u64, count: u64| {
        let (mut start, mut shape) = (vec![0; array.len()], array.to_vec());
        (start[axis], shape[axis]) = (from, count.min(array[axis] - from));
        (start, shape)
    };
    for (axis, n) in array.iter().enumerate() {
        rows.push((format!("slice-{axis}"), CACHE, [2, 5, 9].map(|part| across(axis, n * part / 10, 1)).to_vec()));
    }
    let line = |length: u64| {
        let last = array.len() - 1;
        (0..array.len()).map(|axis| if axis == last { length.min(array[last]) } else { 1 }).collect::<Vec<u64>>()
    };
    rows.push(("trace".into(), CACHE, (0..1000).map(|_| random.part(array, line(u64::MAX))).collect()));
    rows.push(("row-of-32".into(), CACHE, (0..20_000).map(|_| random.part(array, line(32))).collect()));
    rows.push(("whole".into(), CACHE, (0..array[0]).step_by(64).map(|from| across(0, from, 64)).collect()));
    rows
}

/// Reads the boxes, and prints a line for the first time and one for all others.
fn measure(name: &str, level: &Level, reader: &LevelReader, parts: &[Part], times: usize) -> io::Result<()> {
    let bytes = |shape: &[u64]| shape.iter().product::<u64>() as usize * level.sample_size();
    let mut out = vec![0; parts.iter().map(|(_, shape)| bytes(shape)).max().unwrap_or(0)];
    for (pass, times) in [("cold", 1), ("again", times)] {
        let (begin, processor) = (Instant::now(), processor_time()?);
        let (mut each, mut bricks, mut all) = (Vec::new(), 0, 0);
        for (start, shape) in (0..times).flat_map(|_| parts) {
            let (one, length) = (Instant::now(), bytes(shape));
            bricks += reader.read(start, shape, &mut out[..length])?;
            each.push(one.elapsed());
            all += length;
        }
        let (wall, processor) = (begin.elapsed().as_secs_f64(), (processor_time()? - processor).as_secs_f64());
        each.sort_unstable();
        let median = each.get(each.len() / 2).map_or(0.0, Duration::as_secs_f64);
        let (wall_rate, processor_rate) = (all as f64 / wall / 1e9, all as f64 / processor / 1e9);
        print!(
            "{name:16} {pass:5} {:9.3} ms (median) {wall_rate:7.2} GB/s {processor_rate:7.2} GB/s of processor time",
            median * 1e3
        );
        match bricks {
            0 => println!(),
            _ => println!(", {:.1} µs for each of {bricks} bricks", processor * 1e6 / bricks as f64),
        }
    }
    Ok(())
}

/// Returns the processor time of the process so far, that of the kernel for it included.
fn processor_time() -> io::Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into())
}

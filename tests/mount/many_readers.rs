//! Sixty-four readers on a cache of 16 MiB: each byte is compared, memory stays below its ceiling, and afterwards nothing
//! is left in progress. `scripts/stress/readers.sh` runs this for minutes, with large volumes.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::iter;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use volfs::internals::{Level, levels};

use crate::support::checked_reader::{CheckedReader, Tally};
use crate::support::{Mount, Noise, copy_all, memory, stress, test_data, wait_until};

const DATASETS: [&str; 16] = [
    "zgy/v2_int16.zgy",
    "zgy/v3_float32.zgy",
    "zgy/v4_mixed.zgy",
    "zgy/v4_zfp_snr30.zgy",
    "zgy/v4_zfp_rate.zgy",
    "vds/formats-none.vds",
    "vds/formats-zip.vds",
    "vds/formats-rle.vds",
    "vds/wavelet.vds",
    "vds/wavelet-lossless.vds",
    "vds/tiles.vds",
    "vds/lossless",
    "wkw/pyramid",
    "wkw/types",
    "wkw/old",
    "wkw/annotation",
];

const READERS: u64 = 64;
const CACHE: u64 = 16 << 20;
/// What a process needs beside its cache, whatever it reads.
const BESIDE: u64 = 64 << 20;

/// Returns the right content of the arrays of a dataset: each is decoded brick by brick, without the data path.
fn truth_of(path: &Path, name: &str) -> BTreeMap<String, Vec<u8>> {
    let levels = levels(path).unwrap().into_iter();
    let file = |level: Level| Some((format!("{name}/{}/lod{}.raw", level.layer, level.lod), level.read().ok()?));
    levels.filter_map(file).collect()
}

/// A scan of a file from the beginning to the end, in reads of one size, or until `end`.
fn scan(path: &Path, truth: &[u8], end: Instant, noise: &mut Noise, tally: &mut Tally) {
    let flags = if noise.below(2) == 0 { nix::libc::O_DIRECT } else { 0 };
    let size = [4 << 10, 64 << 10, 1 << 20][noise.below(3)];
    let file = File::options().read(true).custom_flags(flags).open(path).unwrap();
    for (n, right) in truth.chunks(size).enumerate().take_while(|_| Instant::now() < end) {
        let mut bytes = vec![0xa5; right.len()];
        file.read_exact_at(&mut bytes, (n * size) as u64).unwrap();
        if bytes != right {
            tally.wrong.push(format!("{}: scan at {}", path.display(), n * size));
        }
        tally.bytes += right.len() as u64;
    }
    tally.right += 1;
}

/// Reads parts of a file through a memory map.
#[allow(unsafe_code)]
fn map(path: &Path, truth: &[u8], noise: &mut Noise, tally: &mut Tally) {
    // SAFETY: nothing writes to the file: the mount is read-only, and its source is left alone
    let map = unsafe { memmap2::Mmap::map(&File::open(path).unwrap()).unwrap() };
    for _ in 0..4 {
        let from = noise.below(truth.len());
        let end = (from + 1 + noise.below(200_000)).min(truth.len());
        if map[from..end] != truth[from..end] {
            tally.wrong.push(format!("{}: map at {from}", path.display()));
        }
        tally.bytes += (end - from) as u64;
    }
    tally.right += 1;
}

/// Large volumes, if the environment names a folder of them: their truth is what `volfs cat` of another build printed,
/// `NAME.truth` beside each.
fn large() -> Vec<PathBuf> {
    let Some(folder) = env::var_os("VOLFS_STRESS_DATA") else { return Vec::new() };
    let found = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    found.filter(|path| path.extension().is_none_or(|extension| extension != "truth")).collect()
}

#[test]
fn sixty_four_readers_share_a_small_cache() {
    let source = tempfile::tempdir().unwrap();
    let (mut truth, mut large_names) = (BTreeMap::new(), Vec::new());
    for dataset in DATASETS {
        let name = dataset.rsplit('/').next().unwrap();
        copy_all(&test_data(dataset), &source.path().join(name));
        truth.extend(truth_of(&source.path().join(name), name));
    }
    for path in large() {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        std::os::unix::fs::symlink(&path, source.path().join(&name)).unwrap();
        let name = format!("{name}/{}/lod0.raw", levels(&path).unwrap()[0].layer);
        truth.insert(name.clone(), fs::read(path.with_extension("truth")).unwrap());
        large_names.push(name);
    }
    let Some(mount) = Mount::with(source.path(), &["--cache-size", "16MiB", "--follow-links"]) else { return };
    truth.retain(|name, _| mount.path(name).exists());
    // half of all that is read, if there are any
    let mut names: Vec<&str> = truth.keys().map(String::as_str).collect();
    let often = names.len() / large_names.len().max(1);
    names.extend(large_names.iter().flat_map(|name| iter::repeat_n(&**name, often)));
    let end = Instant::now() + stress::duration(Duration::from_secs(3));
    let (mut all, is_over, peak) = (Tally::default(), AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let (mount, truth, names) = (&mount, &truth, &names);
        let readers: Vec<_> = (0..READERS)
            .map(|n| {
                scope.spawn(move || {
                    let seed = stress::seed() * READERS + n;
                    let mut reader = CheckedReader::of_names(mount.point(), truth, names.clone(), seed).until(end);
                    let mut noise = Noise::seeded(seed);
                    while Instant::now() < end {
                        let name = names[noise.below(names.len())];
                        match noise.below(8) {
                            0 => scan(&mount.path(name), &truth[name], end, &mut noise, &mut reader.tally),
                            1 => map(&mount.path(name), &truth[name], &mut noise, &mut reader.tally),
                            _ => reader.step(),
                        }
                    }
                    reader.tally
                })
            })
            .collect();
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                peak.fetch_max(memory(mount.pid(), "RssAnon"), Ordering::Relaxed);
                thread::sleep(Duration::from_millis(20));
            }
        });
        readers.into_iter().for_each(|reader| all.add(reader.join().unwrap()));
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(all.wrong.is_empty() && all.failed.is_empty(), "{:?} {:#?}", all.failed, all.wrong);
    wait_until("nothing is in progress", || {
        let status = mount.status();
        let now = status["now"].as_object().unwrap();
        now.values().all(|gauge| *gauge == 0)
    });
    let (held, peak) = (mount.counter("cache_bytes"), peak.into_inner());
    println!("{} requests, {} bytes, all right; peak RssAnon {peak}, {held} bytes in the cache", all.right, all.bytes);
    assert!(held <= CACHE, "{held} bytes in the cache");
    // a brick of 128 samples a side, by wavelets: 20 bytes a sample, and two decoders
    let decodes = if large().is_empty() { 0 } else { 2 * 20 * 128 * 128 * 128 };
    assert!(peak < CACHE + BESIDE + decodes, "{peak} bytes at the peak");
    assert!(all.right > READERS);
}

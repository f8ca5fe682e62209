//! Processes that share a cache or are killed, a disk that is full, and files that cannot be removed.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::*;
use crate::test_support::{Noise, skip, stress};

/// The environment variables of a process that fills a cache.
const DIR: &str = "VOLFS_TEST_CACHE";
const SEED: &str = "VOLFS_TEST_CACHE_SEED";

const BUDGET: u64 = 8 << 20;
const OBJECTS: u64 = 5;
/// Ranges of an object, which do not overlap.
const RANGES: u64 = 40;
const LONGEST: usize = 100_000;

fn object(number: u64) -> CacheKey {
    CacheKey::new("s3://bucket", "survey", &number.to_string(), "1")
}

/// The bytes of a range: different for each object and range.
fn content(object: u64, range: u64) -> Vec<u8> {
    let mut noise = Noise::seeded(object * RANGES + range + 1);
    let length = 1 + noise.below(LONGEST);
    noise.bytes(length)
}

fn offset(range: u64) -> u64 {
    range * LONGEST as u64
}

/// Puts random ranges until the process is killed.
#[test]
#[ignore = "it is a process that other tests start and kill"]
fn fill() {
    let (Ok(dir), Ok(seed)) = (std::env::var(DIR), std::env::var(SEED)) else { return };
    let cache = DiskCache::open(Path::new(&dir), BUDGET).unwrap();
    let mut noise = Noise::seeded(seed.parse().unwrap());
    println!("open");
    loop {
        let (number, range) = (noise.number() % OBJECTS, noise.number() % RANGES);
        cache.put(&object(number), offset(range), content(number, range));
        if noise.below(8) == 0 {
            cache.wait_until_written(Duration::from_secs(10));
        }
    }
}

/// A process that runs [`fill`] until this is dropped.
struct Filler(Child);

impl Filler {
    fn start(dir: &Path, seed: u64) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "source::disk_cache::tests::processes::fill", "--ignored", "--nocapture"]);
        let mut child = command
            .env(DIR, dir)
            .env(SEED, seed.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.is_ok_and(|line| line.ends_with("open"))), "the cache does not open");
        Self(child)
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Reads all ranges, and returns how many are there; each must be right.
fn read_all(cache: &DiskCache) -> usize {
    let mut found = 0;
    for number in 0..OBJECTS {
        for range in 0..RANGES {
            let expected = content(number, range);
            let mut out = vec![0; expected.len()];
            if cache.get(&object(number), offset(range), &mut out) {
                assert!(out == expected, "wrong bytes in range {range} of object {number}");
                found += 1;
            }
            // nothing was ever put behind it
            let end = offset(range) + expected.len() as u64;
            assert!(!cache.get(&object(number), end, &mut [0]));
        }
    }
    found
}

/// Returns the sum of the sizes of all files, temporary ones included.
fn size(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

#[test]
fn nothing_bad_is_left_by_processes_that_are_killed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cache");
    let mut noise = Noise::seeded(stress::seed());
    let mut most = 0;
    for round in 0..if stress::is_long() { 200 } else { 10 } {
        let filler = Filler::start(&dir, noise.number());
        thread::sleep(Duration::from_micros(noise.number() % 60_000));
        drop(filler);
        let survey = inspect(&dir, true, |_| true).unwrap();
        assert_eq!((survey.bad_names, survey.foreign), (Vec::<String>::new(), 0), "round {round}");
        let cache = DiskCache::open(&dir, BUDGET).unwrap();
        let writers = fs::read_dir(dir.join("writers")).unwrap().count();
        assert_eq!(writers, 1, "what was half written is gone, round {round}");
        most = most.max(read_all(&cache));
        assert_eq!(cache.statistics().bad, 0, "round {round}");
        assert!(size(&dir) <= BUDGET, "round {round}");
    }
    assert!(most > 20, "no process has written much: {most}");
}

#[test]
fn processes_share_a_cache() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cache");
    let fillers = [1, 2].map(|seed| Filler::start(&dir, seed));
    let cache = DiskCache::open(&dir, BUDGET).unwrap();
    let until = Instant::now() + stress::duration(Duration::from_secs(2));
    let (mut found, mut most) = (0, 0);
    // on a busy machine it takes longer until much is written
    let limit = until + Duration::from_secs(120);
    while Instant::now() < until || (found == 0 || most <= BUDGET / 2) && Instant::now() < limit {
        found += read_all(&cache);
        most = most.max(size(&dir));
    }
    drop(fillers);
    assert_eq!(cache.statistics().bad, 0);
    assert!(found > 0 && most <= BUDGET && most > BUDGET / 2, "{found} found, {most} of {BUDGET}");
}

#[test]
fn a_full_disk_ends_writing_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    if !nix::unistd::geteuid().is_root() {
        return skip("only root can mount a small disk");
    }
    let mounted = nix::mount::mount(
        Some("tmpfs"),
        folder.path(),
        Some("tmpfs"),
        nix::mount::MsFlags::empty(),
        Some("size=2m,mode=700"),
    );
    if let Err(error) = mounted {
        return skip(&format!("a small disk cannot be mounted: {error}"));
    }
    let outcome = thread::spawn({
        let dir = folder.path().join("cache");
        move || {
            let cache = DiskCache::open(&dir, BUDGET).unwrap();
            for n in 0..OBJECTS * RANGES {
                cache.put(&object(n / RANGES), offset(n % RANGES), content(n / RANGES, n % RANGES));
                cache.wait_until_written(Duration::from_secs(10));
            }
            let found = read_all(&cache);
            let own = fs::read_dir(dir.join("writers")).unwrap().next().unwrap().unwrap().path();
            (found, cache.statistics(), fs::read_dir(own).unwrap().count())
        }
    })
    .join();
    // other programs may look at all mounts just now
    nix::mount::umount2(folder.path(), nix::mount::MntFlags::MNT_DETACH).unwrap();
    let (found, statistics, temporary) = outcome.unwrap();
    assert!(found > 10 && statistics.files == found as u64, "{found}, {statistics:?}");
    assert!(statistics.dropped > 100 && statistics.bad == 0, "{statistics:?}");
    assert_eq!(temporary, 0, "what did not fit is gone");
}

#[test]
fn a_link_of_another_user_is_not_followed() {
    if !nix::unistd::geteuid().is_root() {
        return skip("only root can make the link of another user");
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("own")).unwrap();
    fs::set_permissions(at("own"), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    std::os::unix::fs::symlink("own", at("link")).unwrap();
    std::os::unix::fs::lchown(at("link"), Some(65533), Some(65533)).unwrap();
    for name in ["link", "link/"] {
        let refused = DiskCache::open(&at(name), BUDGET).map(drop).unwrap_err().to_string();
        assert!(refused.contains("is a link that belongs to another user (id 65533)"), "{refused}");
    }
    assert_eq!(fs::read_dir(at("own")).unwrap().count(), 0);
    std::os::unix::fs::lchown(at("link"), Some(0), Some(0)).unwrap();
    drop(DiskCache::open(&at("link"), BUDGET).unwrap());
    assert!(at("own/CACHEDIR.TAG").exists());
}

/// Files that cannot be removed, until this is dropped: immutable ones, or for a user who may not make them so, those
/// of folders that cannot be written to.
struct Kept(Vec<PathBuf>);

impl Kept {
    /// Keeps files; `None` if the file system does not allow that.
    fn new(files: Vec<PathBuf>) -> Option<Self> {
        let kept = Self(files);
        let all = kept.0.iter().all(|file| match nix::unistd::geteuid().is_root() {
            true => is_run("chattr", &["+i"], file),
            false => file.parent().is_some_and(|folder| is_run("chmod", &["0555"], folder)),
        });
        all.then_some(kept)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        for file in &self.0 {
            match nix::unistd::geteuid().is_root() {
                true => is_run("chattr", &["-i"], file),
                false => file.parent().is_some_and(|folder| is_run("chmod", &["0755"], folder)),
            };
        }
    }
}

fn is_run(program: &str, arguments: &[&str], path: &Path) -> bool {
    let command = Command::new(program).args(arguments).arg(path).stderr(Stdio::null()).status();
    command.is_ok_and(|status| status.success())
}

/// The number and the bytes of what is put in the tests of files that cannot be removed, each of an object of its own.
const PUTS: u64 = 400;
const PUT: usize = 60_000;

fn put_some(cache: &DiskCache, numbers: Range<u64>) {
    for number in numbers {
        cache.put(&object(number), 0, vec![number as u8; PUT]);
        assert!(cache.wait_until_written(Duration::from_secs(10)));
    }
}

#[test]
fn files_that_cannot_be_removed_are_counted_and_others_go_in_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cache");
    put_some(&DiskCache::open(&dir, BUDGET).unwrap(), 0..60);
    let Some(kept) = Kept::new(files(&dir)) else {
        return skip("files cannot be protected from being removed here (chattr +i)");
    };
    let cache = DiskCache::open(&dir, BUDGET).unwrap();
    for from in (60..PUTS).step_by(20) {
        put_some(&cache, from..from + 20);
        assert!(size(&dir) <= BUDGET, "{} after {from}", size(&dir));
    }
    let (statistics, known) = (cache.statistics(), cache.statistics().bytes);
    assert!(size(&dir) <= known && known <= BUDGET, "{statistics:?}, {} on disk", size(&dir));
    assert_eq!((statistics.dropped, statistics.files), (0, files(&dir).len() as u64));
    let mut out = vec![0; PUT];
    assert!(cache.get(&object(PUTS - 1), 0, &mut out) && cache.get(&object(0), 0, &mut out));
    drop((cache, kept));
}

#[test]
fn nothing_is_written_while_no_file_can_be_removed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cache");
    let cache = DiskCache::open(&dir, BUDGET).unwrap();
    put_some(&cache, 0..PUTS);
    drop(cache);
    let Some(kept) = Kept::new(files(&dir)) else {
        return skip("files cannot be protected from being removed here (chattr +i)");
    };
    let before = size(&dir);
    let cache = DiskCache::open(&dir, BUDGET).unwrap();
    put_some(&cache, PUTS..2 * PUTS);
    assert!(size(&dir) <= BUDGET, "{before}, {}", size(&dir));
    let statistics = cache.statistics();
    assert!(statistics.dropped > PUTS / 2 && statistics.evicted < 10, "{statistics:?}");
    drop((cache, kept));
}

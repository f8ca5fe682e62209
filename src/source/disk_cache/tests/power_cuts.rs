//! What a power cut leaves: files without some of their sectors, cut short, with sectors of others, or none; also of the
//! marker. And a full disk, at the beginning.

use super::*;
use crate::test_support::{Noise, skip, stress};

const SECTOR: usize = 512;
const MARK: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55\n# A disk cache of volfs";

/// Does to a file what a power cut may do that was not written to disk as a whole.
fn tear(path: &Path, noise: &mut Noise) {
    let mut bytes = fs::read(path).unwrap();
    let sector = |bytes: &[u8], noise: &mut Noise| {
        let from = noise.below(bytes.len()) / SECTOR * SECTOR;
        from..bytes.len().min(from + SECTOR)
    };
    match noise.below(6) {
        0 => return fs::remove_file(path).unwrap(),
        1 => bytes.truncate(noise.below(bytes.len() + 1)),
        2 => bytes.fill(0),
        3 if !bytes.is_empty() => {
            // all from some sector on
            let from = sector(&bytes, noise).start;
            bytes[from..].fill(0);
        }
        4 if !bytes.is_empty() => {
            for _ in 0..=noise.below(8) {
                let lost = sector(&bytes, noise);
                bytes[lost].fill(0);
            }
        }
        5 if !bytes.is_empty() => {
            let (from, to) = (sector(&bytes, noise), sector(&bytes, noise));
            let length = from.len().min(to.len());
            bytes.copy_within(from.start..from.start + length, to.start);
        }
        _ => {}
    }
    fs::write(path, bytes).unwrap();
}

#[test]
fn after_a_power_cut_it_has_right_bytes_or_none_and_is_filled_again() {
    let mut noise = Noise::seeded(stress::seed());
    let bytes: Vec<Vec<u8>> = (0..12).map(|n| content(n, 0, 1 + noise.below(200_000))).collect();
    let (mut lost, mut kept, mut marks) = (0, 0, 0);
    for round in 0..if stress::is_long() { 500 } else { 40 } {
        let (_folder, dir) = place();
        let cache = open(&dir);
        bytes.iter().zip(0..).for_each(|(bytes, n): (_, u64)| put(&cache, &n.to_string(), 0, bytes));
        drop(cache);
        // one that was being written, of a process that is gone
        let dead = dir.join("writers/1-dead");
        fs::create_dir(&dead).unwrap();
        fs::copy(&files(&dir)[0], dead.join("0")).unwrap();
        let mark = dir.join("CACHEDIR.TAG");
        for path in files(&dir).iter().chain([&mark, &dead.join("0")]) {
            if noise.below(2) == 0 {
                tear(path, &mut noise);
            }
        }
        marks += usize::from(!fs::read(&mark).is_ok_and(|text| text.starts_with(MARK)));
        // none of the three may fail, whichever is first
        match noise.below(3) {
            0 => drop(inspect(&dir, true, |_| true).unwrap()),
            1 => DiskCache::check(&dir).unwrap(),
            _ => {}
        }
        let cache = open(&dir);
        assert!(fs::read(&mark).unwrap().starts_with(MARK), "round {round}");
        assert!(!dead.exists(), "round {round}");
        for (bytes, n) in bytes.iter().zip(0_u64..) {
            let name = n.to_string();
            // a part first, which may be good where all is not
            let (at, length) = (noise.below(bytes.len()), 1 + noise.below(1000));
            let end = bytes.len().min(at + length);
            let part = get(&cache, &name, at as u64, end - at);
            assert!(part.is_none_or(|part| part == bytes[at..end]), "round {round}, a part of {n}");
            match get(&cache, &name, 0, bytes.len()) {
                Some(all) => {
                    assert!(all == *bytes, "round {round}, {n}");
                    kept += 1;
                }
                None => lost += 1,
            }
            put(&cache, &name, 0, bytes);
            assert!(get(&cache, &name, 0, bytes.len()).as_ref() == Some(bytes), "round {round}, {n} again");
        }
        drop(cache);
        let survey = inspect(&dir, true, |_| true).unwrap();
        assert_eq!((survey.bad_names, survey.foreign), (Vec::new(), 0), "round {round}");
    }
    assert!(lost > 50 && kept > 50 && marks > 5, "{lost} lost, {kept} kept, {marks} markers torn");
}

#[test]
fn a_torn_marker_is_written_again() {
    let (_folder, dir) = place();
    let cache = open(&dir);
    put(&cache, "a", 0, &[1; 100]);
    drop(cache);
    let mark = dir.join("CACHEDIR.TAG");
    let whole = fs::read(&mark).unwrap();
    let zeros = |from: usize, to: usize| [&whole[..from], &vec![0; to - from], &whole[to..]].concat();
    let mut torn: Vec<Option<Vec<u8>>> = (0..MARK.len()).map(|length| Some(whole[..length].to_vec())).collect();
    torn.extend([Some(zeros(0, whole.len())), Some(zeros(10, whole.len())), Some(zeros(0, 20)), None]);
    for torn in torn {
        match &torn {
            Some(text) => fs::write(&mark, text).unwrap(),
            None => fs::remove_file(&mark).unwrap(),
        }
        assert_eq!(inspect(&dir, true, |_| true).unwrap().total().files, 1, "{torn:?}");
        let cache = open(&dir);
        assert_eq!(get(&cache, "a", 0, 100), Some(vec![1; 100]), "{torn:?}");
        assert_eq!(fs::read(&mark).unwrap(), whole, "{torn:?}");
    }
    // it can be emptied without its marker, too
    fs::write(&mark, "").unwrap();
    assert_eq!(clear(&dir).unwrap().files, 1);
    // a cache that never came farther than its marker
    let (_folder, dir) = place();
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(dir.join("CACHEDIR.TAG"), [0; 100]).unwrap();
    drop(open(&dir));
    assert_eq!(fs::read(dir.join("CACHEDIR.TAG")).unwrap(), whole);
}

#[test]
fn a_folder_without_a_marker_that_has_anything_else_is_refused() {
    let (_folder, dir) = place();
    drop(open(&dir));
    let mark = dir.join("CACHEDIR.TAG");
    let whole = fs::read_to_string(&mark).unwrap();
    let refuses = |what: &str| {
        let refused = matches!(DiskCache::open(&dir, BUDGET), Err(DiskCacheError::ForeignFiles { .. }));
        assert!(refused && matches!(clear(&dir), Err(DiskCacheError::NoCache(_))), "{what}");
    };
    fs::write(&mark, whole.replace("volfs", "folds")).unwrap();
    refuses("the marker of another program");
    fs::write(&mark, "").unwrap();
    fs::write(dir.join("thesis.txt"), "years").unwrap();
    refuses("a file of somebody");
    fs::remove_file(dir.join("thesis.txt")).unwrap();
    fs::remove_dir(dir.join("writers")).unwrap();
    fs::create_dir(dir.join("00a")).unwrap();
    refuses("a folder of somebody");
    fs::write(dir.join("writers"), "").unwrap();
    refuses("a list of writers");
    fs::remove_dir(dir.join("00a")).unwrap();
    fs::remove_file(dir.join("writers")).unwrap();
    fs::remove_file(&mark).unwrap();
    symlink("/etc/hostname", &mark).unwrap();
    refuses("a link in place of the marker");
}

/// Runs on a disk that has room for so many files and folders.
fn on_small_disk(files: u32, run: impl FnOnce(PathBuf) + Send + 'static) {
    let folder = tempfile::tempdir().unwrap();
    if !nix::unistd::geteuid().is_root() {
        return skip("only root can mount a small disk");
    }
    let options = format!("size=8m,nr_inodes={files},mode=700");
    let none = nix::mount::MsFlags::empty();
    let mounted = nix::mount::mount(Some("tmpfs"), folder.path(), Some("tmpfs"), none, Some(options.as_str()));
    if let Err(error) = mounted {
        return skip(&format!("a small disk cannot be mounted: {error}"));
    }
    let dir = folder.path().join("cache");
    let outcome = thread::spawn(move || run(dir)).join();
    nix::mount::umount(folder.path()).unwrap();
    outcome.unwrap();
}

#[test]
fn a_cache_that_fills_its_disk_is_opened_again_and_can_be_emptied() {
    on_small_disk(40, |dir| {
        let cache = open(&dir);
        for n in 0..40 {
            put(&cache, &n.to_string(), 0, &content(n, 0, 1000));
        }
        let written = cache.statistics().files;
        assert!(written > 5 && cache.statistics().dropped > 5);
        drop(cache);
        // the folder that the process had is taken by others
        let mut taken = 0;
        while fs::write(dir.parent().unwrap().join(taken.to_string()), "").is_ok() {
            taken += 1;
        }
        let cache = open(&dir);
        wait_until_it_has(&cache, written);
        let found = (0..40).filter(|n| get(&cache, &n.to_string(), 0, 1000) == Some(content(*n, 0, 1000))).count();
        assert_eq!(found as u64, written);
        put(&cache, "more", 0, &[1; 1000]);
        assert_eq!((get(&cache, "more", 0, 1000), cache.statistics().dropped), (None, 1));
        assert_eq!(clear(&dir).unwrap().files, written);
        drop(cache);
        let cache = open(&dir);
        put(&cache, "more", 0, &[1; 1000]);
        assert!(get(&cache, "more", 0, 1000).is_some());
    });
}

/// Waits until a cache has so many files.
fn wait_until_it_has(cache: &DiskCache, files: u64) {
    let began = Instant::now();
    while cache.statistics().files < files {
        assert!(began.elapsed() < Duration::from_secs(30), "the scan does not end");
        thread::sleep(Duration::from_millis(1));
    }
}

//! Which bricks are decoded for what a client reads, and what is read ahead of it.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use memmap2::Mmap;
use nix::sys::signal::Signal;
use serde_json::json;
use tempfile::TempDir;

use crate::support::handmade::{Handmade, zfp_header};
use crate::support::{Mount, SOON, process_lives, settled, signal, test_data, volfs, wait_until, within};

const FILE: &str = "north.zgy/data/lod0.raw";

/// Returns the read-ahead process of a daemon, if it sleeps.
fn sleeping_read_ahead_process(daemon: i32) -> Option<i32> {
    let parent = |stat: &str| stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<i32>().ok();
    let is_it = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains("(volfs-ahead) S") && parent(&stat) == Some(daemon)
    };
    let processes = fs::read_dir("/proc").unwrap();
    processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).find(is_it)
}

fn read_ahead_process(mount: &Mount) -> i32 {
    let mut found = None;
    wait_until("the read-ahead process waits for requests", || {
        found = sleeping_read_ahead_process(mount.pid());
        found.is_some()
    });
    found.unwrap()
}

/// Reads the samples without a mount.
fn truth() -> Vec<u8> {
    let output = volfs().arg("cat").arg(test_data("demo/north.zgy")).output().unwrap();
    assert!(output.status.success());
    output.stdout
}

#[test]
fn the_pages_that_follow_are_read_before_the_reader_requests_them() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    let before = mount.counter("bytes_read");
    let mut file = File::open(mount.path(FILE)).unwrap();
    let mut piece = vec![0; 512 << 10];
    file.read_exact(&mut piece).unwrap();
    // the kernel alone reads 128 KiB ahead, and requests 128 KiB more when the reader enters those
    wait_until("more is read than was requested", || mount.counter("bytes_read") - before > 1 << 20);
    let mut rest = Vec::new();
    file.read_to_end(&mut rest).unwrap();
    assert!([piece, rest].concat() == truth());
}

#[test]
fn many_readers_at_once_read_the_right_bytes() {
    let Some(mount) = Mount::with(test_data("demo"), &["--cache-size", "1MiB"]) else { return };
    let truth = truth();
    thread::scope(|scope| {
        for n in 0..8 {
            let (mount, truth) = (&mount, &truth);
            scope.spawn(move || {
                let mut file = File::open(mount.path(FILE)).unwrap();
                let mut at = 0;
                let mut piece = vec![0; 30_000 * (n + 1)];
                loop {
                    let read = file.read(&mut piece).unwrap();
                    if read == 0 {
                        break;
                    }
                    assert!(piece[..read] == truth[at..at + read], "reader {n} at {at}");
                    at += read;
                }
                assert_eq!(at, truth.len());
            });
        }
    });
    assert!(mount.umount(&[]).status.success());
}

#[test]
fn the_process_keeps_no_file_open_and_ends_with_the_daemon() {
    for ending in [None, Some(Signal::SIGTERM), Some(Signal::SIGKILL)] {
        let Some(mount) = Mount::of(test_data("demo")) else { return };
        let pid = read_ahead_process(&mount);
        assert!(fs::read(mount.path(FILE)).unwrap() == truth());
        wait_until("it has closed the file", || open_files(pid).len() == 4);
        let open = open_files(pid);
        assert_eq!(open.iter().filter(|file| *file == Path::new("/dev/null")).count(), 3, "{open:?}");
        assert!(open.iter().any(|file| file.to_string_lossy().starts_with("socket:")), "{open:?}");
        assert_eq!(fs::read_link(format!("/proc/{pid}/cwd")).unwrap(), Path::new("/"));
        match ending {
            None => assert!(mount.umount(&[]).status.success()),
            Some(ending) => signal(mount.pid(), ending).unwrap(),
        }
        wait_until("both have gone", || !process_lives(mount.pid()) && !process_lives(pid));
    }
}

fn open_files(pid: i32) -> Vec<PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    entries.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok()).collect()
}

#[test]
fn readers_work_without_the_process() {
    for ending in [Signal::SIGKILL, Signal::SIGSTOP] {
        let Some(mount) = Mount::of(test_data("demo")) else { return };
        let truth = truth();
        let pid = read_ahead_process(&mount);
        signal(pid, ending).unwrap();
        assert!(fs::read(mount.path(FILE)).unwrap() == truth, "{ending}");
        assert!(mount.umount(&[]).status.success(), "{ending}");
        wait_until("the daemon has gone", || !process_lives(mount.pid()));
        if ending == Signal::SIGSTOP {
            // it may have ended with the daemon, and be reaped already
            let _ = signal(pid, Signal::SIGCONT);
        }
        wait_until("it has gone", || !process_lives(pid));
    }
}

#[test]
fn a_mount_with_direct_io_has_no_process() {
    let Some(mount) = Mount::with(test_data("demo"), &["--direct-io"]) else { return };
    assert_eq!(sleeping_read_ahead_process(mount.pid()), None);
    assert!(fs::read(mount.path(FILE)).unwrap() == truth());
}

/// Samples along each axis of the volumes.
const EXTENT: usize = 256;
/// Bytes of a sample, which is a float32 or uint32.
const SAMPLE: usize = 4;

const ROW: usize = EXTENT * SAMPLE;
const PLANE: usize = EXTENT * ROW;

/// Bytes that the kernel reads around a page fault, and the most that it requests at once, which is also what it requests
/// beyond the end of a long read.
const READ_AROUND: usize = 32 << 10;
const LONGEST_REQUEST: usize = 128 << 10;

/// A volume in bricks that have to be decoded.
struct Volume {
    source: TempDir,
    /// The folder of its layer in the mount.
    folder: &'static str,
    /// Samples along each axis of a brick.
    edge: usize,
}

impl Volume {
    fn brick(&self) -> usize {
        self.edge.pow(3) * SAMPLE
    }

    /// Returns the number of bricks along an axis.
    fn bricks(&self) -> usize {
        EXTENT / self.edge
    }

    /// Returns the number of bricks in a layer, which a plane touches all.
    fn layer(&self) -> usize {
        self.bricks().pow(2)
    }

    /// Returns how many bricks of the next layer the kernel touches that reads so many bytes beyond the end of a layer.
    fn beyond(&self, bytes: usize) -> usize {
        bytes.div_ceil(ROW * self.edge) * self.bricks()
    }

    /// A WKW dataset of one cube, whose blocks are LZ4-coded.
    fn wkw() -> Self {
        let edge = 32;
        let source = tempfile::tempdir().unwrap();
        let mag = source.path().join("volume/data/1");
        let blocks = (EXTENT / edge).pow(3);
        let data_at = 16 + 8 * blocks as u64;
        // 8 blocks of 32 samples along each axis, LZ4, uint32
        let header = |data_at: u64| [b"WKW\x01\x35\x02\x03\x04".as_slice(), &data_at.to_le_bytes()].concat();
        let (mut table, mut data) = (header(data_at), Vec::new());
        for block in 0..blocks {
            let samples = (0..edge.pow(3)).flat_map(|n| ((n / 7 + block) as u32).to_le_bytes());
            data.extend(lz4_flex::block::compress(&samples.collect::<Vec<u8>>()));
            table.extend((data_at + data.len() as u64).to_le_bytes());
        }
        fs::create_dir_all(mag.join("z0/y0")).unwrap();
        fs::write(mag.join("header.wkw"), header(0)).unwrap();
        fs::write(mag.join("z0/y0/x0.wkw"), [table, data].concat()).unwrap();
        let whole = json!({"topLeft": [0, 0, 0], "width": EXTENT, "height": EXTENT, "depth": EXTENT});
        let layer = json!({
            "name": "data", "category": "color", "elementClass": "uint32", "dataFormat": "wkw",
            "boundingBox": whole, "wkwResolutions": [{"resolution": 1, "cubeLength": EXTENT}],
        });
        let properties = json!({ "id": {"name": "volume", "team": ""}, "dataLayers": [layer], "scale": [1, 1, 1] });
        fs::write(source.path().join("volume/datasource-properties.json"), properties.to_string()).unwrap();
        Self { source, folder: "volume/data", edge }
    }

    /// A ZGY file whose bricks are ZFP-coded, all in one place of the file.
    fn zgy() -> Self {
        let edge = 64;
        let source = tempfile::tempdir().unwrap();
        let (shape, brick) = ([EXTENT as i32; 3], [edge as i32; 3]);
        // three levels of 64, 8 and 1 bricks, in 16, 4 and 1 columns
        let mut file = Handmade::new(4, 6, shape, brick, &[0; 73]);
        file.alpha = 21;
        let body = file.body_at();
        file.entries.fill(0xC0 << 56 | body);
        file.body = [zfp_header(brick, 2176), vec![0; 4096]].concat();
        fs::write(source.path().join("volume.zgy"), file.build()).unwrap();
        Self { source, folder: "volume.zgy/data", edge }
    }
}

/// Reads one byte of each page of a range, as a client does that copies from a memory map.
fn touch(map: &Mmap, bytes: Range<usize>) -> usize {
    let pages = bytes.clone().step_by(4096).chain([bytes.end - 1]);
    pages.map(|at| usize::from(map[at])).sum()
}

/// Mounts the volume anew, lets a client read a file of it, and returns how many bricks were decoded.
fn decoded(volume: &Volume, client: impl Fn(&Path)) -> Option<usize> {
    loop {
        let environment = [("RUST_LOG", "volfs=debug".to_owned())];
        let mount = Mount::of_store(volume.source.path().to_str().unwrap(), &environment, &[])?;
        assert!(mount.kernel_read_ahead().is_none_or(|kib| kib << 10 == READ_AROUND as u64));
        let folder = mount.path(volume.folder);
        client(&folder);
        // what is read ahead of the client comes later
        let bytes = settled(Duration::from_millis(150), || mount.counter("bytes_decoded")) as usize;
        assert!(bytes.is_multiple_of(volume.brick()), "{bytes}");
        // the source was written a moment ago: what was read before a refresh is decoded again after it
        if !mount.log().contains("is read again") {
            return Some(bytes / volume.brick());
        }
    }
}

#[allow(unsafe_code)]
fn map(file: &Path) -> Mmap {
    // SAFETY: the test's own source does not change
    unsafe { Mmap::map(&File::open(file).unwrap()).unwrap() }
}

/// Touches ranges of a file of the volume, one after the other, in a memory map.
fn mapped(volume: &Volume, ranges: Vec<Range<usize>>) -> Option<usize> {
    decoded(volume, move |folder| {
        let map = map(&folder.join("lod0.raw"));
        assert_eq!(map.len(), EXTENT * PLANE);
        ranges.iter().for_each(|range| {
            touch(&map, range.clone());
        });
    })
}

/// Reads ranges of a file of the volume, one after the other.
fn read(volume: &Volume, ranges: impl Iterator<Item = Range<usize>> + Clone) -> Option<usize> {
    decoded(volume, move |folder| {
        let file = File::open(folder.join("lod0.raw")).unwrap();
        for range in ranges.clone() {
            file.read_exact_at(&mut vec![0; range.len()], range.start as u64).unwrap();
        }
    })
}

fn plane(at: usize) -> Range<usize> {
    at * PLANE..(at + 1) * PLANE
}

#[test]
fn little_more_of_small_bricks_is_decoded_than_a_client_reads() {
    little_more_is_decoded_than_a_client_reads(&Volume::wkw());
}

#[test]
fn little_more_of_large_bricks_is_decoded_than_a_client_reads() {
    little_more_is_decoded_than_a_client_reads(&Volume::zgy());
}

fn little_more_is_decoded_than_a_client_reads(volume: &Volume) {
    let (edge, bricks, layer) = (volume.edge, volume.bricks(), volume.layer());
    // of what decodes fast little is kept at first: it is decoded again for another plane, and at times for the rest of one
    let (again, twice) = if edge == 32 { (layer / 4, 2) } else { (0, 1) };
    let Some(slice) = mapped(volume, vec![plane(100)]) else { return };
    assert!((layer..=layer + again).contains(&slice), "a slice: {slice} bricks");
    let each_in_its_layer = [1, 3, 0, 2].map(|at| plane(at * EXTENT / 4 + 5));
    let slices = mapped(volume, each_in_its_layer.to_vec()).unwrap();
    assert!((4 * layer..=4 * (layer + again)).contains(&slices), "slices of four layers: {slices} bricks");
    let last = mapped(volume, vec![plane(2 * edge - 1)]).unwrap();
    // by itself the kernel reads two windows ahead, also beyond the end of a layer
    let most = layer + again + volume.beyond(2 * READ_AROUND);
    assert!((layer..=most).contains(&last), "the last slice of a layer: {last} bricks");
    let slice = read(volume, [plane(100)].into_iter()).unwrap();
    assert!((layer..=layer + again).contains(&slice), "a slice by a read: {slice} bricks");
    // on a busy machine the kernel reads further ahead at times
    let last = (0..3).map(|_| read(volume, [plane(2 * edge - 1)].into_iter()).unwrap()).min().unwrap();
    let most = layer + again + volume.beyond(LONGEST_REQUEST);
    assert!((layer..=most).contains(&last), "the last slice of a layer by a read: {last} bricks");
    let slice = decoded(volume, |folder| {
        let is_turned = |name: &str| name.starts_with("lod0.by-") && name.ends_with(".npy");
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut turned: Vec<String> = names.filter(|name| is_turned(name)).collect();
        turned.sort();
        let map = map(&folder.join(&turned[0]));
        let header = map.len() - EXTENT * PLANE;
        touch(&map, header + 100 * PLANE..header + 101 * PLANE);
    })
    .unwrap();
    assert!((layer..=layer + again).contains(&slice), "a slice of a transposed view: {slice} bricks");
    let slices = read(volume, (0..EXTENT).step_by(16).map(plane)).unwrap();
    assert!((bricks * layer..=twice * bricks * layer).contains(&slices), "every 16th slice: {slices} bricks");
    // an eighth of each plane, of whose pages each has several rows; by itself the kernel reads 50 rows more
    let rows = (100..164).flat_map(|z| (112..144).map(move |y| z * PLANE + y * ROW + 100 * SAMPLE));
    let needed = (163 / edge - 100 / edge + 1) * (143 / edge - 112 / edge + 1) * bricks;
    let rows: Vec<Range<usize>> = rows.map(|at| at..at + 64 * SAMPLE).collect();
    let of_box = (0..3).map(|_| mapped(volume, rows.clone()).unwrap()).min().unwrap();
    assert!((needed..=(1 + twice) * needed).contains(&of_box), "a box: {of_box} bricks");
    assert_eq!(read(volume, (0..4).map(plane)), Some(layer), "the first MiB, which is four slices");
    // np.load with mmap_mode="r": Python reads as many bytes as the file prefers
    let header = decoded(volume, |folder| {
        let file = File::open(folder.join("lod0.npy")).unwrap();
        let preferred = file.metadata().unwrap().blksize() as usize;
        file.read_at(&mut vec![0; preferred], 0).unwrap();
    });
    assert_eq!(header, Some(bricks), "a header, with rows of a row of bricks behind it");
    let row = |z: usize, y: usize| z * PLANE + y * ROW..z * PLANE + (y + 1) * ROW;
    let trace = mapped(volume, vec![row(200, 50)]).unwrap();
    assert!((bricks..=2 * bricks).contains(&trace), "a trace: {trace} bricks");
}

/// The extent of a plane along each axis, and the length of a brick's edge.
const HUGE: u64 = 120_000;
const BRICK: u64 = 4;

#[test]
fn a_scan_that_enters_another_plane_holds_nobody_up() {
    let source = tempfile::tempdir().unwrap();
    // one layer of bricks has 900 million, of which none is stored
    let mag = source.path().join("huge/data/1");
    fs::create_dir_all(&mag).unwrap();
    // cubes of 32 bricks of 4 samples along each axis, plain, uint8
    fs::write(mag.join("header.wkw"), [b'W', b'K', b'W', 1, 0x52, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    let box_of_all = serde_json::json!({"topLeft": [0, 0, 0], "width": HUGE, "height": HUGE, "depth": 3});
    let layer = serde_json::json!({
        "name": "data", "category": "color", "elementClass": "uint8", "dataFormat": "wkw",
        "boundingBox": box_of_all, "wkwResolutions": [{"resolution": 1, "cubeLength": 1024}],
    });
    let properties = serde_json::json!({
        "id": {"name": "huge", "team": ""}, "dataLayers": [layer], "scale": [1, 1, 1],
    });
    fs::write(source.path().join("huge/datasource-properties.json"), properties.to_string()).unwrap();
    fs::copy(test_data("demo/north.zgy"), source.path().join("north.zgy")).unwrap();
    let Some(mount) = Mount::with(source.path(), &["--cache-size", "64MiB"]) else { return };
    let mut file = File::open(mount.path("huge/data/lod0.raw")).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 3 * HUGE * HUGE);
    let near_its_end = HUGE * HUGE - (2 << 20);
    file.seek(SeekFrom::Start(near_its_end / (HUGE * BRICK) * HUGE * BRICK)).unwrap();
    for piece in 0..4 {
        let mut bytes = vec![1; 1 << 20];
        let read = within(SOON, {
            let mut file = file.try_clone().unwrap();
            move || file.read_exact(&mut bytes).map(|()| bytes)
        });
        assert!(read.unwrap_or_else(|| panic!("MiB {piece} is waited for")).unwrap().iter().all(|b| *b == 0));
        let (other, name) = (mount.path("north.zgy/data/lod0.raw"), format!("lod{}.none", piece));
        let looked = within(SOON, move || (fs::metadata(&other).is_ok(), other.with_file_name(name).exists()));
        assert_eq!(looked, Some((true, false)), "after MiB {piece}");
    }
}

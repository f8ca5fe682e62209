//! The public API, as other programs use it: every dataset of the tests, against a plain model of the data path.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;

use volfs::{Array, Dtype, OpenError, OpenOptions, ReadError, Selection};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn demo(name: &str) -> PathBuf {
    data().join("demo").join(name)
}

/// Returns the paths of all datasets of the tests.
fn datasets() -> Vec<PathBuf> {
    let folders = ["demo", "segy", "vds", "wkw", "zgy"];
    let entries = folders.iter().flat_map(|folder| fs::read_dir(data().join(folder)).unwrap());
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Reads samples of any type, as bytes.
fn bytes(array: &Array, start: &[u64], shape: &[u64], step: &[u64]) -> Result<Vec<u8>, ReadError> {
    let size = array.dtype().size();
    let mut strides = vec![size as u64; shape.len()];
    (0..shape.len() - 1).rev().for_each(|axis| strides[axis] = strides[axis + 1] * shape[axis + 1]);
    let mut out = vec![0xa5; shape.iter().product::<u64>() as usize * size];
    let (start, shape, step) = (start.to_vec(), shape.to_vec(), step.to_vec());
    array.read_selections(&[Selection { start, shape, step, offset: 0, strides }], &mut out, None)?;
    Ok(out)
}

/// Takes the samples of a box out of an array in C order.
fn taken(array: &Array, whole: &[u8], start: &[u64], shape: &[u64], step: &[u64]) -> Vec<u8> {
    let (size, mut out) = (array.dtype().size(), Vec::new());
    for n in 0..shape.iter().product::<u64>() {
        let (mut rest, mut at, mut stride) = (n, 0, 1);
        for axis in (0..shape.len()).rev() {
            at += (start[axis] + rest % shape[axis] * step[axis]) * stride;
            rest /= shape[axis];
            stride *= array.shape()[axis];
        }
        out.extend(&whole[at as usize * size..][..size]);
    }
    out
}

#[test]
fn every_dataset_is_read_as_the_model_reads_it() {
    let (mut arrays, mut random) = (0, 1_u64);
    for path in datasets() {
        let dataset = match volfs::open(&path) {
            Ok(dataset) => dataset,
            Err(OpenError::Unsupported { .. } | OpenError::Damaged { .. }) => continue,
            Err(error) => panic!("{error}"),
        };
        let mut levels = volfs::internals::levels(&path).unwrap().into_iter();
        for layer in dataset.layers() {
            for lod in 0..layer.levels() {
                let (array, model) = (layer.level(lod).unwrap(), levels.next().unwrap());
                let Ok(whole) = model.read() else { continue };
                let shape = array.shape().to_vec();
                assert_eq!(shape, model.shape());
                let (zeros, ones) = (vec![0; shape.len()], vec![1; shape.len()]);
                assert!(bytes(&array, &zeros, &shape, &ones).unwrap() == whole, "{array}");
                for _ in 0..8 {
                    let mut below = |n: u64| {
                        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                        (random >> 33) % n
                    };
                    let start: Vec<u64> = shape.iter().map(|n| below(*n)).collect();
                    let step: Vec<u64> = shape.iter().map(|_| 1 + below(3)).collect();
                    let most = |axis: usize| (shape[axis] - start[axis]).div_ceil(step[axis]).min(50);
                    let part: Vec<u64> = (0..shape.len()).map(|axis| 1 + below(most(axis))).collect();
                    let expected = taken(&array, &whole, &start, &part, &step);
                    assert!(
                        bytes(&array, &start, &part, &step).unwrap() == expected,
                        "{array} {start:?} {part:?} {step:?}"
                    );
                }
                arrays += 1;
            }
        }
        assert!(levels.next().is_none(), "{}", path.display());
    }
    assert!(arrays > 100, "{arrays}");
}

#[test]
fn a_dataset_says_what_it_has() {
    let survey = volfs::open(demo("north.zgy")).unwrap();
    assert_eq!((survey.name(), survey.format()), ("north.zgy", "zgy"));
    assert_eq!(survey.metadata().unwrap()["layers"][0]["lods"], 3);
    let layer = survey.layer("DATA").unwrap().unwrap();
    assert_eq!((layer.name(), layer.levels(), layer.level(3).is_none()), ("data", 3, true));
    let array = layer.level(0).unwrap();
    assert_eq!((array.shape(), array.dtype()), (&[128, 96, 192][..], Dtype::Float32));
    let time = &array.axes()[2];
    assert_eq!((&*time.name, time.unit.as_deref(), time.first, time.step), ("sample", Some("ms"), 1200.0, 4.0));
    assert_eq!((array.scale_and_offset(), array.bytes()), (None, 128 * 96 * 192 * 4));
    assert_eq!(array.metadata().unwrap()["codec"], "zfp");
    assert!(survey.layer("depth").unwrap().is_none());
    let cells = volfs::open(demo("cells")).unwrap();
    let names: Vec<_> = cells.layers().map(|layer| layer.name().to_owned()).collect();
    assert_eq!(names, ["color", "segmentation"]);
    assert_eq!(cells.layer("data").unwrap().unwrap().name(), "color");
}

#[test]
fn regions_go_into_memory_of_the_caller() {
    let array = volfs::open(demo("north.zgy")).unwrap().layers().next().unwrap().level(0).unwrap();
    let inline: Vec<f32> = array.read((20,)).unwrap();
    let mut again = vec![0_f32; inline.len()];
    array.read_into((20, .., ..), &mut again).unwrap();
    assert!(inline == again && inline.iter().any(|sample| *sample != 0.0));
    let mut bytes = vec![0; 4 * inline.len()];
    array.read_bytes_into((20,), &mut bytes).unwrap();
    assert!(bytes.chunks(4).eq(inline.iter().map(|sample| sample.to_le_bytes())));
    assert!(matches!(array.read_bytes_into((20,), &mut bytes[1..]), Err(ReadError::Memory(_))));
    let patches: Vec<Vec<f32>> = array.read_many([(0..8, 0..8, 0..8), (4..12, 4..12, 4..12)]).unwrap();
    assert_eq!(patches[1], array.read::<f32>((4..12, 4..12, 4..12)).unwrap());
    assert!(array.read::<f32>((5..5,)).unwrap().is_empty());
    let wrong = array.read::<i16>(..).unwrap_err();
    assert_eq!(wrong, ReadError::Dtype { stored: Dtype::Float32, asked: Dtype::Int16 });
    assert!(matches!(array.read_into((20,), &mut again[1..]), Err(ReadError::Memory(_))));
    assert!(matches!(array.read::<f32>((128,)), Err(ReadError::Region(_))));
    // two samples in one place
    let row =
        Selection { start: vec![0; 3], shape: vec![1, 1, 4], step: vec![1; 3], offset: 0, strides: vec![0, 0, 2] };
    assert!(matches!(array.read_selections(&[row], &mut [0; 64], None), Err(ReadError::Memory(_))));
}

#[cfg(feature = "ndarray")]
#[test]
fn arrays_of_ndarray_have_the_axes_that_are_left() {
    let array = volfs::open(demo("north.zgy")).unwrap().layers().next().unwrap().level(1).unwrap();
    let slice = array.read_ndarray::<f32>((.., 7, 10..20)).unwrap();
    assert_eq!(slice.shape(), [64, 10]);
    assert_eq!(slice[[3, 4]], array.read::<f32>((3, 7, 14)).unwrap()[0]);
}

#[test]
fn files_are_those_of_a_mount() {
    let dataset = volfs::open(demo("north.zgy")).unwrap();
    let names = dataset.list("").unwrap().unwrap();
    assert_eq!(names, ["dataset.json", "outline.geojson", "data/", "data.ome.zarr/", "data.zarr/"]);
    assert_eq!(dataset.list("data.ome.zarr/0/c/0").unwrap().unwrap(), ["0/", "1/"]);
    assert_eq!((dataset.list("nothing").unwrap(), dataset.list("dataset.json").unwrap()), (None, None));
    assert_eq!((dataset.file_size("data").unwrap(), dataset.file_size("dataset.json/x").unwrap()), (None, None));
    let samples = dataset.layers().next().unwrap().level(0).unwrap().read::<f32>(..).unwrap();
    let samples: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    assert_eq!(dataset.file_size("DATA//lod0.raw").unwrap(), Some(samples.len() as u64));
    // more than is read at a time, and beyond the end
    let mut out = vec![0; samples.len() + 5];
    assert_eq!(dataset.read_file("data/lod0.raw", 3, &mut out).unwrap(), samples.len() - 3);
    assert!(out[..samples.len() - 3] == samples[3..]);
    assert_eq!(dataset.read_file("data/lod0.raw", u64::MAX, &mut out).unwrap(), 0);
    let missing = dataset.read_file("data/lod7.raw", 0, &mut out).unwrap_err();
    assert_eq!(missing.to_string(), "north.zgy/data/lod7.raw: there is no such file");
}

#[test]
fn a_read_can_be_ended() {
    let array = volfs::open(demo("north.zgy")).unwrap().layers().next().unwrap().level(0).unwrap();
    let (shape, strides) = (array.shape().to_vec(), vec![96 * 192 * 4, 192 * 4, 4]);
    let all = [Selection { start: vec![0; 3], shape, step: vec![1; 3], offset: 0, strides }];
    let mut out = vec![0; array.bytes() as usize];
    let mut asked = 0;
    // it may be over before anybody is asked
    match array.read_selections(
        &all,
        &mut out,
        Some(&mut || {
            asked += 1;
            false
        }),
    ) {
        Ok(()) => assert_eq!(asked, 0),
        Err(error) => assert!(error == ReadError::Interrupted && asked > 0, "{error}"),
    }
    array.read_selections(&all, &mut out, Some(&mut || true)).unwrap();
    assert!(out == array.read::<f32>(..).unwrap().iter().flat_map(|s| s.to_le_bytes()).collect::<Vec<_>>());
}

#[test]
fn samples_in_memory_are_read_without_waiting() {
    let array = volfs::open(demo("north.zgy")).unwrap().layers().next().unwrap().level(1).unwrap();
    // other tests of the process read this file, too, but have it open for themselves
    let row = |shape: u64| Selection {
        start: vec![3, 7, 0],
        shape: vec![1, 1, shape],
        step: vec![1; 3],
        offset: 0,
        strides: vec![64, 64, 4],
    };
    let mut out = [0; 64];
    assert!(!array.read_cached(&[row(16)], &mut out).unwrap());
    array.read_selections(&[row(16)], &mut out, None).unwrap();
    let mut again = [0; 64];
    assert!(array.read_cached(&[row(16)], &mut again).unwrap() && again == out && out != [0; 64]);
    assert!(matches!(array.read_cached(&[row(16)], &mut again[..63]), Err(ReadError::Memory(_))));
    assert!(matches!(array.read_cached(&[row(500)], &mut again), Err(ReadError::Region(_))));
}

#[test]
fn a_damaged_brick_is_named_and_read_around() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.zgy");
    let mut stored = fs::read(demo("north.zgy")).unwrap();
    let at = stored.windows(3).position(|bytes| bytes == b"zfp").unwrap();
    stored[at..at + 3].copy_from_slice(b"???");
    fs::write(&path, stored).unwrap();
    let array = volfs::open(&path).unwrap().layers().next().unwrap().level(0).unwrap();
    let error = array.read::<f32>((0, 0, 0)).unwrap_err();
    let ReadError::DamagedBrick { array: ref name, ref region, .. } = error else { panic!("{error}") };
    assert_eq!((&**name, &region[0]), ("damaged.zgy, layer data, lod 0", &(0..64)));
    assert!(error.to_string().starts_with("damaged.zgy, layer data, lod 0, brick [0, 0, 0] ([0..64, 0..64, 0..64]): "));
    assert_eq!(array.read::<f32>((64..,)).unwrap().len(), 64 * 96 * 192);
}

#[test]
fn what_is_no_dataset_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zgy");
    assert_eq!(volfs::open(&path).unwrap_err(), OpenError::NotFound(path.clone()));
    fs::write(&path, b"VBS\0").unwrap();
    assert!(matches!(volfs::open(&path), Err(OpenError::Damaged { .. } | OpenError::Unsupported { .. })));
    fs::write(&path, b"nothing").unwrap();
    assert!(matches!(volfs::open(&path), Err(OpenError::Unsupported { .. })));
    assert!(matches!(volfs::open(folder.path()), Err(OpenError::Unsupported { .. })));
    let wrong = OpenOptions::new().store_option("", "").open("/").unwrap_err();
    assert!(matches!(wrong, OpenError::Io { kind: ErrorKind::InvalidInput, .. }), "{wrong}");
}

#[test]
fn a_source_that_changes_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zgy");
    fs::copy(demo("north.zgy"), &path).unwrap();
    let dataset = volfs::open(&path).unwrap();
    let array = dataset.layers().next().unwrap().level(0).unwrap();
    let brick = (0..64, 0..64, 0..64);
    let before: Vec<f32> = array.read(brick.clone()).unwrap();
    let other = volfs::open(&path).unwrap().layers().next().unwrap().level(0).unwrap();
    other.read::<f32>(brick.clone()).unwrap();
    fs::write(&path, fs::read(data().join("zgy/v3_int8.zgy")).unwrap()).unwrap();
    // bricks that are not in the cache
    assert!(matches!(array.read::<f32>((64..,)), Err(ReadError::Changed(_) | ReadError::Io { .. })));
    // and those that are, a second later
    thread::sleep(std::time::Duration::from_millis(1100));
    for array in [other, array] {
        // and it stays so
        for _ in 0..3 {
            let read = array.read::<f32>(brick.clone());
            assert!(matches!(read, Err(ReadError::Changed(_))), "{} samples", before.len());
        }
    }
    assert_eq!(volfs::open(&path).unwrap().layers().next().unwrap().level(0).unwrap().dtype(), Dtype::Int8);
}

#[test]
fn many_threads_read_one_array() {
    let array = volfs::open(demo("cells")).unwrap().layer("color").unwrap().unwrap().level(0).unwrap();
    let whole: Vec<u8> = array.read(..).unwrap();
    let plane = whole.len() / array.shape()[0] as usize;
    thread::scope(|scope| {
        for n in 0..16 {
            let (array, whole) = (&array, &whole);
            scope.spawn(move || {
                for z in (0..array.shape()[0]).cycle().skip(n * 5).take(100) {
                    assert!(array.read::<u8>((z,)).unwrap() == whole[z as usize * plane..][..plane]);
                }
            });
        }
    });
}

#[test]
fn a_small_cache_reads_the_same() {
    let dataset = volfs::open(demo("south.vds")).unwrap();
    let array = dataset.layer("Amplitude").unwrap().unwrap().level(0).unwrap();
    let whole: Vec<f32> = array.read(..).unwrap();
    let before = volfs::cache_size();
    assert!(before > 1 << 20);
    for size in [0, 1 << 20] {
        volfs::set_cache_size(size);
        assert_eq!(volfs::cache_size(), size);
        let planes = (0..array.shape()[0]).flat_map(|n| array.read::<f32>((n,)).unwrap());
        assert!(planes.eq(whole.iter().copied()));
    }
    volfs::set_cache_size(before);
}

#[test]
fn a_dataset_that_is_dropped_leaves_nothing_open() {
    let count = |folder: &str| fs::read_dir(folder).unwrap().count();
    let maps = || fs::read_to_string("/proc/self/maps").unwrap().matches("north.zgy").count();
    let array = volfs::open(demo("north.zgy")).unwrap().layers().next().unwrap().level(0).unwrap();
    array.read::<f32>(..).unwrap();
    let before = count("/proc/self/fd");
    for _ in 0..2000 {
        let array = volfs::open(demo("north.zgy")).unwrap().layers().next().unwrap().level(2).unwrap();
        array.read::<f32>((0, 0)).unwrap();
    }
    // other tests run beside this one
    let after = count("/proc/self/fd");
    assert!(after < before + 100, "{before} descriptors were open, and {after} are now");
    assert!(maps() < 100, "{}", maps());
    assert!(count("/proc/self/task") < 100);
}

/// The memory and the locks of threads that a forked child does not have are not used by it.
#[test]
fn a_forked_child_reads_while_threads_of_its_parent_do() {
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, alarm, fork};
    use std::sync::atomic::{AtomicBool, Ordering};

    let array = volfs::open(demo("cells")).unwrap().layer("segmentation").unwrap().unwrap().level(0).unwrap();
    let survey = volfs::open(demo("north.zgy")).unwrap().layers().next().unwrap().level(0).unwrap();
    let whole = (array.read::<u32>(..), survey.read::<f32>(..));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for n in 0..3 {
            let (array, survey, stop) = (&array, &survey, &stop);
            scope.spawn(move || {
                for z in (n..90).cycle() {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    drop((array.read::<u32>((z,)), survey.read::<f32>((.., z))));
                }
            });
        }
        for n in 0..40 {
            // SAFETY: the child only reads, which is what is tested, and ends by `_exit`. A deadlock ends by the alarm.
            #[allow(unsafe_code)]
            match unsafe { fork() }.unwrap() {
                ForkResult::Child => {
                    alarm::set(60);
                    let same = (array.read::<u32>(..), survey.read::<f32>(..)) == whole;
                    #[allow(unsafe_code)]
                    // SAFETY: ends the process without its destructors.
                    unsafe {
                        nix::libc::_exit(if same { 0 } else { 1 })
                    }
                }
                ForkResult::Parent { child } => {
                    assert!(matches!(waitpid(child, None), Ok(WaitStatus::Exited(_, 0))), "child {n}");
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

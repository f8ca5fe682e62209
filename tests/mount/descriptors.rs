//! Mounts whose processes may have few open files: all datasets are read right, and readers who have files open go on.

use std::fs::{self, File};

use crate::support::wkw::expected;
use crate::support::{Mount, copy_all, crc, fixture, names, read_at, test_data};

const DATASETS: usize = 60;

#[test]
fn many_datasets_are_read_with_few_descriptors() {
    let source = tempfile::tempdir().unwrap();
    for n in 0..DATASETS {
        copy_all(&test_data("wkw/bare"), &source.path().join(format!("w{n}")));
        copy_all(&test_data("zgy/v3_int8.zgy"), &source.path().join(format!("z{n}.zgy")));
    }
    let arrays: Vec<_> = expected("arrays").into_iter().filter(|array| array["dataset"] == "bare").collect();
    let samples = fixture("v3_int8.zgy").samples(0).unwrap();
    for limit in [64, 128] {
        let Some(mount) = Mount::with_open_files(source.path(), limit) else { return };
        let readers: Vec<File> =
            (0..DATASETS).map(|n| File::open(mount.data(&format!("z{n}.zgy"), "lod0.raw")).unwrap()).collect();
        let first = readers.iter().map(|file| read_at(file, 0, 100));
        assert!(first.map(Result::unwrap).all(|found| found == samples[..100]), "limit {limit}");
        std::thread::scope(|scope| {
            for part in 0..4 {
                let (mount, arrays) = (&mount, &arrays);
                scope.spawn(move || {
                    for n in (part..DATASETS).step_by(4) {
                        for array in arrays {
                            let layer = mount.path(format!("w{n}")).join(array["layer"].as_str().unwrap());
                            let raw = fs::read(layer.join(format!("lod{}.raw", array["lod"])));
                            let raw = raw.unwrap_or_else(|error| panic!("limit {limit}, w{n}: {error}"));
                            assert_eq!(crc(&raw), array["crc32"], "limit {limit}, w{n}");
                        }
                    }
                });
            }
        });
        assert_eq!(names(mount.point()).len(), 2 * DATASETS + 1, "limit {limit}");
        for file in &readers {
            assert!(read_at(file, 0, samples.len()).unwrap() == samples, "limit {limit}");
        }
        let open = fs::read_dir(format!("/proc/{}/fd", mount.pid())).unwrap().count();
        assert!(open < limit as usize, "{open} of {limit}");
    }
}

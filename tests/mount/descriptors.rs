//! Mounts whose processes may have few open files: all datasets are read right, and readers who have files open go on.

use std::fs::{self, File};
use std::thread;
use std::time::Duration;

use crate::support::wkw::expected;
use crate::support::{HttpServer, Mount, Objects, copy_all, crc, fixture, fuse_or_skip, names, read_at, test_data};

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
        let Some(mount) = Mount::with_open_files(source.path(), &[], limit) else { return };
        let readers: Vec<File> =
            (0..DATASETS).map(|n| File::open(mount.data(&format!("z{n}.zgy"), "lod0.raw")).unwrap()).collect();
        let first = readers.iter().map(|file| read_at(file, 0, 100));
        assert!(first.map(Result::unwrap).all(|found| found == samples[..100]), "limit {limit}");
        thread::scope(|scope| {
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

#[test]
fn connections_to_a_store_leave_descriptors_for_others() {
    if !fuse_or_skip() {
        return;
    }
    let objects = Objects::default();
    for n in 0..DATASETS {
        objects.put_all(&format!("z{n}.zgy"), &test_data("zgy/v3_int8.zgy"));
    }
    // so slow that all who read wait at the same time
    let server = HttpServer::start(move |request| {
        thread::sleep(Duration::from_millis(100));
        objects.answer(request)
    });
    let environment = [
        ("AWS_ENDPOINT_URL", format!("http://{}", server.address())),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("AWS_SKIP_SIGNATURE", "true".to_owned()),
    ];
    let Some(mount) = Mount::with_open_files("s3://volfs", &environment, 64) else { return };
    let samples = fixture("v3_int8.zgy").samples(0).unwrap();
    thread::scope(|scope| {
        for n in 0..DATASETS {
            let file = mount.data(&format!("z{n}.zgy"), "lod0.raw");
            let samples = &samples;
            scope.spawn(move || assert!(fs::read(file).unwrap() == *samples, "z{n}"));
        }
    });
    // a connection that finds no descriptor fails, and its request is sent again
    let store = &mount.status()["store"];
    assert_eq!(store["retries"], 0, "{store}");
}

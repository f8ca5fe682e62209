//! The tree of a mount: names, attributes, descriptions, and what is refused.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use serde_json::{Value, json};
use support::{
    Fixture, Mount, comes_true, damaged, fixture, fixtures, floats, numbers, source_with, test_data, wait_until,
};

/// The names in a folder.
fn names(folder: impl AsRef<Path>) -> BTreeSet<String> {
    let folder = folder.as_ref();
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn copy_of(name: &str, to: PathBuf) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(test_data("zgy").join(name), to).unwrap();
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap())
}

#[test]
fn a_dataset_is_a_folder_with_its_views() {
    let source = source_with(&["v3_int16.zgy", "v3_float32.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    assert_eq!(names(mount.point()), set(&[".volfs", "v3_float32.zgy", "v3_int16.zgy"]));
    assert_eq!(names(mount.path(".volfs")), set(&["log", "status.json"]));
    assert_eq!(names(mount.path("v3_int16.zgy")), set(&["data", "dataset.json"]));
    let views = |lods: usize, suffixes: &[&str]| -> BTreeSet<String> {
        (0..lods).flat_map(|lod| suffixes.iter().map(move |s| format!("lod{lod}.{s}"))).collect()
    };
    let plain = ["raw", "json", "npy", "nhdr", "mhd", "by-crossline.npy", "by-sample.npy"];
    assert_eq!(names(mount.path("v3_float32.zgy/data")), views(4, &plain));
    let scaled = [&plain[..], &["float32.npy"]].concat();
    assert_eq!(names(mount.path("v3_int16.zgy/data")), views(3, &scaled));
}

#[test]
fn everything_is_read_only() {
    let source = source_with(&["v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    for folder in ["", ".volfs", "v3_int16.zgy", "v3_int16.zgy/data"] {
        let attributes = fs::metadata(mount.path(folder)).unwrap();
        assert!(attributes.is_dir());
        assert_eq!(attributes.permissions().mode() & 0o7777, 0o555, "{folder}");
    }
    for file in [".volfs/status.json", ".volfs/log", "v3_int16.zgy/dataset.json", "v3_int16.zgy/data/lod0.raw"] {
        let attributes = fs::metadata(mount.path(file)).unwrap();
        assert!(attributes.is_file());
        assert_eq!(attributes.permissions().mode() & 0o7777, 0o444, "{file}");
    }
}

#[test]
fn every_change_is_refused_with_erofs() {
    let source = source_with(&["v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let file = mount.data("v3_int16.zgy", "lod0.raw");
    let refused = |what: &str, result: io::Result<()>| {
        let error = result.expect_err(what);
        assert_eq!(errno(&error), Errno::EROFS, "{what}: {error}");
    };
    refused("write", File::options().write(true).open(&file).map(drop));
    refused("append", File::options().append(true).open(&file).map(drop));
    refused("create", File::create_new(mount.path("new")).map(drop));
    refused("unlink", fs::remove_file(&file));
    refused("mkdir", fs::create_dir(mount.path("folder")));
    refused("rmdir", fs::remove_dir(mount.path("v3_int16.zgy/data")));
    refused("rename", fs::rename(&file, mount.path("other")));
    refused("link", fs::hard_link(&file, mount.path("other")));
    refused("symlink", symlink("v3_int16.zgy", mount.path("other")));
    refused("chmod", fs::set_permissions(&file, PermissionsExt::from_mode(0o600)));
    let times = fs::FileTimes::new().set_modified(std::time::SystemTime::UNIX_EPOCH);
    refused("utimes", File::open(&file).and_then(|f| f.set_times(times)));
    let name = mount.point().to_owned();
    let attribute = rustix::fs::setxattr(name, "user.x", b"1", rustix::fs::XattrFlags::empty());
    assert_eq!(attribute, Err(rustix::io::Errno::ROFS));
}

#[test]
fn names_that_do_not_exist_are_not_found() {
    let source = source_with(&["v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    for name in [
        "nothing",
        "lod0.raw",
        ".volfs/nothing",
        "v3_int16.zgy/nothing",
        "v3_int16.zgy/error.txt",
        "v3_int16.zgy/data/lod7.raw",
        "v3_int16.zgy/data/lod00.raw",
        "v3_int16.zgy/data/lod0.raw.hdr",
        "v3_int16.zgy/data/.zarray",
        "V3_INT16.ZGY",
    ] {
        for _ in 0..2 {
            let error = fs::metadata(mount.path(name)).unwrap_err();
            assert_eq!(errno(&error), Errno::ENOENT, "{name}");
        }
    }
    let error = fs::metadata(mount.path("v3_int16.zgy/data/lod0.raw/below")).unwrap_err();
    assert_eq!(errno(&error), Errno::ENOTDIR);
}

#[test]
fn attributes_are_those_of_the_source() {
    let source = source_with(&["v3_int16.zgy"]);
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123_456_789);
    let file = File::options().write(true).open(source.path().join("v3_int16.zgy")).unwrap();
    file.set_times(fs::FileTimes::new().set_modified(long_ago)).unwrap();
    let original = file.metadata().unwrap();
    let Some(mount) = Mount::of(source.path()) else { return };
    for file in ["v3_int16.zgy/data/lod0.raw", "v3_int16.zgy/data/lod0.npy", "v3_int16.zgy/dataset.json"] {
        let shown = fs::metadata(mount.path(file)).unwrap();
        assert_eq!((shown.mtime(), shown.mtime_nsec()), (original.mtime(), original.mtime_nsec()), "{file}");
        assert_eq!((shown.ctime(), shown.ctime_nsec()), (original.ctime(), original.ctime_nsec()), "{file}");
        assert_eq!((shown.uid(), shown.gid()), (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw()));
    }
}

#[test]
fn inode_numbers_are_stable_and_tell_files_apart() {
    let source = source_with(&["v3_int16.zgy", "v3_int8.zgy", "bad_version.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let walk = || {
        let mut found = Vec::new();
        let mut folders = vec![mount.point().to_owned()];
        while let Some(folder) = folders.pop() {
            found.push((folder.clone(), fs::metadata(&folder).unwrap().ino()));
            for entry in fs::read_dir(&folder).unwrap() {
                let entry = entry.unwrap();
                let attributes = entry.metadata().unwrap();
                if attributes.is_dir() {
                    folders.push(entry.path());
                } else {
                    found.push((entry.path(), attributes.ino()));
                }
            }
        }
        found.sort();
        found
    };
    let first = walk();
    assert_eq!(first.iter().map(|(_, inode)| inode).collect::<BTreeSet<_>>().len(), first.len());
    std::thread::sleep(std::time::Duration::from_millis(1500)); // what the kernel remembers is forgotten
    assert_eq!(walk(), first);
}

#[test]
fn arrays_have_extended_attributes() {
    let source = source_with(&["v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let get = |file: &str, name: &str| {
        let mut value = [0_u8; 200];
        let length = rustix::fs::getxattr(mount.data("v3_int16.zgy", file), name, &mut value)?;
        Ok::<_, rustix::io::Errno>(String::from_utf8(value[..length].to_vec()).unwrap())
    };
    for file in ["lod0.raw", "lod0.npy"] {
        assert_eq!(get(file, "user.volfs.shape").unwrap(), "20,18,35");
        assert_eq!(get(file, "user.volfs.dtype").unwrap(), "int16");
        assert_eq!(get(file, "user.volfs.order").unwrap(), "C");
        assert_eq!(get(file, "user.volfs.format").unwrap(), "zgy");
        assert_eq!(get(file, "user.nothing"), Err(rustix::io::Errno::NODATA));
        let mut list = vec![0_u8; 500];
        let length = rustix::fs::listxattr(mount.data("v3_int16.zgy", file), &mut list).unwrap();
        let listed = String::from_utf8(list[..length].to_vec()).unwrap();
        let listed = listed.split_terminator('\0').map(str::to_owned).collect::<BTreeSet<_>>();
        let expected = ["dtype", "format", "order", "shape"].map(|name| format!("user.volfs.{name}"));
        assert_eq!(listed, BTreeSet::from(expected));
    }
}

#[test]
fn the_file_system_is_full() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    fs::read(mount.path("north.zgy/dataset.json")).unwrap();
    let space = rustix::fs::statvfs(mount.point()).unwrap();
    assert_eq!((space.f_bfree, space.f_bavail, space.f_ffree), (0, 0, 0));
    assert!(space.f_blocks > 0, "df hides a file system of no blocks");
    assert!(space.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY));
}

#[test]
fn status_is_always_fresh() {
    let source = source_with(&["v4_mixed.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let before = mount.status();
    assert_eq!(before["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(before["source"], source.path().to_str().unwrap());
    assert!(process_is_the_mount(before["pid"].as_i64().unwrap()));
    let samples = fs::read(mount.data("v4_mixed.zgy", "lod0.raw")).unwrap();
    let after = mount.status();
    let grown = |name: &str| {
        let count = |status: &Value| status["counters"][name].as_u64().unwrap_or_else(|| panic!("no {name}"));
        count(&after).checked_sub(count(&before)).unwrap_or_else(|| panic!("{name} has shrunk"))
    };
    assert!(grown("reads") >= 1);
    assert!(grown("bytes_read") >= samples.len() as u64);
    assert!(grown("bricks_decoded") >= 1);
    assert!(grown("bytes_decoded") >= 16 * 16 * 16 * 4);
    assert!(grown("source_bytes") >= 1);
    assert!(grown("cache_misses") >= 1);
    for name in ["cache_hits", "prefetched", "errors"] {
        grown(name);
    }
    assert!(after["counters"]["cache_bytes"].as_u64().unwrap() >= 1);
}

fn process_is_the_mount(pid: i64) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == Path::new(env!("CARGO_BIN_EXE_volfs")))
}

/// What lod0.json has to say, as far as the test data knows.
fn check_description(mount: &Mount, fixture: &Fixture, lod: usize) {
    let place = format!("{} LOD {lod}", fixture.name);
    let found = support::json(mount.data(&fixture.name, &format!("lod{lod}.json")));
    let level = &fixture.levels()[lod];
    let shape = numbers(&level["shape"]);
    let bytes = fixture.sample_bytes();
    for key in [
        "format",
        "dataset",
        "layer",
        "lod",
        "dtype",
        "byte_order",
        "order",
        "shape",
        "strides",
        "size",
        "axes",
        "brick_shape",
        "brick_grid",
        "bricks",
        "codec",
        "value_range",
        "no_value",
        "scale",
        "offset",
        "warnings",
        "zgy",
    ] {
        assert!(found.get(key).is_some(), "{place}: no {key}");
    }
    assert_eq!(found["format"], "zgy", "{place}");
    assert_eq!(found["dataset"], *fixture.name, "{place}");
    assert_eq!(found["layer"], "data", "{place}");
    assert_eq!(found["lod"], lod, "{place}");
    assert_eq!(found["dtype"], fixture.dtype(), "{place}");
    assert_eq!((&found["byte_order"], &found["order"]), (&json!("little"), &json!("C")), "{place}");
    assert_eq!(numbers(&found["shape"]), shape, "{place}");
    assert_eq!(numbers(&found["strides"]), [shape[1] * shape[2] * bytes, shape[2] * bytes, bytes], "{place}");
    assert_eq!(found["size"], shape.iter().product::<u64>() * bytes, "{place}");
    assert_eq!(found["brick_shape"], fixture.expected["bricksize"], "{place}");
    assert_eq!(found["brick_grid"], level["bricks"], "{place}");
    if let Some(kinds) = level.get("brick_kinds") {
        let count = |kind: &str| kinds[kind].as_u64().unwrap_or(0);
        let expected = [
            ("total", numbers(&level["bricks"]).iter().product::<u64>()),
            ("stored", count("stored") + count("compressed")),
            ("constant", count("constant")),
            ("missing", count("missing")),
        ];
        for (key, number) in expected {
            assert_eq!(found["bricks"][key], number, "{place}: bricks.{key}");
        }
        match (count("stored"), count("compressed")) {
            (0, 0) => {}
            (_, 0) => assert_eq!(found["codec"], "raw", "{place}"),
            (0, _) => assert_eq!(found["codec"], "zfp", "{place}"),
            _ => assert_eq!(found["codec"], "mixed", "{place}"),
        }
    }
    match fixture.expected.get("storage_to_float") {
        Some(scaling) => {
            assert_eq!(found["scale"], scaling["slope"], "{place}");
            assert_eq!(found["offset"], scaling["intercept"], "{place}");
        }
        None => assert_eq!((&found["scale"], &found["offset"]), (&Value::Null, &Value::Null), "{place}"),
    }
    assert!(found["warnings"].is_array(), "{place}");
    check_axes(fixture, lod, &shape, &found["axes"]);
}

fn check_axes(fixture: &Fixture, lod: usize, shape: &[u64], axes: &Value) {
    let Some(annotation) = fixture.expected.get("annot") else { return };
    let vertical = &fixture.expected["vertical"];
    let (start, step) = (floats(&annotation["start"]), floats(&annotation["inc"]));
    let first = [start[0], start[1], vertical["start"].as_f64().unwrap()];
    let steps = [step[0], step[1], vertical["inc"].as_f64().unwrap()];
    for (axis, name) in ["inline", "crossline", "sample"].into_iter().enumerate() {
        let found = &axes[axis];
        let place = format!("{} LOD {lod} {name}", fixture.name);
        assert_eq!(found["name"], name, "{place}");
        assert_eq!(found["count"], shape[axis], "{place}");
        assert_eq!(found["first"].as_f64(), Some(first[axis]), "{place}");
        assert_eq!(found["step"].as_f64(), Some(steps[axis] * f64::from(1 << lod)), "{place}");
        assert!(found.get("unit").is_some(), "{place}");
    }
}

#[test]
fn every_level_is_described() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    for fixture in fixtures() {
        for lod in 0..fixture.levels().len() {
            check_description(&mount, &fixture, lod);
        }
    }
}

#[test]
fn every_dataset_is_described() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    for fixture in fixtures() {
        let name = &fixture.name;
        let found = support::json(mount.path(name).join("dataset.json"));
        for key in ["format", "name", "version", "layers", "geometry", "statistics", "histogram", "metadata", "source"]
        {
            assert!(found.get(key).is_some(), "{name}: no {key}");
        }
        assert_eq!(found["format"], "zgy", "{name}");
        assert_eq!(found["name"], **name);
        assert_eq!(found["layers"].as_array().unwrap().len(), 1, "{name}");
        assert_eq!(found["layers"][0]["name"], "data", "{name}");
        assert_eq!(found["layers"][0]["dtype"], fixture.dtype(), "{name}");
        assert_eq!(numbers(&found["layers"][0]["shape"]), fixture.shape(), "{name}");
        assert!(found["warnings"].is_array(), "{name}");
        assert_eq!(found["metadata"], Value::Null, "{name}");
        assert_eq!(found["source"]["path"], **name);
        let original = fs::metadata(test_data("zgy").join(name)).unwrap();
        assert_eq!(found["source"]["size"], original.len(), "{name}");
        assert!(found["source"].get("mtime").is_some(), "{name}");
        assert_eq!(found["zgy"]["version"], fixture.expected["version"], "{name}");
        if let Some(ids) = fixture.expected.get("uuid") {
            for id in ["dataid", "verid", "previd"] {
                assert_eq!(found["zgy"][id], ids[id], "{name}: {id}");
            }
        }
        check_figures(&fixture, &found);
        check_corners(&fixture, &found["geometry"]["corners"]);
    }
}

/// A number of the test data as JSON has to show it: null where it is not finite.
fn shown(expected: &Value) -> Value {
    expected.as_f64().map_or(Value::Null, |n| json!(n))
}

fn check_figures(fixture: &Fixture, found: &Value) {
    let name = &fixture.name;
    let same = |found: &Value, expected: &Value, what: &str| {
        assert_eq!(found.as_f64(), shown(expected).as_f64(), "{name}: {what}");
    };
    if let Some(expected) = fixture.expected.get("statistics").filter(|s| !s.is_null()) {
        let found = &found["statistics"];
        for (key, theirs) in
            [("count", "cnt"), ("sum", "sum"), ("sum_of_squares", "ssq"), ("min", "min"), ("max", "max")]
        {
            same(&found[key], &expected[theirs], key);
        }
    }
    if let Some(expected) = fixture.expected.get("histogram") {
        let found = &found["histogram"];
        same(&found["count"], &expected["cnt"], "histogram.count");
        same(&found["min"], &expected["min"], "histogram.min");
        same(&found["max"], &expected["max"], "histogram.max");
        assert_eq!(found["bins"], expected["bins"], "{name}: bins");
    }
}

fn check_corners(fixture: &Fixture, found: &Value) {
    let Some(expected) = fixture.expected.get("corners") else { return };
    let name = &fixture.name;
    for corner in 0..4 {
        assert_eq!(found[corner]["index"], expected["index"][corner], "{name}: corner {corner}");
        assert_eq!(floats(&found[corner]["annotation"]), floats(&expected["annot"][corner]), "{name}: corner {corner}");
        if expected["world"].is_null() {
            assert_eq!(found[corner]["world"], Value::Null, "{name}: corner {corner}");
            continue;
        }
        for (a, b) in floats(&found[corner]["world"]).iter().zip(floats(&expected["world"][corner])) {
            assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{name}: corner {corner}: {a} and {b}");
        }
    }
}

#[test]
fn units_are_shown() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    let level = support::json(mount.data("north.zgy", "lod0.json"));
    assert_eq!(level["axes"][2]["unit"], "ms");
    assert_eq!(level["axes"][0]["first"].as_f64(), Some(1000.0));
    assert_eq!(level["axes"][0]["step"].as_f64(), Some(2.0));
    assert_eq!(level["axes"][2]["step"].as_f64(), Some(4.0));
}

/// The value of `key` in a text header.
fn field<'a>(header: &'a str, key: &str, separator: &str) -> &'a str {
    let found = header.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(separator));
    found.unwrap_or_else(|| panic!("no {key} in:\n{header}")).trim()
}

#[test]
fn nrrd_headers_name_the_samples() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    let header = fs::read_to_string(mount.data("v3_int16.zgy", "lod1.nhdr")).unwrap();
    let expected = [
        "NRRD0005",
        "# made by volfs",
        "type: int16",
        "dimension: 3",
        "sizes: 18 9 10",
        "space dimension: 3",
        "space units: \"m\" \"m\" \"ms\"",
        "space directions: (0,0,-4) (0,25,0) (50,0,0)",
        "space origin: (431955.25,7348400.5,-100)",
        "kinds: domain domain domain",
        "endian: little",
        "encoding: raw",
        "data file: lod1.raw",
        "dataset:=v3_int16.zgy",
        "layer:=data",
        "lod:=1",
        "",
    ];
    assert_eq!(header, expected.map(|line| format!("{line}\n")).concat());
    let of_bytes = fs::read_to_string(mount.data("v3_int8.zgy", "lod0.nhdr")).unwrap();
    assert_eq!(field(&of_bytes, "type", ": "), "int8");
    assert!(!of_bytes.contains("endian"), "{of_bytes}");
    let of_floats = fs::read_to_string(mount.data("v3_float32.zgy", "lod0.nhdr")).unwrap();
    assert_eq!(field(&of_floats, "type", ": "), "float");
}

#[test]
fn metaimage_headers_name_the_samples() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    let header = fs::read_to_string(mount.data("v3_int16.zgy", "lod1.mhd")).unwrap();
    let expected = [
        "ObjectType = Image",
        "NDims = 3",
        "BinaryData = True",
        "BinaryDataByteOrderMSB = False",
        "CompressedData = False",
        "TransformMatrix = 0 0 -1 0 1 0 1 0 0",
        "Offset = 431955.25 7348400.5 -100",
        "CenterOfRotation = 0 0 0",
        "ElementSpacing = 4 25 50",
        "DimSize = 18 9 10",
        "ElementType = MET_SHORT",
        "ElementDataFile = lod1.raw",
    ];
    assert_eq!(header, expected.map(|line| format!("{line}\n")).concat());
    for (name, expected) in [
        ("v3_int8", "MET_CHAR"),
        ("v3_type_uint8", "MET_UCHAR"),
        ("v3_type_uint16", "MET_USHORT"),
        ("v3_type_int32", "MET_INT"),
        ("v3_type_uint32", "MET_UINT"),
        ("v3_float32", "MET_FLOAT"),
    ] {
        let header = fs::read_to_string(mount.data(&format!("{name}.zgy"), "lod0.mhd")).unwrap();
        assert_eq!(field(&header, "ElementType", " = "), expected, "{name}");
    }
}

#[test]
fn damaged_files_say_why_and_hide_nothing() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    for fixture in damaged("open") {
        let folder = mount.path(&fixture.name);
        assert_eq!(names(&folder), set(&["error.txt"]), "{}", fixture.name);
        let why = fs::read_to_string(folder.join("error.txt")).unwrap();
        assert!(why.contains(fixture.expected["message"].as_str().unwrap()), "{}: {why}", fixture.name);
        assert!(why.ends_with('\n'), "{}: {why}", fixture.name);
    }
    let good = fixture("v3_int8.zgy");
    assert!(fs::read(mount.data(&good.name, "lod0.raw")).unwrap() == good.samples(0).unwrap());
}

#[test]
fn files_of_other_kinds_are_not_shown() {
    let source = source_with(&["v3_int8.zgy"]);
    fs::write(source.path().join("notes.txt"), "not a volume").unwrap();
    fs::write(source.path().join("liar.zgy"), "not a volume").unwrap();
    copy_of("v3_int16.zgy", source.path().join("by content"));
    let Some(mount) = Mount::of(source.path()) else { return };
    assert_eq!(names(mount.point()), set(&[".volfs", "by content", "liar.zgy", "v3_int8.zgy"]));
    assert!(mount.data("by content", "lod0.raw").exists());
    assert_eq!(names(mount.path("liar.zgy")), set(&["error.txt"]));
}

#[test]
fn folders_keep_their_place() {
    let source = source_with(&["v3_int8.zgy"]);
    copy_of("v3_int16.zgy", source.path().join("surveys/2019/base.zgy"));
    copy_of("v3_int8.zgy", source.path().join("surveys/2021/base.zgy"));
    let Some(mount) = Mount::of(source.path()) else { return };
    assert_eq!(names(mount.point()), set(&[".volfs", "surveys", "v3_int8.zgy"]));
    assert_eq!(names(mount.path("surveys")), set(&["2019", "2021"]));
    let samples = fs::read(mount.data("surveys/2019/base.zgy", "lod0.raw")).unwrap();
    assert!(samples == fixture("v3_int16.zgy").samples(0).unwrap());
    let samples = fs::read(mount.data("surveys/2021/base.zgy", "lod0.raw")).unwrap();
    assert!(samples == fixture("v3_int8.zgy").samples(0).unwrap());
    let described = support::json(mount.path("surveys/2019/base.zgy/dataset.json"));
    assert_eq!(described["source"]["path"], "surveys/2019/base.zgy");
    assert_eq!(described["name"], "base.zgy");
}

#[test]
fn one_file_can_be_the_source() {
    let source = source_with(&["v3_int8.zgy", "v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path().join("v3_int16.zgy")) else { return };
    assert_eq!(names(mount.point()), set(&[".volfs", "v3_int16.zgy"]));
    assert!(fs::read(mount.data("v3_int16.zgy", "lod0.raw")).unwrap() == fixture("v3_int16.zgy").samples(0).unwrap());
}

#[test]
fn datasets_are_named_as_their_files() {
    let source = source_with(&[]);
    let odd = ["100%.zgy", "a\tb\n.zgy", "Åsgård 3D.zgy", "100%/50%.zgy", "-rf.zgy", " .zgy"];
    for name in odd {
        copy_of("v3_int8.zgy", source.path().join(name));
    }
    let Some(mount) = Mount::of(source.path()) else { return };
    let expected = [".volfs", "100%.zgy", "100%", "a\tb\n.zgy", "Åsgård 3D.zgy", "-rf.zgy", " .zgy"];
    assert_eq!(names(mount.point()), set(&expected));
    for name in odd {
        assert!(mount.data(name, "lod0.raw").exists(), "{name}");
    }
    assert_eq!(support::json(mount.path("a\tb\n.zgy/dataset.json"))["name"], "a\tb\n.zgy");
}

#[test]
fn names_need_not_be_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let source = source_with(&[]);
    let name = std::ffi::OsStr::from_bytes(b"\xc5sg\xe5rd.zgy");
    copy_of("v3_int8.zgy", source.path().join(name));
    let Some(mount) = Mount::of(source.path()) else { return };
    let samples = fs::read(mount.path(name).join("data/lod0.raw")).unwrap();
    assert!(samples == fixture("v3_int8.zgy").samples(0).unwrap());
}

#[test]
fn a_dataset_may_bear_the_name_of_the_folder_about_the_mount() {
    let source = source_with(&[]);
    copy_of("v3_int8.zgy", source.path().join(".volfs"));
    let Some(mount) = Mount::of(source.path()) else { return };
    assert_eq!(names(mount.point()), set(&[".volfs", ".volfs~2"]));
    assert!(mount.data(".volfs~2", "lod0.raw").exists());
    assert!(mount.path(".volfs/status.json").exists());
}

#[test]
fn links_are_followed_inside_the_source_only() {
    let outside = source_with(&["v3_int16.zgy"]);
    let source = source_with(&[]);
    copy_of("v3_int8.zgy", source.path().join("folder/real.zgy"));
    symlink("folder/real.zgy", source.path().join("file.zgy")).unwrap();
    symlink("folder", source.path().join("linked")).unwrap();
    symlink("..", source.path().join("folder/circle")).unwrap();
    symlink(outside.path().join("v3_int16.zgy"), source.path().join("outside.zgy")).unwrap();
    symlink(outside.path(), source.path().join("elsewhere")).unwrap();
    symlink("nowhere", source.path().join("dangling.zgy")).unwrap();
    let Some(mount) = Mount::of(source.path()) else { return };
    let root = names(mount.point());
    assert!(root.is_superset(&set(&["file.zgy", "folder"])), "{root:?}");
    assert!(root.is_disjoint(&set(&["outside.zgy", "elsewhere", "dangling.zgy"])), "{root:?}");
    assert!(mount.data("file.zgy", "lod0.raw").exists());
    assert!(fs::metadata(mount.path("outside.zgy/data/lod0.raw")).is_err());
    if root.contains("linked") {
        assert!(mount.data("linked/real.zgy", "lod0.raw").exists());
    }
    drop(mount);
    let Some(mount) = Mount::with(source.path(), &["--follow-links"]) else { return };
    assert!(mount.data("outside.zgy", "lod0.raw").exists());
    assert!(mount.data("elsewhere/v3_int16.zgy", "lod0.raw").exists());
}

#[test]
fn a_mount_of_an_empty_folder_is_empty() {
    let source = source_with(&[]);
    let Some(mount) = Mount::of(source.path()) else { return };
    assert_eq!(names(mount.point()), set(&[".volfs"]));
}

#[test]
fn a_file_that_comes_or_goes_shows_within_a_second() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    assert!(!mount.path("late.zgy").exists());
    copy_of("v3_int16.zgy", source.path().join("late.zgy"));
    let soon = std::time::Duration::from_secs(10); // a second, and a lot for a busy machine
    assert!(comes_true(soon, || mount.data("late.zgy", "lod0.raw").exists()));
    assert!(comes_true(soon, || names(mount.point()).contains("late.zgy")));
    fs::remove_file(source.path().join("late.zgy")).unwrap();
    wait_until("the file has gone", || !mount.path("late.zgy").exists());
    wait_until("it is not listed", || !names(mount.point()).contains("late.zgy"));
}

#[test]
fn the_log_is_in_the_mount() {
    let source = source_with(&["bad_zfp_magic.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    fs::read(mount.data("bad_zfp_magic.zgy", "lod0.raw")).unwrap_err();
    let log = fs::read_to_string(mount.path(".volfs/log")).unwrap();
    assert!(log.lines().any(|line| line.contains("bad_zfp_magic.zgy")), "{log}");
    assert!(log.lines().count() <= 100);
}

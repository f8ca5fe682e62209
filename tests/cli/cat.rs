//! `volfs cat`.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use nix::sys::signal::Signal;

use super::{demo, output, run, zgy};
use crate::support::{
    HttpServer, Noise, Npy, Objects, damaged, fixture, fixtures, numbers, one_line_of_failure, program, signal,
    test_data, text, volfs, wait_for, wait_until,
};

/// Returns the box `ranges` of an array in C order.
fn slice(samples: &[u8], shape: &[u64], size: u64, ranges: &[(u64, u64)]) -> Vec<u8> {
    let mut out = Vec::new();
    for i in ranges[0].0..ranges[0].1 {
        for j in ranges[1].0..ranges[1].1 {
            let row = (i * shape[1] + j) * shape[2];
            let (from, to) = ((row + ranges[2].0) * size, (row + ranges[2].1) * size);
            out.extend_from_slice(&samples[from as usize..to as usize]);
        }
    }
    out
}

#[test]
fn every_level_is_printed_exactly() {
    for fixture in fixtures() {
        for lod in 0..fixture.levels().len() {
            let Some(samples) = fixture.samples(lod) else { continue };
            let found = output("cat", &["--lod", &lod.to_string()], &zgy(&fixture.name));
            assert!(found == samples, "{} lod {lod}", fixture.name);
        }
    }
}

#[test]
fn a_box_of_a_dataset_is_a_slice_of_it() {
    let mut noise = Noise::seeded(7);
    for name in ["v3_int8.zgy", "v2_int16.zgy", "v3_float32.zgy", "v4_mixed.zgy", "v3_brick_4x8x16.zgy"] {
        let fixture = fixture(name);
        let (shape, samples) = (fixture.shape(), fixture.samples(0).unwrap());
        for _ in 0..6 {
            let ranges: Vec<(u64, u64)> = shape
                .iter()
                .map(|n| {
                    let from = noise.below(*n as usize) as u64;
                    (from, from + 1 + noise.below((n - from) as usize) as u64)
                })
                .collect();
            let region: Vec<String> = ranges.iter().map(|(a, b)| format!("{a}:{b}")).collect();
            let region = region.join(",");
            let wanted = slice(&samples, &shape, fixture.sample_bytes(), &ranges);
            assert!(output("cat", &["--region", &region], &zgy(name)) == wanted, "{name} {region}");
            let npy = Npy::parse(&output("cat", &["--region", &region, "--format", "npy"], &zgy(name)));
            let lengths: Vec<u64> = ranges.iter().map(|(a, b)| b - a).collect();
            assert_eq!((npy.shape, npy.fortran_order, npy.descr), (lengths, false, fixture.descr()), "{name} {region}");
            assert!(npy.samples == wanted, "{name} {region}");
        }
    }
}

#[test]
fn slices_may_be_short_open_single_and_negative() {
    let fixture = fixture("v3_int16.zgy"); // 20 x 18 x 35
    let (shape, samples) = (fixture.shape(), fixture.samples(0).unwrap());
    for (region, ranges) in [
        ("3", [(3, 4), (0, 18), (0, 35)]),
        (":,-1", [(0, 20), (17, 18), (0, 35)]),
        ("-3:,:5,-5:-2", [(17, 20), (0, 5), (30, 33)]),
        (":,:,:", [(0, 20), (0, 18), (0, 35)]),
    ] {
        let found = output("cat", &["--region", region], &zgy("v3_int16.zgy"));
        assert!(found == slice(&samples, &shape, 2, &ranges), "{region}");
    }
    let npy = Npy::parse(&output("cat", &["--region", "3,4,5", "--format", "npy"], &zgy("v3_int16.zgy")));
    assert_eq!(npy.shape, [1, 1, 1]);
}

/// The demo has 9 MiB: it is printed in several chunks, and its last bricks along the crosslines extend beyond its edge.
#[test]
fn a_dataset_of_several_chunks_is_printed_whole() {
    let samples = volfs::internals::levels(&demo()).unwrap()[0].read().unwrap();
    assert!(output("cat", &["--layer", "data"], &demo()) == samples);
    let wanted = slice(&samples, &[128, 96, 192], 4, &[(1, 127), (0, 96), (1, 191)]);
    assert!(output("cat", &["--region", "1:127,:,1:191"], &demo()) == wanted);
}

#[test]
fn lines_are_found_by_their_numbers() {
    let samples = volfs::internals::levels(&demo()).unwrap()[0].read().unwrap();
    for (arguments, ranges) in [
        (&["--at", "inline=1004"][..], [(2, 3), (0, 96), (0, 192)]),
        (&["--at", "inline=1004:1010", "--at", "sample=1200:1208"], [(2, 6), (0, 96), (0, 3)]),
        (&["--at", "crossline=2095", "--region", "-1"], [(127, 128), (95, 96), (0, 192)]),
        (&["--at", "Crossline=2094:", "--region", "0:2,:,7"], [(0, 2), (94, 96), (7, 8)]),
    ] {
        let found = output("cat", arguments, &demo());
        assert!(found == slice(&samples, &[128, 96, 192], 4, &ranges), "{arguments:?}");
    }
    // a coarser level has every second line
    let found = output("cat", &["--lod", "1", "--at", "inline=1004", "--format", "npy"], &demo());
    assert_eq!(Npy::parse(&found).shape, [1, 48, 96]);
}

#[test]
fn positions_have_ranges_units_and_neighbours() {
    let cells = test_data("demo/cells");
    let npy =
        |arguments: &[&str], path: &Path| Npy::parse(&output("cat", &[arguments, &["--format", "npy"]].concat(), path));
    // planes are 28 nanometers apart
    let planes = npy(&["--region", "4:11"], &cells);
    for typed in ["z=100:300", "z=0.1um:0.3um", "Z=1e-7m:3.005e-7m", "z=112:280"] {
        let found = npy(&["--at", typed], &cells);
        assert_eq!((&found.shape, &found.samples), (&planes.shape, &planes.samples), "{typed}");
    }
    let plane = npy(&["--region", "4"], &cells);
    for typed in ["z=nearest:100", "z=nearest:0.12um", "z=0.112µm"] {
        assert!(npy(&["--at", typed], &cells).samples == plane.samples, "{typed}");
    }
    let survey = npy(&["--region", "21,:,0:3"], &demo());
    let typed = ["--at", "INLINE=nearest:1041", "--at", "sample=1.2s:1.209s"];
    assert!(npy(&typed, &demo()).samples == survey.samples);
}

#[test]
fn one_spelling_reads_all_formats() {
    for (dataset, first, other) in
        [("north.zgy", "data", "DATA"), ("south.vds", "Amplitude", "amplitude"), ("cells", "color", "COLOR")]
    {
        let path = test_data("demo").join(dataset);
        let samples = output("cat", &["--layer", first], &path);
        for layer in ["data", other] {
            assert!(output("cat", &["--layer", layer], &path) == samples, "{dataset} {layer}");
        }
    }
    let line = output("cat", &["--at", "inline=nearest:0"], &test_data("demo/south.vds"));
    assert!(line == output("cat", &["--region", "0"], &test_data("demo/south.vds")));
    // a layer that cannot be shown is not another one
    let pyramid = test_data("wkw/pyramid");
    assert!(output("cat", &["--layer", "RGB"], &pyramid) == output("cat", &["--layer", "rgb"], &pyramid));
    let line = one_line_of_failure(&run("cat", &["--layer", "ZARR"], &pyramid), 2);
    assert!(line.contains("--layer zarr cannot be shown: "), "{line}");
}

#[test]
fn arguments_that_do_not_fit_are_wrong_usage_and_the_error_names_what_fits() {
    for (arguments, part) in [
        (&["--layer", "x"][..], "there is no layer x; there is data"),
        (&["--layer", "dtaa"], "there is no layer dtaa; did you mean data?"),
        (&["--at", "inlin2=1"], "there is no axis inlin2; did you mean inline? there are inline, crossline, sample"),
        (&["--lod", "3"], "there is no LOD 3; layer data has LOD 0 to 2"),
        (&["--region", "128"], "128 is out of range: axis inline has 0 to 127"),
        (&["--region", ":,0:97"], "an end of 97 is out of range: axis crossline has 0 to 95"),
        (&["--region", "-129:"], "-129 is out of range: axis inline has 0 to 127"),
        (&["--region", ":,:,:,:"], "4 slices, but the array has 3 axes: inline, crossline, sample"),
        (&["--region", "5:5"], "5:5 is empty"),
        (&["--region", "5:3"], "5:3 runs backwards"),
        (&["--at", "inline=1001"], "axis inline has no 1001; the nearest is 1002 (it has 1000 to 1254 in steps of 2)"),
        (&["--at", "sample=0"], "axis sample has no 0; the nearest is 1200 (it has 1200 to 1964 in steps of 4 ms)"),
        (&["--at", "inline=1010:1004"], "runs in the other direction: give 1004:1010"),
        (&["--at", "inline=1001:1001.9"], "axis inline has nothing in 1001:1001.9 (it has 1000 to 1254 in steps of 2)"),
        (&["--at", "sample=1.5m"], "axis sample is in ms: 1.5m does not fit"),
        (&["--at", "inline=nearest:1um"], "axis inline has no unit: 1um does not fit"),
        (&["--at", "trace=1"], "there is no axis trace; there are inline, crossline, sample"),
        (&["--at", "inline=1004", "--region", "3"], "axis inline is given twice"),
        (&["--at", "inline=1004", "--at", "inline=1006"], "axis inline is given twice"),
    ] {
        let line = one_line_of_failure(&run("cat", arguments, &demo()), 2);
        assert!(line.starts_with("volfs: ") && line.contains(part), "{arguments:?}: {line}");
    }
    for arguments in
        [&["--region", "a"][..], &["--region", "1:2:3"], &["--at", "inline"], &["--at", "inline=x"], &["--lod", "-1"]]
    {
        let found = run("cat", arguments, &demo());
        assert_eq!((found.status.code(), text(&found.stdout)), (Some(2), String::new()), "{arguments:?}");
    }
}

#[test]
fn a_dataset_that_does_not_open_is_an_error_with_the_reason() {
    let line = one_line_of_failure(&run("cat", &[], &zgy("bad_magic.zgy")), 1);
    assert!(line.contains("bad_magic.zgy: not a ZGY file"), "{line}");
    let line = one_line_of_failure(&run("cat", &[], &test_data("zgy")), 1);
    assert!(line.contains("volfs ls"), "{line}");
    let line = one_line_of_failure(&run("cat", &[], &test_data("zgy/none.zgy")), 1);
    assert!(line.contains("No such file"), "{line}");
    assert!(line.contains("to see what is there type: volfs ls ") && line.ends_with("/zgy"), "{line}");
    let line = one_line_of_failure(&run("cat", &[], &test_data("demo/nort.zgy")), 1);
    assert!(line.ends_with(&format!("did you mean {}?", demo().display())), "{line}");
}

#[test]
fn a_damaged_brick_is_named_and_the_rest_can_be_read() {
    for fixture in damaged("read") {
        let brick = numbers(&fixture.expected["damaged_bricks"][0]["brick"]);
        let line = one_line_of_failure(&run("cat", &[], &zgy(&fixture.name)), 1);
        for part in [fixture.name.as_str(), "layer data", "lod 0", &format!("brick {brick:?}")] {
            assert!(line.contains(part), "no {part} in {line}");
        }
        let size = numbers(&fixture.expected["bricksize"])[0];
        assert!(line.contains(&format!("--region {}:", brick[0] * size)), "{line}");
        if brick[0] > 0 {
            let found = output("cat", &["--region", &format!(":{}", brick[0] * size)], &zgy(&fixture.name));
            assert!(fixture.samples(0).unwrap().starts_with(&found) && !found.is_empty(), "{}", fixture.name);
        }
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = volfs().arg("cat").arg(demo()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 16];
    let mut samples = child.stdout.take().unwrap();
    samples.read_exact(&mut first).unwrap();
    drop(samples);
    assert_eq!(wait_for(&mut child).code(), Some(0));
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(errors, "");
}

#[test]
fn a_full_disk_is_an_error() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = volfs().arg("cat").arg(demo()).stdout(full).stderr(Stdio::piped()).output().unwrap();
    let line = one_line_of_failure(&output, 1);
    assert!(line.contains("cannot write the output"), "{line}");
}

#[test]
fn layers_are_found_by_part_of_their_names() {
    let vds = test_data("demo/south.vds");
    let whole = output("cat", &["--layer", "Trace"], &vds);
    assert_eq!(whole.len(), 64 * 80);
    for name in ["trace", "TRACE", "tr"] {
        assert!(output("cat", &["--layer", name], &vds) == whole, "{name}");
    }
    let line = one_line_of_failure(&run("cat", &["--layer", "ampl"], &test_data("vds/four.vds")), 2);
    assert!(line.contains("ampl may be any of Amplitude, Amplitude@Dimensions_013"), "{line}");
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.raw");
    let name = file.to_str().unwrap();
    assert_eq!(output("cat", &["-o", name, "--lod", "2"], &demo()), b"");
    assert!(fs::read(&file).unwrap() == output("cat", &["--lod", "2"], &demo()));
    let before = fs::read(&file).unwrap();
    // a damaged brick, and a disk that is full
    let damaged = &damaged("read")[0];
    one_line_of_failure(&run("cat", &["-o", name], &zgy(&damaged.name)), 1);
    let line = one_line_of_failure(&run("cat", &["--output", "/dev/full"], &demo()), 1);
    assert!(line.contains("cannot write /dev/full: No space left"), "{line}");
    let line = one_line_of_failure(&run("cat", &["--output", &format!("{name}/b")], &demo()), 1);
    assert!(line.contains("a.raw/b: Not a directory"), "{line}");
    assert!(fs::read(&file).unwrap() == before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    // these names are standard output, and not files
    for name in ["-", "/dev/stdout"] {
        let printed =
            volfs().arg("cat").arg(demo()).args(["--lod", "2", "-o", name]).current_dir(&folder).output().unwrap();
        assert!(printed.stdout == before, "{name}: {}", text(&printed.stderr));
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// A volume of zeros that takes long to print.
fn long(folder: &Path) -> bool {
    let header = [b'W', b'K', b'W', 1, 0x56, 1, 4, 8, 16, 0, 0, 0, 0, 0, 0, 0];
    fs::create_dir_all(folder.join("1/z0/y0")).unwrap();
    fs::write(folder.join("1/header.wkw"), header).unwrap();
    let mut cube = File::create(folder.join("1/z0/y0/x0.wkw")).unwrap();
    cube.write_all(&header).unwrap();
    cube.set_len(16 + (64 << 30)).is_ok()
}

#[test]
fn an_interrupted_output_is_removed_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let volume = folder.path().join("volume");
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    if !long(&volume) {
        return;
    }
    let written = |out: &Path| fs::read_dir(out).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum::<u64>();
    for (sent, status, named) in
        [(Signal::SIGINT, 130, true), (Signal::SIGHUP, 129, true), (Signal::SIGTERM, 143, false)]
    {
        let (file, mut cat) = (out.join("a.raw"), volfs());
        cat.arg("cat").arg(&volume).args(["--region", "0:2000"]).stderr(Stdio::piped());
        if named {
            cat.arg("-o").arg(&file);
        } else {
            cat.stdout(File::create(&file).unwrap());
        }
        let mut cat = cat.spawn().unwrap();
        wait_until("a part is written", || written(&out) > 0);
        signal(cat.id().try_into().unwrap(), sent).unwrap();
        assert_eq!(wait_for(&mut cat).code(), Some(status));
        let mut words = String::new();
        cat.stderr.take().unwrap().read_to_string(&mut words).unwrap();
        if named {
            assert_eq!(words, format!("volfs: interrupted: {} is not written\n", file.display()));
            assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
        } else {
            assert!(
                words.starts_with("volfs: interrupted: only ") && words.ends_with(" of 62.50 GiB are written\n"),
                "{words}"
            );
        }
    }
}

/// As the shell of a script has it for what runs in the background, and nohup.
#[test]
fn signals_that_are_ignored_stay_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, out) = (folder.path().join("volume"), folder.path().join("a.raw"));
    if !long(&volume) {
        return;
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' INT HUP; exec \"$@\"", "sh"]).arg(program());
    shell.arg("cat").arg(&volume).args(["--region", "0:2000"]).stdout(File::create(&out).unwrap());
    let mut cat = shell.stderr(Stdio::null()).spawn().unwrap();
    let written = || fs::metadata(&out).unwrap().len();
    wait_until("a part is written", || written() > 0);
    for sent in [Signal::SIGINT, Signal::SIGHUP] {
        signal(cat.id().try_into().unwrap(), sent).unwrap();
        let before = written();
        wait_until("more is written", || written() > before + (64 << 20) || cat.try_wait().unwrap().is_some());
        assert_eq!(cat.try_wait().unwrap(), None, "{sent}");
    }
    signal(cat.id().try_into().unwrap(), Signal::SIGTERM).unwrap();
    assert_eq!(wait_for(&mut cat).code(), Some(143));
}

#[test]
fn samples_are_not_for_a_terminal() {
    // the master end of a pseudo-terminal is a terminal, too
    let terminal = || File::options().read(true).write(true).open("/dev/ptmx").unwrap();
    let cat = |force: &[&str]| {
        let mut command = volfs();
        command
            .arg("cat")
            .args(force)
            .args(["--region", "0,0,0"])
            .arg(demo())
            .stdout(terminal())
            .stderr(Stdio::piped());
        command.output().unwrap()
    };
    let line = one_line_of_failure(&cat(&[]), 2);
    assert!(line.contains("--force"), "{line}");
    assert_eq!(cat(&["--force"]).status.code(), Some(0));
}

/// Returns what `cat` writes to a file of this name.
fn written(name: &str, arguments: &[&str], path: &Path) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    assert_eq!(output("cat", &[arguments, &["-o", file.to_str().unwrap()]].concat(), path), b"");
    fs::read(&file).unwrap()
}

#[test]
fn a_box_has_the_form_that_is_named_or_that_of_its_file() {
    let region = ["--region", "3:5,10:17,20:31"];
    let samples = output("cat", &region, &demo());
    for (names, format) in [
        (&["a.raw", "a.bin", "npy"][..], "raw"),
        (&["a.npy", "a.b.NPY"], "npy"),
        (&["a.sgy", "a.segy"], "sgy"),
        (&["a.tif", "a.TIFF"], "tif"),
        (&["a.csv"], "csv"),
    ] {
        let named = output("cat", &[&region[..], &["--format", format]].concat(), &demo());
        for name in names {
            assert!(written(name, &region, &demo()) == named, "{name}");
        }
        assert!(written("a.csv", &[&region[..], &["--format", format]].concat(), &demo()) == named, "{format}");
    }
    assert!(written("a.raw", &region, &demo()) == samples);
    assert!(written("a.npy", &region, &demo()).ends_with(&samples));
    assert!(written("a.tif", &region, &demo())[4096..].starts_with(&samples));
    let segy = written("a.sgy", &region, &demo());
    assert_eq!(segy.len(), 3600 + 14 * (240 + 11 * 4));
    let number = |at: usize| i32::from_be_bytes(segy[at..at + 4].try_into().unwrap());
    let last = segy.len() - (240 + 11 * 4);
    assert_eq!([3600 + 188, last + 188, 3600 + 192, last + 192].map(number), [1006, 1008, 2010, 2016]);
    let values = segy[last + 240..].chunks(4).map(|value| [value[3], value[2], value[1], value[0]]);
    assert!(values.flatten().eq(samples[samples.len() - 44..].iter().copied()));
}

#[test]
fn a_table_has_a_row_for_each_sample() {
    let table = String::from_utf8(output("cat", &["--at", "inline=1004", "--format", "csv"], &demo())).unwrap();
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!((rows.len(), rows[0]), (1 + 96 * 192, "inline,crossline,sample (ms),world_x (m),world_y (m),value"));
    let samples = output("cat", &["--at", "inline=1004"], &demo());
    for (row, sample) in rows[1..].iter().zip(samples.chunks(4)) {
        let value: f32 = row.rsplit(',').next().unwrap().parse().unwrap();
        assert_eq!(value.to_le_bytes(), sample, "{row}");
    }
    let corner = "1004,2095,1964,";
    assert!(rows[rows.len() - 1].starts_with(corner), "{}", rows[rows.len() - 1]);
    // codes, and the values that they stand for
    let scaled = |more: &[&str]| {
        let arguments = [&["--region", "0,0,0:2", "--format", "csv"], more].concat();
        String::from_utf8(output("cat", &arguments, &zgy("v3_int16.zgy"))).unwrap()
    };
    let [codes, values] = [scaled(&[]), scaled(&["--scaled"])].map(|table| table.lines().count());
    assert!(codes == 3 && values == 3 && scaled(&[]) != scaled(&["--scaled"]));
}

#[test]
fn a_form_that_a_box_does_not_have_is_wrong_usage() {
    let cells = test_data("demo/cells");
    for (arguments, path, part) in [
        (&["--format", "sgy"][..], cells, "there is no sgy file of this box: it is no survey"),
        (&["--format", "tif"], test_data("vds/six.vds"), "no tif file of this box: a TIFF file is a stack of images"),
    ] {
        let line = one_line_of_failure(&run("cat", arguments, &path), 2);
        assert!(line.contains(part), "{line}");
    }
    assert_eq!(run("cat", &["--format", "jpg"], &demo()).status.code(), Some(2));
}

/// Paths that were asked for, with the ranges.
type Asked = Vec<(String, String)>;

/// Starts a web server of the files of `tests/data/zarr`, which lists none, and a log of the paths and ranges it is asked
/// for.
fn web_server() -> (HttpServer, Arc<Mutex<Asked>>) {
    let (objects, log) = (Objects::default(), Arc::<Mutex<Asked>>::default());
    objects.put_all("zarr", &test_data("zarr"));
    let asked = Arc::clone(&log);
    let server = HttpServer::start(move |request| {
        let (key, range) = (request.path.trim_start_matches('/'), request.header("range").unwrap_or("none"));
        asked.lock().unwrap().push((key.to_owned(), range.to_owned()));
        objects.object(request, key)
    });
    (server, log)
}

#[test]
fn a_web_server_shows_what_the_metadata_of_zarr_names() {
    let (server, _) = web_server();
    for (name, layer) in [("image-0.5.zarr", "data"), ("image-0.4.zarr", "labels%2Fcells"), ("v3.zarr/uint8", "data")] {
        let url = format!("http://{}/zarr/{name}", server.address());
        let print = |source: &Path| output("cat", &["--layer", layer], source);
        assert!(print(Path::new(&url)) == print(&test_data("zarr").join(name)), "{name}");
    }
}

#[test]
fn the_index_of_a_shard_comes_with_its_length() {
    let (server, log) = web_server();
    let url = format!("http://{}/zarr/v3.zarr/shards", server.address());
    assert!(output("cat", &[], Path::new(&url)) == output("cat", &[], &test_data("zarr/v3.zarr/shards")));
    let mut asked: Asked = log.lock().unwrap().clone();
    asked.retain(|(key, _)| key.contains("/shards/c/"));
    asked.sort_by_key(|(key, range)| (key.clone(), !range.starts_with("bytes=-")));
    // one request for the index, and one for all chunks
    let keys: Vec<&str> = asked.iter().map(|(key, _)| &**key).collect();
    assert!(!asked.is_empty() && keys.chunks(2).all(|pair| pair[0] == pair[1]), "{asked:#?}");
    assert!(asked.chunks(2).all(|pair| pair[0].1.starts_with("bytes=-") && !pair[1].1.starts_with("bytes=-")));
}

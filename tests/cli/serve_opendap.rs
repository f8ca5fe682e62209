//! OPeNDAP: the bytes of both protocols, and what never may be sent.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::support::volfs_server::{Answer, Server};
use super::support::{memory, test_data};
use super::{demo, output};

const LEVEL: &str = "/north.zgy/data/lod0";

fn demo_server() -> Server {
    Server::start(&test_data("demo"), &[])
}

fn decoded(server: &Server) -> u64 {
    server.get("/.volfs/status.json").json()["counters"]["bricks_decoded"].as_u64().unwrap()
}

/// Returns what is behind the declarations.
fn values(answer: &Answer) -> &[u8] {
    let (bytes, mark) = (answer.bytes(), b"\nData:\n");
    let at = bytes.windows(mark.len()).position(|window| window == mark).unwrap();
    &bytes[at + mark.len()..]
}

#[test]
fn dap2_has_the_samples_of_cat() {
    let server = demo_server();
    let dds = server.get(&format!("{LEVEL}.dds"));
    assert_eq!(
        dds.text(),
        "Dataset {\n    Float64 inline[inline = 128];\n    Float64 crossline[crossline = 96];\n    \
        Float64 sample[sample = 192];\n    Float32 data[inline = 128][crossline = 96][sample = 192];\n} north_zgy;\n"
    );
    assert_eq!((dds.status, dds.header("content-description")), (200, "dods_dds"));
    assert_eq!((dds.header("content-type"), dds.header("xdods-server")), ("text/plain; charset=utf-8", "dods/3.2"));
    let das = server.get(&format!("{LEVEL}.das"));
    assert!(das.text().contains("    sample {\n        String long_name \"sample\";\n        String units \"ms\";\n"));
    let whole = output("cat", &[], &demo());
    let sample = |at: [usize; 3]| &whole[((at[0] * 96 + at[1]) * 192 + at[2]) * 4..][..4];
    let part = server.get(&format!("{LEVEL}.dods?data%5b5:3:12%5d[7][0:50:191],inline[5:3:12]"));
    assert_eq!(
        (part.header("content-description"), part.header("content-type")),
        ("dods_data", "application/octet-stream")
    );
    let mut expected = [0, 0, 0, 12, 0, 0, 0, 12].to_vec();
    for inline in [5, 8, 11] {
        for n in [0, 50, 100, 150] {
            expected.extend(sample([inline, 7, n]).iter().rev());
        }
    }
    assert_eq!(values(&part)[..56], expected);
    assert_eq!(values(&part)[56..].len(), 8 + 3 * 8);
    // more than is kept in memory, in pieces
    let all = server.get(&format!("{LEVEL}.dods?data"));
    let samples: Vec<u8> = values(&all)[8..].chunks(4).flat_map(|b| [b[3], b[2], b[1], b[0]]).collect();
    assert!(samples == whole);
    assert_eq!(server.get(&format!("{LEVEL}.dods?data&")).bytes().len(), all.bytes().len());
    assert!(server.get("/south.vds/data/lod1.dds").text().contains("data[Inline = "));
}

#[test]
fn dap4_has_them_in_chunks() {
    let server = demo_server();
    let dmr = server.get(&format!("{LEVEL}.dmr"));
    assert_eq!(dmr.header("content-type"), "application/vnd.opendap.dap4.dataset-metadata+xml");
    assert!(dmr.text().contains("<Float32 name=\"data\">\n        <Dim name=\"/inline\"/>"), "{}", dmr.text());
    assert_eq!(server.get(&format!("{LEVEL}.dmr.xml")).text(), dmr.text());
    let whole = output("cat", &[], &demo());
    let dap = server.get(&format!("{LEVEL}.dap?dap4.ce=/data&dap4.checksum=true"));
    let (mut rest, mut chunks, mut flags) = (dap.bytes(), Vec::new(), Vec::new());
    while let [flag, a, b, c, after @ ..] = rest {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        flags.push(*flag);
        chunks.push(&after[..length]);
        rest = &after[length..];
    }
    assert!(flags[..flags.len() - 1].iter().all(|flags| *flags == 4) && flags.last() == Some(&5));
    let payload = chunks[1..].concat();
    let mut crc = flate2::Crc::new();
    crc.update(&whole);
    assert!(payload == [&whole[..], &crc.sum().to_le_bytes()].concat());
}

#[test]
fn heads_decode_nothing_and_say_the_length() {
    let server = demo_server();
    let before = decoded(&server);
    for path in ["dods?data[3][0:95][0:191]", "dods", "dap", "dap?dap4.ce=/data[0:1][][]", "dmr", "das"] {
        let path = format!("{LEVEL}.{path}");
        let head = server.request("HEAD", &path, &[]);
        assert_eq!((head.status, decoded(&server)), (200, before), "{path}");
        assert!(head.header("content-length").parse::<u64>().unwrap() > 100);
    }
    for path in ["dods?data[3:4][0:95][0:191]", "dap?dap4.ce=/data[0:1][][]", "dmr", "dds"] {
        let [get, head] = ["GET", "HEAD"].map(|method| server.request(method, &format!("{LEVEL}.{path}"), &[]));
        assert_eq!(head.header("content-length"), get.header("content-length"), "{path}");
        assert_eq!(get.bytes().len().to_string(), get.header("content-length"), "{path}");
    }
    assert!(decoded(&server) > before);
}

#[test]
fn expressions_that_lie_are_refused_in_the_form_of_the_protocol() {
    let server = demo_server();
    let memory_before = memory(server.pid(), "VmRSS");
    let nested = format!("dods?data{}", "[".repeat(10_000));
    let many = format!("dap?dap4.ce={}", "/inline;".repeat(1000));
    for (path, status) in [
        ("dods?data[0][0]", 400),
        ("dods?data[0][0][192]", 400),
        ("dods?data[99999999999999999999][0][0]", 400),
        ("dods?data[0:1152921504606846976][0][0]", 400),
        ("dods?data,data", 400),
        ("dods?data&data%3E3", 400),
        ("dds?nothing", 400),
        ("dods?%ff", 400),
        (&nested, 400),
        (&many, 400),
        ("dap?dap4.ce=/data;/inline", 400),
        ("dap?dap4.ce=/data%7Cdata%3E3", 400),
        ("dmr?dap4.checksum=2", 400),
    ] {
        let answer = server.get(&format!("{LEVEL}.{path}"));
        assert_eq!(answer.status, status, "{path}");
        if path.starts_with('d') && path.contains("dap4") {
            assert!(answer.text().contains(&format!("httpcode=\"{status}\"><Message>")), "{}", answer.text());
            assert_eq!(answer.header("content-type"), "application/vnd.opendap.dap4.error+xml");
        } else {
            assert!(answer.text().starts_with(&format!("Error {{\n    code = {status};\n    message = \"")));
            assert_eq!(answer.header("content-description"), "dods_error");
            assert_eq!(answer.header("cache-control"), "no-store");
        }
    }
    assert_eq!(server.get("/north.zgy/data/lod9.dds").status, 404);
    assert!(server.get("/north.zgy/lod0.dds").text().starts_with("not found"));
    assert!(memory(server.pid(), "VmRSS").saturating_sub(memory_before) < 16 << 20);
}

/// Makes a Zarr array of planes, of 1 MiB each, and damages one in the middle.
fn damaged_planes(folder: &std::path::Path, shape: [u64; 3]) {
    fs::create_dir_all(folder).unwrap();
    let about = serde_json::json!({
        "zarr_format": 2, "shape": shape, "chunks": [1, 512, 512], "dtype": "<f4", "order": "C",
        "compressor": {"id": "zlib", "level": 1}, "filters": null, "fill_value": 0.0
    });
    fs::write(folder.join(".zarray"), about.to_string()).unwrap();
    for plane in 0..12u8 {
        let samples: Vec<u8> = (0..512 * 512u32).flat_map(|n| (n as f32 + f32::from(plane)).to_le_bytes()).collect();
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&samples).unwrap();
        let mut bytes = encoder.finish().unwrap();
        if plane == 9 {
            let middle = bytes.len() / 2;
            bytes[middle..].fill(0xa5);
        }
        fs::write(folder.join(format!("{plane}.0.0")), bytes).unwrap();
    }
}

#[test]
fn a_damaged_brick_in_the_middle_is_an_error_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    damaged_planes(&folder.path().join("planes"), [12, 512, 512]);
    let server = Server::start(folder.path(), &[]);
    for path in ["dods?data", "dods", "dods?data[8:9][0:511][0:511]", "dap?dap4.ce=/data", "dap"] {
        let answer = server.get(&format!("/planes/data/lod0.{path}"));
        assert_eq!(answer.status, 500, "{path}");
        assert!(answer.text().contains(if path.starts_with("dap") { "httpcode=\"500\"" } else { "code = 500;" }));
    }
    assert_eq!(server.request("HEAD", "/planes/data/lod0.dods", &[]).status, 200);
    for path in ["dods?data[0:8][0:511][0:511]", "dap?dap4.ce=/data[10:11][][]"] {
        let answer = server.get(&format!("/planes/data/lod0.{path}"));
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.bytes().len() > 2 << 20);
    }
}

#[test]
fn what_clients_cannot_hold_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    damaged_planes(&folder.path().join("planes"), [1 << 40, 512, 512]);
    let server = Server::start(folder.path(), &[]);
    let get = |path: &str| server.get(&format!("/planes/data/lod0.{path}"));
    // a dimension that DAP2 cannot have
    assert_eq!((get("dds").status, get("dods?data[0][0][0]").status), (404, 404));
    assert_eq!((get("dmr").status, get("dap").status), (200, 413));
    for path in ["dap?dap4.ce=/data", "dap?dap4.ce=/data[0:1099511627775][][]", "dap?dap4.ce=/data[0:2047][][]"] {
        assert_eq!(get(path).status, 413, "{path}");
        assert_eq!(server.request("HEAD", &format!("/planes/data/lod0.{path}"), &[]).status, 413, "{path}");
    }
    assert_eq!(get("dap?dap4.ce=/data[1099511627775][0][0:3]").status, 200);
}

#[test]
fn samples_without_an_exact_form_are_refused_over_dap2() {
    let folder = tempfile::tempdir().unwrap();
    let array = folder.path().join("ids");
    fs::create_dir_all(&array).unwrap();
    let about = serde_json::json!({
        "zarr_format": 2, "shape": [2, 2], "chunks": [1, 2], "dtype": "<u8", "order": "C",
        "compressor": null, "filters": null, "fill_value": 0
    });
    fs::write(array.join(".zarray"), about.to_string()).unwrap();
    fs::write(array.join("0.0"), [7u64.to_le_bytes(), (1u64 << 53).to_le_bytes()].concat()).unwrap();
    fs::write(array.join("1.0"), [8u64.to_le_bytes(), u64::MAX.to_le_bytes()].concat()).unwrap();
    let server = Server::start(folder.path(), &[]);
    let good = server.get("/ids/data/lod0.dods?data[0][0:1]");
    assert_eq!(values(&good)[8..], [7f64.to_be_bytes(), (2f64.powi(53)).to_be_bytes()].concat());
    let refused = server.get("/ids/data/lod0.dods?data");
    assert_eq!(refused.status, 500);
    assert!(refused.text().contains("no exact Float64"), "{}", refused.text());
    let exact = server.get("/ids/data/lod0.dap?dap4.ce=/data[1][]&dap4.checksum=false");
    assert!(exact.bytes().ends_with(&[8u64.to_le_bytes(), u64::MAX.to_le_bytes()].concat()));
}

#[test]
fn levels_need_the_token_like_all_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let token = "0123456789abcdef0123";
    fs::write(&file, token).unwrap();
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let server = Server::start(&test_data("demo"), &["--token-file", file.to_str().unwrap()]);
    for form in ["dds", "dods?data[0][0][0]", "dmr", "dap"] {
        assert_eq!(server.get(&format!("{LEVEL}.{form}")).status, 401, "{form}");
        assert_eq!(server.get(&format!("/{token}{LEVEL}.{form}")).status, 200, "{form}");
    }
}

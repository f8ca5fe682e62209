//! With `--quality` only the beginning of each wavelet-coded chunk is asked for.

use std::fs;

use crate::support::{Mount, StoreServer, test_data};

#[test]
fn a_coarser_quality_fetches_fewer_bytes() {
    let Some(server) = StoreServer::start() else { return };
    server.put_all("lossless", &test_data("vds/lossless"));
    let environment = StoreServer::environment(server.address());
    let fetched = |arguments: &[&str]| {
        let mount = Mount::of_store(&StoreServer::url("lossless"), &environment, arguments)?;
        let file = mount.path("lossless/Amplitude/lod0.raw");
        let entered = mount.status()["store"]["bytes"].as_u64().unwrap();
        let bytes = fs::read(&file).unwrap();
        let store = mount.status()["store"].clone();
        Some((store["bytes"].as_u64().unwrap() - entered, bytes))
    };
    let Some((all, exact)) = fetched(&[]) else { return };
    let chunks: u64 = (0..6)
        .filter_map(|n| fs::metadata(server.file(&format!("lossless/Dimensions_012LOD0/{n}"))).ok())
        .map(|file| file.len())
        .sum();
    assert!(all >= chunks, "{all} of {chunks}");
    let mut before = all;
    for quality in ["0", "2", "6"] {
        let (bytes, samples) = fetched(&["--quality", quality]).unwrap();
        println!("{quality}: {bytes} of {all}");
        assert!(bytes < before - chunks / 50, "quality {quality}: {bytes} bytes, and {before} of a better one");
        assert_eq!(samples.len(), exact.len());
        before = bytes;
    }
    assert!(before < all / 2, "{before} of {all}");
}

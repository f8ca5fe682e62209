//! What is slow or refuses to answer in a store stops its own dataset and nobody else's.

use std::fs::{self, File};
use std::path::Path;
use std::thread;

use super::store_faults::{mount, server, truth};
use crate::support::{Fault, FaultProxy, names, read_at, wait_until};

/// Readers of the dataset that hangs: more than there are threads, and than requests of a dataset in flight.
const READERS: usize = 20;
const LENGTH: usize = 4096;

#[test]
fn an_object_that_hangs_stops_nobody_else() {
    let Some(server) = server() else { return };
    let truth = truth(&server);
    let proxy = FaultProxy::before(server.address());
    let Some(mount) = mount(&proxy, &["--threads", "2", "--cache-size", "1MiB"]) else { return };
    let hanging = ["demo/south.vds", "demo/cloud-survey"].map(|dataset| Path::new(dataset).join("Amplitude/lod0.raw"));
    hanging.iter().for_each(|file| assert!(fs::metadata(mount.path(file)).unwrap().len() == truth[file].len() as u64));
    proxy.set(|request| {
        let hangs = ["south.vds", "cloud-survey/Dimensions"].iter().any(|key| request.target.contains(key));
        (request.method == "GET" && hangs).then_some(Fault::Hang)
    });
    // each at another place of its file
    let place = |n: usize| (&hanging[n % 2], (truth[&hanging[n % 2]].len() - LENGTH) * n / READERS);
    let read = |n: usize| {
        let (file, offset) = (mount.path(place(n).0), place(n).1 as u64);
        thread::spawn(move || read_at(&File::open(file).unwrap(), offset, LENGTH))
    };
    let readers: Vec<_> = (0..READERS).map(read).collect();
    wait_until("requests hang", || proxy.passed().faults >= 2);
    for dataset in ["demo/north.zgy/data/lod0.raw", "vds/wavelet-no-pages/Amplitude/lod0.raw"] {
        assert!(fs::read(mount.path(dataset)).unwrap() == truth[Path::new(dataset)], "{dataset}");
    }
    assert!(names(mount.path("demo")).len() >= 3 && mount.status()["store"]["in_flight"].as_u64().unwrap() > 0);
    assert!(readers.iter().any(|reader| !reader.is_finished()), "the objects still hang");
    // their readers go on when they answer: the connections that hang are closed, and the requests sent again
    proxy.clear();
    proxy.drop_hanging();
    for (n, reader) in readers.into_iter().enumerate() {
        let (file, from) = place(n);
        assert!(reader.join().unwrap().unwrap() == truth[file][from..from + LENGTH], "reader {n}");
    }
    assert_eq!(mount.counter("errors"), 0);
}

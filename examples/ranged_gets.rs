//! Fetches objects of an S3 bucket with nothing but the client library: no mount of the bucket can be faster. Used by
//! `scripts/bench store`.
//!
//! `ranged_gets BUCKET IN_FLIGHT < KEYS` fetches the objects whose keys standard input has, one a line, so many at a
//! time, and prints the seconds and the bytes. Endpoint and credentials are in the environment, as for volfs.

use std::io::{self, BufRead};
use std::time::Instant;

use futures_util::{StreamExt, stream};
use object_store::ObjectStoreExt;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [bucket, in_flight] = arguments.as_slice() else {
        return Err(io::Error::other("give a bucket and the number of requests in flight"));
    };
    let in_flight: usize = in_flight.parse().map_err(io::Error::other)?;
    let keys: Vec<Path> = io::stdin().lock().lines().map(|line| line.map(Path::from)).collect::<io::Result<_>>()?;
    // fails only if there is one already
    let _ = rustls::crypto::ring::default_provider().install_default();
    let store = AmazonS3Builder::from_env().with_bucket_name(bucket).build().map_err(io::Error::other)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (seconds, bytes) = runtime.block_on(async {
        // the first connection is not what is measured
        if let Some(key) = keys.first() {
            store.head(key).await.map_err(io::Error::other)?;
        }
        let begin = Instant::now();
        let fetched = stream::iter(&keys).map(|key| {
            let store = &store;
            async move { store.get(key).await?.bytes().await }
        });
        let fetched: Vec<_> = fetched.buffer_unordered(in_flight).collect().await;
        let mut bytes = 0;
        for object in fetched {
            bytes += object.map_err(io::Error::other)?.len();
        }
        io::Result::Ok((begin.elapsed().as_secs_f64(), bytes))
    })?;
    println!("{seconds} {bytes}");
    Ok(())
}

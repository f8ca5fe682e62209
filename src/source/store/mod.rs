//! Object stores: S3, Azure Blob Storage, Google Cloud Storage, and files of web servers.
//!
//! A [`StoreTree`] is what a URL names. What is at a key is told by listings ([`names`]); an open file or folder
//! ([`object_reader`]) fetches ranges of objects, each once, however many threads want it ([`staging`]). All requests
//! go through one [`client`], on separate threads.

mod cache;
mod client;
mod connect;
mod error;
mod http;
mod names;
mod object_reader;
mod staging;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk_cache::DiskCache;
use super::{
    About, EntryKind, FileSource, FirstFailure, Folder, NoFolder, Place, RecentWrites, SourceError, StoreOption,
    StoreStatus, StoreUrl, Tree,
};
use crate::counters::Counters;
use cache::StoreCache;
use client::{At, Client, ObjectMeta, about, runtime, wait_for};
use connect::connect;
use names::prefix_of;
use object_reader::{ObjectReader, Store};

pub(crate) use connect::RetryPolicy;

/// Longer beginnings are not remembered.
const MAX_HEAD: u64 = 64;
/// In folders with more objects only those are looked into whose names say that they are datasets.
const MAX_LOOKS: usize = 256;

/// A bucket, or what is below a key in it.
pub(crate) struct StoreTree {
    store: Arc<Store>,
    source: PathBuf,
}

impl StoreTree {
    /// Creates the tree of a URL, in which `signs` are the names of objects that describe datasets. Nothing is sent yet.
    /// Bytes are counted in `counters`.
    pub(crate) fn open(
        url: StoreUrl,
        signs: Vec<&'static str>,
        options: &[StoreOption],
        policy: RetryPolicy,
        disk: Option<DiskCache>,
        counters: Arc<Counters>,
    ) -> io::Result<Arc<Self>> {
        // the HTTP client looks for the runtime's ciphers
        runtime()?;
        let backend = connect(&url, options, policy)?;
        let at = if backend.endpoint.is_empty() { String::new() } else { format!("@{}", backend.endpoint) };
        let cache = disk.map(|cache| StoreCache { cache, place: url.base.clone() + &at });
        let client = Client::new(backend, url.base.clone(), counters)?;
        Ok(Self::with_client(url, signs, client, cache))
    }

    fn with_client(url: StoreUrl, signs: Vec<&'static str>, client: Client, cache: Option<StoreCache>) -> Arc<Self> {
        Arc::new(Self { source: url.path(), store: Store::new(url, signs, client, cache) })
    }
}

fn place(store: &Arc<Store>, key: &str) -> io::Result<Box<dyn Place>> {
    let meta = match store.names.look(key)? {
        At::Nothing => return Err(io::Error::new(io::ErrorKind::NotFound, "there is no such object or folder")),
        At::Folder => None,
        At::File(meta) => Some(meta),
    };
    let about = about(key, meta.as_ref());
    Ok(Box::new(StorePlace { store: Arc::clone(store), key: key.into(), about, meta }))
}

impl Tree for StoreTree {
    fn source(&self) -> &Path {
        &self.source
    }

    fn look(&self, path: &Path) -> io::Result<Option<Box<dyn Place>>> {
        self.store.url.key_of(path).map(|key| place(&self.store, &key)).transpose()
    }

    fn about_base(&self, path: &Path) -> io::Result<About> {
        // the folder around the only dataset, for which list permission may be missing
        if path != self.source {
            return Ok(about(&self.store.url.key_of(path).unwrap_or_default(), None));
        }
        Ok(*place(&self.store, &self.store.url.key)?.about())
    }

    fn store_status(&self) -> Option<StoreStatus> {
        let store = &self.store;
        let disk = store.cache.as_ref().map(|cache| cache.cache.statistics());
        Some(StoreStatus { disk, ..store.client.backend.metrics.status(store.staging.bytes()) })
    }
}

struct StorePlace {
    store: Arc<Store>,
    key: Box<str>,
    about: About,
    /// `None` for a folder.
    meta: Option<ObjectMeta>,
}

impl StorePlace {
    fn meta(&self) -> io::Result<&ObjectMeta> {
        self.meta.as_ref().ok_or_else(|| io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"))
    }
}

impl Place for StorePlace {
    fn about(&self) -> &About {
        &self.about
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn is_in_crowd(&self) -> bool {
        let (parent, _) = self.key.rsplit_once('/').unwrap_or(("", &self.key));
        self.store.names.count_known(parent) > MAX_LOOKS
    }

    fn is_crowd(&self) -> bool {
        self.store.names.count_known(&self.key) == usize::MAX
    }

    fn find(&self, name: &Path) -> io::Result<Option<Box<dyn Place>>> {
        let names: Option<Vec<&str>> = name.iter().map(OsStr::to_str).collect();
        // keys are text
        let names = names.ok_or(io::ErrorKind::NotFound)?;
        place(&self.store, &(prefix_of(&self.key) + &names.join("/"))).map(Some)
    }

    fn subfolder(&self, name: &OsStr) -> io::Result<Option<Box<dyn Place>>> {
        Ok(self.find(name.as_ref())?.filter(|place| place.about().is_folder()))
    }

    fn visit(&self, visit: &mut dyn FnMut(&OsStr, EntryKind) -> bool) -> io::Result<()> {
        Ok(self.store.names.visit(&self.key, &mut |name, kind| visit(name.as_ref(), kind))?)
    }

    fn read_head(&self, most: u64) -> io::Result<Vec<u8>> {
        let meta = self.meta()?;
        let most = most.min(meta.size);
        if most == 0 {
            return Ok(Vec::new());
        }
        let known = self.store.heads.lock().get(&self.about.version).cloned();
        if let Some(head) = known.filter(|head| head.len() as u64 == most) {
            return Ok(head.to_vec());
        }
        let fetched = wait_for(self.store.client.get(&self.key, (0..most).into(), Some(meta)))??;
        let fetched = fetched.ok_or(io::ErrorKind::NotFound)?;
        if most <= MAX_HEAD {
            self.store.heads.lock().put(self.about.version, Arc::from(&*fetched.bytes));
        }
        Ok(fetched.bytes.to_vec())
    }

    fn open_file(&self, _path: &Path, _recent: &Arc<RecentWrites>) -> Result<Arc<dyn FileSource>, SourceError> {
        // an etag tells versions apart however fast they follow each other, so nothing has to be read again
        let meta = self.meta().map_err(|error| SourceError::io("cannot open it", &error))?;
        Ok(Arc::new(ObjectReader::new(&self.store, &self.key, Some(meta.clone()), FirstFailure::default())))
    }

    fn open_folder(self: Box<Self>, _recent: &Arc<RecentWrites>) -> Result<Arc<dyn Folder>, NoFolder> {
        match self.meta {
            Some(_) => Err(NoFolder::NotAFolder),
            None => Ok(Arc::new(ObjectReader::new(&self.store, &self.key, None, FirstFailure::default()))),
        }
    }

    fn open_shared_folder(self: Box<Self>, recent: &Arc<RecentWrites>) -> Result<Arc<dyn Folder>, NoFolder> {
        self.open_folder(recent)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::time::{Duration, Instant};

    use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
    use object_store::memory::InMemory;
    use object_store::path::Path as Key;
    use object_store::{Attribute, Attributes, ObjectStore, PutOptions, PutPayload};

    use super::connect::Backend;
    use super::*;
    use crate::source::{Blocking, Source, last_bytes};

    /// Lists everything on each page: one, or, if there is a mark of the next one, pages without end.
    struct Pages(Arc<InMemory>, Option<&'static str>);

    type Listed<'a> = Pin<Box<dyn Future<Output = object_store::Result<PaginatedListResult>> + Send + 'a>>;

    impl PaginatedListStore for Pages {
        fn list_paginated<'a, 'b, 'future>(
            &'a self,
            prefix: Option<&'b str>,
            _options: PaginatedListOptions,
        ) -> Listed<'future>
        where
            'a: 'future,
            'b: 'future,
            Self: 'future,
        {
            Box::pin(async move {
                let prefix = prefix.map(Key::parse).transpose().map_err(object_store::Error::from)?;
                let result = self.0.list_with_delimiter(prefix.as_ref()).await?;
                Ok(PaginatedListResult { result, page_token: self.1.map(str::to_owned) })
            })
        }
    }

    /// Returns a backend of objects in memory; without listings unless `lists`.
    fn backend(objects: &Arc<InMemory>, lists: bool) -> Backend {
        let pages = lists.then(|| Arc::new(Pages(Arc::clone(objects), None)) as Arc<dyn PaginatedListStore>);
        Backend { objects: Arc::clone(objects) as _, pages, endpoint: String::new(), metrics: Arc::default() }
    }

    /// A store, and the tree of `mem://`-like URLs over it.
    pub(super) struct Fixture {
        objects: Arc<InMemory>,
        lists: bool,
    }

    impl Fixture {
        pub(super) fn new(objects: &[(&str, &[u8])]) -> Self {
            let this = Self { objects: Arc::default(), lists: true };
            objects.iter().for_each(|(key, bytes)| this.put(key, bytes, None));
            this
        }

        pub(super) fn put(&self, key: &str, bytes: &[u8], tag: Option<&str>) {
            let tags = tag.map(|tag| (Attribute::Metadata("vdsChunkMetadata".into()), tag.to_owned()));
            let options = PutOptions { attributes: Attributes::from_iter(tags), ..PutOptions::default() };
            let key = Key::from(key);
            let put = self.objects.put_opts(&key, PutPayload::from(bytes.to_vec()), options);
            wait_for(put).unwrap().unwrap();
        }

        pub(super) fn client(&self, base: &str) -> Client {
            Client::new(backend(&self.objects, self.lists), base.to_owned(), Arc::default()).unwrap()
        }

        fn tree(&self, url: &str) -> Arc<StoreTree> {
            let url = StoreUrl::parse(Path::new(url)).unwrap();
            let client = self.client(&url.base);
            StoreTree::with_client(url, vec!["LayerStatus", "info"], client, None)
        }
    }

    fn look(tree: &StoreTree, path: &str) -> Option<bool> {
        tree.look(Path::new(path)).ok().flatten().map(|place| place.about().is_folder())
    }

    fn names(tree: &StoreTree, path: &str) -> Vec<String> {
        let mut names = Vec::new();
        let place = tree.look(Path::new(path)).unwrap().unwrap();
        place
            .visit(&mut |name, kind| {
                let slash = if kind == EntryKind::Folder { "/" } else { "" };
                names.push(format!("{}{slash}", name.to_str().unwrap()));
                true
            })
            .unwrap();
        names.sort();
        names
    }

    fn open(tree: &StoreTree, path: &str) -> Arc<dyn Folder> {
        tree.look(Path::new(path)).unwrap().unwrap().open_folder(&RecentWrites::ignored()).unwrap()
    }

    fn read(source: &dyn Source, object: &str, offset: u64, length: usize) -> Result<Option<Vec<u8>>, SourceError> {
        let mut out = vec![0; length];
        Ok(source.read_at(object, offset, &mut out, Blocking::Yes)?.then_some(out))
    }

    #[test]
    fn keys_are_folders_and_files() {
        let store = Fixture::new(&[("a/b/c.zgy", b"0123"), ("a/b/d/e", b""), ("a/f", b"1"), ("a/b/f", b"")]);
        let tree = store.tree("s3://bucket/a");
        assert_eq!(tree.source(), Path::new("s3://bucket/a"));
        assert_eq!(look(&tree, "s3://bucket/a"), Some(true));
        assert_eq!(look(&tree, "s3://bucket/a/f"), Some(false));
        assert_eq!(look(&tree, "s3://bucket/a/b/d"), Some(true));
        assert_eq!((look(&tree, "s3://bucket/a/g"), look(&tree, "s3://bucket/a/b/d/e/f")), (None, None));
        assert_eq!((look(&tree, "/a/f"), look(&tree, "s3://other/a/f")), (None, None));
        assert_eq!(names(&tree, "s3://bucket/a"), ["b/", "f"]);
        assert_eq!(names(&tree, "s3://bucket/a/b"), ["c.zgy", "d/", "f"]);
        let bucket = store.tree("s3://bucket");
        assert_eq!(names(&bucket, "s3://bucket"), ["a/"]);
        assert_eq!(look(&bucket, "s3://bucket"), Some(true), "also after its names are known");
        let folder = tree.look(Path::new("s3://bucket/a/b")).unwrap().unwrap();
        assert!(folder.find(Path::new("d/e")).unwrap().unwrap().about().is_file());
        assert!(folder.subfolder("d".as_ref()).unwrap().is_some() && folder.subfolder("f".as_ref()).unwrap().is_none());
        assert_eq!(folder.find(Path::new("c.zgy")).unwrap().unwrap().read_head(2).unwrap(), b"01");
    }

    #[test]
    fn a_listing_that_never_ends_is_an_error() {
        let url = StoreUrl::parse(Path::new("s3://bucket")).unwrap();
        let backend =
            Backend { pages: Some(Arc::new(Pages(Arc::default(), Some("again")))), ..backend(&Arc::default(), false) };
        let client = Client::new(backend, url.base.clone(), Arc::default()).unwrap();
        let tree = StoreTree::with_client(url, Vec::new(), client, None);
        let place = tree.look(Path::new("s3://bucket")).unwrap().unwrap();
        let error = place.visit(&mut |_, _| true).unwrap_err();
        assert!(error.to_string().contains("does not end"), "{error}");
    }

    #[test]
    fn the_names_of_a_folder_take_one_request_and_then_none() {
        let store = Fixture::new(&[("a/b", b"0"), ("a/c", b"0")]);
        let tree = store.tree("s3://bucket/a");
        names(&tree, "s3://bucket/a");
        for name in ["b", "c", "d", "e"] {
            store.put(&format!("a/{name}"), b"new", None);
        }
        assert_eq!(look(&tree, "s3://bucket/a/d"), None, "known from the listing");
        assert_eq!(look(&store.tree("s3://bucket/a"), "s3://bucket/a/d"), Some(false));
    }

    #[test]
    fn a_store_without_listings_is_asked_for_the_names_of_a_dataset() {
        let mut store = Fixture::new(&[("a/LayerStatus", b"[]"), ("a/VolumeDataLayout", b"{}"), ("b.zgy", b"x")]);
        store.lists = false;
        let tree = store.tree("https://host/a");
        assert_eq!((look(&tree, "https://host/a"), look(&tree, "https://host/b.zgy")), (Some(true), Some(false)));
        assert_eq!((look(&tree, "https://host/none"), look(&tree, "https://host/a/none")), (None, None));
        let folder = open(&tree, "https://host/a");
        assert_eq!(read(&*folder, "LayerStatus", 0, 2), Ok(Some(b"[]".to_vec())));
        assert_eq!(read(&*folder, "none", 0, 2), Ok(None));
        assert!(folder.folder("mags").is_ok(), "nobody can tell");
    }

    #[test]
    fn objects_are_read_in_ranges() {
        let bytes: Vec<u8> = (0..300_000u32).map(|n| (n / 7) as u8).collect();
        let store = Fixture::new(&[("d/x", &bytes), ("d/empty", b""), ("d/sub/y", b"yy")]);
        let tree = store.tree("s3://bucket");
        let folder = open(&tree, "s3://bucket/d");
        assert_eq!(read(&*folder, "x", 70_000, 10), Ok(Some(bytes[70_000..70_010].to_vec())));
        assert_eq!(read(&*folder, "x", 65_530, 20), Ok(Some(bytes[65_530..65_550].to_vec())));
        assert_eq!(read(&*folder, "x", 1, 200_000), Ok(Some(bytes[1..200_001].to_vec())));
        assert_eq!(
            read(&*folder, "x", 299_999, 2),
            Err(SourceError::TooShort { offset: 299_999, length: 2, size: 300_000 })
        );
        assert_eq!(folder.read_at("x", 0, &mut [0], Blocking::No), Err(SourceError::WouldBlock));
        assert_eq!(
            (folder.len("x"), folder.len("empty"), folder.len("none")),
            (Ok(Some(300_000)), Ok(Some(0)), Ok(None))
        );
        assert_eq!(read(&*folder, "empty", 0, 0), Ok(Some(Vec::new())));
        assert!(matches!(read(&*folder, "empty", 0, 1), Err(SourceError::TooShort { size: 0, .. })));
        assert_eq!(read(&*folder, "none", 0, 1), Ok(None));
        assert!(read(&*folder, "../d/x", 0, 1).is_err());
        let sub = folder.folder("../d/./sub").unwrap();
        assert_eq!(read(&*sub, "y", 0, 2), Ok(Some(b"yy".to_vec())));
        assert_ne!(sub.identity(), folder.identity());
        assert_eq!(folder.folder("").unwrap().identity(), folder.identity());
        for (path, why) in [("/abs", "outside"), ("../..", "outside"), ("none", "no such"), ("x", "not a folder")] {
            assert!(folder.folder(path).err().unwrap().to_string().contains(why), "{path}");
        }
        let mut listed = Vec::new();
        folder
            .list("sub", &mut |name, _| {
                listed.push(name.to_owned());
                true
            })
            .unwrap();
        assert_eq!(listed, ["y"]);
        assert_eq!(folder.failure(), None);
    }

    #[test]
    fn what_is_announced_is_fetched_in_few_requests_and_read_from_memory() {
        let bytes: Vec<u8> = (0..4_000_000u32).map(|n| (n / 9) as u8).collect();
        let store = Fixture::new(&[("d/x", &bytes), ("d/0", b"zero"), ("d/empty", b"")]);
        let tree = store.tree("s3://bucket");
        let folder = open(&tree, "s3://bucket/d");
        assert!(folder.fetches_ahead());
        let ranges: Vec<_> = (0..30).map(|n| ("x", n * 100_000..n * 100_000 + 50_000)).collect();
        folder.will_need(&ranges, false);
        folder.will_need(&[("0", 0..1 << 20), ("empty", 0..100), ("none", 0..100)], false);
        for (_, range) in &ranges {
            let wanted = &bytes[range.start as usize..range.end as usize];
            assert_eq!(read(&*folder, "x", range.start, 50_000).unwrap().unwrap(), wanted);
        }
        assert_eq!(read(&*folder, "0", 0, 4), Ok(Some(b"zero".to_vec())));
        assert_eq!((folder.len("empty"), read(&*folder, "none", 0, 100)), (Ok(Some(0)), Ok(None)));
        drop(folder);
        assert_eq!(tree.store_status().unwrap().staged_bytes, 0);
    }

    #[test]
    fn the_end_of_an_object_comes_with_its_size_and_is_of_the_version_that_counts() {
        let bytes: Vec<u8> = (0..200_000u32).map(|n| (n / 7) as u8).collect();
        let store = Fixture::new(&[("d/x", &bytes), ("d/short", b"12345"), ("d/empty", b"")]);
        let folder = open(&store.tree("s3://bucket"), "s3://bucket/d");
        let end = |length: usize| Ok(Some((200_000, bytes[bytes.len() - length..].to_vec())));
        assert_eq!(folder.read_end("x", 70_000), end(70_000));
        assert_eq!(folder.read_end("x", 10), end(10), "also of an object of which something is known");
        assert_eq!(folder.read_end("short", 10), Ok(Some((5, b"12345".to_vec()))));
        assert_eq!((folder.read_end("empty", 10), folder.read_end("none", 10)), (Ok(Some((0, vec![]))), Ok(None)));
        assert_eq!(folder.read_end("x", 0), Ok(Some((200_000, vec![]))));
        // what lies so far behind the end is not taken for the last bytes
        assert!(matches!(read(&*folder, "x", u64::MAX - 10, 10), Err(SourceError::TooShort { .. })));
        assert_eq!(read(&*folder, "x", 150_000, 5), Ok(Some(bytes[150_000..150_005].to_vec())));
        store.put("d/x", &[2; 200_000], None);
        assert_eq!(read(&*folder, "x", 0, 40_000), Err(SourceError::Changed));
    }

    #[test]
    fn ends_that_are_fetched_ahead_are_not_asked_for_again() {
        let store = Fixture::new(&[("d/x", &[1; 5000]), ("d/y", &[2; 5000]), ("d/short", b"12345")]);
        let tree = store.tree("s3://bucket");
        let folder = open(&tree, "s3://bucket/d");
        let names = ["x", "y", "short", "none"];
        assert!(folder.will_need(&names.map(|name| (name, last_bytes(100))), false));
        // they come with what is requested
        assert_eq!(names.map(|name| folder.len(name).unwrap()), [Some(5000), Some(5000), Some(5), None]);
        // another request would notice that they have changed
        for key in ["d/x", "d/y", "d/short", "d/none"] {
            store.put(key, b"other", None);
        }
        for (name, size, end) in [("x", 5000, vec![1; 100]), ("y", 5000, vec![2; 100]), ("short", 5, b"12345".into())] {
            assert_eq!(folder.read_end(name, 100), Ok(Some((size, end))), "{name}");
        }
        assert_eq!(folder.read_end("none", 100), Ok(None));
        assert_eq!(folder.read_end("x", 200), Err(SourceError::Changed));
    }

    #[test]
    fn last_bytes_of_an_object_whose_size_is_known_are_a_range_like_others() {
        let store = Fixture::new(&[("d/x", &[1; 5000])]);
        let tree = store.tree("s3://bucket");
        let folder = open(&tree, "s3://bucket/d");
        assert_eq!(folder.len("x"), Ok(Some(5000)));
        assert!(folder.will_need(&[("x", last_bytes(3000)), ("x", last_bytes(9000))], false));
        assert_eq!(folder.read_end("x", 3000), Ok(Some((5000, vec![1; 3000]))));
        assert_eq!(folder.read_end("x", 9000), Ok(Some((5000, vec![1; 5000]))));
    }

    #[test]
    fn metadata_comes_with_the_bytes_under_a_name_in_any_case() {
        let store = Fixture::new(&[]);
        store.put("d/0", b"bytes", Some("AAAZQwEBAQE="));
        store.put("d/1", b"", Some("//////////8="));
        let tree = store.tree("s3://bucket/d");
        let folder = open(&tree, "s3://bucket/d");
        assert_eq!(folder.tag("0", "vdschunkmetadata"), Ok(Some(b"AAAZQwEBAQE=".to_vec())));
        assert_eq!(folder.tag("1", "vdschunkmetadata"), Ok(Some(b"//////////8=".to_vec())));
        assert_eq!((folder.tag("0", "other"), folder.tag("none", "vdschunkmetadata")), (Ok(None), Ok(None)));
    }

    #[test]
    fn an_object_that_is_replaced_fails_what_is_open_and_the_new_one_is_another() {
        let store = Fixture::new(&[("d/x", &[1; 100_000]), ("d/y.zgy", &[1; 100_000])]);
        let tree = store.tree("s3://bucket/d");
        let place = tree.look(Path::new("s3://bucket/d/y.zgy")).unwrap().unwrap();
        let file = place.open_file(Path::new(""), &RecentWrites::ignored()).unwrap();
        let folder = open(&tree, "s3://bucket/d");
        assert!(read(&*file, "", 0, 40_000).is_ok() && read(&*folder, "x", 0, 40_000).is_ok());
        store.put("d/x", &[2; 100_000], None);
        store.put("d/y.zgy", &[2; 100_000], None);
        assert_eq!(read(&*file, "", 50_000, 40_000), Err(SourceError::Changed));
        assert!(file.has_changed() && file.check_unchanged() == Err(SourceError::Changed));
        assert_eq!(read(&*folder, "x", 50_000, 40_000), Err(SourceError::Changed));
        assert!(folder.is_changed() && folder.failure() == Some(SourceError::Changed));
        assert_eq!(read(&*folder, "x", 0, 1), Err(SourceError::Changed), "all of it, from then on");
        let tree = store.tree("s3://bucket/d");
        let now = tree.look(Path::new("s3://bucket/d/y.zgy")).unwrap().unwrap();
        assert_ne!(now.about().version, file.version());
        let file = now.open_file(Path::new(""), &RecentWrites::ignored()).unwrap();
        assert_eq!(read(&*file, "", 0, 1), Ok(Some(vec![2])));
    }

    #[test]
    #[cfg(feature = "mount")]
    fn bytes_of_the_disk_and_of_the_store_are_of_one_version() {
        let (dir, store) = (tempfile::tempdir().unwrap(), Fixture::new(&[("d/x", &[1; 200_000])]));
        let cached_tree = || {
            let url = StoreUrl::parse(Path::new("s3://bucket/d")).unwrap();
            let cache = DiskCache::open(&dir.path().join("cache"), 1 << 30).ok().unwrap();
            let (client, place) = (store.client(&url.base), "s3://bucket".to_owned());
            StoreTree::with_client(url, Vec::new(), client, Some(StoreCache { cache, place }))
        };
        let disk = |tree: &StoreTree| tree.store_status().unwrap().disk.unwrap();
        let first = cached_tree();
        assert_eq!(read(&*open(&first, "s3://bucket/d"), "x", 0, 10), Ok(Some(vec![1; 10])));
        let began = Instant::now();
        while disk(&first).files == 0 && began.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(first);
        let second = cached_tree();
        let folder = open(&second, "s3://bucket/d");
        assert_eq!(read(&*folder, "x", 0, 10), Ok(Some(vec![1; 10])));
        assert_eq!(disk(&second).hits, 1);
        store.put("d/x", &[2; 200_000], None);
        assert_eq!(read(&*folder, "x", 150_000, 10), Err(SourceError::Changed));
        assert!(folder.is_changed());
        let folder = open(&second, "s3://bucket/d");
        assert_eq!(read(&*folder, "x", 150_000, 10), Ok(Some(vec![2; 10])), "in the new version all can be read");
        assert_eq!(read(&*folder, "x", 0, 10), Ok(Some(vec![2; 10])));
        // the size is that of the listing, and the bytes would be those of a longer object
        let folder = open(&second, "s3://bucket/d");
        assert_eq!(folder.len("x"), Ok(Some(200_000)));
        store.put("d/x", &[3; 300_000], None);
        assert_eq!(read(&*folder, "x", 100_000, 10), Err(SourceError::Changed));
    }

    #[test]
    fn an_object_that_appears_where_there_was_none_is_a_change() {
        let store = Fixture::new(&[("d/x", b"x")]);
        let folder = open(&store.tree("s3://bucket/d"), "s3://bucket/d");
        assert_eq!(read(&*folder, "z0/y0/x0.wkw", 0, 1), Ok(None));
        store.put("d/z0/y0/x0.wkw", b"cube", None);
        assert_eq!(read(&*folder, "z0/y0/x0.wkw", 0, 1), Ok(None), "for a second");
        std::thread::sleep(std::time::Duration::from_millis(1050));
        assert_eq!(read(&*folder, "z0/y0/x0.wkw", 0, 1), Err(SourceError::Changed));
    }
}

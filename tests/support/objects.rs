//! Objects in memory, and the answers that S3, Google's XML interface and plain web servers give about them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Bound;
use std::path::Path;
use std::sync::Mutex;

use super::{Answer, Request};

/// The most names on a page of a listing.
const PAGE: usize = 1000;

/// The time of the last change of all objects.
const LISTED: &str = "2025-01-01T00:00:00.000Z";
const MODIFIED: &str = "Wed, 01 Jan 2025 00:00:00 GMT";

/// One object.
#[derive(Clone, Debug, Default)]
pub struct Object {
    pub bytes: Vec<u8>,
    /// Headers that are given with it.
    pub headers: Vec<(String, String)>,
    etag: String,
}

/// The objects of one bucket, by their keys.
#[derive(Debug, Default)]
pub struct Objects(Mutex<BTreeMap<String, Object>>);

impl Objects {
    /// Puts an object.
    pub fn put(&self, key: &str, bytes: impl Into<Vec<u8>>, headers: &[(&str, &str)]) {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let bytes = bytes.into();
        let etag = format!("{}-{}", super::crc(&bytes), bytes.len());
        self.0.lock().unwrap().insert(key.to_owned(), Object { bytes, headers, etag });
    }

    /// Puts a file, or all files of a folder, at and below a key.
    pub fn put_all(&self, key: &str, from: &Path) {
        if from.is_dir() {
            for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
                self.put_all(&format!("{key}/{}", entry.file_name().to_str().unwrap()), &entry.path());
            }
        } else {
            self.put(key, fs::read(from).unwrap(), &[]);
        }
    }

    /// Removes an object.
    pub fn remove(&self, key: &str) {
        assert!(self.0.lock().unwrap().remove(key).is_some());
    }

    /// Answers a request to the bucket that is the first name of the path, by the interface of S3.
    pub fn answer(&self, request: &Request) -> Answer {
        let path = request.path.trim_start_matches('/');
        match path.split_once('/').unwrap_or((path, "")) {
            (_, "") if request.asked("list-type") == Some("2") => self.list(request),
            (_, key) => self.object(request, key),
        }
    }

    /// Answers a request of an object.
    pub fn object(&self, request: &Request, key: &str) -> Answer {
        let objects = self.0.lock().unwrap();
        let Some(object) = objects.get(key) else { return Answer::error(404, "NoSuchKey") };
        let etag = format!("\"{}\"", object.etag);
        if request.header("if-match").is_some_and(|wanted| wanted != etag) {
            return Answer::error(412, "PreconditionFailed");
        }
        let size = object.bytes.len();
        let mut answer = match request.header("range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-')) {
            None => Answer::new(200, object.bytes.clone()),
            Some((from, to)) => {
                let (from, to) = (from.parse::<usize>().unwrap(), to.parse::<usize>().unwrap().min(size.max(1) - 1));
                if from >= size {
                    return Answer::error(416, "InvalidRange");
                }
                let range = format!("bytes {from}-{to}/{size}");
                Answer::new(206, &object.bytes[from..=to]).with("content-range", range)
            }
        };
        answer.headers.extend(object.headers.clone());
        answer.with("etag", etag).with("last-modified", MODIFIED)
    }

    fn list(&self, request: &Request) -> Answer {
        let prefix = request.asked("prefix").unwrap_or("");
        let most = request.asked("max-keys").map_or(PAGE, |most| most.parse().unwrap());
        let mut cursor = request.asked("continuation-token").unwrap_or("").to_owned();
        let (mut files, mut folders) = (Vec::new(), BTreeSet::new());
        let objects = self.0.lock().unwrap();
        let is_last = loop {
            let beyond = cursor.clone().max(prefix.to_owned());
            // the prefix itself may be a key, and a cursor was one
            let bound = if beyond == prefix { Bound::Included(beyond) } else { Bound::Excluded(beyond) };
            let found = objects.range((bound, Bound::Unbounded)).next();
            let Some((key, object)) = found.filter(|(key, _)| key.starts_with(prefix)) else { break true };
            if files.len() + folders.len() == most {
                cursor = files.last().map_or(String::new(), |(key, _, _): &(String, usize, String)| key.clone());
                cursor = cursor.max(folders.last().map_or(String::new(), |folder| format!("{folder}\u{10FFFF}")));
                break false;
            }
            match key[prefix.len()..].split_once('/').filter(|_| request.asked("delimiter") == Some("/")) {
                Some((name, _)) => {
                    let folder = format!("{prefix}{name}/");
                    cursor = format!("{folder}\u{10FFFF}");
                    folders.insert(folder);
                }
                None => {
                    cursor.clone_from(key);
                    files.push((key.clone(), object.bytes.len(), object.etag.clone()));
                }
            }
        };
        page(&files, folders.iter().map(String::as_str), (!is_last).then_some(&cursor))
    }
}

/// Makes a page of a listing: objects with their sizes and etags, folders with their slashes, and where the next page
/// begins.
pub fn page<'a>(
    files: &[(String, usize, String)],
    folders: impl Iterator<Item = &'a str>,
    next: Option<&str>,
) -> Answer {
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult>".to_owned();
    text += &format!("<IsTruncated>{}</IsTruncated>", next.is_some());
    text.extend(next.map(|next| format!("<NextContinuationToken>{next}</NextContinuationToken>")));
    text.extend(files.iter().map(|(key, size, etag)| {
        format!(
            "<Contents><Key>{key}</Key><LastModified>{LISTED}</LastModified><ETag>&quot;{etag}&quot;</ETag>\
             <Size>{size}</Size></Contents>"
        )
    }));
    text.extend(folders.map(|folder| format!("<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>")));
    Answer::new(200, text + "</ListBucketResult>").with("content-type", "application/xml")
}

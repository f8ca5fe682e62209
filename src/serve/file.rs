//! What a file answers: its bytes, parts of them, or that the client has them already.
//!
//! RFC 9110: validators (section 8.8), conditions (section 13, in the order of section 13.2.2) and ranges (section 14).

use std::collections::hash_map::{DefaultHasher, RandomState};
use std::hash::{BuildHasher, BuildHasherDefault};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use httpdate::{fmt_http_date, parse_http_date};
use hyper::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap,
    HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED, RANGE,
};
use hyper::{Method, StatusCode};

use super::body::{Budget, FileBody, Part, Parts, content_range, table};
use super::response::{Body, Head, Problem, Response, content_type, set};
use super::tree::{Open, TreePath, find};
use crate::fs::{Attributes, Opened, Volfs};
use crate::view::{BoxOf, Form};
use crate::volume::{Dims, Region};

/// Looks and opens of a file that changes in between.
const MAX_ATTEMPTS: usize = 3;
/// The most ranges of one response. While they are sent they take 16 bytes each of what a response may have in memory.
const MAX_RANGES: usize = 1024;
/// A time counts only if it is so much older than now: two versions of one second have the same one otherwise.
const SETTLED: Duration = Duration::from_secs(60);
/// The last second that a date in a header can express.
const LAST_DATE: Duration = Duration::from_secs(253_402_300_799);

/// The version of a dataset in this server, as a header.
const DATASET_VERSION: HeaderName = HeaderName::from_static("volfs-version");

/// What responses of files share.
pub(super) struct Files {
    pub(super) fs: Arc<Volfs>,
    pub(super) budget: Budget,
    /// A part of all entity tags: inode numbers are counted anew by each server.
    server: u64,
}

impl Files {
    pub(super) fn new(fs: Arc<Volfs>) -> Self {
        Self { fs, budget: Budget::default(), server: RandomState::new().hash_one(SystemTime::now()) }
    }

    pub(super) async fn answer(&self, request: &Head, path: &TreePath, found: Attributes) -> Result<Response, Problem> {
        for _ in 1..MAX_ATTEMPTS {
            match self.attempt(request, path, found).await {
                Err(Problem::Changing) => {}
                answered => return answered,
            }
        }
        self.attempt(request, path, found).await
    }

    async fn attempt(&self, request: &Head, path: &TreePath, found: Attributes) -> Result<Response, Problem> {
        let (file, mut open, mut opened) = self.open(path, found).await?;
        let name = path.names.last().map(|name| &**name).unwrap_or_default();
        let (mut kind, mut rows) = (content_type(name), None);
        let boxed = request.uri().query().map_or(Ok(None), |query| BoxQuery::read(query, &name.to_string_lossy()))?;
        if let Some(boxed) = &boxed {
            (open, opened, rows) = open.boxed(|info| boxed.choose(&info.shape()))?;
            kind = content_type(boxed.file_name.as_ref());
        }
        let validators = Validators::new(self.server, &file, &opened);
        if validators.client_has_it(request.headers())? {
            return Ok(validators.not_modified());
        }
        let mut response = Response::default();
        let headers = response.headers_mut();
        validators.write(headers);
        // also where the tag is missing: pages do not mix the samples of two versions
        let node: u64 = file.ino.node().into();
        set(headers, DATASET_VERSION, &format!("{:x}-{node:x}-{:x}", self.server, opened.epoch));
        set(headers, CONTENT_TYPE, kind);
        set(headers, ACCEPT_RANGES, if rows.is_some() { "none" } else { "bytes" });
        if let Some(boxed) = &boxed {
            set(headers, CONTENT_DISPOSITION, &format!("attachment; filename=\"{}\"", boxed.file_name));
        }
        let mut parts = Parts::one(Part::Range(0..opened.size));
        // nobody knows how long a table will be
        if rows.is_none()
            && request.method() == Method::GET
            && validators.allow_range(request.headers())
            && let Some(ranges) = ranges(request.headers(), opened.size)?
        {
            if let [range] = &ranges[..] {
                set(headers, CONTENT_RANGE, &content_range(range, opened.size));
                parts = Parts::one(Part::Range(range.clone()));
            } else {
                // a line that data contain only by chance
                let random = || RandomState::new().hash_one(0);
                let boundary = format!("volfs-{:016x}{:016x}", random(), random());
                set(headers, CONTENT_TYPE, &format!("multipart/byteranges; boundary={boundary}"));
                parts = Parts::multipart(ranges, opened.size, kind, boundary);
            }
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        }
        if rows.is_none() {
            set(response.headers_mut(), CONTENT_LENGTH, &parts.len.to_string());
        }
        if request.method() == Method::HEAD {
            // so that no length is made up
            *response.body_mut() = rows.map_or_else(Body::default, |rows| table(Body::default(), rows));
        } else {
            // a box is of the version that the header names; a whole file without a tag may go on to the next one
            let epoch = (validators.tag.is_some() || boxed.is_some()).then_some(opened.epoch);
            let body = FileBody::begin(open, epoch, self.budget.clone(), parts).await?;
            *response.body_mut() = match rows {
                Some(rows) => table(body, rows),
                None => body,
            };
        }
        Ok(response)
    }

    /// Opens a file that was found, or finds it again if it has changed since.
    async fn open(&self, path: &TreePath, found: Attributes) -> Result<(Attributes, Open, Opened), Problem> {
        let mut file = found;
        for _ in 0..MAX_ATTEMPTS {
            match Open::file(&self.fs, file.ino).await {
                Err(Problem::Changing) => file = find(&self.fs, &path.names).await.map_err(|(problem, _)| problem)?,
                opened => return opened.map(|(open, opened)| (file, open, opened)),
            }
        }
        Err(Problem::Changing)
    }
}

/// What tells one version of a file from another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Validators {
    /// The entity tag, with its quotes; `None` for what may change at any time.
    tag: Option<String>,
    /// The time of the last change, in whole seconds; `None` if there is no tag.
    modified: Option<SystemTime>,
}

impl Validators {
    /// Returns the validators of an open file. One that may change at any time has none, and neither has one that was
    /// written a moment ago: it will be read again.
    fn new(server: u64, file: &Attributes, opened: &Opened) -> Self {
        if file.volatile || opened.is_recent {
            return Self::default();
        }
        let (ino, epoch, size) = (file.ino.0, opened.epoch, opened.size);
        let since = file.modified.duration_since(UNIX_EPOCH).ok();
        let modified = since.map(|since| UNIX_EPOCH + Duration::from_secs(since.as_secs()));
        Self { tag: Some(format!("\"{server:x}-{ino:x}-{epoch:x}-{size:x}\"")), modified }
    }

    /// Returns the validators of a file of the program itself.
    pub(super) fn of_program(name: &str, content: &str) -> Self {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(content);
        Self { tag: Some(format!("\"{name}-{hash:x}\"")), modified: None }
    }

    /// Returns the time of the last change, if it tells all versions apart.
    fn settled_time(&self) -> Option<SystemTime> {
        let is_settled = |time: &SystemTime| SystemTime::now().duration_since(*time).is_ok_and(|age| age >= SETTLED);
        self.modified.filter(is_settled)
    }

    /// Adds them to the headers of a response, with how a cache may use it: it asks each time.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        set(headers, CACHE_CONTROL, if self.tag.is_some() { "no-cache" } else { "no-store" });
        if let Some(tag) = &self.tag {
            set(headers, ETAG, tag);
        }
        if let Some(modified) = self.modified.filter(|time| *time <= UNIX_EPOCH + LAST_DATE) {
            set(headers, LAST_MODIFIED, &fmt_http_date(modified));
        }
    }

    /// Returns the response that the client has the file.
    pub(super) fn not_modified(&self) -> Response {
        let mut response = Response::default();
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        self.write(response.headers_mut());
        response
    }

    /// Evaluates the conditions of a GET or HEAD. Returns whether the client has the file already, and fails with
    /// [`Problem::Precondition`] if it means another version.
    pub(super) fn client_has_it(&self, headers: &HeaderMap) -> Result<bool, Problem> {
        if headers.contains_key(IF_MATCH) {
            if !self.matches(headers, IF_MATCH, is_same) {
                return Err(Problem::Precondition);
            }
        } else if let Some(date) = date(headers, IF_UNMODIFIED_SINCE)
            && self.modified.is_some_and(|modified| modified > date)
        {
            return Err(Problem::Precondition);
        }
        if headers.contains_key(IF_NONE_MATCH) {
            return Ok(self.matches(headers, IF_NONE_MATCH, |a, b| is_same(strong(a), strong(b))));
        }
        let since = date(headers, IF_MODIFIED_SINCE);
        Ok(since.zip(self.settled_time()).is_some_and(|(since, modified)| modified <= since))
    }

    /// Returns whether a range may be sent: the client has begun with this very version, or does not say which it
    /// means.
    fn allow_range(&self, headers: &HeaderMap) -> bool {
        let Some(value) = headers.get(IF_RANGE) else { return true };
        let Ok(text) = value.to_str() else { return false };
        if text.starts_with('"') {
            return self.tag.as_deref().is_some_and(|tag| is_same(tag, text.trim()));
        }
        // weak tags never match here, and dates only exactly
        parse_http_date(text).is_ok_and(|date| self.settled_time() == Some(date))
    }

    /// Returns whether one of the tags in a header is the file's, or it is `*`.
    fn matches(&self, headers: &HeaderMap, name: HeaderName, same: impl Fn(&str, &str) -> bool) -> bool {
        let texts = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        let mut tags = texts.flat_map(|text| text.split(',')).map(str::trim);
        tags.any(|tag| tag == "*" || self.tag.as_deref().is_some_and(|own| same(own, tag)))
    }
}

fn date(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    parse_http_date(headers.get(name)?.to_str().ok()?).ok()
}

/// Returns a tag without the mark of a weak one. The tags of this server have no commas.
fn strong(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// Returns whether two tags are the same, and neither is weak.
fn is_same(one: &str, other: &str) -> bool {
    one == other && one.starts_with('"')
}

/// Reads the ranges that a request wants of a file of `size` bytes: `Range: bytes=0-99,200-,-50`. None of them is
/// empty. Returns `None` for the whole file: without ranges, if they cannot be understood, or are more than the file.
/// Fails with [`Problem::Range`] if none of them lies in the file, or there are too many.
fn ranges(headers: &HeaderMap, size: u64) -> Result<Option<Vec<Range<u64>>>, Problem> {
    let mut values = headers.get_all(RANGE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return Ok(None) };
    let Some(list) = value.to_str().ok().and_then(list_of_bytes) else { return Ok(None) };
    let (mut ranges, mut total) = (Vec::new(), 0u64);
    for text in list.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        let Some(range) = range(text, size) else { return Ok(None) };
        if range.is_empty() {
            continue;
        }
        total = total.saturating_add(range.end - range.start);
        ranges.push(range);
        if ranges.len() > MAX_RANGES {
            return Err(Problem::Range(size));
        }
    }
    match ranges.len() {
        0 => Err(Problem::Range(size)),
        // ranges that overlap would make a small request cost more than the file
        2.. if total > size => Ok(None),
        _ => {
            ranges.shrink_to_fit();
            Ok(Some(ranges))
        }
    }
}

fn list_of_bytes(value: &str) -> Option<&str> {
    let (unit, list) = value.split_once('=')?;
    (unit.trim().eq_ignore_ascii_case("bytes") && list.bytes().any(|c| c.is_ascii_digit())).then_some(list)
}

/// Reads one range; an empty one lies outside of the file. `None` if it cannot be understood.
fn range(text: &str, size: u64) -> Option<Range<u64>> {
    let (first, last) = text.split_once('-')?;
    // more digits than fit are beyond any file
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
        is_number.then(|| text.parse::<u64>().unwrap_or(u64::MAX))
    };
    match (first.is_empty(), last.is_empty()) {
        (true, _) => Some(size.saturating_sub(number(last)?)..size),
        (false, true) => Some(number(first)?.min(size)..size),
        (false, false) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then(|| first.min(size)..last.saturating_add(1).min(size))
        }
    }
}

/// What a query asks of a file of a level: `box=64,0:256,:`, `format=sgy`, `scaled`. Other keys mean nothing.
#[derive(Debug, PartialEq, Eq)]
struct BoxQuery {
    slices: String,
    form: Form,
    scaled: bool,
    /// The name under which a browser saves the box.
    file_name: String,
}

impl BoxQuery {
    /// Reads the query for a file of this name; `None` if it has none of the keys. Values may be percent-encoded.
    fn read(query: &str, name: &str) -> Result<Option<Self>, Problem> {
        let value = |wanted: &str| {
            let mut pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
            let (_, value) = pairs.find(|(name, _)| *name == wanted)?;
            Some(percent_encoding::percent_decode_str(value).decode_utf8_lossy().into_owned())
        };
        let (slices, format, scaled) = (value("box"), value("format"), value("scaled"));
        if slices.is_none() && format.is_none() && scaled.is_none() {
            return Ok(None);
        }
        let (level, ending) = name.split_once('.').filter(|(level, _)| level.starts_with("lod")).unwrap_or_default();
        let extension = ending.rsplit('.').next().unwrap_or_default();
        let no_samples = || Problem::Bad("boxes are of files of samples, such as lodN.raw and lodN.npy".to_owned());
        let own = Form::named(extension).ok_or_else(no_samples)?;
        let names = || Problem::Bad(format!("format is one of {}", Form::NAMES.join(", ")));
        let form = format.map_or(Some(own), |format| Form::named(&format)).ok_or_else(names)?;
        Ok(Some(Self {
            slices: slices.unwrap_or_else(|| ":".to_owned()),
            form,
            scaled: scaled.is_some() || ending.starts_with("float32."),
            file_name: format!("{level}.{}", form.name()),
        }))
    }

    fn choose(&self, shape: &Dims) -> Result<BoxOf, String> {
        Ok(BoxOf { region: region(&self.slices, shape)?, form: self.form, scaled: self.scaled })
    }
}

/// Reads the box `64,0:256,:` of an array of this shape: one entry for each axis, slowest first: `START:STOP`, either
/// of which may be left out, or one index. Axes at the end that are not named are whole, as with `volfs cat --region`.
fn region(text: &str, shape: &Dims) -> Result<Region, String> {
    let mut region = Region::whole(*shape);
    for (axis, slice) in text.split(',').enumerate() {
        let bad = |why: String| format!("box, axis {axis}: {why}");
        let Some(count) = shape.get(axis).copied() else {
            return Err(bad(format!("the array has {} axes", shape.len())));
        };
        let number = |text: &str, default: u64| match text.trim() {
            "" => Ok(default),
            text => text.parse::<u64>().map_err(|_| bad("write START:STOP, or an index".to_owned())),
        };
        let (start, stop) = match slice.split_once(':') {
            Some((start, stop)) => (number(start, 0)?, number(stop, count)?),
            None => {
                let index = number(slice, u64::MAX)?;
                (index, index.saturating_add(1))
            }
        };
        if start >= stop || stop > count {
            return Err(bad(format!("{start}:{stop} is not within 0:{count}, or empty")));
        }
        region.start[axis] = start;
        region.shape[axis] = stop - start;
    }
    Ok(region)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Headers<'a> = &'a [(HeaderName, &'a str)];

    const YEAR_1970: SystemTime = UNIX_EPOCH;

    fn file(age: Duration) -> Validators {
        let seconds = (SystemTime::now() - age).duration_since(UNIX_EPOCH).unwrap().as_secs();
        Validators { tag: Some("\"a-1\"".into()), modified: Some(UNIX_EPOCH + Duration::from_secs(seconds)) }
    }

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn tags_decide_before_dates() {
        let file = file(Duration::from_secs(1000));
        let later = fmt_http_date(SystemTime::now());
        let cases: [(Headers<'_>, Result<bool, Problem>); 11] = [
            (&[], Ok(false)),
            (&[(IF_NONE_MATCH, "\"a-1\"")], Ok(true)),
            (&[(IF_NONE_MATCH, "\"x\", W/\"a-1\"")], Ok(true)),
            (&[(IF_NONE_MATCH, "*")], Ok(true)),
            (&[(IF_NONE_MATCH, "a-1")], Ok(false)),
            (&[(IF_NONE_MATCH, "\"b\""), (IF_MODIFIED_SINCE, &later)], Ok(false)),
            (&[(IF_MODIFIED_SINCE, &later)], Ok(true)),
            (&[(IF_MODIFIED_SINCE, "yesterday")], Ok(false)),
            (&[(IF_MATCH, "\"a-1\"")], Ok(false)),
            (&[(IF_MATCH, "W/\"a-1\"")], Err(Problem::Precondition)),
            (&[(IF_UNMODIFIED_SINCE, &fmt_http_date(YEAR_1970))], Err(Problem::Precondition)),
        ];
        for (pairs, expected) in cases {
            assert_eq!(file.client_has_it(&headers(pairs)), expected, "{pairs:?}");
        }
    }

    #[test]
    fn a_time_of_just_now_proves_nothing() {
        let fresh = file(Duration::from_secs(2));
        let date = fmt_http_date(fresh.modified.unwrap());
        assert_eq!(fresh.client_has_it(&headers(&[(IF_MODIFIED_SINCE, &date)])), Ok(false));
        assert!(!fresh.allow_range(&headers(&[(IF_RANGE, &date)])));
        assert_eq!(Validators::default().client_has_it(&headers(&[(IF_NONE_MATCH, "\"a-1\"")])), Ok(false));
    }

    #[test]
    fn a_range_is_of_the_version_that_was_begun() {
        let file = file(Duration::from_secs(1000));
        let date = fmt_http_date(file.modified.unwrap());
        for (value, allowed) in
            [("\"a-1\"", true), (&date[..], true), ("\"b\"", false), ("W/\"a-1\"", false), ("nonsense", false)]
        {
            assert_eq!(file.allow_range(&headers(&[(IF_RANGE, value)])), allowed, "{value}");
        }
        assert!(file.allow_range(&HeaderMap::new()));
    }

    #[test]
    fn boxes_are_read_like_regions() {
        let shape = Dims::from_slice(&[10, 20, 30]).unwrap();
        let read = |text: &str| region(text, &shape).map(|r| (r.start.to_vec(), r.shape.to_vec()));
        assert_eq!(read(":"), Ok((vec![0, 0, 0], vec![10, 20, 30])));
        assert_eq!(read("5,2:4"), Ok((vec![5, 2, 0], vec![1, 2, 30])));
        assert_eq!(read("9:,:3, 29"), Ok((vec![9, 0, 29], vec![1, 3, 1])));
        for bad in ["", "10", "3:3", "4:3", "0:11", "-1:", "a", "1,2,3,4", "0:99999999999999999999"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_box_has_the_form_of_its_file_unless_another_is_named() {
        let read = |query: &str, name: &str| BoxQuery::read(query, name);
        let found = |query, name| read(query, name).unwrap().map(|q| (q.slices, q.form, q.scaled, q.file_name));
        let of = |slices: &str, form, scaled, name: &str| Some((slices.to_owned(), form, scaled, name.to_owned()));
        assert_eq!(found("a=1&box=1%3A2,%3A", "lod0.raw"), of("1:2,:", Form::Raw, false, "lod0.raw"));
        assert_eq!(found("box=3", "lod1.float32.npy"), of("3", Form::Npy, true, "lod1.npy"));
        assert_eq!(found("format=csv&scaled", "lod0.tif"), of(":", Form::Csv, true, "lod0.csv"));
        assert_eq!(found("format=SEGY", "lod0.npy"), of(":", Form::Sgy, false, "lod0.sgy"));
        assert_eq!((found("boxes=1", "lod0.raw"), found("", "lod0.json")), (None, None));
        for (query, name) in [
            ("box=1", "lod0.json"),
            ("format=csv", "lod0.json"),
            ("format=jpg", "lod0.raw"),
            ("format=", "lod0.raw"),
            ("format=npy", "3.png"),
            ("box=1", "original.sgy"),
        ] {
            assert!(matches!(read(query, name), Err(Problem::Bad(_))), "{query} {name}");
        }
    }

    fn ranges_of(value: &str, size: u64) -> Result<Option<Vec<Range<u64>>>, Problem> {
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, value.parse().unwrap());
        ranges(&headers, size)
    }

    #[test]
    fn ranges_are_read_by_the_standard() {
        let ranges = |ends: &[(u64, u64)]| Ok(Some(ends.iter().map(|(from, to)| *from..*to).collect()));
        assert_eq!(ranges_of("bytes=0-0", 10), ranges(&[(0, 1)]));
        assert_eq!(ranges_of("bytes=5-", 10), ranges(&[(5, 10)]));
        assert_eq!(ranges_of("bytes=-3", 10), ranges(&[(7, 10)]));
        assert_eq!(ranges_of("bytes=-30", 10), ranges(&[(0, 10)]));
        assert_eq!(ranges_of("bytes=8-99999999999999999999999", 10), ranges(&[(8, 10)]));
        assert_eq!(ranges_of("Bytes=0-1, 4-5,-1", 10), ranges(&[(0, 2), (4, 6), (9, 10)]));
        assert_eq!(ranges_of("bytes=0-1,20-30", 10), ranges(&[(0, 2)]));
        for outside in ["bytes=10-", "bytes=10-20,99-", "bytes=-0"] {
            assert_eq!(ranges_of(outside, 10), Err(Problem::Range(10)), "{outside}");
        }
        assert_eq!(ranges_of("bytes=0-", 0), Err(Problem::Range(0)));
        for other in
            ["bytes=", "bytes=a-b", "bytes=3-1", "lines=0-1", "0-1", "bytes=0-1,x", "bytes=1", "bytes=--1", "bytes=,"]
        {
            assert_eq!(ranges_of(other, 10), Ok(None), "{other}");
        }
    }

    #[test]
    fn many_ranges_cost_no_more_than_the_file() {
        let text = |n: usize, one: &str| format!("bytes={}", vec![one; n].join(","));
        assert_eq!(ranges_of(&text(5, "0-"), 1000), Ok(None));
        assert_eq!(ranges_of(&text(2000, "0-0"), 1 << 40), Err(Problem::Range(1 << 40)));
    }

    proptest! {
        #[test]
        fn ranges_lie_in_the_file(text in "(bytes=)?[0-9,\\- a=]{0,40}", size in 0u64..1000) {
            if let Ok(Some(ranges)) = ranges_of(&text, size) {
                prop_assert!(!ranges.is_empty());
                prop_assert!(ranges.iter().all(|range| range.start < range.end && range.end <= size));
            }
        }
    }
}

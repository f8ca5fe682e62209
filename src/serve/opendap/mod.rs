//! OPeNDAP at the address of each level without a suffix: clients append `.dds`, `.das` and `.dods` (DAP2), or `.dmr` and
//! `.dap` (DAP4), and a constraint expression.
//!
//! netCDF takes an answer that breaks off for one that ends in zeros, so an answer begins when all of its bricks have
//! been decoded once.
//!
//! * [`constraint`]: the part that a client wants.
//! * [`model`] and [`answer`]: a level as variables, and their values as a file.
//! * [`dap2`] and [`dap4`]: the two protocols.

mod answer;
mod constraint;
mod dap2;
mod dap4;
mod model;

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hyper::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderName};
use hyper::{Method, StatusCode};
use lru::LruCache;

use super::body::{Budget, FileBody};
use super::response::{Head, Problem, Response, set};
use super::tree::{Open, find};
use crate::fs::{Ino, Opened, Volfs};
use crate::sync::Mutex;
use crate::view::{Content, LayerRef};
use answer::Answer;
use constraint::Chosen;
use dap4::Chunks;
use model::Model;

/// Clients hold an answer in memory, some of them twice, and count it with 31 bits.
const TOO_LONG: u128 = 1 << 31;
/// Looks at a dataset that changes in between.
const MAX_ATTEMPTS: usize = 3;
/// The folders of layers that are remembered, and for how long: as names in a mount.
const KNOWN: NonZeroUsize = NonZeroUsize::new(256).unwrap();
const KNOWN_FOR: Duration = Duration::from_millis(500);
/// Longer dimensions are invalid to clients of DAP2.
const LONGEST_DIMENSION: u64 = i32::MAX as u64;

const DESCRIPTION: HeaderName = HeaderName::from_static("content-description");
const SERVER: HeaderName = HeaderName::from_static("xdods-server");

/// What answers share.
pub(super) struct Levels {
    fs: Arc<Volfs>,
    budget: Budget,
    /// The folders of layers that were found last, and when: some clients ask for each row.
    found: Mutex<LruCache<Vec<OsString>, (Ino, Instant)>>,
}

impl Levels {
    pub(super) fn new(fs: &Arc<Volfs>, budget: &Budget) -> Self {
        Self { fs: Arc::clone(fs), budget: budget.clone(), found: Mutex::new(LruCache::new(KNOWN)) }
    }

    async fn folder(&self, path: &[OsString], is_first_look: bool) -> Option<Ino> {
        let known = self.found.lock().get(path).copied();
        if let Some((ino, _)) = known.filter(|(_, since)| is_first_look && since.elapsed() < KNOWN_FOR) {
            return Some(ino);
        }
        let ino = find(&self.fs, path).await.ok()?.ino;
        self.found.lock().put(path.to_vec(), (ino, Instant::now()));
        Some(ino)
    }

    /// Answers a request for a level of the layer whose folder has this path; `None` if there is no such folder.
    pub(super) async fn answer(&self, asked: Asked, request: &Head, folder: &[OsString]) -> Option<Response> {
        let mut found = Err(Problem::Changing);
        for attempt in 0..MAX_ATTEMPTS {
            let folder = self.folder(folder, attempt == 0).await?;
            let query = request.uri().query().unwrap_or_default().to_owned();
            found = Open::made(&self.fs, folder, move |layer| asked.prepare(layer, &query)).await;
            if !matches!(found, Err(Problem::Changing | Problem::NotFound)) {
                break;
            }
        }
        let answered = match found {
            Err(Problem::NotFound) => return None,
            Err(problem) => Err(problem.into()),
            Ok(Err(refusal)) => Err(refusal),
            Ok(Ok((Prepared::Text(text), _))) => Ok(Response::new(text.into())),
            Ok(Ok((Prepared::Values { is_inexact, chunks }, Some(file)))) => {
                let is_head = request.method() == Method::HEAD;
                asked.values((&self.budget, is_head), file, &is_inexact, chunks).await
            }
            Ok(Ok((Prepared::Values { .. }, None))) => Err(Problem::Unreadable.into()),
        };
        Some(match answered {
            Ok(response) => asked.described(response),
            Err(refusal) => asked.refused(&refusal),
        })
    }
}

/// What is asked of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    lod: usize,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Dds,
    Das,
    Dods,
    Dmr,
    DmrXml,
    Dap,
}

/// Why there is no answer: a status, and a text for people.
struct Refusal(StatusCode, String);

/// What a request comes to, once its level is known.
enum Prepared {
    Text(String),
    Values { is_inexact: Arc<AtomicBool>, chunks: Option<Chunks> },
}

impl Asked {
    /// Reads the name `lodN.dds` and its like; `None` for others.
    pub(super) fn read(name: &OsStr) -> Option<Self> {
        let (lod, suffix) = name.to_str()?.strip_prefix("lod")?.split_once('.')?;
        let form = match suffix {
            "dds" => Form::Dds,
            "das" => Form::Das,
            "dods" => Form::Dods,
            "dmr" => Form::Dmr,
            "dmr.xml" => Form::DmrXml,
            "dap" => Form::Dap,
            _ => return None,
        };
        let is_number = !lod.is_empty() && lod.bytes().all(|byte| byte.is_ascii_digit());
        Some(Self { lod: lod.parse().ok().filter(|_| is_number)?, form })
    }

    /// Makes what is asked for. It decodes nothing.
    fn prepare(self, layer: LayerRef<'_>, query: &str) -> Result<(Prepared, Option<Content>), Refusal> {
        let model = Model::new(layer, self.lod).map_err(|why| Refusal(StatusCode::NOT_FOUND, why))?;
        let level = &layer.levels()[self.lod];
        if self.is_dap4() {
            let wanted = constraint::dap4(query, &model).map_err(|why| Refusal(StatusCode::BAD_REQUEST, why))?;
            if self.form != Form::Dap {
                return Ok((Prepared::Text(dap4::dmr(&model, &wanted)), None));
            }
            check_length(dap4::bytes(&model, &wanted.chosen))?;
            let (mut answer, chunks) = (Answer::new(level), Some(Chunks::new(&model, &wanted)));
            dap4::values(&model, &wanted.chosen, &mut answer);
            let prepared = Prepared::Values { is_inexact: answer.is_inexact(), chunks };
            return Ok((prepared, Some(Content::Computed(Arc::new(answer)))));
        }
        check_dimensions(&model)?;
        let chosen = || constraint::dap2(query, &model).map_err(|why| Refusal(StatusCode::BAD_REQUEST, why));
        let text = match self.form {
            Form::Das => dap2::das(&model),
            Form::Dds => dap2::dds(&model, &chosen()?),
            _ => {
                let chosen: Vec<Chosen> = chosen()?;
                check_length(dap2::bytes(&model, &chosen))?;
                let mut answer = Answer::new(level);
                dap2::dods(&model, &chosen, &mut answer);
                let prepared = Prepared::Values { is_inexact: answer.is_inexact(), chunks: None };
                return Ok((prepared, Some(Content::Computed(Arc::new(answer)))));
            }
        };
        Ok((Prepared::Text(text), None))
    }

    fn is_dap4(self) -> bool {
        matches!(self.form, Form::Dmr | Form::DmrXml | Form::Dap)
    }

    /// Sends values once all of them have been read.
    async fn values(
        self,
        (budget, is_head): (&Budget, bool),
        (open, opened): (Open, Opened),
        is_inexact: &AtomicBool,
        chunks: Option<Chunks>,
    ) -> Result<Response, Refusal> {
        let mut response = Response::default();
        set(response.headers_mut(), CONTENT_LENGTH, &chunks.as_ref().map_or(opened.size, Chunks::len).to_string());
        if is_head {
            return Ok(response);
        }
        let epoch = (!opened.is_recent).then_some(opened.epoch);
        let body = FileBody::begin_checked(open, epoch, budget.clone(), opened.size).await;
        let body = body.map_err(|problem| match is_inexact.load(Ordering::Relaxed) {
            true => Refusal(
                StatusCode::INTERNAL_SERVER_ERROR,
                "a sample has no exact Float64, which DAP2 would need; ask over DAP4".to_owned(),
            ),
            false => problem.into(),
        })?;
        *response.body_mut() = match chunks {
            Some(chunks) => chunks.of(body),
            None => body,
        };
        Ok(response)
    }

    fn described(self, mut response: Response) -> Response {
        let (kind, description) = match self.form {
            Form::Dds => (TEXT, "dods_dds"),
            Form::Das => (TEXT, "dods_das"),
            Form::Dods => (BYTES, "dods_data"),
            Form::Dmr => ("application/vnd.opendap.dap4.dataset-metadata+xml", ""),
            Form::DmrXml => ("text/xml", ""),
            Form::Dap => ("application/vnd.opendap.dap4.data", ""),
        };
        let headers = response.headers_mut();
        set(headers, CONTENT_TYPE, kind);
        set(headers, CACHE_CONTROL, "no-cache");
        if !description.is_empty() {
            set(headers, DESCRIPTION, description);
            set(headers, SERVER, DAP2_SERVER);
        }
        response
    }

    /// Returns an error in the form of the protocol.
    fn refused(self, Refusal(status, message): &Refusal) -> Response {
        let error = if self.is_dap4() { dap4::error } else { dap2::error };
        let mut response = Response::new(error(status.as_u16(), message).into());
        *response.status_mut() = *status;
        let headers = response.headers_mut();
        set(headers, CACHE_CONTROL, "no-store");
        if self.is_dap4() {
            set(headers, CONTENT_TYPE, "application/vnd.opendap.dap4.error+xml");
        } else {
            set(headers, CONTENT_TYPE, TEXT);
            set(headers, DESCRIPTION, "dods_error");
            set(headers, SERVER, DAP2_SERVER);
        }
        response
    }
}

const TEXT: &str = "text/plain; charset=utf-8";
const BYTES: &str = "application/octet-stream";
/// Some clients take an address for one of DAP2 by this alone.
const DAP2_SERVER: &str = "dods/3.2";

fn check_dimensions(model: &Model) -> Result<(), Refusal> {
    match model.dimensions.iter().find(|(_, count)| *count > LONGEST_DIMENSION) {
        Some((name, _)) => Err(Refusal(StatusCode::NOT_FOUND, format!("{name} is too long for DAP2; ask over DAP4"))),
        None => Ok(()),
    }
}

fn check_length(bytes: u128) -> Result<(), Refusal> {
    let message = || format!("{bytes} bytes are too many for one answer; ask for less than 2 GiB");
    if bytes < TOO_LONG { Ok(()) } else { Err(Refusal(StatusCode::PAYLOAD_TOO_LARGE, message())) }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self(problem.status(), problem.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_levels_have_a_suffix() {
        let read = |name: &str| Asked::read(OsStr::new(name)).map(|asked| (asked.lod, asked.form));
        assert_eq!(read("lod0.dds"), Some((0, Form::Dds)));
        assert_eq!((read("lod1.dmr"), read("lod1.dmr.xml")), (Some((1, Form::Dmr)), Some((1, Form::DmrXml))));
        assert_eq!(read("lod12.dods"), Some((12, Form::Dods)));
        for other in
            ["lod0", "lod0.raw", "lod.dds", "lod+1.dds", "lod0.dds.x", "dds", "x.dds", "lod99999999999999999999.dds"]
        {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn long_answers_are_refused() {
        assert!(check_length((1 << 31) - 1).is_ok());
        for length in [1 << 31, 1 << 60, u128::MAX] {
            assert_eq!(check_length(length).err().map(|refusal| refusal.0), Some(StatusCode::PAYLOAD_TOO_LARGE));
        }
    }
}

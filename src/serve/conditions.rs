//! Conditional requests: whether a client has the file already, or means another version of it.
//!
//! RFC 9110, section 13. The order of the conditions is that of section 13.2.2.

use axum::http::header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE};
use axum::http::{HeaderMap, HeaderName};
use httpdate::parse_http_date;

use super::problem::Problem;
use super::validators::Validators;

/// What the conditions of a request come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The file is sent.
    Send,
    /// The client has it: 304.
    NotModified,
}

/// Evaluates the conditions of a GET or HEAD.
pub(crate) fn evaluate(headers: &HeaderMap, file: &Validators) -> Result<Outcome, Problem> {
    if headers.contains_key(IF_MATCH) {
        if !matches(headers, IF_MATCH, file, is_same) {
            return Err(Problem::Precondition);
        }
    } else if let Some(date) = date(headers, IF_UNMODIFIED_SINCE)
        && file.modified.is_some_and(|modified| modified > date)
    {
        return Err(Problem::Precondition);
    }
    if headers.contains_key(IF_NONE_MATCH) {
        let has_it = matches(headers, IF_NONE_MATCH, file, |a, b| is_same(strong(a), strong(b)));
        return Ok(if has_it { Outcome::NotModified } else { Outcome::Send });
    }
    let since = date(headers, IF_MODIFIED_SINCE);
    match (since, file.settled_time()) {
        (Some(since), Some(modified)) if modified <= since => Ok(Outcome::NotModified),
        _ => Ok(Outcome::Send),
    }
}

/// Whether a range may be sent: the client has begun with this very version, or does not say which it means.
pub(crate) fn allow_range(headers: &HeaderMap, file: &Validators) -> bool {
    let Some(value) = headers.get(IF_RANGE) else { return true };
    let Ok(text) = value.to_str() else { return false };
    if text.starts_with('"') {
        return file.tag.as_deref().is_some_and(|tag| is_same(tag, text.trim()));
    }
    // weak tags never match here, and dates only exactly
    parse_http_date(text).is_ok_and(|date| file.settled_time() == Some(date))
}

fn date(headers: &HeaderMap, name: HeaderName) -> Option<std::time::SystemTime> {
    parse_http_date(headers.get(name)?.to_str().ok()?).ok()
}

/// Whether one of the tags in a header is the file's, or it is `*`.
fn matches(headers: &HeaderMap, name: HeaderName, file: &Validators, same: impl Fn(&str, &str) -> bool) -> bool {
    let values = headers.get_all(name);
    let mut tags =
        values.iter().filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(',')).map(str::trim);
    tags.any(|tag| tag == "*" || file.tag.as_deref().is_some_and(|own| same(own, tag)))
}

/// Returns a tag without the mark of a weak one. The tags of this server have no commas.
fn strong(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// Whether two tags are the same, and none is weak.
fn is_same(one: &str, other: &str) -> bool {
    one == other && one.starts_with('"')
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use httpdate::fmt_http_date;

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
        let cases: [(Headers<'_>, Result<Outcome, Problem>); 11] = [
            (&[], Ok(Outcome::Send)),
            (&[(IF_NONE_MATCH, "\"a-1\"")], Ok(Outcome::NotModified)),
            (&[(IF_NONE_MATCH, "\"x\", W/\"a-1\"")], Ok(Outcome::NotModified)),
            (&[(IF_NONE_MATCH, "*")], Ok(Outcome::NotModified)),
            (&[(IF_NONE_MATCH, "a-1")], Ok(Outcome::Send)),
            (&[(IF_NONE_MATCH, "\"b\""), (IF_MODIFIED_SINCE, &later)], Ok(Outcome::Send)),
            (&[(IF_MODIFIED_SINCE, &later)], Ok(Outcome::NotModified)),
            (&[(IF_MODIFIED_SINCE, "yesterday")], Ok(Outcome::Send)),
            (&[(IF_MATCH, "\"a-1\"")], Ok(Outcome::Send)),
            (&[(IF_MATCH, "W/\"a-1\"")], Err(Problem::Precondition)),
            (&[(IF_UNMODIFIED_SINCE, &fmt_http_date(YEAR_1970))], Err(Problem::Precondition)),
        ];
        for (pairs, expected) in cases {
            assert_eq!(evaluate(&headers(pairs), &file), expected, "{pairs:?}");
        }
    }

    #[test]
    fn a_time_of_just_now_proves_nothing() {
        let fresh = file(Duration::from_secs(2));
        let date = fmt_http_date(fresh.modified.unwrap());
        assert_eq!(evaluate(&headers(&[(IF_MODIFIED_SINCE, &date)]), &fresh), Ok(Outcome::Send));
        assert!(!allow_range(&headers(&[(IF_RANGE, &date)]), &fresh));
        assert_eq!(evaluate(&headers(&[(IF_NONE_MATCH, "\"a-1\"")]), &Validators::default()), Ok(Outcome::Send));
    }

    #[test]
    fn a_range_is_of_the_version_that_was_begun() {
        let file = file(Duration::from_secs(1000));
        let date = fmt_http_date(file.modified.unwrap());
        for (value, allowed) in
            [("\"a-1\"", true), (&date[..], true), ("\"b\"", false), ("W/\"a-1\"", false), ("nonsense", false)]
        {
            assert_eq!(allow_range(&headers(&[(IF_RANGE, value)]), &file), allowed, "{value}");
        }
        assert!(allow_range(&HeaderMap::new(), &file));
    }
}

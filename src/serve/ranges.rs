//! The parts of a file that a request wants.
//!
//! RFC 9110, section 14: `Range: bytes=0-99,200-,-50`.

use std::ops::Range;

use axum::http::HeaderMap;
use axum::http::header::RANGE;

use super::problem::Problem;

/// The most parts of one response. While they are sent they take 16 bytes each of what a response may have in memory.
const MAX_PARTS: usize = 1024;

/// What a request wants of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of it: no ranges, some that cannot be understood, or more than the whole file.
    Whole,
    /// These ranges, none of which is empty.
    Ranges(Vec<Range<u64>>),
}

/// Reads the ranges that a request wants of a file of `size` bytes.
pub(crate) fn wanted(headers: &HeaderMap, size: u64) -> Result<Wanted, Problem> {
    let mut values = headers.get_all(RANGE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return Ok(Wanted::Whole) };
    let Some(list) = value.to_str().ok().and_then(list_of_bytes) else { return Ok(Wanted::Whole) };
    let (mut ranges, mut total) = (Vec::new(), 0u64);
    for text in list.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        let Some(range) = range(text, size) else { return Ok(Wanted::Whole) };
        if range.is_empty() {
            continue;
        }
        total = total.saturating_add(range.end - range.start);
        ranges.push(range);
        if ranges.len() > MAX_PARTS {
            return Err(Problem::Range(size));
        }
    }
    match ranges.len() {
        0 => Err(Problem::Range(size)),
        // parts that overlap would make a small request cost more than the file
        2.. if total > size => Ok(Wanted::Whole),
        _ => {
            ranges.shrink_to_fit();
            Ok(Wanted::Ranges(ranges))
        }
    }
}

fn list_of_bytes(value: &str) -> Option<&str> {
    let (unit, list) = value.split_once('=')?;
    (unit.trim().eq_ignore_ascii_case("bytes") && list.bytes().any(|c| c.is_ascii_digit())).then_some(list)
}

/// Reads one range; an empty one lies outside of the file. `None` if it is none.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(value: &str, size: u64) -> Result<Wanted, Problem> {
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, value.parse().unwrap());
        wanted(&headers, size)
    }

    #[test]
    fn ranges_are_read_by_the_standard() {
        let ranges = |ends: &[(u64, u64)]| Ok(Wanted::Ranges(ends.iter().map(|(from, to)| *from..*to).collect()));
        assert_eq!(of("bytes=0-0", 10), ranges(&[(0, 1)]));
        assert_eq!(of("bytes=5-", 10), ranges(&[(5, 10)]));
        assert_eq!(of("bytes=-3", 10), ranges(&[(7, 10)]));
        assert_eq!(of("bytes=-30", 10), ranges(&[(0, 10)]));
        assert_eq!(of("bytes=8-99999999999999999999999", 10), ranges(&[(8, 10)]));
        assert_eq!(of("Bytes=0-1, 4-5,-1", 10), ranges(&[(0, 2), (4, 6), (9, 10)]));
        assert_eq!(of("bytes=0-1,20-30", 10), ranges(&[(0, 2)]));
        for outside in ["bytes=10-", "bytes=10-20,99-", "bytes=-0"] {
            assert_eq!(of(outside, 10), Err(Problem::Range(10)), "{outside}");
        }
        assert_eq!(of("bytes=0-", 0), Err(Problem::Range(0)));
        for other in
            ["bytes=", "bytes=a-b", "bytes=3-1", "lines=0-1", "0-1", "bytes=0-1,x", "bytes=1", "bytes=--1", "bytes=,"]
        {
            assert_eq!(of(other, 10), Ok(Wanted::Whole), "{other}");
        }
    }

    #[test]
    fn many_ranges_cost_no_more_than_the_file() {
        let text = |n: usize, one: &str| format!("bytes={}", vec![one; n].join(","));
        assert_eq!(of(&text(5, "0-"), 1000), Ok(Wanted::Whole));
        assert_eq!(of(&text(2000, "0-0"), 1 << 40), Err(Problem::Range(1 << 40)));
    }

    proptest! {
        #[test]
        fn ranges_lie_in_the_file(text in "(bytes=)?[0-9,\\- a=]{0,40}", size in 0u64..1000) {
            if let Ok(Wanted::Ranges(ranges)) = of(&text, size) {
                prop_assert!(!ranges.is_empty());
                prop_assert!(ranges.iter().all(|range| range.start < range.end && range.end <= size));
            }
        }
    }
}

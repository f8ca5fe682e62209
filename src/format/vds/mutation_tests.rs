//! Descriptions with random changes are parsed or refused without a panic.

use proptest::prelude::*;

use super::description::fixtures::{FULL_OBJECT, full_layout};
use super::description::{of_json, of_object};
use super::fuzz_entry;

/// A change to a text.
#[derive(Clone, Debug)]
enum Change {
    Put(usize, u8),
    Remove(usize, usize),
    Copy(usize, usize, usize),
    Insert(usize, &'static str),
}

/// Tokens of the two syntaxes.
const TOKENS: [&str; 16] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    ";",
    "=",
    "N:9:",
    "-1",
    "0",
    "1e999",
    "99999999999",
    "CreateObj(\"\",\"\",1){",
    "null",
];

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let index = any::<prop::sample::Index>().prop_map(|index| index.index(1 << 20));
    let change = prop_oneof![
        (index.clone(), any::<u8>()).prop_map(|(at, byte)| Change::Put(at, byte)),
        (index.clone(), 1..60_usize).prop_map(|(at, length)| Change::Remove(at, length)),
        (index.clone(), index.clone(), 1..200_usize).prop_map(|(from, to, length)| Change::Copy(from, to, length)),
        (index, prop::sample::select(&TOKENS[..])).prop_map(|(at, text)| Change::Insert(at, text)),
    ];
    prop::collection::vec(change, 1..6)
}

fn changed(text: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut text = text.to_vec();
    for change in changes {
        let end = text.len();
        let index = |at: usize| at % (end + 1);
        match *change {
            Change::Put(at, byte) if index(at) < end => text[index(at)] = byte,
            Change::Put(_, byte) => text.push(byte),
            Change::Remove(at, length) => drop(text.drain(index(at)..(index(at) + length).min(end))),
            Change::Copy(from, to, length) => {
                let copy = text[index(from)..(index(from) + length).min(end)].to_vec();
                text.splice(index(to)..index(to), copy);
            }
            Change::Insert(at, new) => drop(text.splice(index(at)..index(at), new.bytes())),
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn changed_json_never_panics(changes in changes()) {
        let text = changed(full_layout().to_string().as_bytes(), &changes);
        prop_assert_eq!(fuzz_entry::json(&text), of_json(&text).is_ok());
    }

    #[test]
    fn changed_objects_never_panic(changes in changes()) {
        let text = changed(FULL_OBJECT.as_bytes(), &changes);
        prop_assert_eq!(fuzz_entry::object(&text), of_object(&text).is_ok());
    }

    #[test]
    fn every_truncated_object_is_refused(end in any::<prop::sample::Index>()) {
        // the closing brace is the last byte but one
        let text = &FULL_OBJECT.as_bytes()[..end.index(FULL_OBJECT.len() - 2)];
        prop_assert!(of_object(text).is_err());
    }
}

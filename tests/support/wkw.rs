//! WKW datasets of the test data.

use serde_json::Value;

use super::{json, test_data};

/// Returns one list of the expected results, which scripts/make_wkw_fixtures.py has written.
pub fn expected(list: &str) -> Vec<Value> {
    json(test_data("wkw/expected.json"))[list].as_array().unwrap().clone()
}

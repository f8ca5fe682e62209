//! Grants: how many bytes of the cache each group of scans gets.

use std::sync::Arc;

use super::brick_layer::BrickLayer;
use crate::array::scan::{Retention, Stream};

/// The scans that are in the same layer of bricks.
pub(crate) struct Group {
    /// The layer.
    pub layer: BrickLayer,
    /// The scans.
    pub scans: Vec<Arc<Stream>>,
    /// Bytes that it takes to keep whole bricks.
    pub brick_bytes: usize,
    /// Bytes that it takes to keep all planes that are still to be read.
    pub plane_bytes: usize,
    /// Bytes that the group gets.
    pub granted: usize,
}

/// Divides `budget` bytes among groups, and returns the bytes that are left. If the whole bricks of all groups do not
/// fit, the groups that need little to finish their layers get that much, and the others get equal shares.
pub(crate) fn grant(groups: &mut [Group], budget: usize) -> usize {
    let all = groups.iter().fold(0usize, |sum, group| sum.saturating_add(group.brick_bytes));
    if all <= budget {
        groups.iter_mut().for_each(|group| group.granted = group.brick_bytes);
        return budget - all;
    }
    groups.sort_by_key(|group| group.plane_bytes.min(group.brick_bytes));
    let (mut left, count) = (budget, groups.len());
    for (n, group) in groups.iter_mut().enumerate() {
        group.granted = group.plane_bytes.min(group.brick_bytes).min(left / (count - n));
        left -= group.granted;
    }
    // the remaining bytes go to whole bricks: first of groups that keep them already, then of others
    let keeps_bricks = |group: &Group| group.scans.iter().any(|scan| scan.retention() == Retention::Bricks);
    groups.sort_by_key(|group| !keeps_bricks(group));
    for group in groups {
        let more = group.brick_bytes.saturating_sub(group.granted);
        if more <= left {
            group.granted += more;
            left -= more;
        }
    }
    left
}

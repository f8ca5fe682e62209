//! How the cache is divided among the scans under way.
//!
//! The scans that are in the same layer of bricks are a group. A group whose layer fits into its part keeps whole bricks, which all of its scans
//! share; in another each scan keeps planes. What is reckoned with is what a group still needs of its layer, so that a scan
//! that is about to leave one is no reason to take the next one from another. Who has to give up whole bricks keeps planes of them first, so that a
//! change costs little, and there are no more changes than scans come to layers.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::access::Access;
use super::bricks::{brick_cost, layer_bricks, row_bricks};
use super::plan::Plan;
use super::reader::Reader;
use super::scan::{Keep, Stream, View};
use crate::cache::{BrickKey, Loan};

/// Scans may use so much of the cache together while other readers ask for much, in hundredths.
const SHARE_AMONG_OTHERS: usize = 60;
/// Of its part of the cache a scan that keeps planes uses so much, in hundredths: the rest is for what other readers ask for.
const SHARE: usize = 95;
/// To keep all of the rest of a layer a scan needs so much more than its bytes, in hundredths.
const WITH_SLACK: usize = 110;
/// Other readers ask for much if they make so many requests in the time below.
const MANY: usize = 300;
const LATELY: Duration = Duration::from_secs(2);

/// The scans under way, and what they get of the cache.
#[derive(Default)]
pub struct Division {
    scans: Vec<Entry>,
    /// Requests of other readers since then.
    others: usize,
    since: Option<Instant>,
    /// These are many.
    busy: bool,
}

struct Entry {
    scan: Weak<Stream>,
    layer: Layer,
    /// Planes of the layer that were left when its plan was made.
    planned: u64,
}

/// A layer of bricks, or of a scan that needs each brick for one plane, what of it is needed at a time.
#[derive(Clone, Copy)]
struct Layer {
    number: u64,
    /// The first and the last brick: the same for scans that use the same bricks.
    keys: (BrickKey, BrickKey),
    bricks: u64,
    /// The planes, and the samples in each.
    deep: u64,
    end: u64,
    plane: u64,
    /// Bytes of all bricks, and of one of their planes.
    bytes: usize,
    plane_bytes: usize,
}

impl Layer {
    fn new(access: &Access, layer: u64) -> Self {
        let info = access.array.info();
        let (count, bricks, step) = (info.grid.count(), layer_bricks(info), info.grid.step()[0]);
        let key = |number| access.key(&count.index_of(number));
        let needed = if step > 1 { bricks } else { bricks.min(4 * row_bricks(info)) };
        let bytes = usize::try_from(needed).unwrap_or(usize::MAX).saturating_mul(brick_cost(info));
        let (first, end) = info.grid.owned(0, layer);
        Self {
            number: layer,
            keys: (key(layer * bricks), key((layer + 1) * bricks - 1)),
            bricks,
            deep: if step > 1 { end.saturating_sub(first).max(1) } else { 1 },
            end,
            plane: info.shape().strides(1)[0].max(1),
            bytes,
            plane_bytes: bytes / usize::try_from(step).unwrap_or(usize::MAX).max(1),
        }
    }

    /// Planes that a scan has not passed.
    fn left(&self, scan: &Stream) -> u64 {
        self.end.saturating_sub(scan.next() / self.plane).min(self.deep)
    }

    fn plan(&self, share: usize, planes: u64) -> Plan {
        Plan::new(share, self.bricks, planes.max(1), self.plane_bytes as u64)
    }
}

/// The scans in one layer.
struct Group {
    layer: Layer,
    scans: Vec<Arc<Stream>>,
    /// Bytes to keep whole bricks; to keep all planes that are still to come; and what it gets.
    whole: usize,
    rest: usize,
    grant: usize,
}

/// A scan that is to keep planes of the bricks of its layer that are in the cache.
pub struct Adoption {
    access: Access,
    layer: u64,
    plane: u64,
    /// Nobody keeps these bricks whole.
    alone: bool,
    /// It comes to the layer, and has so many bytes from now on: others have given up their bricks.
    enters: Option<usize>,
}

impl Adoption {
    /// Keeps planes of the bricks.
    pub fn run(&self) {
        if let (Some(share), Some(scan)) = (self.enters, &self.access.scan) {
            scan.set_share(share);
        }
        self.access.adopt(self.layer, self.plane, self.alone);
    }
}

impl Division {
    /// Takes a scan in, which comes to a layer. Gives the layer that it has left if nobody else is there.
    pub fn enter(&mut self, access: &Access, scan: &Arc<Stream>, layer: u64) -> Option<u64> {
        self.leave(scan);
        let of = Layer::new(access, layer);
        scan.set_view(View { array: Arc::clone(&access.array), turn: access.turn, bulkhead: access.bulkhead });
        self.scans.push(Entry { scan: Arc::downgrade(scan), layer: of, planned: of.left(scan) });
        scan.left_behind().filter(|before| {
            let keys = Layer::new(access, *before).keys;
            self.scans.iter().all(|entry| entry.layer.keys != keys)
        })
    }

    /// Takes a scan out.
    pub fn leave(&mut self, scan: &Arc<Stream>) {
        self.scans.retain(|entry| entry.scan.as_ptr() != Arc::as_ptr(scan));
    }

    /// Whether a scan has stopped whose part of the cache is still to be given to others.
    pub fn has_stopped(&self) -> bool {
        self.scans.iter().any(|entry| entry.scan.upgrade().is_none_or(|scan| !scan.is_alive()))
    }

    /// Takes note of a request of another reader; tells whether these have become many, or are so no more.
    pub fn note(&mut self, other: bool) -> bool {
        let before = self.busy;
        self.others += usize::from(other);
        self.busy |= self.others >= MANY;
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() >= LATELY {
            self.busy = self.others >= MANY;
            (self.others, self.since) = (0, None);
        }
        self.busy != before
    }

    /// Bytes in segments.
    pub fn bytes(&self) -> usize {
        self.scans.iter().filter_map(|entry| entry.scan.upgrade()).map(|scan| scan.segments.bytes()).sum()
    }

    /// The scans that go on, by layer. One that has stopped loses its segments, and is a new one if it goes on after all.
    fn groups(&mut self) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        self.scans.retain(|entry| {
            let Some(scan) = entry.scan.upgrade() else { return false };
            if !scan.is_alive() {
                scan.stop();
                return false;
            }
            let layer = entry.layer;
            let rest = if layer.deep > 1 {
                let planes = usize::try_from(layer.left(&scan)).unwrap_or(usize::MAX);
                layer.plane_bytes.saturating_mul(planes) / 100 * WITH_SLACK
            } else {
                layer.bytes
            };
            let whole = if scan.is_crowded() && layer.deep > 1 { usize::MAX } else { layer.bytes };
            match groups.iter_mut().find(|group| group.layer.keys == layer.keys) {
                Some(group) => {
                    (group.whole, group.rest) = (group.whole.max(whole), group.rest.max(rest));
                    group.scans.push(scan);
                }
                None => groups.push(Group { layer, scans: vec![scan], whole, rest, grant: 0 }),
            }
            true
        });
        groups
    }

    /// Divides the cache among the scans. `entering` comes to a layer now. Gives the scans that keep planes of whole bricks from now on.
    #[must_use]
    pub fn divide(&mut self, reader: &Arc<Reader>, entering: Option<&Arc<Stream>>) -> Vec<Adoption> {
        let bound = reader.cache().bound();
        let mut groups = self.groups();
        let left = grant(&mut groups, if self.busy { bound / 100 * SHARE_AMONG_OTHERS } else { bound });
        let left = left.saturating_sub(bound / 100 * (100 - SHARE));
        let whole = |group: &Group| group.grant >= group.whole || group.layer.deep <= 1;
        let spare = left / groups.iter().filter(|group| whole(group)).count().max(1);
        let mut adoptions = Vec::new();
        for group in &groups {
            let enters = |scan: &Arc<Stream>| entering.is_some_and(|entering| Arc::ptr_eq(entering, scan));
            let entered = group.scans.iter().any(enters);
            let share = group.grant / 100 * SHARE / group.scans.len();
            let is_whole = |scan: &Arc<Stream>| whole(group) && (entered || scan.keep() == Keep::Whole);
            let alone = !group.scans.iter().any(is_whole);
            for scan in &group.scans {
                // who keeps planes goes on with them until the next layer, unless the bricks are kept for another scan anyway
                if is_whole(scan) {
                    scan.segments.clear();
                    // a second layer's worth at most, for what is decoded ahead
                    scan.set_share(group.grant + spare.min(group.grant));
                    scan.set_keep(Keep::Whole);
                    continue;
                }
                let from_now_on = enters(scan) || scan.keep() == Keep::Whole;
                let Some(entry) = self.scans.iter_mut().find(|entry| entry.scan.as_ptr() == Arc::as_ptr(scan)) else {
                    continue;
                };
                if from_now_on {
                    entry.planned = group.layer.left(scan);
                }
                let enters = enters(scan);
                scan.set_share(if enters { share.min(scan.segments.bytes()) } else { share });
                scan.set_keep(Keep::Planes(group.layer.plan(share, entry.planned)));
                scan.segments.trim(share);
                if from_now_on && let Some(View { array, turn, bulkhead }) = scan.view() {
                    let access =
                        Access { reader: Arc::clone(reader), array, turn, bulkhead, scan: Some(Arc::clone(scan)) };
                    let plane = scan.next() / group.layer.plane;
                    let enters = enters.then_some(share);
                    adoptions.push(Adoption { access, layer: group.layer.number, plane, alone, enters });
                }
            }
        }
        adoptions.sort_by_key(|adoption| adoption.enters.is_some());
        adoptions
    }

    /// What the scans get of the cache.
    pub fn loan(&mut self, bound: usize) -> Loan {
        let (mut elsewhere, mut bricks) = (0usize, 0usize);
        for group in self.groups() {
            let (whole, planes): (Vec<_>, Vec<_>) = group.scans.iter().partition(|scan| scan.keep() == Keep::Whole);
            let kept = planes.iter().map(|scan| scan.share().max(scan.segments.bytes())).sum();
            let shared = whole.iter().map(|scan| scan.share()).max().unwrap_or(0);
            (elsewhere, bricks) = (elsewhere.saturating_add(kept), bricks.saturating_add(shared));
        }
        Loan { elsewhere, bricks: bricks.min(bound.saturating_sub(elsewhere)), modest: self.busy }
    }
}

/// Divides `budget` among groups, and gives what is left of it. If not all of them can keep whole bricks, those that need little
/// to get through their layers get that, and the others the same each.
fn grant(groups: &mut [Group], budget: usize) -> usize {
    let all = groups.iter().fold(0usize, |sum, group| sum.saturating_add(group.whole));
    if all <= budget {
        groups.iter_mut().for_each(|group| group.grant = group.whole);
        return budget - all;
    }
    groups.sort_by_key(|group| group.rest.min(group.whole));
    let (mut left, count) = (budget, groups.len());
    for (n, group) in groups.iter_mut().enumerate() {
        group.grant = group.rest.min(group.whole).min(left / (count - n));
        left -= group.grant;
    }
    // with what is left, whole bricks for those that have them, and then for others
    let is_whole = |group: &Group| group.scans.iter().any(|scan| scan.keep() == Keep::Whole);
    groups.sort_by_key(|group| !is_whole(group));
    for group in groups {
        let more = group.whole.saturating_sub(group.grant);
        if more <= left {
            group.grant += more;
            left -= more;
        }
    }
    left
}

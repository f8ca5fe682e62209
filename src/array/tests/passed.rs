//! Bricks that scans have passed: evicted soon, unless somebody comes back to them.

use std::sync::Arc;

use super::model::{MixedArray, read_permuted, reader_with};
use super::scan::at_most;
use crate::array::{Reader, ScanDetector};
use crate::counters::Counters;
use crate::volume::AxisPermutation;

const BRICK: usize = 32 * 16 * 16 * 2;
/// 4 x 4 bricks.
const LAYER: usize = 16 * BRICK;
const LAYERS: usize = 20;
const CACHE: usize = 16 * LAYER * 2;

/// Reads the whole array in order, in steps of a few planes. Returns the number of decodes for each brick, and the bytes
/// that were held at most.
fn scan(
    array: &Arc<MixedArray>,
    reader: &Arc<Reader>,
    counters: &Counters,
    order: Option<AxisPermutation>,
) -> (f64, usize) {
    let scans = Arc::new(ScanDetector::default());
    let (before, samples) = (counters.bricks_decoded.get(), (LAYERS * LAYER / 2) as u64);
    let mut held = 0;
    for start in (0..samples).step_by(8192) {
        let range = start..(start + 8192).min(samples);
        assert!(read_permuted(reader, array, order, range, Some(&scans)).is_ok());
        held = held.max(reader.bytes_held());
    }
    ((counters.bricks_decoded.get() - before) as f64 / (16 * LAYERS) as f64, held)
}

#[test]
fn a_scan_holds_few_bricks_behind_it_until_somebody_comes_back() {
    let array = Arc::new(MixedArray::new(&[32 * LAYERS as u64, 64, 64], 0, &[32, 16, 16], 0).all_coded().page_cached());
    let counters: Arc<Counters> = Arc::default();
    let turned = AxisPermutation::to_front(2);
    at_most(1.01, "decodes of a brick, besides its first two", || {
        let reader = reader_with(CACHE, &counters);
        let (decodes, held) = scan(&array, &reader, &counters, None);
        assert!((1.0..1.05).contains(&decodes), "{decodes}");
        // the layer that it is in, the next one, and what it has passed last
        assert!(held <= 6 * LAYER, "{} layers are held of a cache for {}", held / LAYER, CACHE / LAYER);
        let (again, _) = scan(&array, &reader, &counters, Some(turned));
        assert!(again < 1.05, "{again}");
        // which is why the cache keeps them now
        let (_, held) = scan(&array, &reader, &counters, None);
        assert!(held > LAYERS / 2 * LAYER);
        let more = [Some(turned), None, Some(turned), None].map(|order| scan(&array, &reader, &counters, order).0);
        1.0 + more.iter().sum::<f64>()
    });
}

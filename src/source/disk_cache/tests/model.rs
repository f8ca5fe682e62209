//! Random use against a model: a hit is always right, and what was put and not evicted is a hit.

use std::ops::Range;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Put {
        object: u64,
        at: Range<u64>,
    },
    Get {
        object: u64,
        at: Range<u64>,
    },
    /// Damages a file: which one, and at which byte.
    Damage {
        file: usize,
        byte: usize,
    },
    Reopen,
}

const OBJECTS: u64 = 3;

fn range() -> impl Strategy<Value = Range<u64>> {
    // near the edge of a region of 64 MiB, in pieces of very different sizes
    let start = (1_u64 << 26) - 150_000;
    (0_u64..300_000, prop_oneof![1_u64..100, 1_u64..140_000]).prop_map(move |(at, size)| start + at..start + at + size)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..OBJECTS, range()).prop_map(|(object, at)| Step::Put { object, at }),
        12 => (0..OBJECTS, range()).prop_map(|(object, at)| Step::Get { object, at }),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(file, byte)| Step::Damage { file, byte }),
        1 => Just(Step::Reopen),
    ]
}

fn version(number: u64) -> ObjectVersion {
    // the same object in versions that differ
    ObjectVersion::new("s3://bucket", "survey", "object", &number.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_hit_is_always_right(steps in proptest::collection::vec(step(), 1..60), small in any::<bool>()) {
        let (_folder, dir) = place();
        let budget = if small { 3 << 20 } else { BUDGET };
        let mut cache = DiskCache::open(&dir, budget).unwrap();
        let mut puts: Vec<(u64, Range<u64>)> = Vec::new();
        let mut may_lack = small;
        for step in steps {
            match step {
                Step::Put { object, at } => {
                    cache.put(&version(object), at.start, content(object, at.start, (at.end - at.start) as usize));
                    assert!(cache.wait_until_written(Duration::from_secs(30)));
                    puts.push((object, at));
                }
                Step::Get { object, at } => {
                    let mut out = vec![0; (at.end - at.start) as usize];
                    let hit = cache.get(&version(object), at.start, &mut out);
                    prop_assert!(!hit || out == content(object, at.start, out.len()), "wrong bytes");
                    let has = |byte: u64| puts.iter().any(|(of, range)| *of == object && range.contains(&byte));
                    let all = at.clone().all(has);
                    prop_assert!(!hit || all, "bytes that were never put");
                    // a range within a single one is always found
                    let one = puts.iter().any(|(of, range)| *of == object && range.start <= at.start && at.end <= range.end);
                    prop_assert!(hit || !one || may_lack, "{at:?} is there, and is not found");
                }
                Step::Damage { file, byte } => {
                    let files = files(&dir);
                    if !files.is_empty() {
                        let path = &files[file % files.len()];
                        let mut bytes = fs::read(path).unwrap();
                        let at = byte % bytes.len();
                        bytes[at] ^= 1;
                        fs::write(path, bytes).unwrap();
                        may_lack = true;
                    }
                }
                Step::Reopen => {
                    drop(cache);
                    cache = DiskCache::open(&dir, budget).unwrap();
                }
            }
        }
        prop_assert!(cache.statistics().bytes <= budget);
    }
}

//! Runs threads of the data path in many orders, which a scheduler chooses. `scripts/stress/schedules.sh` runs these
//! tests; a deadlock fails them, too.

mod flights;
mod gate;
mod jobs;
mod reads;

use std::env;
use std::sync::Arc;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, FailurePersistence, Runner};

use crate::sync::Clock;

/// Runs a test in VOLFS_SCHEDULES orders (1,000 if that is not set): a half of them at random, the others with few
/// preemptions. In a half of each, waits time out at any moment; in the others they do not, so that a thread that
/// nobody wakes is a deadlock.
fn check(test: impl Fn() + Send + Sync + 'static) {
    let schedules: usize = env::var("VOLFS_SCHEDULES").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000);
    let test = Arc::new(test);
    let mut config = Config::new();
    config.stack_size = 1 << 19;
    config.failure_persistence = FailurePersistence::None;
    for clock in [Clock::Stopped, Clock::Runs] {
        for is_random in [true, false] {
            let test = Arc::clone(&test);
            let run = move || {
                clock.start();
                test();
                Clock::end();
            };
            let schedules = schedules.div_ceil(4);
            let ran = if is_random {
                Runner::new(RandomScheduler::new(schedules), config.clone()).run(run)
            } else {
                Runner::new(PctScheduler::new(3, schedules), config.clone()).run(run)
            };
            assert_eq!(ran, schedules);
        }
    }
}

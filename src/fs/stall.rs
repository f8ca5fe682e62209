//! Notices that a source has not answered for long: a file server or a store that hangs.
//!
//! A thread that waits for a source does nothing else, so what the system counts of it stands still. The thread that
//! refreshes datasets looks at those whose jobs have run for a while.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::Volfs;
use super::resolve::path_of;
use crate::logging::timestamp;
use crate::pool::RunningJob;

/// A source stalls when it has not answered for so long.
const STALLED: Duration = Duration::from_secs(30);
/// Jobs that have run for less time are not looked at.
const LONG: Duration = Duration::from_secs(10);
/// The time between two looks, where nothing else needs any.
pub(super) const LOOK: Duration = Duration::from_secs(5);
/// The most datasets that the log names at a time.
const MOST_NAMED: usize = 20;

/// What the system counts of a thread: its processor time, and how often it has waited and was interrupted.
type Counts = [u64; 3];

/// Returns the counts of a job's thread; `None` if the system does not tell.
fn counts_of(job: &RunningJob) -> Option<Counts> {
    let folder = format!("/proc/self/task/{}", job.thread);
    let stat = fs::read_to_string(format!("{folder}/stat")).ok()?;
    // fields 14 and 15 of the line: field 3 is the first behind the name, which is in brackets
    let mut times = stat.rsplit_once(") ")?.1.split(' ').skip(11).map_while(|field| field.parse::<u64>().ok());
    let time = times.next()?.saturating_add(times.next()?);
    let status = fs::read_to_string(format!("{folder}/status")).ok()?;
    let count = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some([time, count("voluntary_ctxt_switches:")?, count("nonvoluntary_ctxt_switches:")?])
}

/// A bulkhead of the pool, and so a dataset or folder, whose source stalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stall {
    pub number: u64,
    /// Since when it has not answered.
    pub since: Instant,
    /// Whether the log has a line about it.
    pub is_named: bool,
}

/// Watches the jobs of the pool. Belongs to the thread that looks.
#[derive(Default)]
pub(super) struct StallWatch {
    /// The jobs that have run for long, with the counts of their threads and since when these stand still.
    jobs: HashMap<RunningJob, (Counts, Instant)>,
    stalls: Vec<Stall>,
}

impl StallWatch {
    /// Looks at the jobs that run. Returns the stalls that have begun, and those that have ended.
    fn look_at(
        &mut self,
        now: Instant,
        running: &[RunningJob],
        counts: impl Fn(&RunningJob) -> Option<Counts>,
    ) -> (Vec<Stall>, Vec<Stall>) {
        let long = running.iter().filter(|job| now.saturating_duration_since(job.since) >= LONG);
        let (mut jobs, mut since) = (HashMap::new(), HashMap::<u64, Instant>::new());
        for job in long {
            let Some(counts) = counts(job) else { continue };
            let seen = match self.jobs.get(job) {
                // it may have waited from the start
                None => (counts, job.since),
                Some((before, still)) if *before == counts => {
                    if now.saturating_duration_since(*still) >= STALLED {
                        since.entry(job.number).and_modify(|first| *first = (*first).min(*still)).or_insert(*still);
                    }
                    (counts, *still)
                }
                Some(_) => (counts, now),
            };
            jobs.insert(*job, seen);
        }
        self.jobs = jobs;
        let ended = self.stalls.extract_if(.., |stall| since.remove(&stall.number).is_none()).collect();
        let named = self.stalls.iter().filter(|stall| stall.is_named).count();
        let mut begun: Vec<Stall> =
            since.into_iter().map(|(number, since)| Stall { number, since, is_named: false }).collect();
        begun.sort_by_key(|stall| (stall.since, stall.number));
        begun.iter_mut().take(MOST_NAMED.saturating_sub(named)).for_each(|stall| stall.is_named = true);
        self.stalls.extend(&begun);
        self.stalls.sort_by_key(|stall| stall.since);
        (begun, ended)
    }
}

impl Volfs {
    /// Looks for sources that stall, and logs those that begin to, or answer again. Never waits for a source.
    pub(super) fn look_for_stalls(&self, watch: &mut StallWatch) {
        let (begun, ended) = watch.look_at(Instant::now(), &self.pool().running(), counts_of);
        self.stalls.lock().clone_from(&watch.stalls);
        for stall in begun.iter().filter(|stall| stall.is_named) {
            let (waited, reads) = (stall.since.elapsed(), self.pool().requests(stall.number));
            let since = timestamp(SystemTime::now().checked_sub(waited).unwrap_or(UNIX_EPOCH));
            let (name, seconds) = (self.name_of(stall), waited.as_secs());
            let wait = if reads == 1 { "read waits" } else { "reads wait" };
            log::warn!("{name}: the source has not answered for {seconds} s, since {since}; {reads} {wait}");
        }
        for stall in ended.iter().filter(|stall| stall.is_named) {
            let (name, seconds) = (self.name_of(stall), stall.since.elapsed().as_secs());
            // a store's requests time out, which another line tells
            match self.options.origin().is_url() {
                true => log::warn!("{name}: no read waits for the source any more, after {seconds} s"),
                false => log::warn!("{name}: the source answers again, after {seconds} s"),
            }
        }
    }

    /// Returns the path of the dataset or folder in the mount; that of the source if it has none.
    fn name_of(&self, stall: &Stall) -> String {
        self.dataset_of(stall).unwrap_or_else(|| self.options.source.to_string_lossy().into_owned())
    }

    fn dataset_of(&self, stall: &Stall) -> Option<String> {
        let node = self.catalog.node(u32::try_from(stall.number).ok()?)?;
        let path = path_of(&node).to_string_lossy().into_owned();
        Some(path).filter(|path| !path.is_empty())
    }

    /// Returns what stalls now, for status.json; null if nothing does. Without `names` it is not said which dataset.
    pub(super) fn stall_status(&self, names: bool) -> Value {
        let running = self.pool().running();
        // an answer may have come since the last look
        let still = |stall: &&Stall| running.iter().any(|job| job.number == stall.number && job.since <= stall.since);
        let stalls: Vec<Stall> = self.stalls.lock().iter().filter(still).copied().collect();
        let Some(first) = stalls.first() else { return Value::Null };
        let seconds = first.since.elapsed().as_secs_f64();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        json!({
            "since": now - seconds,
            "seconds": seconds,
            "reads_waiting": stalls.iter().map(|stall| self.pool().requests(stall.number)).sum::<usize>(),
            "dataset": self.dataset_of(first).filter(|_| names),
            "other_datasets": stalls.len() - 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use rustix::thread::Pid;
    use rustix::thread::gettid;

    use super::*;

    fn job(number: u64, thread: i32, since: Instant) -> RunningJob {
        RunningJob { number, thread: Pid::from_raw(thread).unwrap(), since }
    }

    fn numbers((begun, ended): (Vec<Stall>, Vec<Stall>)) -> (Vec<u64>, Vec<u64>) {
        let numbers = |stalls: Vec<Stall>| stalls.iter().map(|stall| stall.number).collect();
        (numbers(begun), numbers(ended))
    }

    #[test]
    fn a_job_that_does_nothing_for_long_stalls_once_and_then_ends() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut watch = StallWatch::default();
        let hung = [job(7, 1, begin), job(7, 2, at(1))];
        let mut look = |seconds, jobs: &[RunningJob]| numbers(watch.look_at(at(seconds), jobs, |_| Some([1, 2, 3])));
        for seconds in [5, 12, 20, 29] {
            assert_eq!(look(seconds, &hung), (vec![], vec![]), "{seconds} s");
        }
        assert_eq!(look(30, &hung), (vec![7], vec![]));
        assert_eq!(look(35, &hung), (vec![], vec![]));
        assert_eq!(look(40, &hung[1..]), (vec![], vec![]), "one thread still waits");
        assert_eq!(look(45, &[job(7, 2, at(44))]), (vec![], vec![7]), "another job runs there");
        assert_eq!(look(80, &[]), (vec![], vec![]));
    }

    #[test]
    fn a_job_that_computes_or_gets_bytes_now_and_then_does_not_stall() {
        let begin = Instant::now();
        let mut watch = StallWatch::default();
        for seconds in 0..300 {
            let now = begin + Duration::from_secs(seconds);
            let counts = |job: &RunningJob| Some(if job.number == 1 { [seconds, 0, 0] } else { [0, seconds / 25, 0] });
            assert_eq!(numbers(watch.look_at(now, &[job(1, 1, begin), job(2, 2, begin)], counts)), (vec![], vec![]));
        }
        // it is not known what the threads of another system do
        let now = begin + Duration::from_secs(900);
        assert_eq!(numbers(watch.look_at(now, &[job(1, 1, begin)], |_| None)), (vec![], vec![]));
    }

    #[test]
    fn of_many_stalls_the_log_names_some() {
        let begin = Instant::now();
        let mut watch = StallWatch::default();
        let jobs: Vec<RunningJob> = (1..=50).map(|n| job(n, i32::try_from(n).unwrap(), begin)).collect();
        let mut look =
            |seconds, jobs: &[RunningJob]| watch.look_at(begin + Duration::from_secs(seconds), jobs, |_| Some([0; 3]));
        look(15, &jobs);
        let (begun, _) = look(40, &jobs);
        let named = |stalls: &[Stall]| stalls.iter().filter(|stall| stall.is_named).count();
        assert_eq!((begun.len(), named(&begun)), (50, MOST_NAMED));
        let (_, ended) = look(45, &[]);
        assert_eq!((ended.len(), named(&ended)), (50, MOST_NAMED));
    }

    #[test]
    fn the_counts_of_a_thread_stand_still_only_while_it_waits() {
        let (started, thread) = std::sync::mpsc::channel();
        let (release, hold) = std::sync::mpsc::channel::<()>();
        let waiting = std::thread::spawn(move || {
            started.send(gettid()).unwrap();
            let _ = hold.recv();
        });
        let job = RunningJob { number: 1, thread: thread.recv().unwrap(), since: Instant::now() };
        std::thread::sleep(Duration::from_millis(50));
        let before = counts_of(&job).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(counts_of(&job), Some(before));
        let own = RunningJob { thread: gettid(), ..job };
        let before = counts_of(&own).unwrap();
        std::thread::sleep(Duration::from_millis(1));
        assert_ne!(counts_of(&own), Some(before));
        drop(release);
        waiting.join().unwrap();
    }
}

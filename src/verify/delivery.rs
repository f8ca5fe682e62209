//! Delivers the reports in the order of the walk, although datasets are finished in any order.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::job::Job;
use super::report::DatasetReport;
use crate::sync::Mutex;

/// Takes reports. Returns `false` when it wants no more.
pub(super) type Sink = Box<dyn FnMut(DatasetReport) -> bool + Send>;

/// The jobs that were begun, and the reports that wait for earlier ones.
pub(super) struct Delivery {
    state: Mutex<State>,
}

struct State {
    /// By their numbers: those in progress, and those done that cannot be delivered yet.
    jobs: BTreeMap<u64, Entry>,
    next: u64,
    sink: Sink,
    /// The sink wants no more, or what is left was delivered.
    closed: bool,
}

enum Entry {
    InProgress(Arc<Job>),
    Done(Box<DatasetReport>),
}

impl Delivery {
    pub(super) fn new(sink: Sink) -> Self {
        Self { state: Mutex::new(State { jobs: BTreeMap::new(), next: 0, sink, closed: false }) }
    }

    /// Adds a job that begins. Returns `false` if its report is not wanted any more.
    pub(super) fn begin(&self, job: &Arc<Job>) -> bool {
        let mut state = self.state.lock();
        state.jobs.insert(job.number, Entry::InProgress(Arc::clone(job)));
        !state.closed
    }

    /// Adds the report of a job that is done, and delivers all that are next. Returns `false` if no more are wanted.
    pub(super) fn end(&self, job: &Job) -> bool {
        let report = Box::new(job.report());
        let mut state = self.state.lock();
        let state = &mut *state;
        state.jobs.insert(job.number, Entry::Done(report));
        while !state.closed && matches!(state.jobs.get(&state.next), Some(Entry::Done(_))) {
            if let Some(Entry::Done(report)) = state.jobs.remove(&state.next) {
                state.next += 1;
                state.closed = !(state.sink)(*report);
            }
        }
        !state.closed
    }

    /// Delivers what was found so far, also of datasets that are not done; nothing is delivered afterwards.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        let state = &mut *state;
        if std::mem::replace(&mut state.closed, true) {
            return;
        }
        for entry in std::mem::take(&mut state.jobs).into_values() {
            let report = match entry {
                Entry::InProgress(job) => job.report(),
                Entry::Done(report) => *report,
            };
            if !(state.sink)(report) {
                return;
            }
        }
    }
}

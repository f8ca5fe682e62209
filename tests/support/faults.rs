//! Which requests to the faulty file system fail, and how: at random by seed, or the request with a given number.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard};

use fuser::Errno;

use super::Noise;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// EIO.
    Io,
    /// ESTALE.
    Stale,
    /// EINTR.
    Interrupted,
    /// EAGAIN.
    Again,
    /// EMFILE.
    TooManyFiles,
    /// ENOENT for a file that is there.
    Gone,
    /// A read gives fewer bytes than there are.
    Short,
    /// A read gives no bytes, as if the file ended.
    Empty,
    /// The size of a file is a byte less, or many more.
    WrongSize,
    /// The answer comes late.
    Late,
    /// The answer comes when [`Faults::release`] is called.
    Hang,
}

impl Fault {
    /// Faults of single requests: nothing is wrong with the source before or after them.
    pub const TRANSIENT: [Self; 7] =
        [Self::Io, Self::Stale, Self::Interrupted, Self::Again, Self::TooManyFiles, Self::Short, Self::Late];

    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Io,
        Self::Stale,
        Self::Interrupted,
        Self::Again,
        Self::TooManyFiles,
        Self::Gone,
        Self::Short,
        Self::Empty,
        Self::WrongSize,
        Self::Late,
        Self::Hang,
    ];

    /// Returns the error number that a request gets.
    pub fn errno(self) -> Option<Errno> {
        match self {
            Self::Io => Some(Errno::EIO),
            Self::Stale => Some(Errno::ESTALE),
            Self::Interrupted => Some(Errno::EINTR),
            Self::Again => Some(Errno::EAGAIN),
            Self::TooManyFiles => Some(Errno::EMFILE),
            Self::Gone => Some(Errno::ENOENT),
            Self::Short | Self::Empty | Self::WrongSize | Self::Late | Self::Hang => None,
        }
    }
}

/// The request that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Lookup,
    Attributes,
    Open,
    Read,
    List,
    Tag,
}

/// Which requests fail.
#[derive(Clone, Debug, Default)]
enum Plan {
    #[default]
    None,
    /// Each with this probability, in millionths.
    Random { rate: u64, kinds: Vec<Fault> },
    /// The request with this number, counted from the plan's beginning.
    Number { number: u64, kind: Fault },
    /// All below a path that contains this text.
    Below { text: String, kind: Fault },
}

/// A request that waits.
type Waiting = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    plan: Plan,
    noise: Option<Noise>,
    requests: u64,
    injected: BTreeMap<(Fault, Place), u64>,
    waiting: Vec<Waiting>,
}

/// The faults of one faulty file system.
#[derive(Clone, Default)]
pub struct Faults(Arc<Mutex<State>>);

impl Faults {
    /// From now on each request fails with this probability, in millionths, by one of `kinds`.
    pub fn at_random(&self, seed: u64, rate: u64, kinds: &[Fault]) {
        self.begin(Plan::Random { rate, kinds: kinds.to_vec() });
        self.state().noise = Some(Noise::seeded(seed));
    }

    /// From now on only the request with this number fails, counted from 0.
    pub fn of_request(&self, number: u64, kind: Fault) {
        self.begin(Plan::Number { number, kind });
    }

    /// From now on all requests fail that are for paths which contain `text`.
    pub fn below(&self, text: &str, kind: Fault) {
        self.begin(Plan::Below { text: text.to_owned(), kind });
    }

    /// No further request fails, and those that hang are answered.
    pub fn end(&self) {
        self.begin(Plan::None);
        self.release();
    }

    /// Answers the requests that hang.
    pub fn release(&self) {
        let waiting = std::mem::take(&mut self.state().waiting);
        waiting.into_iter().for_each(|answer| answer());
    }

    fn begin(&self, plan: Plan) {
        let mut state = self.state();
        (state.plan, state.requests) = (plan, 0);
    }

    /// Returns the requests since the plan began.
    pub fn requests(&self) -> u64 {
        self.state().requests
    }

    /// Returns the faults so far, all plans together.
    pub fn count(&self) -> u64 {
        self.state().injected.values().sum()
    }

    /// Returns the number of requests that hang.
    pub fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    /// Returns one line for each kind of fault: how often, and where.
    pub fn report(&self) -> String {
        let state = self.state();
        let mut out = String::new();
        for kind in Fault::ALL {
            let of_kind: Vec<_> = state.injected.iter().filter(|((fault, _), _)| *fault == kind).collect();
            let all: u64 = of_kind.iter().map(|(_, count)| **count).sum();
            let places: Vec<_> = of_kind.iter().map(|((_, place), count)| format!("{place:?} {count}")).collect();
            let _ = writeln!(out, "{:<14}{all:>8}   {}", format!("{kind:?}"), places.join(", "));
        }
        out
    }

    /// Decides whether a request fails.
    pub fn decide(&self, place: Place, path: &str) -> Option<Fault> {
        let mut state = self.state();
        let number = state.requests;
        state.requests += 1;
        let State { plan, noise, injected, .. } = &mut *state;
        let kind = match plan {
            Plan::None => None,
            Plan::Number { number: wanted, kind } => (*wanted == number).then_some(*kind),
            Plan::Below { text, kind } => path.contains(&**text).then_some(*kind),
            Plan::Random { rate, kinds } => {
                let noise = noise.as_mut()?;
                let fails = noise.number() % 1_000_000 < *rate;
                fails.then(|| kinds[noise.below(kinds.len())])
            }
        };
        let fault = kind.filter(|kind| is_possible(*kind, place, path))?;
        *injected.entry((fault, place)).or_default() += 1;
        Some(fault)
    }

    /// Has a request wait for [`Faults::release`], unless the faults have ended meanwhile.
    pub fn wait(&self, answer: Waiting) {
        let mut state = self.state();
        if matches!(state.plan, Plan::None) {
            drop(state);
            answer();
        } else {
            state.waiting.push(answer);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

/// Returns whether a fault can happen at a place. A data file of a folder that is said not to exist stands for samples
/// that were never written, so only datasets that are files vanish.
fn is_possible(fault: Fault, place: Place, path: &str) -> bool {
    match fault {
        Fault::Gone => place == Place::Lookup && (path.ends_with(".zgy") || path.ends_with(".vds")),
        Fault::Short | Fault::Empty => place == Place::Read,
        Fault::WrongSize => matches!(place, Place::Lookup | Place::Attributes),
        // a name that does not answer is another test's subject: whoever asks the kernel for it waits in the kernel
        Fault::Hang => matches!(place, Place::Read | Place::Open),
        Fault::Io | Fault::Stale | Fault::Interrupted | Fault::Again | Fault::TooManyFiles | Fault::Late => true,
    }
}

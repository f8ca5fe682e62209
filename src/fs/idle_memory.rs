//! Notices that nobody decodes any more, so that the memory that decoders have left can be given back.

use std::time::{Duration, Instant};

/// Watches the number of decoded bricks.
#[derive(Default)]
pub(super) struct IdleMemory {
    decoded: u64,
    /// When the number changed last; `None` if nothing was decoded since the memory was given back.
    since: Option<Instant>,
}

impl IdleMemory {
    /// Records that `decoded` bricks were decoded until `now`. Returns whether the memory is to be given back: once,
    /// when none was decoded for as long as `unused`.
    pub(crate) fn look(&mut self, decoded: u64, now: Instant, unused: Duration) -> bool {
        if decoded != self.decoded {
            *self = Self { decoded, since: Some(now) };
        }
        self.since.take_if(|since| now.duration_since(*since) >= unused).is_some()
    }

    /// Returns whether there may be memory to be given back.
    pub(crate) fn is_awaited(&self) -> bool {
        self.since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_once_when_nobody_has_decoded_for_a_while() {
        let (mut idle, begin, unused) = (IdleMemory::default(), Instant::now(), Duration::from_secs(60));
        let mut look = |decoded, seconds| {
            let now = begin + Duration::from_secs(seconds);
            (idle.look(decoded, now, unused), idle.is_awaited())
        };
        assert_eq!(look(0, 100), (false, false), "nobody has decoded yet");
        assert_eq!(look(5, 110), (false, true));
        assert_eq!(look(5, 169), (false, true));
        assert_eq!(look(6, 170), (false, true), "somebody decodes");
        assert_eq!(look(6, 230), (true, false));
        assert_eq!(look(6, 900), (false, false), "it was given back");
        assert_eq!(look(7, 901), (false, true));
    }
}

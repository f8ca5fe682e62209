//! ZFP streams with a header, as zfpy writes them.

use super::sizes::{exactly, stated};
use super::{Codec, Configuration, zfp};

const NAME: &str = "zfpy";

pub(super) fn new(_: &Configuration) -> Result<Box<dyn Codec>, String> {
    // the stream says its mode and the shape
    Ok(Box::new(Zfpy))
}

struct Zfpy;

impl Codec for Zfpy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn longest(&self, decoded: u64) -> u64 {
        // blocks of a fixed rate can be far longer than what they hold, and cover the ends of the shape
        decoded.saturating_mul(64).saturating_add(64 << 10)
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        let samples = zfp::Samples::read(stored)?;
        exactly(NAME, out.len(), Ok(usize::try_from(samples.bytes()).unwrap_or(usize::MAX)))?;
        zfp::decode_any(&samples, stored, out)
    }

    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        let samples = zfp::Samples::read(stored)?;
        let mut out = stated(NAME, usize::try_from(samples.bytes()).unwrap_or(usize::MAX), most)?;
        zfp::decode_any(&samples, stored, &mut out)?;
        Ok(out)
    }

    #[cfg(feature = "libzfp")]
    fn scratch(&self, decoded: usize) -> usize {
        zfp::libzfp::scratch(decoded)
    }
}

//! The instructions of newer processors: their detection, which is the only way to the code in [`cube`](super::cube) that
//! needs them.
#![allow(unsafe_code)]

use std::arch::x86_64::__cpuid;

use super::{Job, cube};

/// A token: the processor has AVX2, BMI, the carry-less product, and none of these is slow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Features(());

impl Features {
    pub(super) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("pclmulqdq");
        (has && !extracts_slowly()).then_some(Self(()))
    }

    /// Decodes the blocks, and returns the bit after the last one.
    pub(super) fn run(self, job: &Job<'_>, out: &mut [u8]) -> u64 {
        // SAFETY: only `detect` makes a token, where the processor has the instructions.
        unsafe { cube::run(job, out) }
    }
}

/// Returns whether the processor extracts bits of a mask (PEXT) one by one, as those of AMD and Hygon before Zen 3 do.
#[allow(unused_unsafe, reason = "whether these calls are unsafe depends on the version of Rust")]
fn extracts_slowly() -> bool {
    // SAFETY: every processor of this architecture that has AVX2 has the instruction, and its first two leaves.
    let (maker, family) = unsafe { (__cpuid(0), __cpuid(1).eax) };
    let maker = [maker.ebx, maker.edx, maker.ecx].map(u32::to_le_bytes).concat();
    let family = (family >> 8 & 15) + (family >> 20 & 255);
    (maker == b"AuthenticAMD" || maker == b"HygonGenuine") && family < 0x19
}

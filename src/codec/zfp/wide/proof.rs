//! The proof that the processor has the instructions, and the only way to the code that needs it.
#![allow(unsafe_code)]

use std::arch::x86_64::__cpuid;

use super::cube::cube;
use super::planes::read;
use crate::codec::zfp::block::{self, Block, Content};
use crate::codec::zfp::planes::{self, Planes};
use crate::codec::zfp::scalar::Int;
use crate::codec::zfp::target::Target;

/// The proof that the processor has the instructions.
#[derive(Clone, Copy, Debug)]
pub struct Wide(());

impl Wide {
    /// Returns the proof, if the processor has them, and none of them takes long.
    #[must_use]
    pub fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("pclmulqdq");
        (has && !extracts_slowly()).then_some(Self(()))
    }

    /// Decodes a block as [`Block::decode`] does.
    pub(in crate::codec::zfp) fn decode<I: Int, const N: usize>(
        self,
        block: Block<'_>,
        planes: &mut Planes,
        target: Target<'_>,
    ) -> u64 {
        // SAFETY: only `detect` makes a `Wide`, where the processor has the instructions.
        unsafe { decode::<I, N>(block, planes, target) }
    }
}

/// Returns whether the processor extracts bits of a mask (PEXT) one by one, as those of AMD and Hygon before Zen 3 do.
#[allow(unused_unsafe, reason = "whether these calls are unsafe depends on the version of Rust")]
fn extracts_slowly() -> bool {
    // SAFETY: every processor of this architecture that has AVX2 has the instruction, and its first two leaves.
    let (maker, family) = unsafe { (__cpuid(0), __cpuid(1).eax) };
    let is_amd = [maker.ebx, maker.edx, maker.ecx].map(u32::to_le_bytes).concat() == b"AuthenticAMD";
    let is_hygon = [maker.ebx, maker.edx, maker.ecx].map(u32::to_le_bytes).concat() == b"HygonGenuine";
    let family = (family >> 8 & 15) + (family >> 20 & 255);
    (is_amd || is_hygon) && family < 0x19
}

/// Decodes a block.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn decode<I: Int, const N: usize>(block: Block<'_>, planes: &mut Planes, mut target: Target<'_>) -> u64 {
    let front = block.front::<N>();
    if front.content == Content::Zero {
        target.put(&[I::default(); N]);
        return block.length(front.at);
    }
    let read = match N {
        16 | 64 => read::<N>(block.window, front.at, front.extent, planes),
        _ => planes::read::<N>(block.window, front.at, front.extent, planes),
    };
    if N == 64 && I::BITS == 32 && read.known > 1 {
        cube(&planes[0], read.low, front.content, &mut target);
    } else {
        target.put::<I, N>(&block::samples(front.content, read, planes));
    }
    block.length(read.end)
}

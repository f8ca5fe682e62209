//! The proof that the processor has the instructions, and the only way to the code that needs it.
#![allow(unsafe_code)]

use std::arch::x86_64::__cpuid;

use super::cube::cube;
use super::planes::{read, read_words};
use super::square::Square;
use crate::codec::zfp::block::{Block, Content, finished_square, samples};
use crate::codec::zfp::job::Job;
use crate::codec::zfp::planes::{self, Planes};
use crate::codec::zfp::scalar::Int;
use crate::codec::zfp::target::Target;

/// The proof that the processor has the instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wide(());

impl Wide {
    /// Returns the proof, if the processor has them, and none of them takes long.
    pub(crate) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("pclmulqdq");
        (has && !extracts_slowly()).then_some(Self(()))
    }

    /// Decodes the blocks as [`Job::run`] does.
    pub(in crate::codec::zfp) fn run<I: Int, const N: usize>(self, job: &Job<'_>, out: &mut [u8]) -> u64 {
        // SAFETY: only `detect` makes a `Wide`, where the processor has the instructions.
        unsafe { run::<I, N>(job, out) }
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

/// Decodes the blocks.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn run<I: Int, const N: usize>(job: &Job<'_>, out: &mut [u8]) -> u64 {
    job.blocks::<N>(out, |block, planes, target| decode::<I, N>(block, planes, target))
}

/// Decodes a block.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn decode<I: Int, const N: usize>(block: Block<'_>, planes: &mut Planes, target: Target<'_>) -> u64 {
    let front = block.front::<N>();
    if front.content == Content::Zero {
        target.put(&[I::default(); N]);
        return block.length(front.at);
    }
    let end = match N {
        4 => {
            let (samples, end) = block.line::<I, N>(&front);
            target.put(&samples);
            end
        }
        16 => {
            let mut square = Square::new();
            let start = planes::leading(block.window, front.at, front.extent);
            let place = read::<N>(block.window, &start, front.extent.low, |plane, word| square.put(plane, word)).1;
            match I::BITS {
                32 => square.finish(front.content, target),
                _ => target.put::<I, N>(&finished_square(front.content, place.known, square.coefficients())),
            }
            place.at
        }
        64 => {
            let read = read_words(block.window, front.at, front.extent, planes);
            if I::BITS == 32 && read.known > 1 {
                cube(&planes[0], read.low, front.content, target);
            } else {
                target.put::<I, N>(&samples(front.content, read, planes));
            }
            read.end
        }
        _ => {
            let read = planes::read_words::<N>(block.window, front.at, front.extent, planes);
            target.put::<I, N>(&samples(front.content, read, planes));
            read.end
        }
    };
    block.length(end)
}

//! Arrays whose samples lie anywhere.

use proptest::prelude::*;

use super::agreement::decoded;
use super::compressor::Mode;
use super::samples::{scalars, shapes, stream};
use crate::codec::zfp::error::ZfpError;
use crate::codec::zfp::scalar::Scalar;
use crate::codec::zfp::{Header, Instructions, Strides, decode_blocks};

/// Decodes to `strides` in `room` samples of ones.
fn strided(stream: &[u8], strides: &Strides, room: usize, by: Instructions) -> Result<Vec<u8>, ZfpError> {
    let header = Header::read(stream)?;
    let mut out = vec![0xff; room * header.scalar.size()];
    decode_blocks(stream, &header, strides, &mut out, by).map(|_| out)
}

proptest! {
    #[test]
    fn samples_lie_where_strides_say(
        scalar in scalars(),
        shape in shapes(),
        order in Just([0usize, 1, 2, 3]).prop_shuffle(),
        backwards in any::<[bool; 4]>(),
        gap in 1usize..4,
        seed in any::<u64>(),
    ) {
        let stream = stream(scalar, &shape, Mode::Precision(12), seed);
        let dense = decoded(&stream).unwrap();
        let header = Header::read(&stream).unwrap();
        let shape = header.shape.map(|extent| extent as usize);
        // any order of the axes, each forwards or backwards, with gaps
        let (mut steps, mut step, mut start) = ([0isize; 4], gap, 2);
        for axis in order {
            steps[axis] = if backwards[axis] { -(step as isize) } else { step as isize };
            start += if backwards[axis] { (shape[axis] - 1) * step } else { 0 };
            step *= shape[axis];
        }
        let (strides, room) = (Strides { start, steps }, step + 4);
        let mut expected = vec![0xff; room * scalar.size()];
        for (at, sample) in dense.chunks(scalar.size()).enumerate() {
            let [x, y, z, _] = shape;
            let index = [at % x, at / x % y, at / x / y % z, at / x / y / z];
            let place = index.iter().zip(steps).fold(start as isize, |sum, (n, step)| sum + *n as isize * step);
            expected[place as usize * scalar.size()..][..scalar.size()].copy_from_slice(sample);
        }
        for by in [Instructions::Portable, Instructions::best()] {
            prop_assert!(strided(&stream, &strides, room, by).unwrap() == expected);
        }
    }
}

#[test]
fn arrays_without_room_are_refused() {
    let stream = stream(Scalar::Float32, &[4, 4, 4], Mode::Precision(12), 1);
    let room = |start, steps, room| {
        let strides = Strides { start, steps };
        let all = [Instructions::Portable, Instructions::best()];
        all.map(|by| strided(&stream, &strides, room, by).is_ok())
    };
    assert_eq!(room(0, [1, 4, 16, 0], 64), [true; 2]);
    assert_eq!(room(0, [1, 4, 16, 0], 63), [false; 2]);
    assert_eq!(room(1, [1, 4, 16, 0], 64), [false; 2]);
    assert_eq!(room(0, [1, 4, 17, 0], 64), [false; 2]);
    assert_eq!(room(3, [-1, 4, 16, 0], 64), [true; 2]);
    assert_eq!(room(2, [-1, 4, 16, 0], 64), [false; 2]);
    assert_eq!(room(63, [-1, -4, -16, 0], 64), [true; 2]);
    assert_eq!(room(0, [1, 4, isize::MAX, 0], 64), [false; 2]);
    assert_eq!(room(0, [isize::MIN, 4, 16, 0], 64), [false; 2]);
    assert_eq!(room(usize::MAX, [1, 4, 16, 0], 64), [false; 2]);
    // samples may lie on one another
    assert_eq!(room(0, [0; 4], 1), [true; 2]);
}

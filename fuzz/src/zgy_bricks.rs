//! Reads bricks of ZGY files with a valid header: the input has the size of the survey and of the bricks, the type, the
//! two tables, and the bytes of the bricks.

use super::bytes::Bytes;
use super::handmade::{Handmade, zfp_header};
use super::zgy_open;

/// Reads one input, and returns the number of bricks.
#[must_use]
pub fn run(input: &[u8]) -> u64 {
    let mut input = Bytes(input);
    let version = 1 + input.below(4) as u32;
    let code = input.one(&[0, 2, 6, 6, 6, 1, 3, 4, 5]);
    let size = [0; 3].map(|_| 1 + input.below(40) as i32);
    let brick = if version == 1 { [64; 3] } else { [0; 3].map(|_| 4 << input.below(3)) };
    let streams = input.below(4);
    let (entries, columns) = counts(size, brick);
    let mut file = Handmade::new(version, code, size, brick, &vec![0; entries]);
    file.alpha = columns;
    let body = file.body_at();
    for entry in &mut file.entries {
        *entry = match input.u8() {
            0 => 0,
            1 => 1,
            2 => 0x80 << 56 | u64::from(input.u8()),
            3 => input.u64(),
            // near the bytes of bricks, compressed or not
            place @ 4..128 => body + 16 * u64::from(place - 4),
            place => 0xc0 << 56 | (body + 16 * u64::from(place - 128)),
        };
    }
    // some streams have a valid header
    for _ in 0..streams {
        let mode = u16::from(input.u8()) << 4 | u16::from(input.u8() & 15);
        file.body.extend(zfp_header(brick, mode));
        file.body.extend(input.take(244));
        file.body.resize(file.body.len().next_multiple_of(16), 0);
    }
    file.body.extend(input.0);
    zgy_open::run(&file.build())
}

/// Returns the entries of the brick table, and of the alpha table.
fn counts(size: [i32; 3], brick: [i32; 3]) -> (usize, usize) {
    let mut bricks: [i32; 3] = std::array::from_fn(|axis| (size[axis] + brick[axis] - 1) / brick[axis]);
    let (mut entries, mut columns) = (0, 0);
    loop {
        entries += bricks.iter().product::<i32>() as usize;
        columns += (bricks[0] * bricks[1]) as usize;
        if bricks == [1; 3] {
            return (entries, columns);
        }
        bricks = bricks.map(|n| (n + 1) / 2);
    }
}

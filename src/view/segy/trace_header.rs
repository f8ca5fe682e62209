//! Trace headers: 240 bytes before the samples of each trace. (SEG-Y revision 1, section 5)

use super::survey::Survey;

/// Bytes of a header.
pub(crate) const BYTES: usize = 240;

/// Returns the header of trace `number`, counted from 0 in the order of the file.
pub(crate) fn header(survey: &Survey, number: u64) -> [u8; BYTES] {
    let mut header = [0; BYTES];
    let mut put = |byte: usize, value: &[u8]| header[byte - 1..byte - 1 + value.len()].copy_from_slice(value);
    let trace = survey.trace(number);
    let long = |value: i64| (value as i32).to_be_bytes();
    // number in the line, number in the file
    put(1, &long(number as i64 + 1));
    put(5, &long(number as i64 + 1));
    // field record and ensemble, by habit
    put(9, &long(trace.inline));
    put(21, &long(trace.crossline));
    // live
    put(29, &1i16.to_be_bytes());
    // the offset of all traces is 0
    put(37, &0i32.to_be_bytes());
    // scalars of elevations and of coordinates
    put(69, &1i16.to_be_bytes());
    put(71, &survey.world.map_or(1, |world| world.scalar).to_be_bytes());
    // source, group and ensemble
    for (at_x, at_y) in [(73, 77), (81, 85), (181, 185)] {
        put(at_x, &trace.position[0].to_be_bytes());
        put(at_y, &trace.position[1].to_be_bytes());
    }
    put(89, &survey.world.map_or(1, |world| world.unit).to_be_bytes());
    put(109, &survey.samples.delay.to_be_bytes());
    put(115, &survey.samples.count.to_be_bytes());
    put(117, &survey.samples.interval.to_be_bytes());
    put(189, &long(trace.inline));
    put(193, &long(trace.crossline));
    header
}

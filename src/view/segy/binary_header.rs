//! The binary header: 400 bytes that describe all traces. (SEG-Y revision 1, section 4)

use super::survey::Survey;

/// Bytes of the header.
pub(crate) const BYTES: usize = 400;

/// Bytes of the file before the header; the standard numbers bytes from the beginning of the file.
const BEFORE: usize = 3200;

/// Returns the header of a survey.
pub(crate) fn header(survey: &Survey) -> [u8; BYTES] {
    let mut header = [0; BYTES];
    let mut put = |byte: usize, value: &[u8]| {
        let at = byte - 1 - BEFORE;
        header[at..at + value.len()].copy_from_slice(value);
    };
    let samples = survey.samples;
    // line and reel
    put(3205, &1i32.to_be_bytes());
    put(3209, &1i32.to_be_bytes());
    // traces in an ensemble
    put(3213, &1i16.to_be_bytes());
    // interval and samples, here and in the field
    put(3217, &samples.interval.to_be_bytes());
    put(3219, &samples.interval.to_be_bytes());
    put(3221, &samples.count.to_be_bytes());
    put(3223, &samples.count.to_be_bytes());
    // IEEE float
    put(3225, &5i16.to_be_bytes());
    // fold
    put(3227, &1i16.to_be_bytes());
    // horizontally stacked
    put(3229, &4i16.to_be_bytes());
    // metres or feet
    put(3255, &survey.measurement_system().to_be_bytes());
    put(3501, &0x0100u16.to_be_bytes());
    // all traces have one length
    put(3503, &1i16.to_be_bytes());
    // extended textual headers
    put(3505, &0i16.to_be_bytes());
    header
}

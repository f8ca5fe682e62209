//! Conversion of real values to samples, for chunks that have no stored bytes: constant chunks, NoValue chunks, and
//! chunks that were never written.

use super::description::{Channel, SampleFormat};
use crate::volume::Element;

/// Returns the greatest code of a value in U8 or U16. If the channel has a NoValue, the last code stands for it.
fn greatest(channel: &Channel) -> f32 {
    let all = if channel.format == SampleFormat::U8 { 255.0 } else { 65535.0 };
    if channel.no_value.is_some() { all - 1.0 } else { all }
}

/// Returns a sample of the value `v`. As in OpenVDS the arithmetic is in float32, each operation rounded on its own.
pub(super) fn element(channel: &Channel, v: f32) -> Element {
    match channel.format {
        SampleFormat::Bit => Element::new(&[u8::from(v != 0.0)]),
        SampleFormat::U8 => Element::new(&[code(channel, v) as u8]),
        SampleFormat::U16 => Element::new(&code(channel, v).to_le_bytes()),
        // a float that is out of range becomes the nearest number of the type
        SampleFormat::U32 => Element::new(&((v + 0.5) as u32).to_le_bytes()),
        SampleFormat::U64 => Element::new(&((v + 0.5) as u64).to_le_bytes()),
        SampleFormat::R32 => Element::new(&v.to_le_bytes()),
        SampleFormat::R64 => Element::new(&f64::from(v).to_le_bytes()),
    }
}

fn code(channel: &Channel, v: f32) -> u16 {
    let q = (v - channel.integer_offset) * (1.0 / channel.integer_scale);
    let greatest = greatest(channel);
    if q <= 0.0 {
        0
    } else if q >= greatest {
        greatest as u16
    } else {
        (q + 0.5) as u16
    }
}

/// Returns the code of NoValue in U8 and U16, which does not depend on the channel's NoValue.
pub(super) fn no_value_code(channel: &Channel) -> Option<u16> {
    channel.no_value?;
    match channel.format {
        SampleFormat::U8 => Some(255),
        SampleFormat::U16 => Some(65535),
        _ => None,
    }
}

/// Returns a sample that is NoValue; the real value zero if the channel has no NoValue.
pub(super) fn no_value(channel: &Channel) -> Element {
    match (channel.format, no_value_code(channel)) {
        (SampleFormat::U8, Some(code)) => Element::new(&[code as u8]),
        (_, Some(code)) => Element::new(&code.to_le_bytes()),
        _ => element(channel, channel.no_value.unwrap_or(0.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(format: SampleFormat) -> Channel {
        Channel { format, integer_scale: 1.0, ..Channel::default() }
    }

    #[test]
    fn constants_become_samples_of_each_format() {
        let bytes = |format, v| element(&channel(format), v).bytes().to_vec();
        assert_eq!(bytes(SampleFormat::Bit, -2.0), [1]);
        assert_eq!(bytes(SampleFormat::U32, 16_777_217.0), 16_777_216u32.to_le_bytes());
        assert_eq!(bytes(SampleFormat::U32, -1.0), [0; 4]);
        assert_eq!(bytes(SampleFormat::U32, 1e20), [255; 4]);
        assert_eq!(bytes(SampleFormat::U64, 1e30), [255; 8]);
        assert_eq!(bytes(SampleFormat::R64, 0.1), f64::from(0.1f32).to_le_bytes());
        assert_eq!(bytes(SampleFormat::R32, -0.0), (-0.0f32).to_le_bytes());
        assert_eq!(bytes(SampleFormat::U16, f32::NAN), [0, 0]);
    }

    #[test]
    fn codes_stop_before_the_one_of_no_value() {
        let scaled = Channel { integer_scale: 0.1, integer_offset: -12.7, ..channel(SampleFormat::U8) };
        assert_eq!(element(&scaled, 0.0).bytes(), [127]);
        assert_eq!(element(&scaled, 1000.0).bytes(), [255]);
        let with = Channel { no_value: Some(-999.25), ..scaled };
        assert_eq!(element(&with, 1000.0).bytes(), [254]);
        assert_eq!(no_value(&with).bytes(), [255]);
        let with = Channel { no_value: Some(-999.25), ..channel(SampleFormat::R32) };
        assert_eq!(no_value(&with).bytes(), (-999.25f32).to_le_bytes());
        assert_eq!(no_value(&channel(SampleFormat::U16)).bytes(), [0, 0]);
    }
}

//! `lodN.nc`: a level as a netCDF-4 file, which is an HDF5 file: a computed header, the positions along the axes, and the
//! samples in C order.
//!
//! "FF" is the HDF5 File Format Specification, version 3.0; "DS" the HDF5 Dimension Scale Specification. All integers are
//! little-endian, offsets and lengths take 8 bytes. The file has the oldest structures that all readers know, and no
//! chunks: samples are where arithmetic says.

use super::cf::{CfArray, CfDimension, CfValue, DATA, has_type};
use super::entry::level_files;
use super::segments::{ArrayFile, Content};
use super::{LayerRef, View};
use crate::format::FormatError;
use crate::volume::{Dims, Dtype};

/// Samples begin at a multiple of this: whole pages of the file are whole pages of the samples.
const ALIGNMENT: u64 = 4096;
/// The address of what is not there.
const UNDEFINED: u64 = u64::MAX;
const ROOT: u64 = 48;
/// Readers refuse smaller heaps; FF III.E.
const HEAP_BYTES: usize = 4096;
/// A message has at most 65,535 bytes, with the description of an attribute.
const LONGEST_TEXT: usize = 65_400;

pub(crate) const NETCDF: View = View {
    hidden: |layer| {
        let dtype = layer.info(0).dtype;
        (!has_type(dtype)).then(|| ("lod0.nc".to_owned(), format!("netCDF has no {dtype} samples")))
    },
    ..View::new(Some("netcdf"), |layer| {
        if !has_type(layer.info(0).dtype) {
            return Vec::new();
        }
        level_files(layer, ".nc", |layer, lod| {
            let dtype = layer.info(lod).dtype;
            let reason = || FormatError::Unsupported(format!("netCDF has no {dtype} samples"));
            has_type(dtype).then(|| content(layer, lod)).ok_or_else(reason)
        })
    })
};

fn content(layer: LayerRef<'_>, lod: usize) -> Content {
    let array = &layer.levels()[lod];
    let (described, info) = (CfArray::new(layer, lod), array.info());
    let (header, samples_at) = header(&described, &info.shape(), info.bytes());
    let runs = described.dimensions.iter().filter_map(|dimension| dimension.positions).collect();
    let between = samples_at - header.len() as u64;
    Content::Array(ArrayFile::new(header, array).with_positions(runs, between))
}

/// Where the parts of a file are.
struct Addresses {
    /// The object headers of the dimensions, and their positions.
    dimensions: Vec<(u64, u64)>,
    data: u64,
    heap: u64,
    samples: u64,
    end: u64,
}

/// Returns what comes before the positions, and the address of the samples.
fn header(described: &CfArray, shape: &Dims, sample_bytes: u64) -> (Vec<u8>, u64) {
    // no size depends on an address
    let dimensions = &described.dimensions;
    let nowhere = Addresses { dimensions: vec![(0, 0); dimensions.len()], data: 0, heap: 0, samples: 0, end: 0 };
    let mut end = ROOT;
    let mut place = |bytes: u64| {
        let at = end.next_multiple_of(8);
        end = at + bytes;
        at
    };
    place(root(described, &nowhere).len() as u64);
    let headers: Vec<u64> =
        (0..dimensions.len()).map(|axis| place(scale(&dimensions[axis], axis, &nowhere).len() as u64)).collect();
    let data_at = place(data(described, shape, sample_bytes, &nowhere).len() as u64);
    let heap_at = place(HEAP_BYTES as u64);
    let positions = dimensions.iter().map(|dimension| match dimension.positions {
        Some(positions) if positions.count > 0 => place(8 * positions.count),
        _ => UNDEFINED,
    });
    let positions: Vec<u64> = positions.collect();
    let samples = end.next_multiple_of(ALIGNMENT);
    let at = Addresses {
        dimensions: headers.into_iter().zip(positions).collect(),
        data: data_at,
        heap: heap_at,
        samples,
        end: samples.saturating_add(sample_bytes),
    };
    let mut file = superblock(at.end);
    file.append(&mut root(described, &at));
    for (axis, dimension) in dimensions.iter().enumerate() {
        file.resize(file.len().next_multiple_of(8), 0);
        file.append(&mut scale(dimension, axis, &at));
    }
    file.resize(file.len().next_multiple_of(8), 0);
    file.append(&mut data(described, shape, sample_bytes, &at));
    file.resize(file.len().next_multiple_of(8), 0);
    file.append(&mut heap(&at));
    (file, samples)
}

/// FF II.A, version 2.
fn superblock(end: u64) -> Vec<u8> {
    let mut block = b"\x89HDF\r\n\x1a\n\x02\x08\x08\x00".to_vec();
    for address in [0, UNDEFINED, end, ROOT] {
        block.extend(address.to_le_bytes());
    }
    with_checksum(block)
}

fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend(lookup3(&bytes).to_le_bytes());
    bytes
}

/// An object header of version 2, while its messages are written; FF IV.A.1.b.
struct ObjectHeader(Vec<u8>);

impl ObjectHeader {
    fn message(&mut self, kind: u8, flags: u8, body: &[u8]) {
        self.0.push(kind);
        self.0.extend((body.len() as u16).to_le_bytes());
        self.0.push(flags);
        self.0.extend(body);
    }

    /// FF IV.A.2.m.
    fn attribute(&mut self, name: &str, datatype: &[u8], dataspace: &[u8], value: &[u8]) {
        let mut body = vec![3, 0];
        for length in [name.len() + 1, datatype.len(), dataspace.len()] {
            body.extend((length as u16).to_le_bytes());
        }
        body.push(u8::from(!name.is_ascii()));
        for part in [name.as_bytes(), &[0], datatype, dataspace, value] {
            body.extend(part);
        }
        self.message(0x0c, 0, &body);
    }

    /// A text, with a zero byte behind it or not.
    fn text(&mut self, name: &str, text: &str, is_terminated: bool) {
        let mut bytes = text.replace('\0', "").into_bytes();
        if bytes.len() > LONGEST_TEXT {
            return;
        }
        if is_terminated || bytes.is_empty() {
            bytes.push(0);
        }
        let datatype = fixed_text(bytes.len(), text.is_ascii());
        self.attribute(name, &datatype, &scalar(), &bytes);
    }

    fn values(&mut self, values: &[(&'static str, CfValue)], dtype: Dtype) {
        for (name, value) in values {
            match value {
                CfValue::Text(text) => self.text(name, text, false),
                CfValue::Number(number) => {
                    self.attribute(name, &datatype(Dtype::Float64), &simple([1]), &number.to_le_bytes());
                }
                CfValue::Sample(number) => {
                    self.attribute(name, &datatype(dtype), &simple([1]), &sample_bytes(dtype, *number));
                }
            }
        }
    }

    /// What a dataset has before its attributes. The fill value is the default one; FF IV.A.2.f.
    fn dataset(&mut self, dataspace: &[u8], datatype: &[u8], (address, bytes): (u64, u64)) {
        self.message(0x01, 0, dataspace);
        self.message(0x03, 1, datatype);
        self.message(0x05, 0, &[3, 0x0a]);
        let address = if bytes == 0 { UNDEFINED } else { address };
        self.message(0x08, 0, &[&[3, 1][..], &address.to_le_bytes(), &bytes.to_le_bytes()].concat());
        self.attribute_info();
    }

    /// Without it libhdf5 counts no attributes; FF IV.A.2.v.
    fn attribute_info(&mut self) {
        self.message(0x15, 0, &[&[0, 0][..], &[0xff; 16]].concat());
    }

    fn finish(self) -> Vec<u8> {
        let size = (self.0.len() as u32).to_le_bytes();
        with_checksum([b"OHDR\x02\x02", &size[..], &self.0].concat())
    }
}

/// The root group, whose links have an order: that of the axes, then the samples.
fn root(described: &CfArray, at: &Addresses) -> Vec<u8> {
    let links = described.dimensions.iter().map(|dimension| &*dimension.name);
    let links = links.zip(at.dimensions.iter().map(|(header, _)| *header)).chain([(DATA, at.data)]);
    let mut object = ObjectHeader(Vec::new());
    let count = described.dimensions.len() as u64 + 1;
    object.message(0x02, 0, &[&[0, 1][..], &count.to_le_bytes(), &[0xff; 16]].concat());
    object.message(0x0a, 0, &[0, 0]);
    object.attribute_info();
    object.values(&described.global, described.dtype);
    for (order, (name, address)) in (0u64..).zip(links) {
        let mut body = vec![1, if name.is_ascii() { 0x04 } else { 0x14 }];
        body.extend(order.to_le_bytes());
        body.extend((!name.is_ascii()).then_some(1));
        body.push(name.len() as u8);
        body.extend(name.as_bytes());
        body.extend(address.to_le_bytes());
        object.message(0x06, 0, &body);
    }
    object.finish()
}

/// A dimension scale. One without positions is a dimension only, as netCDF writes them.
fn scale(dimension: &CfDimension, axis: usize, at: &Addresses) -> Vec<u8> {
    let (count, (_, positions)) = (dimension.count, at.dimensions[axis]);
    let mut object = ObjectHeader(Vec::new());
    if dimension.positions.is_some() {
        object.dataset(&simple([count]), &datatype(Dtype::Float64), (positions, 8 * count));
    } else {
        let mut kind = datatype(Dtype::Float32);
        kind[1] |= 1; // big-endian
        object.dataset(&simple([count]), &kind, (UNDEFINED, 4u64.saturating_mul(count)));
    }
    object.text("CLASS", "DIMENSION_SCALE", true);
    let no_variable = || format!("This is a netCDF dimension but not a netCDF variable.{count:10}");
    let name = if dimension.positions.is_some() { dimension.name.clone() } else { no_variable() };
    object.text("NAME", &name, true);
    let reference = [&at.data.to_le_bytes()[..], &(axis as u32).to_le_bytes(), &[0; 4]].concat();
    object.attribute("REFERENCE_LIST", &reference_pair(), &simple([1]), &reference);
    object.attribute("_Netcdf4Dimid", &datatype(Dtype::Int32), &scalar(), &(axis as u32).to_le_bytes());
    if let (Some(units), true) = (&dimension.units, dimension.positions.is_some()) {
        object.text("units", units, false);
    }
    if let Some(direction) = dimension.direction {
        object.text("axis", &direction.to_string(), false);
    }
    object.finish()
}

fn data(described: &CfArray, shape: &Dims, sample_bytes: u64, at: &Addresses) -> Vec<u8> {
    let (mut object, dimensions) = (ObjectHeader(Vec::new()), described.dimensions.len());
    let dataspace = if shape.is_empty() { scalar() } else { simple(shape.iter().copied()) };
    object.dataset(&dataspace, &datatype(described.dtype), (at.samples, sample_bytes));
    if dimensions > 0 {
        let in_heap = |number: u32| [&1u32.to_le_bytes()[..], &at.heap.to_le_bytes(), &number.to_le_bytes()].concat();
        let references: Vec<u8> = (1..=dimensions as u32).flat_map(in_heap).collect();
        let list = [&[0x19, 0, 0, 0, 16, 0, 0, 0][..], &OBJECT_REFERENCE].concat();
        object.attribute("DIMENSION_LIST", &list, &simple([dimensions as u64]), &references);
    }
    object.values(&described.attributes, described.dtype);
    object.finish()
}

/// The references to the dimensions, which a list of variable length needs; FF III.E.
fn heap(at: &Addresses) -> Vec<u8> {
    let mut heap = b"GCOL\x01\0\0\0".to_vec();
    heap.extend((HEAP_BYTES as u64).to_le_bytes());
    for (number, (address, _)) in (1u16..).zip(&at.dimensions) {
        heap.extend(number.to_le_bytes());
        heap.extend([1, 0, 0, 0, 0, 0]);
        heap.extend(8u64.to_le_bytes());
        heap.extend(address.to_le_bytes());
    }
    // object 0 is what is free, with this head; a size of 0 would make readers loop
    let free = (HEAP_BYTES - heap.len()) as u64;
    heap.extend([0; 8]);
    heap.extend(free.to_le_bytes());
    heap.resize(HEAP_BYTES, 0);
    heap
}

/// A dataspace of one element; FF IV.A.2.b.
fn scalar() -> Vec<u8> {
    vec![2, 0, 0, 0]
}

fn simple(sizes: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut body = vec![2, 0, 0, 1];
    for size in sizes {
        body[1] += 1;
        body.extend(size.to_le_bytes());
    }
    body
}

const OBJECT_REFERENCE: [u8; 8] = [0x17, 0, 0, 0, 8, 0, 0, 0];

/// The pair of DS: a dataset that has a dimension, and which of its dimensions it is.
fn reference_pair() -> Vec<u8> {
    let mut pair = vec![0x36, 2, 0, 0, 16, 0, 0, 0];
    pair.extend(b"dataset\0\0");
    pair.extend(OBJECT_REFERENCE);
    pair.extend(b"dimension\0\x08");
    pair.extend(datatype(Dtype::UInt32));
    pair
}

fn fixed_text(bytes: usize, is_ascii: bool) -> Vec<u8> {
    let mut kind = vec![0x13, if is_ascii { 0 } else { 0x10 }, 0, 0];
    kind.extend((bytes as u32).to_le_bytes());
    kind
}

/// Returns the type of samples; FF IV.A.2.d.
fn datatype(dtype: Dtype) -> Vec<u8> {
    let (size, bits) = (dtype.size() as u32, 8 * dtype.size() as u16);
    let (head, properties): ([u8; 4], &[u8]) = match dtype {
        Dtype::Float32 => ([0x11, 0x20, 31, 0], &[23, 8, 0, 23, 127, 0, 0, 0]),
        Dtype::Float64 => ([0x11, 0x20, 63, 0], &[52, 11, 0, 52, 0xff, 3, 0, 0]),
        Dtype::Int8 | Dtype::Int16 | Dtype::Int32 | Dtype::Int64 => ([0x10, 8, 0, 0], &[]),
        _ => ([0x10, 0, 0, 0], &[]),
    };
    [&head[..], &size.to_le_bytes(), &[0, 0], &bits.to_le_bytes(), properties].concat()
}

/// Returns a number as a sample, which can have this value.
fn sample_bytes(dtype: Dtype, value: f64) -> Vec<u8> {
    match dtype {
        Dtype::Float32 => (value as f32).to_le_bytes().into(),
        Dtype::UInt64 => (value as u64).to_le_bytes().into(),
        _ if dtype.is_integer() => (value as i64).to_le_bytes()[..dtype.size()].into(),
        _ => value.to_le_bytes().into(),
    }
}

/// The checksum of HDF5's structures: lookup3 by Bob Jenkins (public domain), with the initial value 0.
fn lookup3(bytes: &[u8]) -> u32 {
    let word = |block: &[u8], n: usize| {
        let mut word = [0; 4];
        let from = block.get(4 * n..).unwrap_or_default();
        let length = from.len().min(4);
        word[..length].copy_from_slice(&from[..length]);
        u32::from_le_bytes(word)
    };
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let [mut a, mut b, mut c] = [start; 3];
    let mut rest = bytes;
    while rest.len() > 12 {
        let (block, after) = rest.split_at(12);
        rest = after;
        a = a.wrapping_add(word(block, 0));
        b = b.wrapping_add(word(block, 1));
        c = c.wrapping_add(word(block, 2));
        for bits in [[4, 6, 8], [16, 19, 4]] {
            a = a.wrapping_sub(c) ^ c.rotate_left(bits[0]);
            c = c.wrapping_add(b);
            b = b.wrapping_sub(a) ^ a.rotate_left(bits[1]);
            a = a.wrapping_add(c);
            c = c.wrapping_sub(b) ^ b.rotate_left(bits[2]);
            b = b.wrapping_add(a);
        }
    }
    if rest.is_empty() {
        return c;
    }
    a = a.wrapping_add(word(rest, 0));
    b = b.wrapping_add(word(rest, 1));
    c = c.wrapping_add(word(rest, 2));
    for bits in [[14, 11, 25], [16, 4, 14]] {
        c = (c ^ b).wrapping_sub(b.rotate_left(bits[0]));
        a = (a ^ c).wrapping_sub(c.rotate_left(bits[1]));
        b = (b ^ a).wrapping_sub(a.rotate_left(bits[2]));
    }
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests {
    use ring::digest::{SHA256, digest};

    use super::super::cf::Positions;
    use super::super::tests::{read, zeros};
    use super::*;

    /// The array of which a file that all readers take is known byte by byte.
    fn example() -> CfArray {
        let text = |text: &str| CfValue::Text(text.to_owned());
        let axes = [("z", 5, 10.0, 2.0), ("y", 7, -1.0, 0.5), ("x", 9, 0.0, 0.25)];
        let dimensions = axes.map(|(name, count, first, step)| CfDimension {
            name: name.to_owned(),
            count,
            positions: Some(Positions { first, step, count }),
            units: Some("um".to_owned()),
            direction: name.to_uppercase().chars().next(),
        });
        CfArray {
            dimensions: dimensions.into(),
            dtype: Dtype::UInt16,
            attributes: vec![("long_name", text("test volume"))],
            global: vec![("Conventions", text("CF-1.8"))],
        }
    }

    fn file(described: &CfArray, shape: &[u64]) -> Vec<u8> {
        let array = zeros(shape, described.dtype);
        let (header, samples) = header(described, &array.info().shape(), array.info().bytes());
        let runs = described.dimensions.iter().filter_map(|dimension| dimension.positions).collect();
        let between = samples - header.len() as u64;
        let content = Content::Array(ArrayFile::new(header, &array).with_positions(runs, between));
        let mut pieces = Vec::new();
        // reads of odd sizes meet all borders
        for at in (0..content.len()).step_by(1234) {
            let size = described.dtype.size();
            let end = content.len().min(at + 1234);
            pieces.extend(read(&content, at..end, &mut |_, _| vec![0; size]).unwrap());
        }
        pieces
    }

    #[test]
    fn the_checksum_is_lookup3() {
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }

    #[test]
    fn the_header_is_that_of_the_worked_example() {
        let file = file(&example(), &[5, 7, 9]);
        assert_eq!(file.len(), 8192 + 2 * 5 * 7 * 9);
        assert_eq!(file[44..48], [0xed, 0xe8, 0x04, 0x01]);
        for (at, magic) in
            [(48, b"OHDR"), (264, b"OHDR"), (664, b"OHDR"), (1064, b"OHDR"), (1464, b"OHDR"), (1728, b"GCOL")]
        {
            assert_eq!(&file[at..at + 4], magic, "{at}");
        }
        let hash: String = digest(&SHA256, &file[..8192]).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, "d91eba19f5a9ab49afeaf3b283ae6f950b15ceaac0d005bff92db79e6690102b");
    }

    #[test]
    fn positions_are_floats_wherever_a_read_begins() {
        let whole = file(&example(), &[5, 7, 9]);
        let at = |address: usize| f64::from_le_bytes(whole[address..address + 8].try_into().unwrap());
        assert_eq!([at(5824), at(5856), at(5864), at(5920), at(5984)], [10.0, 18.0, -1.0, 0.0, 2.0]);
        let array = zeros(&[5, 7, 9], Dtype::UInt16);
        let (header, samples) = header(&example(), &array.info().shape(), array.info().bytes());
        let runs = example().dimensions.iter().filter_map(|dimension| dimension.positions).collect();
        let between = samples - header.len() as u64;
        let content = Content::Array(ArrayFile::new(header, &array).with_positions(runs, between));
        for begin in 5820..5870 {
            let got = read(&content, begin..begin + 9, &mut |_, _| vec![0; 2]).unwrap();
            assert!(got == whole[begin as usize..][..9], "{begin}");
        }
    }

    #[test]
    fn an_array_without_samples_has_no_address() {
        let mut described = example();
        described.dimensions[1].count = 0;
        described.dimensions[1].positions = Some(Positions { first: 0.0, step: 1.0, count: 0 });
        let (file, samples) = header(&described, &[5, 0, 9].into(), 0);
        let layout = [&[3, 1][..], &[0xff; 8], &[0; 8]].concat();
        assert_eq!(file.windows(18).filter(|window| *window == layout).count(), 2);
        assert_eq!(file[28..36], samples.to_le_bytes());
    }

    #[test]
    fn a_dimension_without_positions_is_of_big_endian_floats() {
        let mut described = example();
        described.dimensions[0].positions = None;
        let (file, _) = header(&described, &[5, 7, 9].into(), 630);
        // IEEE_F32BE
        let kind = [0x11, 0x21, 0x1f, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0];
        assert_eq!(file.windows(kind.len()).filter(|window| *window == kind).count(), 1);
    }

    #[test]
    fn texts_that_readers_cannot_hold_are_left_out() {
        let mut described = example();
        let size = header(&described, &[5, 7, 9].into(), 630).0.len();
        described.global.push(("title", CfValue::Text("x".repeat(LONGEST_TEXT + 1))));
        assert_eq!(header(&described, &[5, 7, 9].into(), 630).0.len(), size);
        described.global.push(("title", CfValue::Text("\0".into())));
        assert!(header(&described, &[5, 7, 9].into(), 630).0.len() > size);
        described.attributes.push(("_FillValue", CfValue::Sample(65535.0)));
        header(&described, &[5, 7, 9].into(), 630);
        assert_eq!(sample_bytes(Dtype::Int16, -1.0), [0xff, 0xff]);
        assert_eq!(sample_bytes(Dtype::UInt64, 9.0)[..2], [9, 0]);
    }
}

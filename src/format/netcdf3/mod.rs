//! netCDF-3: the classic format, with 64-bit offsets, and CDF-5. Variables lie one after another in one file; those with
//! records have a piece in each record.
//!
//! [`header`] reads the header, [`array`](mod@array) finds pieces of a variable. The public description is "NetCDF Classic
//! Format Specification" of Unidata.

mod array;
mod header;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use self::array::{VariableArray, record_brick};
use self::header::{Header, Variable};
use super::chunked::{Hidden, Layers, Line, MAX_READ, Values, of_layers, value_range};
use super::{Dataset, Format, FormatError, HiddenLayer, Layer, OpenWith, native};
use crate::source::{Source, SourceError, WHOLE};
use crate::volume::{ArrayInfo, Axis, BrickGrid, DatasetInfo, Dims, MAX_AXES, slab};

pub(crate) struct NetCdf3;

impl Format for NetCdf3 {
    fn name(&self) -> &'static str {
        "netcdf3"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["nc3"]
    }

    fn is_file(&self, head: &[u8]) -> bool {
        [b"CDF\x01", b"CDF\x02", b"CDF\x05"].iter().any(|magic| head.starts_with(*magic))
    }

    fn open(&self, source: Arc<dyn Source>, _with: &OpenWith) -> Result<Box<dyn Dataset>, FormatError> {
        let end = source.len(WHOLE)?.ok_or(SourceError::Changed)?;
        let header = Header::read(&*source, end)?;
        let mut made = Layers { warnings: header.warnings.clone(), ..Layers::default() };
        let (coordinates, others): (Vec<&Variable>, Vec<&Variable>) =
            header.variables.iter().partition(|variable| dimension_of(variable, &header).is_some());
        let mut lines = HashMap::new();
        for variable in &coordinates {
            if lines.len() < MAX_READ
                && let (Ok(array), Some(number)) =
                    (open(variable, &header, &source, end), dimension_of(variable, &header))
            {
                let unit = variable.attributes.get("units").and_then(Value::as_str).map(str::to_owned);
                lines.insert(number, Line::through(&array, array.info.scaling, unit));
            }
        }
        // the first layer is what most readers want
        for variable in others.into_iter().chain(coordinates) {
            let keys = native(json!({"attributes": variable.attributes}));
            let name = variable.name.clone();
            match open(variable, &header, &source, end) {
                Err(Hidden { reason, damaged, shape }) => {
                    let dtype = variable.dtype;
                    made.hidden.push(HiddenLayer { name, dtype, shape, reason, damaged, native: keys });
                }
                Ok(mut array) => {
                    for (axis, number) in array.info.axes.iter_mut().zip(&variable.dimensions) {
                        if let Some(Some(line)) = lines.get(number) {
                            line.describe(axis);
                        }
                    }
                    made.layers.push(Layer { name, levels: vec![Arc::new(array)], native: keys });
                }
            }
        }
        let version = header.version.to_string();
        let keys = native(json!({"attributes": header.attributes, "records": header.records}));
        of_layers(made, DatasetInfo { version, native: keys, ..DatasetInfo::default() }, None)
    }
}

/// Returns the number of the dimension that a variable has the positions of: the one with its name.
fn dimension_of(variable: &Variable, header: &Header) -> Option<usize> {
    match variable.dimensions[..] {
        [number] if header.dimensions[number].0 == variable.name => Some(number),
        _ => None,
    }
}

fn open(variable: &Variable, header: &Header, source: &Arc<dyn Source>, end: u64) -> Result<VariableArray, Hidden> {
    let Some(dtype) = variable.dtype else { return Err(Hidden::unsupported("it is text".into())) };
    let extent = |number: &usize| match header.dimensions[*number].1 {
        0 => header.records,
        extent => extent,
    };
    let mut extents: Vec<u64> = variable.dimensions.iter().map(extent).collect();
    if extents.is_empty() {
        extents.push(1);
    }
    let shape = Dims::from_slice(&extents).ok_or_else(|| {
        Hidden::unsupported(format!("it has {} axes, and at most {MAX_AXES} are shown", extents.len()))
    })?;
    let wrong = |hidden: Hidden| Hidden { shape: Some(shape), ..hidden };
    if variable.dimensions.iter().skip(1).any(|number| header.dimensions[*number].1 == 0) {
        return Err(wrong(Hidden::damaged("records are not its first axis".into())));
    }
    Hidden::unless_readable(&shape, dtype).map_err(wrong)?;
    let (brick, row) = if variable.has_records {
        let one = Dims::from_fn(shape.len(), |axis| if axis == 0 { 1 } else { shape[axis] });
        (record_brick(&slab(&one), header.records, header.record_size), header.record_size)
    } else {
        (slab(&shape), variable.bytes / shape[0].max(1))
    };
    let axes = (0..shape.len()).map(|axis| Axis {
        name: variable.dimensions.get(axis).map_or("axis0", |number| &header.dimensions[*number].0).to_owned(),
        unit: None,
        first: 0.0,
        step: 1.0,
        count: shape[axis],
        spatial: true,
    });
    let Values { scaling, no_value } = Values::of(&variable.attributes, dtype);
    let info = ArrayInfo {
        axes: axes.collect(),
        codec: Some("raw"),
        no_value,
        value_range: value_range(&variable.attributes, scaling.as_ref()),
        scaling,
        ..ArrayInfo::new(dtype, BrickGrid::aligned(shape, brick), brick)
    };
    Ok(VariableArray { info, source: Arc::clone(source), begin: variable.begin, row, end })
}

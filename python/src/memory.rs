//! The memory of Python objects that samples are read to.
#![allow(unsafe_code)]

use std::{mem, slice};

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use volfs::Dtype;

use crate::index::Key;
use crate::interpreter::Returning;
use crate::numpy;

/// Returns a new NumPy array of this shape, whose content is arbitrary.
pub fn empty<'py>(py: Python<'py>, shape: &[u64], dtype: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    numpy(py)?.call_method1(pyo3::intern!(py, "empty"), (PyTuple::new(py, shape)?, dtype))
}

/// Fails if `out` has another shape than the region.
fn check_shape(out: &[usize], region: Option<&[u64]>) -> PyResult<()> {
    let text = |region| PyValueError::new_err(format!("out has the shape {out:?}, and the region {region:?}"));
    let differs = |region: &&[u64]| !out.iter().map(|n| *n as u64).eq(region.iter().copied());
    region.filter(differs).map_or(Ok(()), |region| Err(text(region)))
}

/// Memory to read to. The object that it belongs to cannot give it away while this exists.
pub struct Target {
    start: *mut u8,
    /// Bytes from the first sample to the end of the last.
    length: usize,
    /// Of each axis, in bytes.
    strides: Vec<isize>,
    /// `None` while this is dropped.
    buffer: Option<Box<dyn Send>>,
}

// SAFETY: the memory may be written from any thread, as the buffer is held. Other threads of Python that use the same
// array see samples come in any order, as with every function that releases the interpreter's lock.
unsafe impl Send for Target {}

impl Target {
    /// Returns the memory of an array in C order.
    pub fn whole(array: &Bound<'_, PyAny>, dtype: Dtype) -> PyResult<Self> {
        Self::of(array, dtype, None)
    }

    /// Returns the memory of `out`, if it can be written to and has this shape and type.
    pub fn new(out: &Bound<'_, PyAny>, dtype: Dtype, shape: &[u64]) -> PyResult<Self> {
        Self::of(out, dtype, Some(shape))
    }

    fn of(array: &Bound<'_, PyAny>, dtype: Dtype, shape: Option<&[u64]>) -> PyResult<Self> {
        match dtype {
            Dtype::Int8 => Self::typed::<i8>(array, dtype, shape),
            Dtype::UInt8 => Self::typed::<u8>(array, dtype, shape),
            Dtype::Int16 => Self::typed::<i16>(array, dtype, shape),
            Dtype::UInt16 => Self::typed::<u16>(array, dtype, shape),
            Dtype::Int32 => Self::typed::<i32>(array, dtype, shape),
            Dtype::UInt32 => Self::typed::<u32>(array, dtype, shape),
            Dtype::Int64 => Self::typed::<i64>(array, dtype, shape),
            Dtype::UInt64 => Self::typed::<u64>(array, dtype, shape),
            Dtype::Float32 => Self::typed::<f32>(array, dtype, shape),
            Dtype::Float64 => Self::typed::<f64>(array, dtype, shape),
            Dtype::Float16 | Dtype::Complex64 | Dtype::Complex128 => Self::bytes(array, dtype, shape),
        }
    }

    /// Returns the memory of an array of a type that no buffer of `pyo3` has: as that of its bytes.
    fn bytes(array: &Bound<'_, PyAny>, dtype: Dtype, shape: Option<&[u64]>) -> PyResult<Self> {
        let py = array.py();
        let expected = numpy(py)?.getattr(pyo3::intern!(py, "dtype"))?.call1((dtype.name(),))?;
        let wrong = || PyTypeError::new_err(format!("out has to be an array of {dtype}, little-endian"));
        // the same numbers in the other byte order are of another type
        if !array.getattr(pyo3::intern!(py, "dtype")).and_then(|found| found.eq(expected)).unwrap_or(false) {
            return Err(wrong());
        }
        check_shape(&array.getattr(pyo3::intern!(py, "shape"))?.extract::<Vec<usize>>()?, shape)?;
        // the bytes of a sample are an axis of their own, whatever the strides of the others
        let apart = array.get_item((py.Ellipsis(), py.None()))?.call_method1("view", ("uint8",))?;
        let mut target = Self::typed::<u8>(&apart, dtype, None)?;
        if target.strides.pop() == Some(1) { Ok(target) } else { Err(wrong()) }
    }

    fn typed<T: Element + Send + 'static>(
        array: &Bound<'_, PyAny>,
        dtype: Dtype,
        shape: Option<&[u64]>,
    ) -> PyResult<Self> {
        // a buffer without axes has no shape that could be asked for
        let flat = match shape {
            // that of a NumPy scalar is of a copy
            Some([]) if !array.hasattr("__setitem__")? => {
                return Err(PyTypeError::new_err("out has to be an array, not a number"));
            }
            Some([]) => Some(array.call_method1("reshape", (1,))?),
            _ => None,
        };
        let shape = shape.map(|shape| if shape.is_empty() { &[1] } else { shape });
        let buffer = PyBuffer::<T>::get(flat.as_ref().unwrap_or(array)).map_err(|error| {
            PyTypeError::new_err(format!("out has to be an array of {dtype}, little-endian: {error}"))
        })?;
        if buffer.format().to_bytes().starts_with(b">") || buffer.format().to_bytes().starts_with(b"!") {
            return Err(PyTypeError::new_err(format!("out has to be an array of {dtype}, little-endian")));
        }
        if buffer.readonly() {
            return Err(PyValueError::new_err("out is read-only"));
        }
        check_shape(buffer.shape(), shape)?;
        let strides = buffer.strides().to_vec();
        let reach = |(count, stride): (&usize, &isize)| count.saturating_sub(1).saturating_mul(stride.unsigned_abs());
        let is_empty = buffer.shape().contains(&0);
        let length = buffer.shape().iter().zip(&strides).map(reach).sum::<usize>() + buffer.item_size();
        let length = if is_empty { 0 } else { length };
        Ok(Self { start: buffer.buf_ptr().cast(), length, strides, buffer: Some(Box::new(buffer)) })
    }

    pub fn has_negative_strides(&self) -> bool {
        self.strides.iter().any(|stride| *stride < 0)
    }

    /// Returns the selection of a key whose samples go to this memory, which has no negative strides.
    pub fn selection(&self, key: &Key) -> volfs::Selection {
        let strides: Vec<u64> = self.strides.iter().map(|stride| stride.unsigned_abs() as u64).collect();
        key.strided(&strides)
    }

    /// Returns all of the memory, which has no negative strides.
    pub fn memory(&mut self) -> &mut [u8] {
        if self.length == 0 {
            return &mut [];
        }
        // SAFETY: the buffer, which is held, has these bytes from its first sample to its last, since no stride is
        // negative, and may be written to.
        unsafe { slice::from_raw_parts_mut(self.start, self.length) }
    }
}

impl Drop for Target {
    /// Frees the buffer, with the interpreter's lock, as long as there is one.
    fn drop(&mut self) {
        let returning = Returning::new();
        if returning.is_none() {
            mem::forget(self.buffer.take());
        }
        drop(self.buffer.take());
    }
}

//! What stands between the brackets: NumPy's basic indexing, as samples of an array.

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PySlice, PyTuple};

/// What is selected along one axis.
#[derive(Clone, Copy, Debug)]
struct Along {
    start: u64,
    count: u64,
    step: u64,
    /// Whether the samples come in the opposite order.
    reversed: bool,
    /// Whether the result has the axis.
    kept: bool,
}

/// A selection of all axes.
pub struct Key(Vec<Along>);

/// Reads an index: whole numbers, slices and one ellipsis, for each axis or fewer.
///
/// # Errors
/// `IndexError` for positions that the array does not have, and for other kinds of index, with what to write instead.
pub fn parse(key: &Bound<'_, PyAny>, shape: &[u64]) -> PyResult<Key> {
    let mut along = Vec::with_capacity(shape.len());
    match key.cast::<PyTuple>() {
        Ok(keys) => {
            let given = keys.len();
            let ellipses = keys.iter_borrowed().filter(|key| key.is_instance_of::<PyEllipsis>()).count();
            if ellipses > 1 {
                return Err(PyIndexError::new_err("an index has one ellipsis (...) at most"));
            }
            if given - ellipses > shape.len() {
                let text = format!("{} indices for an array of {} axes", given - ellipses, shape.len());
                return Err(PyIndexError::new_err(text));
            }
            for key in keys.iter_borrowed() {
                if key.is_instance_of::<PyEllipsis>() {
                    let left_out = shape.len() - (given - 1);
                    along.extend(shape[along.len()..][..left_out].iter().map(|count| whole(*count)));
                } else {
                    along.push(one(&key, along.len(), shape)?);
                }
            }
        }
        Err(_) if key.is_instance_of::<PyEllipsis>() => {}
        Err(_) => along.push(one(key, 0, shape)?),
    }
    along.extend(shape[along.len()..].iter().map(|count| whole(*count)));
    Ok(Key(along))
}

fn whole(count: u64) -> Along {
    Along { start: 0, count, step: 1, reversed: false, kept: true }
}

fn one(key: &Bound<'_, PyAny>, axis: usize, shape: &[u64]) -> PyResult<Along> {
    let count = *shape.get(axis).ok_or_else(|| PyIndexError::new_err("too many indices for an array without axes"))?;
    if let Ok(slice) = key.cast::<PySlice>() {
        let part = slice.indices(count as isize)?;
        let (length, step) = (part.slicelength as u64, part.step);
        let first = part.start + if step < 0 { step * (part.slicelength as isize - 1) } else { 0 };
        // the step of one position is any
        let step_by = if length > 1 { step.unsigned_abs() as u64 } else { 1 };
        let start = if length == 0 { 0 } else { first as u64 };
        return Ok(Along { start, count: length, step: step_by, reversed: step < 0 && length > 1, kept: true });
    }
    if key.is_instance_of::<PyBool>() || key.is_none() {
        let text = match key.is_none() {
            true => "an array of volfs cannot be given new axes: index what was read, as in array[...][None]",
            false => "True and False are no indices; for a mask write array.oindex[mask]",
        };
        return Err(PyIndexError::new_err(text));
    }
    let number = if key.is_instance_of::<PyInt>() { key.extract::<i64>() } else { by_index(key) };
    let Ok(number) = number else {
        let kind = key.get_type();
        let name = kind.name()?;
        if key.is_instance_of::<PyInt>() {
            return Err(out_of_range(key, axis, count));
        }
        return Err(PyIndexError::new_err(format!(
            "an index is a whole number, a slice or an ellipsis, not {name}; for lists and masks of an axis write \
             array.oindex[...]"
        )));
    };
    let at = if number < 0 { number.checked_add_unsigned(count) } else { Some(number) };
    match at.and_then(|at| u64::try_from(at).ok()).filter(|at| *at < count) {
        Some(start) => Ok(Along { start, count: 1, step: 1, reversed: false, kept: false }),
        None => Err(out_of_range(key, axis, count)),
    }
}

/// Whole numbers of other types: NumPy's.
fn by_index(key: &Bound<'_, PyAny>) -> PyResult<i64> {
    // an array of one axis and one number has the method, too
    if key.hasattr("ndim")? && key.getattr("ndim")?.extract::<usize>()? > 0 {
        return Err(PyTypeError::new_err("no whole number"));
    }
    key.call_method0("__index__")?.extract()
}

fn out_of_range(key: &Bound<'_, PyAny>, axis: usize, count: u64) -> PyErr {
    PyIndexError::new_err(format!("index {key} is out of range for axis {axis} with {count} positions"))
}

impl Key {
    /// Returns the shape of the result.
    pub fn result_shape(&self) -> Vec<u64> {
        self.0.iter().filter(|along| along.kept).map(|along| along.count).collect()
    }

    /// Returns whether the result is one sample without axes.
    pub fn is_scalar(&self) -> bool {
        self.0.iter().all(|along| !along.kept)
    }

    pub fn is_reversed(&self) -> bool {
        self.0.iter().any(|along| along.reversed)
    }

    /// Returns an array whose samples come in ascending order with the axes turned that are to come in the opposite one.
    pub fn reversed<'py>(&self, py: Python<'py>, array: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if !self.is_reversed() {
            return Ok(array);
        }
        let turned = self.0.iter().filter(|along| along.kept).map(|along| match along.reversed {
            true => py.eval(c"slice(None, None, -1)", None, None),
            false => py.eval(c"slice(None)", None, None),
        });
        array.get_item(PyTuple::new(py, turned.collect::<PyResult<Vec<_>>>()?)?)
    }

    /// Returns the selection, to be stored from `offset` on in C order.
    pub fn contiguous(&self, offset: usize, size: usize) -> volfs::Selection {
        let mut strides = vec![0; self.0.len()];
        let mut stride = size as u64;
        for (to, along) in strides.iter_mut().zip(&self.0).rev() {
            *to = stride;
            stride = stride.saturating_mul(along.count);
        }
        self.selection(offset, strides)
    }

    /// Returns the selection, to be stored with strides of the result's axes.
    pub fn strided(&self, strides: &[u64]) -> volfs::Selection {
        let mut of_result = strides.iter();
        let strides = self.0.iter().map(|along| if along.kept { of_result.next().copied().unwrap_or(0) } else { 0 });
        self.selection(0, strides.collect())
    }

    fn selection(&self, offset: usize, strides: Vec<u64>) -> volfs::Selection {
        let of = |value: fn(&Along) -> u64| self.0.iter().map(value).collect();
        volfs::Selection { start: of(|a| a.start), shape: of(|a| a.count), step: of(|a| a.step), offset, strides }
    }
}

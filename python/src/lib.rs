//! The extension `volfs._volfs`: datasets and arrays for the Python module around it, which has the rest.
//!
//! Samples go straight into the memory of NumPy's arrays, through Python's buffer protocol; NumPy itself is used as any
//! Python module is. The interpreter's lock is released while something is opened or read.

mod errors;
mod index;
mod interpreter;
mod memory;

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList, PyTuple};

use self::errors::{open_failed, read_failed};
use self::index::{Key, parse};
use self::interpreter::{detach, interruptible};
use self::memory::{Target, empty};

/// The most bytes of a read that is tried without another thread, whose start takes longer.
const SMALL: usize = 64 << 10;

/// Datasets and arrays of volfs, without a mount.
#[pymodule(gil_used = false)]
mod _volfs {
    #[pymodule_export]
    use super::{Array, Dataset, cache_size, set_cache_size};

    #[pymodule_init]
    fn init(module: &super::Bound<'_, super::PyModule>) -> super::PyResult<()> {
        super::interpreter::watch(module)
    }
}

/// The most bytes of decoded bricks that this process keeps.
#[pyfunction]
fn cache_size() -> u64 {
    volfs::cache_size()
}

/// Set the most bytes of decoded bricks that this process keeps. What is cached is dropped.
#[pyfunction]
fn set_cache_size(py: Python<'_>, bytes: u64) {
    detach(py, || volfs::set_cache_size(bytes));
}

/// An open dataset.
#[pyclass(frozen, subclass, module = "volfs._volfs")]
struct Dataset(volfs::Dataset);

#[pymethods]
impl Dataset {
    #[new]
    #[pyo3(signature = (path, quality=None, follow_links=false, store_options=Vec::new()))]
    fn new(
        py: Python<'_>,
        path: std::path::PathBuf,
        quality: Option<u8>,
        follow_links: bool,
        store_options: Vec<(String, String)>,
    ) -> PyResult<Self> {
        let mut options = volfs::OpenOptions::new().follow_links(follow_links);
        if let Some(level) = quality {
            if level > 15 {
                return Err(PyValueError::new_err("quality is a level of 0 to 15"));
            }
            options = options.quality(level);
        }
        for (name, value) in store_options {
            options = options.store_option(&name, &value);
        }
        let opened = interruptible(py, move |_| options.open(path))?;
        opened.map(Self).map_err(|error| open_failed(py, error))
    }

    /// The name of its file or folder.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// The format: "zgy", "vds" or "wkw".
    #[getter]
    fn format(&self) -> &str {
        self.0.format()
    }

    /// The names of the layers, and the number of levels of each.
    fn _layers(&self) -> Vec<(String, usize)> {
        self.0.layers().map(|layer| (layer.name().to_owned(), layer.levels())).collect()
    }

    /// The name of the layer that a name means, or None.
    fn _find(&self, py: Python<'_>, name: &str) -> PyResult<Option<String>> {
        let found = detach(py, || self.0.layer(name)).map_err(|error| open_failed(py, error))?;
        Ok(found.map(|layer| layer.name().to_owned()))
    }

    /// The text of dataset.json.
    fn _metadata(&self, py: Python<'_>) -> PyResult<String> {
        let metadata = detach(py, || self.0.metadata()).map_err(|error| open_failed(py, error))?;
        Ok(metadata.to_string())
    }

    /// The names in a folder that a mount shows, those of folders with "/" at the end, or None if it is no folder.
    fn _list(&self, py: Python<'_>, folder: &str) -> PyResult<Option<Vec<String>>> {
        detach(py, || self.0.list(folder)).map_err(|error| open_failed(py, error))
    }

    /// The bytes of a file that a mount shows, or None if it is no file.
    fn _size(&self, py: Python<'_>, path: &str) -> PyResult<Option<u64>> {
        detach(py, || self.0.file_size(path)).map_err(|error| open_failed(py, error))
    }

    /// Bytes within a file that a mount shows.
    fn _read<'py>(&self, py: Python<'py>, path: &str, offset: u64, length: usize) -> PyResult<Bound<'py, PyBytes>> {
        PyBytes::new_with(py, length, |out| {
            match detach(py, || self.0.read_file(path, offset, out)).map_err(|error| read_failed(py, error))? {
                read if read == length => Ok(()),
                read => Err(PyValueError::new_err(format!("{path} has {read} bytes from {offset} on, not {length}"))),
            }
        })
    }
}

/// One level of detail of a layer.
#[pyclass(frozen, subclass, module = "volfs._volfs")]
struct Array {
    array: volfs::Array,
    is_local: bool,
    dtype: OnceLock<Py<PyAny>>,
}

#[pymethods]
impl Array {
    #[new]
    fn new(dataset: &Dataset, layer: &str, lod: usize) -> PyResult<Self> {
        let found = dataset.0.layers().find(|known| known.name() == layer);
        let array = found.and_then(|layer| layer.level(lod));
        let none = || PyIndexError::new_err(format!("{} has no level {lod} of a layer {layer}", dataset.0.name()));
        Ok(Self { array: array.ok_or_else(none)?, is_local: dataset.0.is_local(), dtype: OnceLock::new() })
    }

    /// Samples along each axis, slowest first.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.array.shape())
    }

    /// The samples of a brick along each axis.
    #[getter]
    fn chunks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.array.brick_shape())
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.array.shape().len()
    }

    /// The number of samples.
    #[getter]
    fn size(&self) -> u64 {
        self.array.shape().iter().product()
    }

    /// The bytes of all samples.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.array.bytes()
    }

    /// The type of the stored samples: a NumPy dtype, little-endian.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if let Some(known) = self.dtype.get() {
            return Ok(known.clone_ref(py));
        }
        let dtype = numpy(py)?.getattr("dtype")?.call1((self.array.dtype().name(),))?.unbind();
        Ok(self.dtype.get_or_init(|| dtype).clone_ref(py))
    }

    /// Samples along the first axis.
    fn __len__(&self) -> usize {
        self.array.shape().first().map_or(0, |count| *count as usize)
    }

    /// The name, unit, first coordinate, step and count of each axis, slowest first.
    fn _axes(&self) -> Vec<(&str, Option<&str>, f64, f64, u64)> {
        let axes = self.array.axes().iter();
        axes.map(|axis| (&*axis.name, axis.unit.as_deref(), axis.first, axis.step, axis.count)).collect()
    }

    /// The stored sample that means "no data", or None.
    fn _no_value(&self) -> Option<f64> {
        self.array.no_value()
    }

    /// The scale and the offset in value = stored * scale + offset, or None if the samples are the values.
    fn _scaling(&self) -> Option<(f64, f64)> {
        self.array.scale_and_offset()
    }

    /// The text of lodN.json.
    fn _metadata(&self, py: Python<'_>) -> PyResult<String> {
        let metadata = detach(py, || self.array.metadata()).map_err(|error| open_failed(py, error))?;
        Ok(metadata.to_string())
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let key = parse(key, self.array.shape())?;
        let shape = if key.is_scalar() { vec![1] } else { key.result_shape() };
        let out = empty(py, &shape, self.dtype(py)?.bind(py))?;
        self.fill(py, &[&key], &out)?;
        // NumPy returns a scalar, too
        if key.is_scalar() { out.get_item(0) } else { key.reversed(py, out) }
    }

    /// Read a region into `out`, which has its shape and the dtype of the samples, and any strides.
    ///
    /// `out` has arbitrary content if the read fails. If it was interrupted while a server did not answer, what that sends
    /// later may still be written there.
    fn read_into<'py>(&self, py: Python<'py>, region: &Bound<'py, PyAny>, out: &Bound<'py, PyAny>) -> PyResult<()> {
        let key = parse(region, self.array.shape())?;
        let target = Target::new(out, self.array.dtype(), &key.result_shape())?;
        if key.is_reversed() || target.has_negative_strides() {
            drop(target);
            let read = empty(py, &key.result_shape(), self.dtype(py)?.bind(py))?;
            self.fill(py, &[&key], &read)?;
            return numpy(py)?.call_method1("copyto", (out, key.reversed(py, read)?)).map(drop);
        }
        let selection = target.selection(&key);
        self.read_to(py, target, vec![selection])
    }

    /// Read several regions at once, as one array with an axis more in front, or as a list where their shapes differ.
    ///
    /// A brick that several of them touch is decoded once.
    fn read_many<'py>(&self, py: Python<'py>, regions: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let keys = regions.try_iter()?.map(|region| parse(&region?, self.array.shape()));
        let keys: Vec<Key> = keys.collect::<PyResult<_>>()?;
        if keys.iter().any(Key::is_reversed) {
            return Err(PyIndexError::new_err("read_many takes no negative steps"));
        }
        let dtype = self.dtype(py)?;
        let dtype = dtype.bind(py);
        let all: Vec<&Key> = keys.iter().collect();
        match keys.first().map(Key::result_shape) {
            Some(shape) if keys.iter().all(|key| key.result_shape() == shape) => {
                let out = empty(py, &[&[keys.len() as u64], &shape[..]].concat(), dtype)?;
                self.fill(py, &all, &out)?;
                Ok(out)
            }
            _ => {
                let samples = |key: &Key| key.result_shape().iter().product::<u64>();
                let out = empty(py, &[keys.iter().map(samples).sum()], dtype)?;
                self.fill(py, &all, &out)?;
                let (parts, mut at) = (PyList::empty(py), 0);
                for key in &keys {
                    let end = at + samples(key);
                    let part = out.get_item(pyo3::types::PySlice::new(py, at as isize, end as isize, 1))?;
                    parts.append(part.call_method1("reshape", (key.result_shape(),))?)?;
                    at = end;
                }
                Ok(parts.into_any())
            }
        }
    }
}

impl Array {
    /// Reads regions to `out`, a new array in C order, one after the other.
    fn fill<'py>(&self, py: Python<'py>, keys: &[&Key], out: &Bound<'py, PyAny>) -> PyResult<()> {
        let target = Target::whole(out, self.array.dtype())?;
        let (mut offset, size) = (0, self.array.dtype().size());
        let selections: Vec<_> = keys
            .iter()
            .map(|key| {
                let selection = key.contiguous(offset, size);
                offset += selection.shape.iter().product::<u64>() as usize * size;
                selection
            })
            .collect();
        self.read_to(py, target, selections)
    }

    fn read_to(&self, py: Python<'_>, mut target: Target, selections: Vec<volfs::Selection>) -> PyResult<()> {
        if !self.is_local {
            // what is in memory waits for no server
            if target.memory().len() <= SMALL {
                let cached = detach(py, || self.array.read_cached(&selections, target.memory()));
                if cached.map_err(|error| read_failed(py, error))? {
                    return Ok(());
                }
            }
            let array = self.array.clone();
            let read = interruptible(py, move |is_ended| {
                let mut goes_on = || !is_ended.load(Ordering::Relaxed);
                let read = array.read_selections(&selections, target.memory(), Some(&mut goes_on));
                // given back where the interpreter's lock is
                (read, target)
            })?;
            return read.0.map_err(|error| read_failed(py, error));
        }
        let mut interrupted = None;
        let mut goes_on = || {
            let checked = interpreter::check_signals();
            let goes_on = matches!(checked, Some(Ok(())));
            interrupted = checked.and_then(Result::err);
            goes_on
        };
        let read = detach(py, || self.array.read_selections(&selections, target.memory(), Some(&mut goes_on)));
        match (read, interrupted) {
            (_, Some(error)) => Err(error),
            (Ok(()), None) => Ok(()),
            (Err(error), None) => Err(read_failed(py, error)),
        }
    }
}

/// Returns the module numpy.
fn numpy(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static NUMPY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let numpy = NUMPY.get_or_try_init(py, || Ok::<_, PyErr>(py.import("numpy")?.into_any().unbind()));
    numpy.map(|numpy| numpy.bind(py)).map_err(|error| PyRuntimeError::new_err(format!("volfs needs NumPy: {error}")))
}

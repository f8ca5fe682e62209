//! Errors of the engine as exceptions of the module `volfs._errors`.

use std::io;

use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

const EIO: i32 = 5;
const ENOENT: i32 = 2;
const ESTALE: i32 = 116;
const EACCES: i32 = 13;
const ENOMEM: i32 = 12;

/// Makes an exception of a class of `volfs._errors`.
fn exception(py: Python<'_>, class: &str, errno: Option<i32>, text: String, about: &[(&str, Py<PyAny>)]) -> PyErr {
    let made = || {
        let class = py.import("volfs._errors")?.getattr(class)?;
        let exception = match errno {
            Some(errno) => class.call1((errno, text.clone()))?,
            None => class.call1((text.clone(),))?,
        };
        for (name, value) in about {
            exception.setattr(*name, value)?;
        }
        Ok::<_, PyErr>(PyErr::from_value(exception))
    };
    made().unwrap_or_else(|error| PyRuntimeError::new_err(format!("{text} ({error})")))
}

fn errno_of(kind: io::ErrorKind) -> i32 {
    match kind {
        io::ErrorKind::NotFound => ENOENT,
        io::ErrorKind::PermissionDenied => EACCES,
        io::ErrorKind::OutOfMemory => ENOMEM,
        _ => EIO,
    }
}

pub fn open_failed(py: Python<'_>, error: volfs::OpenError) -> PyErr {
    use volfs::OpenError::{Changed, Damaged, Io, NotFound, Unsupported};
    let text = error.to_string();
    match error {
        NotFound(_) => exception(py, "NotFound", Some(ENOENT), text, &[]),
        Unsupported { .. } => exception(py, "Unsupported", None, text, &[]),
        Damaged { .. } => exception(py, "Damaged", None, text, &[]),
        Changed(_) => exception(py, "SourceChanged", Some(ESTALE), text, &[]),
        Io { kind: io::ErrorKind::InvalidInput, .. } => exception(py, "VolfsError", None, text, &[]),
        Io { kind, .. } => exception(py, "ReadFailed", Some(errno_of(kind)), text, &[]),
        _ => exception(py, "VolfsError", None, text, &[]),
    }
}

pub fn read_failed(py: Python<'_>, error: volfs::ReadError) -> PyErr {
    use volfs::ReadError::{Changed, DamagedBrick, DamagedFile, Dtype, Io, Memory, Region};
    let text = error.to_string();
    match error {
        Region(_) => PyIndexError::new_err(text),
        Dtype { .. } => PyTypeError::new_err(text),
        Memory(_) => PyValueError::new_err(text),
        DamagedBrick { brick, region, .. } => {
            let tuple = |values: Vec<u64>| pyo3::types::PyTuple::new(py, values).map(|t| t.into_any().unbind());
            let slices = region.into_iter().map(|r| pyo3::types::PySlice::new(py, r.start as isize, r.end as isize, 1));
            let slices = pyo3::types::PyTuple::new(py, slices.collect::<Vec<_>>()).map(|t| t.into_any().unbind());
            match (tuple(brick), slices) {
                (Ok(brick), Ok(region)) => {
                    exception(py, "DamagedBrick", Some(EIO), text, &[("brick", brick), ("region", region)])
                }
                (Err(error), _) | (_, Err(error)) => error,
            }
        }
        DamagedFile { .. } => exception(py, "Damaged", None, text, &[]),
        Changed(_) => exception(py, "SourceChanged", Some(ESTALE), text, &[]),
        Io { kind, .. } => exception(py, "ReadFailed", Some(errno_of(kind)), text, &[]),
        _ => exception(py, "VolfsError", None, text, &[]),
    }
}

//! The body of an answer, as its parts arrive.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::error::StoreError;
use crate::memory::{Buffer, BufferPool};

/// Memory for so many bytes is taken before they are there; a store may promise any number.
const MAX_AT_ONCE: u64 = 64 << 20;

/// Bodies of fewer bytes take as many as they have.
const SMALL: usize = 128 << 10;

/// The bytes that have arrived.
pub(crate) struct Body {
    wanted: u64,
    parts: Parts,
}

enum Parts {
    /// None, or a single one, which needs no copy.
    First(Bytes),
    /// Several, in memory that is used again: the kernel would make the pages of each body anew.
    Pooled(Buffer, usize),
    /// Several of a body that is longer than what is taken at once.
    Long(BytesMut),
}

impl Body {
    /// Begins a body of which `wanted` bytes are expected.
    pub(crate) fn new(wanted: u64) -> Self {
        Self { wanted, parts: Parts::First(Bytes::new()) }
    }

    /// Returns how many bytes have arrived: more than the expected ones as soon as there is one too many.
    pub(crate) fn len(&self) -> usize {
        match &self.parts {
            Parts::First(bytes) => bytes.len(),
            Parts::Pooled(_, filled) => *filled,
            Parts::Long(bytes) => bytes.len(),
        }
    }

    /// Adds the next part.
    pub(crate) fn add(&mut self, part: Bytes, buffers: &Arc<BufferPool>) -> Result<(), StoreError> {
        match &mut self.parts {
            Parts::First(first) if first.is_empty() => *first = part,
            Parts::First(first) if self.wanted > MAX_AT_ONCE => {
                let mut bytes = BytesMut::with_capacity(MAX_AT_ONCE as usize);
                bytes.extend_from_slice(first);
                bytes.extend_from_slice(&part);
                self.parts = Parts::Long(bytes);
            }
            Parts::First(first) => {
                let no_memory = |error| StoreError::new(io::ErrorKind::OutOfMemory, format!("{error}"));
                let wanted = self.wanted as usize;
                // many small ones wait for their readers at a time: these are rounded up to pages, and no further
                let taken = if wanted < SMALL { buffers.try_take(wanted) } else { buffers.take_scratch(wanted) };
                let mut buffer = taken.map_err(no_memory)?;
                let filled = append(&mut buffer, 0, first);
                let filled = append(&mut buffer, filled, &part);
                self.parts = Parts::Pooled(buffer, filled);
            }
            Parts::Pooled(buffer, filled) => *filled = append(buffer, *filled, &part),
            Parts::Long(bytes) => bytes.extend_from_slice(&part),
        }
        Ok(())
    }

    /// Returns the bytes.
    pub(crate) fn into_bytes(self) -> Bytes {
        match self.parts {
            Parts::First(bytes) => bytes,
            Parts::Pooled(mut buffer, filled) => {
                buffer.truncate(filled);
                Bytes::from_owner(Pooled(buffer))
            }
            Parts::Long(bytes) => bytes.freeze(),
        }
    }
}

/// Copies a part behind the `filled` bytes of a buffer as far as it fits; returns how many bytes there are, or would be.
fn append(buffer: &mut [u8], filled: usize, part: &[u8]) -> usize {
    let end = filled.saturating_add(part.len());
    if let Some(to) = buffer.get_mut(filled..end) {
        to.copy_from_slice(part);
    }
    end
}

/// A buffer as the owner of bytes.
struct Pooled(Buffer);

impl AsRef<[u8]> for Pooled {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_put_together_whatever_their_lengths() {
        let buffers = BufferPool::new(1 << 20);
        let bytes: Vec<u8> = (0..20_000u32).map(|n| (n * 7 / 5) as u8).collect();
        for wanted in [20_000, 19_999, 20_001, MAX_AT_ONCE + 1] {
            for length in [20_000, 19_990, 7_000, 500] {
                let mut body = Body::new(wanted);
                for part in bytes.chunks(length) {
                    body.add(Bytes::copy_from_slice(part), &buffers).unwrap();
                    if body.len() as u64 > wanted {
                        break;
                    }
                }
                assert_eq!(body.len(), bytes.len(), "one that is too long is told by its length");
                if wanted >= 20_000 {
                    assert!(body.into_bytes() == bytes, "{wanted} in parts of {length}");
                }
            }
        }
        assert_eq!(Body::new(0).into_bytes().len(), 0);
    }

    #[test]
    fn memory_is_used_again() {
        let buffers = BufferPool::new(1 << 20);
        let address = |buffers: &Arc<BufferPool>| {
            let mut body = Body::new(300_000);
            for _ in 0..3 {
                body.add(Bytes::from(vec![1; 100_000]), buffers).unwrap();
            }
            body.into_bytes().as_ptr() as usize
        };
        let first = address(&buffers);
        assert_eq!(address(&buffers), first);
    }

    #[test]
    fn a_body_takes_little_more_than_its_bytes() {
        let buffers = BufferPool::new(0);
        for wanted in [5_000, 40_000, 127_000, 131_072, 200_000, 1_000_000] {
            let mut body = Body::new(wanted);
            for _ in 0..2 {
                body.add(Bytes::from(vec![1; wanted as usize / 2]), &buffers).unwrap();
            }
            let Parts::Pooled(buffer, _) = &body.parts else { panic!("several parts are in one buffer") };
            assert!(buffer.capacity() as u64 <= wanted + (wanted / 3).max(4096), "{wanted}: {}", buffer.capacity());
        }
    }
}

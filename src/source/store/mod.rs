//! Object stores: S3, Azure Blob Storage, Google Cloud Storage, and files of web servers.
//!
//! A [`StoreTree`] is what a URL names. What is at a key is told by listings ([`names`]); an open file or folder
//! ([`opened`]) fetches ranges of objects, each once, however many threads want it ([`staging`]). All requests go
//! through one [`client`], on threads of their own ([`runtime`]).

mod body;
mod client;
mod connect;
mod container_token;
mod error;
mod file;
mod folder;
mod folder_versions;
mod http;
mod in_flight;
mod meta;
mod metrics;
mod names;
mod on_disk;
mod opened;
mod profile;
mod redirect;
mod runtime;
mod staging;
#[cfg(test)]
mod tests;
mod tree;
mod version;

pub(crate) use tree::{BRIEF, LASTING, StoreTree};

//! What all requests share.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::budget::Budget;
use super::hosts::Hosts;
use super::options::ServeOptions;
use super::validators::Tags;
use crate::fs::Volfs;

/// What all requests share.
pub struct App {
    /// The file system.
    pub fs: Arc<Volfs>,
    /// The entity tags.
    pub tags: Tags,
    /// The memory of responses.
    pub budget: Budget,
    /// The names of this server.
    pub hosts: Hosts,
    /// The options.
    pub options: ServeOptions,
    /// As many permits as there may be requests in progress.
    pub requests: Arc<Semaphore>,
}

impl App {
    /// Creates what all requests share.
    #[must_use]
    pub fn new(fs: Arc<Volfs>, options: ServeOptions) -> Arc<Self> {
        let hosts = Hosts::new(&options.listen, &options.allow_hosts);
        let requests = Arc::new(Semaphore::new(options.max_requests.clamp(1, Semaphore::MAX_PERMITS)));
        Arc::new(Self { fs, tags: Tags::default(), budget: Budget::default(), hosts, options, requests })
    }

    /// Returns the address of the Neuroglancer that the page links to.
    #[must_use]
    pub fn neuroglancer(&self) -> Option<&str> {
        self.options.neuroglancer.as_deref()
    }
}

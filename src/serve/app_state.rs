//! What all requests share.

use std::sync::Arc;

use super::budget::Budget;
use super::hosts::Hosts;
use super::options::ServeOptions;
use super::turns::Turns;
use super::validators::Tags;
use crate::fs::Volfs;

/// What all requests share.
pub(crate) struct App {
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
    /// As many turns as there may be requests in progress.
    pub turns: Arc<Turns>,
}

impl App {
    /// Creates what all requests share.
    pub(crate) fn new(fs: Arc<Volfs>, options: ServeOptions) -> Arc<Self> {
        let hosts = Hosts::new(&options.listen, &options.allow_hosts);
        let turns = Turns::new(options.max_requests);
        Arc::new(Self { fs, tags: Tags::default(), budget: Budget::default(), hosts, options, turns })
    }

    /// Returns the address of the Neuroglancer that the page links to.
    pub(crate) fn neuroglancer(&self) -> Option<&str> {
        self.options.neuroglancer.as_deref()
    }
}

//! The tree of a mount over HTTP: turns each request into calls of [`Volfs`](crate::fs::Volfs), and the results into the
//! response.
//!
//! * [`listener`], [`peer`] and [`access`]: where it listens, who is at the other end, and whether they may.
//! * [`server`]: connections and their limits, the end at a signal.
//! * [`app`]: one request, from its path to its response.
//! * [`file`] and [`folder`]: what a file and a folder answer.
//! * [`page`]: the files of the page that browsers see.
//!
//! The threads of the server never wait: what cannot be answered from memory goes to the pool, as in a mount.

mod accept;
mod access;
mod app;
mod app_state;
mod body;
mod box_query;
mod budget;
mod calls;
mod conditions;
mod connection;
mod content_types;
mod entries;
mod file;
mod folder;
mod hosts;
mod html;
mod listener;
mod open_file;
mod options;
mod page;
mod paths;
mod peer;
mod problem;
mod ranges;
mod server;
mod turns;
mod validators;

pub(crate) use access::{Access, Token};
pub(crate) use listener::Listen;
pub(crate) use options::{ServeOptions, is_origin};
pub(crate) use peer::overflow_user;
pub(crate) use server::{ServeError, Server};

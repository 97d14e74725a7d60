//! The NVMe/TCP target against a scripted host, without sockets: every protocol part, and what a host does wrong.

mod controller;
mod format;
mod full;
mod guards;
mod host;
mod hostile;
mod io;
mod namespaces;
mod queues;
mod wire;

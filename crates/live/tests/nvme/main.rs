//! The NVMe/TCP target against a scripted host, without sockets: every protocol part, and what a host does wrong.

mod controller;
mod format;
mod host;
mod hostile;
mod io;
mod queues;
mod wire;

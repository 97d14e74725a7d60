//! The NVMe/TCP target with a scripted host, without sockets: every part of the protocol, and protocol violations.

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

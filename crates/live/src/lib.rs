//! Served drives: the device models of simulations, run against the wall clock, with data, for real clients.
//!
//! ```text
//!   socket, shared memory          epoll                    model
//!        |                           |                        |
//!   Endpoint (one a connection) -> EventLoop -> ServedDevice (drive + store + faults), one a drive
//!     Stream<Connection>: a byte stream        submit(now, IoRequest) ... advance(until) -> Reply
//!     vhost-user: rings in shared memory       next_event()
//! ```
//! One thread does everything. A front end converts bytes into [`IoRequest`]s, and [`Reply`]s into bytes. It is a state
//! machine without sockets ([`Connection`]), or, if a byte stream is not sufficient, an [`Endpoint`]. The drive
//! determines when a command completes. The front end moves the data *at completion*, between its own buffers and
//! [`ServedDevice::read`] and [`ServedDevice::write`]. So a write that is rejected or interrupted changes nothing, and no payload
//! passes through the drive.
//! Left out: several threads for one set of drives, authentication other than by certificates of NBD clients.

pub mod bench_target;
pub mod clock;
pub mod event_loop;
pub mod floor;
mod lateness;
mod limits;
pub mod offline;
pub mod outbox;
pub mod port;
pub mod protocol;
pub mod served;
pub mod setup;
pub mod store;
pub mod stream;
pub mod tokens;

pub use clock::{Clock, Wall};
pub use event_loop::{EventLoop, StopSwitch, Switches};
pub use lateness::Lateness;
pub use limits::ConnectionLimits;
pub use outbox::Outbox;
pub use port::{ConnectionEnd, Endpoint, Front, Interest, Notice, Port, Ready, Socket};
pub use served::{Condition, Counters, IoRequest, Latencies, Outcome, Reply, ServedDevice};
pub use setup::{Setup, StoreChoice};
pub use store::Store;
pub use stream::{Connection, Stream};
pub use tokens::{TokenPipe, TokenWatch};
pub use vhost_user::VhostUser;

pub mod control;
pub mod metrics;
pub mod nbd;
pub mod nvme;
pub mod vhost_user;

/// The front ends: modules with a `PROTOCOL`.
macro_rules! protocols {
    ($($name:ident),* $(,)?) => {
        /// All front ends, in the order of the command line.
        pub const PROTOCOLS: &[protocol::Protocol] = &[$($name::PROTOCOL),*];
    };
}

protocols!(nbd, nvme, vhost_user, metrics, control);

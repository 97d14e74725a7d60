//! The front end: creates a connection for each incoming socket.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use rustix::net::{getsockname, sockopt};

use super::connection::NvmeConnection;
use super::subsystem::NvmeOptions;
use super::target::NvmeTarget;
use crate::port::{Endpoint, Front, Socket};
use crate::stream::Stream;

/// NVMe/TCP on a listening socket.
#[derive(Debug)]
pub struct NvmeTcp {
    shared: Rc<RefCell<NvmeTarget>>,
}

impl NvmeTcp {
    /// Returns a front end with these options. Several listeners that offer the same subsystem share one [`NvmeTarget`].
    pub fn new(options: NvmeOptions) -> NvmeTcp {
        NvmeTcp {
            shared: Rc::new(RefCell::new(NvmeTarget::new(options))),
        }
    }

    /// Returns a front end of the same subsystem, for another listener.
    pub fn share_subsystem(&self) -> NvmeTcp {
        NvmeTcp {
            shared: Rc::clone(&self.shared),
        }
    }

    /// Returns the number of connected controllers.
    pub fn controllers(&self) -> usize {
        self.shared.borrow().connected()
    }
}

impl Front for NvmeTcp {
    fn name(&self) -> &'static str {
        "NVMe/TCP"
    }

    fn accept(&mut self, socket: Socket, _peer: &str) -> Result<Box<dyn Endpoint>, String> {
        // In some tests the socket is not TCP; the option is then not needed.
        let _ = sockopt::set_tcp_nodelay(&socket, true);
        let local = getsockname(&socket)
            .ok()
            .and_then(|address| SocketAddr::try_from(address).ok())
            .map_or((String::from("127.0.0.1"), 4420), |address| {
                (address.ip().to_string(), address.port())
            });
        let connection = NvmeConnection::new(Rc::clone(&self.shared), local);
        Ok(Box::new(Stream::new(socket, connection)))
    }
}

//! Connections that come in become endpoints.

use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with, sockopt};

use super::{EventLoop, Place};
use crate::port::Endpoint;

impl EventLoop {
    pub(super) fn accept(&mut self, index: usize) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = &mut self.listeners[index];
        let (socket, peer) = match acceptfrom_with(&listener.socket, flags) {
            Ok(accepted) => accepted,
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return,
            Err(error) => {
                // Out of descriptors: the listener stays ready, so do not spin on it.
                let line = || format!("{}: accept: {error}", listener.front.name());
                self.refusals.say(self.now, &mut self.log, line);
                std::thread::sleep(std::time::Duration::from_millis(10));
                return;
            }
        };
        let peer = match peer.map(std::net::SocketAddr::try_from) {
            Some(Ok(address)) => {
                // Replies are gathered here; waiting for more in the kernel would only delay them.
                let _ = sockopt::set_tcp_nodelay(&socket, true);
                address.to_string()
            }
            _ => String::from("unix socket"),
        };
        let name = format!("{} {peer}", listener.front.name());
        if self.places.len() - self.free.len() >= self.limits.connections {
            let line = || format!("{name}: refused: too many connections");
            self.refusals.say(self.now, &mut self.log, line);
            return;
        }
        match listener.front.accept(socket, &peer) {
            Ok(endpoint) => self.add(name, endpoint),
            Err(why) => {
                let line = || format!("{name}: refused: {why}");
                self.refusals.say(self.now, &mut self.log, line);
            }
        }
    }

    /// Adds an endpoint that did not come from a listener.
    pub fn add(&mut self, name: String, endpoint: Box<dyn Endpoint>) {
        let polls = endpoint.polls();
        let place = Place {
            endpoint: Some(endpoint),
            polls,
            name,
            ..Place::default()
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.places[id as usize] = place;
                id
            }
            None => {
                self.places.push(place);
                (self.places.len() - 1) as u32
            }
        };
        if polls {
            self.polling.push(id);
        }
        self.now = self.clock.wall();
        self.pace.welcome(self.now);
        self.call(id, |endpoint, port| endpoint.open(port));
    }
}

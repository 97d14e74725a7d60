//! Life cycle of a connection: opening, incoming bytes and completions, timeouts, end.

use super::connection::NvmeConnection;
use super::queue::QueuePhase;
use super::wire::{Encoder, PduType};
use crate::clock::Wall;
use crate::outbox::Outbox;
use crate::port::{ConnectionEnd, Notice, Port};
use crate::served::Reply;
use crate::stream;

/// Time in ms after which a host that has not connected a queue is disconnected.
const PATIENCE_MS: u64 = 10_000;

impl NvmeConnection {
    fn alive(&self) -> Result<(), ConnectionEnd> {
        if self.queue.is_alive() {
            Ok(())
        } else {
            Err(ConnectionEnd::Left)
        }
    }

    fn keep_alive(&self, now: Wall) -> Result<(), ConnectionEnd> {
        let since = |then: Wall| now.since(then).ns() / 1_000_000;
        match self.queue.phase {
            QueuePhase::Opening | QueuePhase::Unconnected => match self.opened {
                Some(opened) if since(opened) > PATIENCE_MS => Err(ConnectionEnd::broke(
                    "the client connected no queue within 10 s",
                )),
                _ => Ok(()),
            },
            QueuePhase::Admin => {
                let mut shared = self.queue.shared.borrow_mut();
                let Some(controller) = shared.controller(self.queue.controller) else {
                    return Ok(());
                };
                let limit = u64::from(controller.features.keep_alive_ms);
                let heard = self.heard.max(controller.heard);
                // Twice the agreed time, so that a host that is slightly late is not disconnected.
                if limit > 0 && since(heard) > 2 * limit {
                    return Err(ConnectionEnd::broke(format!(
                        "nothing came from the host for twice its keep-alive time of {limit} ms"
                    )));
                }
                Ok(())
            }
            QueuePhase::Io => {
                let mut shared = self.queue.shared.borrow_mut();
                if let Some(controller) = shared.controller(self.queue.controller) {
                    controller.heard = controller.heard.max(self.heard);
                }
                Ok(())
            }
        }
    }
}

impl stream::Connection for NvmeConnection {
    fn open(&mut self, _out: &mut Outbox, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        self.opened = Some(port.wall());
        self.queue.shared.borrow_mut().look(port);
        Ok(())
    }

    fn input(
        &mut self,
        bytes: &[u8],
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<usize, ConnectionEnd> {
        self.alive()?;
        self.io.refresh(&self.queue.shared.borrow());
        self.heard = port.wall();
        let mut rest = bytes;
        loop {
            let step = match self.decoder.next(&mut rest) {
                Ok(None) => break,
                Ok(Some(event)) => self.event(event, out, port),
                Err(fault) => Err(fault),
            };
            if let Err(fault) = step {
                let offending = self.decoder.gathered();
                let (fatal, detail) = (fault.fatal, fault.detail);
                Encoder::term(out, PduType::C2hTermReq, fatal, detail, offending);
                return Err(ConnectionEnd::broke(fault.reason));
            }
        }
        self.pump(out, port);
        Ok(bytes.len())
    }

    #[inline]
    fn reply(
        &mut self,
        reply: &Reply,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<(), ConnectionEnd> {
        self.io.completed(&mut self.queue, reply, out, port);
        if !self.waiting.is_empty() {
            self.pump(out, port);
        }
        Ok(())
    }

    fn resume(&mut self, out: &mut Outbox, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        self.pump(out, port);
        Ok(())
    }

    fn tick(&mut self, out: &mut Outbox, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        self.alive()?;
        self.keep_alive(port.wall())?;
        if self.queue.phase == QueuePhase::Admin {
            self.parked.attend(&mut self.queue, out, port);
        }
        self.pump(out, port);
        if !self.recent {
            self.queue.slots.trim();
        }
        self.recent = false;
        Ok(())
    }

    fn notice(
        &mut self,
        drive: usize,
        notice: Notice,
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<(), ConnectionEnd> {
        // Every connection is notified; the admin connections notify their controllers.
        if notice == Notice::PowerCut {
            return Err(ConnectionEnd::Failed("the power was cut".into()));
        }
        if self.queue.phase == QueuePhase::Admin {
            self.queue.shared.borrow_mut().look(port);
            self.queue
                .shared
                .borrow_mut()
                .notice(self.queue.controller, drive, notice, port);
            self.parked.attend(&mut self.queue, out, port);
        }
        Ok(())
    }

    fn rung(&mut self, out: &mut Outbox, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        self.tick(out, port)
    }
}

impl Drop for NvmeConnection {
    fn drop(&mut self) {
        self.queue.leave();
        self.parked.abandon(&self.queue);
    }
}

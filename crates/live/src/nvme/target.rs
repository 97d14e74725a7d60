//! State that all connections of an NVMe/TCP front end share: a subsystem, its controllers, self-tests and history.

use super::controller::{Controller, Features, HOST_BEHAVIOR, Notification};
use super::controllers::Controllers;
use super::facts::Drives;
use super::history::History;
use super::self_test::SelfTests;
use super::subsystem::{Namespace, NvmeOptions, Subsystem};
use super::wire::Status;
use crate::port::Notice;

/// State that all connections share.
#[derive(Debug)]
pub struct NvmeTarget {
    pub(super) subsystem: Subsystem,
    pub(super) controllers: Controllers,
    pub(super) self_tests: SelfTests,
    pub(super) history: History,
    /// Counter that changes with the content of the discovery log.
    pub(super) generation: u64,
}

impl NvmeTarget {
    /// Returns a target without connections; namespaces are read when the first connection arrives.
    pub fn new(options: NvmeOptions) -> NvmeTarget {
        NvmeTarget {
            controllers: Controllers::new(options.controllers),
            subsystem: Subsystem::new(options),
            self_tests: SelfTests::default(),
            history: History::default(),
            generation: 1,
        }
    }

    /// Returns the number of connected controllers.
    pub fn connected(&self) -> usize {
        self.controllers.connected()
    }

    /// Creates a controller for a host; `None` if there are too many.
    pub(super) fn create(
        &mut self,
        discovery: bool,
        keep_alive_ms: u32,
        host_id: [u8; 16],
        host_nqn: &str,
    ) -> Option<&mut Controller> {
        let defaults = Features {
            keep_alive_ms,
            ..self.defaults()
        };
        let attached = self.subsystem.layout.attached();
        self.controllers
            .create(discovery, defaults, host_id, host_nqn, attached)
    }

    /// Returns the controller with this identifier.
    #[inline]
    pub(super) fn controller(&mut self, id: u16) -> Option<&mut Controller> {
        self.controllers.get(id)
    }

    /// Returns the namespace with this identifier.
    #[inline]
    pub(super) fn namespace(&mut self, nsid: u32) -> Option<&mut Namespace> {
        self.subsystem.namespace(nsid)
    }

    /// Returns the namespace with this identifier, if it is attached to this controller.
    ///
    /// # Errors
    /// The status for an invalid identifier, or one without a namespace.
    #[inline]
    pub(super) fn active(&mut self, controller: u16, nsid: u32) -> Result<&mut Namespace, Status> {
        let attached = self.controllers.get(controller);
        let attached = attached.is_some_and(|it| it.has(nsid));
        let absent = self.subsystem.absent(nsid);
        let namespace = self.subsystem.namespace(nsid).filter(|_| attached);
        namespace.ok_or(absent)
    }

    /// Returns the namespaces that a command for this one concerns.
    ///
    /// # Errors
    /// As [`NvmeTarget::active`].
    pub(super) fn concerned(&mut self, controller: u16, nsid: u32) -> Result<Vec<u32>, Status> {
        if nsid == u32::MAX {
            return Ok(self.subsystem.present().map(|(nsid, _)| nsid).collect());
        }
        self.active(controller, nsid)?;
        Ok(vec![nsid])
    }

    /// Checks whether this controller belongs to the discovery subsystem.
    pub(super) fn is_discovery(&mut self, controller: u16) -> bool {
        self.controllers
            .get(controller)
            .is_some_and(|it| it.discovery)
    }

    /// Checks whether this controller offers more than the drive has.
    pub(super) fn is_full(&mut self, controller: u16) -> bool {
        self.subsystem.options.full && !self.is_discovery(controller)
    }

    /// Returns the default values of the features.
    fn defaults(&self) -> Features {
        Features {
            arbitration: 0,
            power_state: 0,
            temperature: self.subsystem.warning_kelvin,
            temperature_low: 0,
            error_recovery: 0,
            queues: None,
            coalescing: 0,
            uncoalesced: 0,
            atomicity: 0,
            events: 0,
            timestamp: None,
            keep_alive_ms: 0,
            lba_status: 0,
            host_behavior: [0; HOST_BEHAVIOR],
        }
    }

    /// Reads the drives: updates their namespaces.
    pub(super) fn look(&mut self, drives: &mut dyn Drives) {
        self.subsystem.begin(drives);
        if let Some(&drive) = self.subsystem.options.drives.first() {
            self.history.begin(drive, drives);
        }
        self.subsystem.look(drives);
    }

    /// Notifies this controller of an event of a drive.
    pub(super) fn notice(
        &mut self,
        controller: u16,
        drive: usize,
        notice: Notice,
        drives: &mut dyn Drives,
    ) {
        let Some(controller) = self.controllers.get(controller) else {
            return;
        };
        if controller.discovery {
            return;
        }
        match notice {
            Notice::Health => {
                let warning = drives.health(drive).warning;
                for (is_so, event) in [
                    (warning.spare, Notification::SPARE),
                    (warning.temperature, Notification::TEMPERATURE),
                    (warning.reliability, Notification::RELIABILITY),
                ] {
                    if is_so {
                        controller.notify(event);
                    }
                }
            }
            Notice::Namespace => {
                for (nsid, namespace) in self.subsystem.present() {
                    if namespace.drive == drive {
                        controller.namespace_changed(nsid);
                    }
                }
            }
            Notice::PowerCut => {}
        }
    }
}

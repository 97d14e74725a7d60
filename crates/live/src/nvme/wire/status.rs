//! Status codes of completions.
//!
//! Source: NVM Express Base Specification 1.4, figures 126 to 130; NVM Command Set Specification 1.0, figures 17 and 18;
//! NVMe over Fabrics 1.1, figure 20.

/// Status of a completion: type in bits 10:8, code in bits 7:0, "do not retry" in bit 14.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Status(u16);

const DNR: u16 = 1 << 14;

impl Status {
    /// The command completed without error.
    pub const SUCCESS: Status = Status(0);
    /// No such command.
    pub const INVALID_OPCODE: Status = Status::fixed(0, 0x01);
    /// A field of the command is invalid.
    pub const INVALID_FIELD: Status = Status::fixed(0, 0x02);
    /// The controller failed.
    pub const INTERNAL_ERROR: Status = Status(0x06);
    /// Aborted by an Abort command.
    pub const ABORT_REQUESTED: Status = Status::fixed(0, 0x07);
    /// Aborted because the other command of the fused pair failed.
    pub const ABORTED_FAILED_FUSED: Status = Status::fixed(0, 0x09);
    /// Aborted because the other command of the fused pair is missing.
    pub const ABORTED_MISSING_FUSED: Status = Status::fixed(0, 0x0a);
    /// No such namespace, or no such format.
    pub const INVALID_NAMESPACE: Status = Status::fixed(0, 0x0b);
    /// Not possible in this order.
    pub const COMMAND_SEQUENCE: Status = Status::fixed(0, 0x0c);
    /// The data is shorter or longer than the command needs.
    pub const DATA_SGL_LENGTH_INVALID: Status = Status::fixed(0, 0x0f);
    /// A descriptor that is not supported.
    pub const SGL_TYPE_INVALID: Status = Status::fixed(0, 0x11);
    /// The offset within the capsule is invalid.
    pub const SGL_OFFSET_INVALID: Status = Status::fixed(0, 0x16);
    /// A sanitize is in progress.
    pub const SANITIZE_IN_PROGRESS: Status = Status(0x1d);
    /// The namespace is write protected.
    pub const WRITE_PROTECTED: Status = Status::fixed(0, 0x20);
    /// Interrupted; a retry may succeed.
    pub const COMMAND_INTERRUPTED: Status = Status(0x21);
    /// Damaged in transit; a retry may succeed.
    pub const TRANSIENT_TRANSPORT: Status = Status(0x22);
    /// Beyond the end of the namespace.
    pub const LBA_OUT_OF_RANGE: Status = Status::fixed(0, 0x80);
    /// There is no space for the data.
    pub const CAPACITY_EXCEEDED: Status = Status::fixed(0, 0x81);
    /// A format is in progress.
    pub const FORMAT_IN_PROGRESS: Status = Status(0x84);

    /// Too many asynchronous event requests.
    pub const TOO_MANY_EVENTS: Status = Status::fixed(1, 0x05);
    /// No such log page.
    pub const INVALID_LOG_PAGE: Status = Status::fixed(1, 0x09);
    /// No such format.
    pub const INVALID_FORMAT: Status = Status::fixed(1, 0x0a);
    /// The feature cannot be saved.
    pub const FEATURE_NOT_SAVEABLE: Status = Status::fixed(1, 0x0d);

    /// Namespace Management: insufficient unallocated capacity.
    pub const INSUFFICIENT_CAPACITY: Status = Status::fixed(1, 0x15);
    /// Namespace Management: all namespace identifiers are in use.
    pub const NO_NAMESPACE_ID: Status = Status::fixed(1, 0x16);
    /// Namespace Attachment: the namespace is already attached.
    pub const ALREADY_ATTACHED: Status = Status::fixed(1, 0x18);
    /// Namespace Attachment: the namespace is not attached.
    pub const NOT_ATTACHED: Status = Status::fixed(1, 0x1a);
    /// Namespace Management: a capacity below the size.
    pub const THIN_PROVISIONING: Status = Status::fixed(1, 0x1b);
    /// Namespace Attachment: the list contains a controller that does not exist.
    pub const CONTROLLER_LIST: Status = Status::fixed(1, 0x1c);
    /// A device self-test is in progress.
    pub const SELF_TEST_IN_PROGRESS: Status = Status::fixed(1, 0x1d);

    /// Connect: the format of its data is unknown.
    pub const CONNECT_FORMAT: Status = Status::fixed(1, 0x80);
    /// Connect: the controller is in use.
    pub const CONNECT_BUSY: Status = Status(0x181);
    /// Connect: a parameter is invalid; dword 0 names the field.
    pub const CONNECT_INVALID: Status = Status::fixed(1, 0x82);

    /// The namespace does not have (such) protection information.
    pub const INVALID_PROTECTION: Status = Status::fixed(1, 0x81);

    /// Copy: more, or longer, ranges than the namespace allows.
    pub const COMMAND_SIZE_LIMIT: Status = Status::fixed(1, 0x83);
    /// Copy: source and destination have different formats.
    pub const INCOMPATIBLE_NAMESPACE: Status = Status::fixed(1, 0x85);
    /// Copy: no faster method than reading and writing is available.
    pub const FAST_COPY_NOT_POSSIBLE: Status = Status::fixed(1, 0x86);
    /// Copy: the destination overlaps a source.
    pub const OVERLAPPING_RANGE: Status = Status::fixed(1, 0x87);

    /// The medium failed to store the data.
    pub const WRITE_FAULT: Status = Status(0x280);
    /// The medium could not return the data, even after the drive's own retries.
    pub const UNRECOVERED_READ: Status = Status::fixed(2, 0x81);
    /// Protection information: the guard does not match the data.
    pub const GUARD_CHECK: Status = Status::fixed(2, 0x82);
    /// Protection information: the application tag does not match.
    pub const APPLICATION_TAG_CHECK: Status = Status::fixed(2, 0x83);
    /// Protection information: the reference tag does not match.
    pub const REFERENCE_TAG_CHECK: Status = Status::fixed(2, 0x84);
    /// Protection information: the storage tag does not match.
    pub const STORAGE_TAG_CHECK: Status = Status::fixed(2, 0x88);
    /// The compared data differs.
    pub const COMPARE_FAILURE: Status = Status::fixed(2, 0x85);

    const fn fixed(kind: u16, code: u16) -> Status {
        Status(kind << 8 | code | DNR)
    }

    /// Returns the status from the 15 bits of a completion.
    pub const fn from_field(field: u16) -> Status {
        Status(field & 0x7fff)
    }

    /// Returns the 15 bits of a completion.
    pub const fn field(self) -> u16 {
        self.0
    }

    /// Returns type and code without "do not retry" and "more", for comparisons.
    pub const fn code(self) -> u16 {
        self.0 & 0x7ff
    }

    /// Checks whether it is a success.
    pub const fn is_success(self) -> bool {
        self.code() == 0
    }
}

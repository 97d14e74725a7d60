//! Opcodes of commands.
//!
//! Source: NVM Express Base Specification 1.4, figures 139 and 346; NVM Command Set Specification 1.0, figure 22.

/// Opcodes of admin commands.
pub mod admin {
    /// Get Log Page.
    pub const GET_LOG: u8 = 0x02;
    /// Opcode of Identify.
    pub const IDENTIFY: u8 = 0x06;
    /// Opcode of Abort.
    pub const ABORT: u8 = 0x08;
    /// Opcode of Set Features.
    pub const SET_FEATURES: u8 = 0x09;
    /// Opcode of Get Features.
    pub const GET_FEATURES: u8 = 0x0a;
    /// Asynchronous Event Request.
    pub const ASYNC_EVENT: u8 = 0x0c;
    /// Namespace Management.
    pub const NAMESPACES: u8 = 0x0d;
    /// Device Self-test.
    pub const SELF_TEST: u8 = 0x14;
    /// Namespace Attachment.
    pub const ATTACHMENT: u8 = 0x15;
    /// Opcode of Keep Alive.
    pub const KEEP_ALIVE: u8 = 0x18;
    /// Format NVM.
    pub const FORMAT: u8 = 0x80;
    /// Opcode of Sanitize.
    pub const SANITIZE: u8 = 0x84;
    /// Opcode of Get LBA Status.
    pub const GET_LBA_STATUS: u8 = 0x86;
    /// Vendor specific: cuts the power of the namespace's drive.
    pub const POWER_CUT: u8 = 0xc0;
}

/// Opcodes of I/O commands.
pub mod io {
    /// Opcode of Flush.
    pub const FLUSH: u8 = 0x00;
    /// Opcode of Write.
    pub const WRITE: u8 = 0x01;
    /// Opcode of Read.
    pub const READ: u8 = 0x02;
    /// Opcode of Write Uncorrectable.
    pub const WRITE_UNCORRECTABLE: u8 = 0x04;
    /// Opcode of Compare.
    pub const COMPARE: u8 = 0x05;
    /// Opcode of Write Zeroes.
    pub const WRITE_ZEROES: u8 = 0x08;
    /// Dataset Management.
    pub const DATASET: u8 = 0x09;
    /// Opcode of Verify.
    pub const VERIFY: u8 = 0x0c;
    /// Opcode of Copy.
    pub const COPY: u8 = 0x19;
}

//! NVMe/TCP on the wire: PDUs, queue entries, status codes, digests. Converts bytes to events; contains no sockets and
//! does not interpret PDUs.

pub mod decode;
pub mod digest;
pub mod encode;
pub mod entry;
pub mod pdu;
pub mod status;

pub use decode::{Decoder, Header, PduEvent, PduFault};
pub use encode::Encoder;
pub use entry::{Cqe, Sgl, Sqe};
pub use pdu::{Fatal, PduType};
pub use status::Status;

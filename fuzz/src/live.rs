//! What the fuzz targets of the live server check, besides that nothing panics.

use std::sync::OnceLock;

use catalogue::{DriveSheet, drive};
use live::nbd::NbdConnection;
use live::nbd::wire::{self, NbdRequest};
use live::offline::Offline;
use live::store::SavedState;
use live::{ConnectionLimits, ConnectionEnd, ServedDevice, Setup};
use model::media::Precondition;
use workload::faults;

/// A small drive in memory.
pub fn small_drive() -> ServedDevice {
    static SHEET: OnceLock<DriveSheet> = OnceLock::new();
    let sheet = SHEET.get_or_init(|| drive("ram-disk").expect("a drive of the catalogue"));
    Setup {
        name: String::from("disk"),
        size: Some(1 << 20),
        precondition: Some(Precondition::Fresh),
        ..Setup::new(sheet.clone())
    }
    .open()
    .expect("memory")
}

/// A client of NBD that sends anything, cut anywhere: it is answered or cut off with a reason. The first byte says how
/// the rest is cut, and whether the handshake is made for it.
pub fn nbd(bytes: &[u8]) {
    let Some((&how, rest)) = bytes.split_first() else {
        return;
    };
    let connection = NbdConnection::new(vec![String::from("disk")]);
    let limits = ConnectionLimits {
        commands: 8,
        bytes: 1 << 20,
        ..ConnectionLimits::default()
    };
    let mut client = Offline::new(vec![small_drive()], connection, limits).expect("a greeting");
    if how & 1 == 1 {
        let mut hello = 3u32.to_be_bytes().to_vec();
        if how & 2 == 2 {
            hello.extend(wire::option(wire::option::STRUCTURED_REPLY, &[]));
        }
        hello.extend(wire::option(wire::option::EXPORT_NAME, b"disk"));
        client.send(&hello).expect("a good handshake");
    }
    for piece in rest.chunks(usize::from(how >> 2) * 7 + 1) {
        match client.send(piece) {
            Ok(_) => {}
            Err(ConnectionEnd::Broke(why)) => return assert!(!why.is_empty()),
            Err(_) => return,
        }
    }
    if let Some(head) = rest.get(..NbdRequest::BYTES)
        && let Some(request) = NbdRequest::parse(head)
    {
        assert_eq!(request.emit(), head);
    }
}

/// A script of faults is read or refused; what is read can be shown and read again.
pub fn fault_script(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match faults::script(&text) {
        Err(problems) => assert!(!problems.is_empty()),
        Ok(planned) => {
            for (_, one) in planned {
                let again: faults::ScheduledFault = one.to_string().parse().expect("as shown");
                assert_eq!(again.to_string(), one.to_string());
            }
        }
    }
}

/// What a drive remembers is read or refused; what is read is written as it was.
pub fn store_state(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    // A fuzzer does not guess checksums.
    let mut signed = text.clone().into_owned();
    if let Some(at) = signed.rfind("crc32c ") {
        signed.truncate(at);
    }
    let sum = crc32c::crc32c(signed.as_bytes());
    signed.push_str(&format!("crc32c {sum:08x}\n"));
    for text in [&*text, &signed] {
        if let Ok(state) = SavedState::parse(text) {
            let again = SavedState::parse(&state.emit()).expect("what was emitted");
            assert_eq!(again, state);
        }
    }
}

//! Protocol violations of a host end its connection, with a reason, and affect no other connection.

use live::nvme::io::opcode;
use live::nvme::wire::{Encoder, Sgl, Sqe, Status};
use live::{ConnectionEnd, Outbox};
use proptest::prelude::*;

use crate::host::{Host, drive, io};

fn reason(end: Result<(), ConnectionEnd>) -> String {
    match end {
        Err(ConnectionEnd::Broke(reason)) => reason,
        other => panic!("{other:?} is not the end of a connection"),
    }
}

fn bytes_of(put: impl FnOnce(&mut Outbox)) -> Vec<u8> {
    let mut out = Outbox::default();
    put(&mut out);
    out.unsent().to_vec()
}

fn capsule(sqe: &Sqe, data: &[u8]) -> Vec<u8> {
    bytes_of(|out| Encoder::default().command(out, sqe, data))
}

#[test]
fn headers_that_are_wrong() {
    let good = capsule(&io(opcode::READ, 1, 0, 1, Sgl::transport(512)), &[]);
    let changed = |place: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[place] = value;
        bytes
    };
    for (bytes, wanted) in [
        (changed(0, 0x05), "type"),
        (changed(0, 0xff), "type"),
        (changed(0, 0x00), "length"),
        (changed(1, 1), "header digest"),
        (changed(2, 71), "length of a header"),
        (changed(4, 8), "shorter"),
        (changed(5, 0xff), "begins"),
        (
            bytes_of(|out| Encoder::ic_req(out, 0, 0, 0)),
            "not allowed at this point",
        ),
        (
            capsule(
                &io(opcode::WRITE, 1, 0, 17, Sgl::in_capsule(8704)),
                &[0; 8704],
            ),
            "more data",
        ),
    ] {
        let mut host = Host::new(vec![drive("p4800x-375")]);
        let (_, line) = host.both();
        let said = reason(host.say(line, &bytes));
        assert!(said.contains(wanted), "{said} ({wanted})");
        // Other connections continue.
        host.both();
    }
}

#[test]
fn data_that_was_not_asked_for() {
    use live::nvme::wire::encode::Transfer;
    use live::nvme::wire::pdu::FLAG_LAST;
    let write = io(opcode::WRITE, 9, 0, 32, Sgl::transport(16_384));
    let piece = |cid, offset, flags, length: usize| {
        let transfer = Transfer {
            cid,
            tag: 0,
            offset,
            flags,
        };
        bytes_of(|out| Encoder::default().h2c_data(out, transfer, &vec![0; length]))
    };
    for (bytes, wanted) in [
        (piece(8, 0, FLAG_LAST, 16_384), "not requested"),
        (piece(9, 4096, FLAG_LAST, 12_288), "out of range or order"),
        (piece(9, 0, FLAG_LAST, 32_768), "out of range"),
        (piece(9, 0, FLAG_LAST, 4096), "marked"),
        (piece(9, 0, 0, 16_384), "marked"),
    ] {
        let mut host = Host::new(vec![drive("p4800x-375")]);
        let (_, line) = host.both();
        // Only the command: the initiator would answer the R2T.
        host.say_raw(line, &capsule(&write, &[])).expect("goes on");
        let end = host.say(line, &bytes);
        let said = reason(end);
        assert!(said.contains(wanted), "{said} ({wanted})");
    }
}

#[test]
fn more_commands_than_the_queue_has() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (_, line) = host.both();
    let mut bytes = Vec::new();
    for cid in 0..33 {
        bytes.extend(capsule(
            &io(opcode::WRITE, cid, 0, 32, Sgl::transport(16_384)),
            &[],
        ));
    }
    assert!(reason(host.say(line, &bytes)).contains("more commands"));
    let (_, line) = host.both();
    let twice = capsule(&io(opcode::WRITE, 1, 0, 32, Sgl::transport(16_384)), &[]).repeat(2);
    assert!(reason(host.say(line, &twice)).contains("in use"));
}

#[test]
fn damaged_digests() {
    let mut host = Host::new(vec![drive("p4800x-375")]);
    let (_, id) = host.admin(3, usize::MAX);
    let encoder = Encoder {
        header_digest: true,
        data_digest: true,
        alignment: 4,
    };
    let write = io(opcode::WRITE, 1, 0, 1, Sgl::in_capsule(512));
    let good = bytes_of(|out| encoder.command(out, &write, &[5; 512]));
    // Damaged data fails the command; a retry may succeed.
    let line = host.io(id, 3, usize::MAX);
    let mut bytes = good.clone();
    bytes[100] ^= 1;
    host.expect(line, 1);
    host.say(line, &bytes).expect("goes on");
    let status = host.completion(line, 1).expect("an answer").cqe.status();
    assert_eq!(status, Status::TRANSIENT_TRANSPORT);
    host.expect(line, 1);
    host.say(line, &good).expect("goes on");
    assert!(host.completion(line, 1).is_some());
    // A damaged header cannot be trusted.
    let mut bytes = good;
    bytes[20] ^= 1;
    assert!(reason(host.say(line, &bytes)).contains("digest of a header"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// For any bytes at any stage, the connection continues or ends, and the drive still works for others.
    #[test]
    fn any_bytes(stage in 0u8..4, bytes in prop::collection::vec(any::<u8>(), 0..400), kind in 0u8..10) {
        let mut host = Host::new(vec![drive("p4800x-375")]);
        let line = match stage {
            0 => host.open(0, usize::MAX),
            1 => host.open(3, usize::MAX),
            2 => host.admin(0, usize::MAX).0,
            _ => host.both().1,
        };
        let mut bytes = bytes;
        if bytes.len() > 72 && kind < 8 {
            // An almost valid header is processed further.
            let length = bytes.len() as u32;
            bytes[0] = [4, 4, 4, 6, 2, 0, 4, 4][usize::from(kind)];
            bytes[1] = 0;
            bytes[2] = match bytes[0] { 4 => 72, 0 => 128, _ => 24 };
            bytes[3] = 72;
            bytes[4..8].copy_from_slice(&length.to_le_bytes());
        }
        if let Err(end) = host.say_raw(line, &bytes) {
            prop_assert!(!matches!(end, ConnectionEnd::Failed(_)), "{end:?}");
        }
        host.hang_up(line);
        let (_, line) = host.both();
        host.well(line, &io(opcode::READ, 1, 0, 1, Sgl::transport(512)), &[]);
    }
}

//! The NBD front end as a state machine: negotiation, commands, errors, and clients that violate the protocol.

use live::nbd::NbdConnection;
use live::nbd::wire::{self, NbdRequest, command, error, flag, option};
use live::offline::Offline;
use live::{ConnectionEnd, ConnectionLimits, Setup};
use model::media::Precondition;
use proptest::prelude::*;

const SIZE: u64 = 1 << 20;

fn client() -> Offline<NbdConnection> {
    client_of("p4800x-375")
}

fn client_of(drive: &str) -> Offline<NbdConnection> {
    let sheet = catalogue::drive(drive).expect("a drive of the catalogue");
    let drive = Setup {
        name: "disk".into(),
        size: Some(SIZE),
        precondition: Some(Precondition::Steady),
        ..Setup::new(sheet)
    }
    .open()
    .expect("memory");
    let connection = NbdConnection::new(vec!["disk".into()]);
    Offline::new(vec![drive], connection, ConnectionLimits::default()).expect("a greeting")
}

/// Returns a client that has negotiated structured replies and block status, and is past GO.
fn ready() -> Offline<NbdConnection> {
    ready_for("p4800x-375")
}

fn ready_for(drive: &str) -> Offline<NbdConnection> {
    let mut client = client_of(drive);
    let mut hello = 3u32.to_be_bytes().to_vec();
    hello.extend(wire::option(option::STRUCTURED_REPLY, &[]));
    let mut context = 4u32.to_be_bytes().to_vec();
    context.extend(b"disk");
    context.extend(1u32.to_be_bytes());
    context.extend(15u32.to_be_bytes());
    context.extend(b"base:allocation");
    hello.extend(wire::option(option::SET_META_CONTEXT, &context));
    hello.extend(wire::option(option::GO, &go(b"disk")));
    client.send(&hello).expect("a handshake");
    client
}

fn go(name: &[u8]) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend(name);
    data.extend(0u16.to_be_bytes());
    data
}

fn request(command: u16, cookie: u64, offset: u64, length: u32) -> NbdRequest {
    NbdRequest {
        flags: 0,
        command,
        cookie,
        offset,
        length,
    }
}

/// Returns the chunks of structured replies: kind, cookie, data.
fn chunks(mut bytes: &[u8]) -> Vec<(u16, u64, Vec<u8>)> {
    let mut chunks = Vec::new();
    while !bytes.is_empty() {
        assert_eq!(wire::be32(bytes, 0), wire::STRUCTURED_REPLY_MAGIC);
        let length = wire::be32(bytes, 16) as usize;
        let data = bytes[wire::CHUNK..wire::CHUNK + length].to_vec();
        chunks.push((wire::be16(bytes, 6), wire::be64(bytes, 8), data));
        bytes = &bytes[wire::CHUNK + length..];
    }
    chunks
}

/// Returns the error of the only reply.
fn error_of(bytes: &[u8]) -> u32 {
    match &chunks(bytes)[..] {
        [(wire::chunk::ERROR, _, data)] => wire::be32(data, 0),
        [(_, _, _)] => error::OK,
        other => panic!("{} replies", other.len()),
    }
}

#[test]
fn what_was_written_is_read_however_the_bytes_are_cut() {
    let mut client = ready();
    let mut bytes = request(command::WRITE, 1, 4096, 8192).emit().to_vec();
    bytes.extend((0..8192u32).map(|at| at as u8 ^ (at >> 8) as u8));
    bytes.extend(request(command::READ, 2, 4096, 8192).emit());
    let mut said = Vec::new();
    for piece in bytes.chunks(777) {
        said.extend(client.send(piece).expect("fine"));
    }
    // The read may overtake the write in the drive only if both are sent together; here it was sent later.
    let read = chunks(&said)
        .into_iter()
        .find(|chunk| chunk.1 == 2)
        .expect("an answer");
    assert_eq!(read.0, wire::chunk::OFFSET_DATA);
    assert_eq!(wire::be64(&read.2, 0), 4096);
    assert!(
        read.2[8..]
            .iter()
            .enumerate()
            .all(|(at, &byte)| byte == at as u8 ^ (at >> 8) as u8)
    );
}

#[test]
fn trims_and_zeroes_show_as_holes() {
    let mut client = ready();
    let mut write = request(command::WRITE, 1, 0, 131_072).emit().to_vec();
    write.extend(vec![9; 131_072]);
    client.send(&write).expect("fine");
    let zero = request(command::WRITE_ZEROES, 2, 65_536, 65_536).emit();
    client.send(&zero).expect("fine");
    let status = request(command::BLOCK_STATUS, 3, 0, SIZE as u32).emit();
    let said = client.send(&status).expect("fine");
    let (kind, _, data) = chunks(&said).remove(0);
    assert_eq!(kind, wire::chunk::BLOCK_STATUS);
    let extents: Vec<(u32, u32)> = data[4..]
        .chunks(8)
        .map(|extent| (wire::be32(extent, 0), wire::be32(extent, 4)))
        .collect();
    assert_eq!(extents, [(65_536, 0), (SIZE as u32 - 65_536, 3)]);
    let read = request(command::READ, 4, 65_024, 1024).emit();
    let (_, _, data) = chunks(&client.send(&read).expect("fine")).remove(0);
    assert!(data[8..520].iter().all(|&byte| byte == 9));
    assert!(data[520..].iter().all(|&byte| byte == 0));
}

#[test]
fn a_read_of_what_was_never_written_is_answered_without_data() {
    for drive in ["p4800x-375", "950pro-256"] {
        let mut client = ready_for(drive);
        let read = |client: &mut Offline<NbdConnection>, cookie, offset, length| {
            let read = request(command::READ, cookie, offset, length).emit();
            chunks(&client.send(&read).expect("fine")).remove(0)
        };
        let mut hole = 65_536u64.to_be_bytes().to_vec();
        hole.extend(4096u32.to_be_bytes());
        let (kind, cookie, data) = read(&mut client, 7, 65_536, 4096);
        assert_eq!((kind, cookie), (wire::chunk::OFFSET_HOLE, 7));
        assert_eq!(data, hole);
        // After a write, even if only to the drive's cache, the block counts as data, also if a read touches only its
        // end.
        let mut write = request(command::WRITE, 8, 65_536, 512).emit().to_vec();
        write.extend([3; 512]);
        client.send(&write).expect("fine");
        for (offset, length, at) in [(65_536, 4096, 0), (61_440, 8192, 4096)] {
            let (kind, _, data) = read(&mut client, 9, offset, length);
            assert_eq!(kind, wire::chunk::OFFSET_DATA, "{drive}");
            assert_eq!(data.len(), 8 + length as usize);
            assert!(data[8 + at..8 + at + 512].iter().all(|&byte| byte == 3));
        }
    }
}

#[test]
fn what_cannot_be_done_is_refused_and_the_connection_goes_on() {
    let mut client = ready();
    let cases = [
        (request(command::READ, 1, SIZE, 512), error::EINVAL),
        (
            request(command::READ, 1, u64::MAX - 511, 512),
            error::EINVAL,
        ),
        (request(command::READ, 1, 100, 512), error::EINVAL),
        (request(command::READ, 1, 0, 0), error::EINVAL),
        (request(command::TRIM, 1, SIZE - 512, 1024), error::EINVAL),
        (
            request(command::WRITE_ZEROES, 1, SIZE - 512, 1024),
            error::ENOSPC,
        ),
        (request(99, 1, 0, 512), error::EINVAL),
        (
            NbdRequest {
                flags: 1 << 9,
                ..request(command::READ, 1, 0, 512)
            },
            error::EINVAL,
        ),
        (request(command::FLUSH, 1, 0, 0), error::OK),
        (
            NbdRequest {
                flags: flag::FUA,
                ..request(command::TRIM, 1, 0, 512)
            },
            error::OK,
        ),
    ];
    for (request, expected) in cases {
        let said = client
            .send(&request.emit())
            .expect("the connection goes on");
        assert_eq!(error_of(&said), expected, "{request:?}");
    }
    // Data of a write beyond the end is received and discarded.
    let mut write = request(command::WRITE, 1, SIZE, 512).emit().to_vec();
    write.extend([1; 512]);
    assert_eq!(error_of(&client.send(&write).expect("fine")), error::ENOSPC);
    assert_eq!(
        error_of(
            &client
                .send(&request(command::READ, 1, 0, 512).emit())
                .expect("fine")
        ),
        error::OK
    );
}

#[test]
fn a_medium_error_is_an_error_until_it_is_written() {
    let mut client = ready();
    client.drives[0].spoil(4096, 512);
    let read = request(command::READ, 1, 0, 8192).emit();
    assert_eq!(error_of(&client.send(&read).expect("fine")), error::EIO);
    let mut write = request(command::WRITE, 1, 4096, 512).emit().to_vec();
    write.extend([1; 512]);
    client.send(&write).expect("fine");
    assert_eq!(error_of(&client.send(&read).expect("fine")), error::OK);
}

#[test]
fn those_who_break_the_rules_are_cut_off() {
    let broke = |end: Result<Vec<u8>, ConnectionEnd>| matches!(end, Err(ConnectionEnd::Broke(_)));
    assert!(
        broke(client().send(&0u32.to_be_bytes())),
        "not fixed newstyle"
    );
    assert!(broke(client().send(&[
        0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 1, 0, 0, 0, 0
    ])));
    let mut large = 3u32.to_be_bytes().to_vec();
    large.extend(b"IHAVEOPT\0\0\0\x07\x7f\0\0\0");
    assert!(broke(client().send(&large)), "an option of two gigabytes");
    assert!(broke(ready().send(&[0; 28])), "a request without its magic");
    let oversized = request(command::WRITE, 1, 0, u32::MAX).emit();
    assert!(broke(ready().send(&oversized)));
    let mut unknown = 3u32.to_be_bytes().to_vec();
    unknown.extend(wire::option(option::EXPORT_NAME, b"other"));
    assert!(broke(client().send(&unknown)));
    assert_eq!(
        ready().send(&request(command::DISC, 1, 0, 0).emit()),
        Err(ConnectionEnd::Left)
    );
}

proptest! {
    #[test]
    fn a_request_is_parsed_as_emitted(
        flags: u16, command: u16, cookie: u64, offset: u64, length: u32
    ) {
        let request = NbdRequest { flags, command, cookie, offset, length };
        prop_assert_eq!(NbdRequest::parse(&request.emit()), Some(request));
    }

    /// For any input, the connection ends or answers, and all accepted commands are answered.
    #[test]
    fn any_requests_are_answered_or_end_the_connection(
        requests in prop::collection::vec((0u16..9, 0u16..20, 0u64..SIZE * 2, 0u32..70_000), 1..20)
    ) {
        let mut client = ready();
        for (command, flags, offset, length) in requests {
            let request = NbdRequest { flags, command, cookie: 5, offset, length };
            let mut bytes = request.emit().to_vec();
            if command == command::WRITE {
                bytes.extend(vec![7; length as usize]);
            }
            match client.send(&bytes) {
                Ok(said) => prop_assert_eq!(chunks(&said).len(), 1),
                Err(end) => {
                    prop_assert!(command == command::DISC, "{:?}", end);
                    return Ok(());
                }
            }
        }
    }
}

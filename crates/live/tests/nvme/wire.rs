//! PDUs are read as they were written, however the bytes are split.

use live::Outbox;
use live::nvme::wire::encode::Transfer;
use live::nvme::wire::{Cqe, Decoder, Encoder, Header, PduEvent, Sgl, Sqe};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Pdu {
    Command(Sqe, Vec<u8>),
    Data(Transfer, Vec<u8>),
}

fn sqe() -> impl Strategy<Value = Sqe> {
    (any::<u8>(), any::<u16>(), any::<[u32; 7]>(), any::<u32>()).prop_map(
        |(opcode, cid, words, length)| {
            let mut sqe = Sqe::fabric(opcode, cid, words[6], Sgl::transport(length));
            sqe.cdw10 = words[0].into();
            sqe.cdw11 = words[1].into();
            sqe.cdw12 = words[2].into();
            sqe.cdw13 = words[3].into();
            sqe.cdw14 = words[4].into();
            sqe.cdw15 = words[5].into();
            sqe
        },
    )
}

fn from_host() -> impl Strategy<Value = Pdu> {
    let data = || prop::collection::vec(any::<u8>(), 0..300);
    let transfer = (
        any::<u16>(),
        any::<u16>(),
        any::<u32>(),
        prop_oneof![Just(0u8), Just(4)],
    );
    prop_oneof![
        (sqe(), data()).prop_map(|(sqe, data)| Pdu::Command(sqe, data)),
        (transfer, data()).prop_map(|((cid, tag, offset, flags), mut data)| {
            data.push(1);
            Pdu::Data(
                Transfer {
                    cid,
                    tag,
                    offset,
                    flags,
                },
                data,
            )
        }),
    ]
}

/// Returns the decoder's results for bytes that arrive in pieces: headers with their data.
fn decoded(decoder: &mut Decoder, bytes: &[u8], piece: usize) -> Vec<(Header, Vec<u8>, bool)> {
    let mut all = Vec::new();
    let mut now = None;
    for piece in bytes.chunks(piece) {
        let mut rest = piece;
        while let Some(event) = decoder.next(&mut rest).expect("bytes that are right") {
            match event {
                PduEvent::Header(header, length) => now = Some((header, Vec::new(), length)),
                PduEvent::Data(data) => now
                    .as_mut()
                    .expect("a header before")
                    .1
                    .extend_from_slice(data),
                PduEvent::End(intact) => {
                    let (header, data, length) = now.take().expect("a header before");
                    assert_eq!(data.len(), length as usize);
                    all.push((header, data, intact));
                }
            }
        }
        assert!(rest.is_empty());
    }
    all
}

proptest! {
    #[test]
    fn what_a_host_writes_is_read(
        pdus in prop::collection::vec(from_host(), 1..8),
        digests in 0u8..4,
        alignment in 1u32..=32,
        piece in prop_oneof![1usize..100, Just(usize::MAX)],
    ) {
        let encoder = Encoder {
            header_digest: digests & 1 != 0,
            data_digest: digests & 2 != 0,
            alignment: alignment * 4,
        };
        let mut out = Outbox::default();
        for pdu in &pdus {
            match pdu {
                Pdu::Command(sqe, data) => encoder.command(&mut out, sqe, data),
                Pdu::Data(transfer, data) => encoder.h2c_data(&mut out, *transfer, data),
            }
        }
        let mut decoder = Decoder::new(true, 1 << 20);
        decoder.rules.header_digest = encoder.header_digest;
        decoder.rules.data_digest = encoder.data_digest;
        let back = decoded(&mut decoder, out.unsent(), piece);
        prop_assert_eq!(back.len(), pdus.len());
        for (pdu, (header, read, intact)) in pdus.iter().zip(back) {
            prop_assert!(intact);
            match (pdu, header) {
                (Pdu::Command(sqe, data), Header::Command(capsule)) => {
                    prop_assert_eq!(*sqe, capsule.sqe);
                    prop_assert_eq!(data, &read);
                }
                (Pdu::Data(transfer, data), Header::H2cData(header)) => {
                    prop_assert_eq!(header.cid.get(), transfer.cid);
                    prop_assert_eq!(header.tag.get(), transfer.tag);
                    prop_assert_eq!(header.offset.get(), transfer.offset);
                    prop_assert_eq!(header.length.get() as usize, data.len());
                    prop_assert_eq!(data, &read);
                }
                (pdu, header) => prop_assert!(false, "{:?} as {:?}", pdu, header),
            }
        }
    }

    #[test]
    fn what_a_controller_writes_is_read(
        cid: u16, dw0: u32, tag: u16, length in 1u32..5000, digests in 0u8..4, alignment in 1u32..=32,
        piece in prop_oneof![1usize..100, Just(usize::MAX)],
    ) {
        let encoder = Encoder {
            header_digest: digests & 1 != 0,
            data_digest: digests & 2 != 0,
            alignment: alignment * 4,
        };
        let cqe = Cqe { cid: cid.into(), dw0: dw0.into(), ..Cqe::default() };
        let transfer = Transfer { cid, tag, offset: 0, flags: 12 };
        let mut out = Outbox::default();
        encoder.response(&mut out, &cqe);
        encoder.r2t(&mut out, transfer, length);
        let filled = encoder.c2h_data(&mut out, transfer, length, |data| {
            data.fill(tag as u8);
            Ok::<(), ()>(())
        });
        prop_assert_eq!(filled, Ok(()));
        let before = out.len();
        prop_assert_eq!(encoder.c2h_data(&mut out, transfer, length, |_| Err(7)), Err(7));
        prop_assert_eq!(out.len(), before, "nothing is left of what failed");
        let mut decoder = Decoder::new(false, 1 << 20);
        decoder.rules.header_digest = encoder.header_digest;
        decoder.rules.data_digest = encoder.data_digest;
        let back = decoded(&mut decoder, out.unsent(), piece);
        prop_assert_eq!(back.len(), 3);
        prop_assert!(matches!(back[0].0, Header::Response(it) if it.cqe == cqe));
        prop_assert!(matches!(back[1].0, Header::R2t(it) if it.length.get() == length && it.tag.get() == tag));
        prop_assert!(back[2].1.len() == length as usize && back[2].1.iter().all(|&byte| byte == tag as u8));
        prop_assert!(back.iter().all(|(_, _, intact)| *intact));
    }

    /// Any bytes are rejected or read to the end.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600), controller: bool) {
        let mut decoder = Decoder::new(controller, 4096);
        let mut rest = bytes.as_slice();
        while let Ok(Some(_)) = decoder.next(&mut rest) {}
    }
}

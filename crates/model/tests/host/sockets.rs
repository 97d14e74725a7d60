//! Hosts with two sockets, and bridges to a drive.

use super::*;

/// A read crosses the link between sockets twice and a write four times; both take CPU time for queue entries in the
/// memory of the other socket. Threads on the drive's socket pay nothing, also if others are remote.
#[test]
fn a_thread_on_the_other_socket_pays_for_queue_entries_and_crossings() {
    let config = HostConfig {
        sockets: 2,
        remote_socket: Some(RemoteSocket {
            submit: ns(110),
            complete: ns(170),
            crossing: ns(60),
        }),
        ..config()
    };
    let on = |engine, sockets: [u16; 2], thread: u16, op| {
        let mut all = threads(2, engine);
        for (thread, socket) in all.iter_mut().zip(sockets) {
            thread.socket = socket;
        }
        let mut host = HostPath::new(config.clone(), &all, 1, ram());
        let mut done = Vec::new();
        let command = Command {
            queue: thread,
            ..Command::new(0, op, 0, 4096)
        };
        host.submit(Time::ZERO, command);
        while host.next_event() != Time::NEVER {
            let next = host.next_event();
            host.advance(next, next, &mut done);
        }
        assert_eq!(done[0].anatomy.total(), done[0].at.since(Time::ZERO));
        let parts = [Part::HostSubmission, Part::HostCompletion, Part::Link];
        parts.map(|part| done[0].anatomy.get(part))
    };
    for engine in [Engine::Libaio, Engine::Sync, Engine::UserSpace] {
        for (op, crossings) in [(Op::Read, 2), (Op::Write, 4), (Op::Flush, 2)] {
            let [submit, complete, link] = on(engine, [0, 0], 1, op);
            let remote = [
                submit + ns(110),
                complete + ns(170),
                link + ns(60) * crossings,
            ];
            assert_eq!(on(engine, [0, 1], 1, op), remote, "{engine:?} {op:?}");
            assert_eq!(on(engine, [1, 0], 1, op), [submit, complete, link]);
        }
    }
}

/// A kernel thread that polls pays for completion entries, too.
#[test]
fn a_polling_kernel_thread_on_the_other_socket_pays_for_completion_entries() {
    let (config, threads) = sq_polled(CompletionMode::Interrupt);
    let config = HostConfig {
        sockets: 2,
        remote_socket: Some(RemoteSocket {
            submit: ns(110),
            complete: ns(170),
            crossing: ns(60),
        }),
        ..config
    };
    let completion = |socket| {
        let mut threads = threads.clone();
        threads[0].socket = socket;
        let mut host = HostPath::new(config.clone(), &threads, 1, ram());
        let mut done = Vec::new();
        host.submit(Time::ZERO, Command::new(0, Op::Read, 0, 4096));
        while host.next_event() != Time::NEVER {
            let next = host.next_event();
            host.advance(next, next, &mut done);
            if !done.is_empty() {
                break;
            }
        }
        done[0].anatomy.get(Part::HostCompletion)
    };
    assert_eq!(completion(1), completion(0) + ns(170));
}

#[test]
fn a_bridge_is_crossed_four_times_by_a_read_and_six_times_by_a_write() {
    let bridged = |ps_per_byte| HostConfig {
        bridge: Some(Bridge {
            crossing: ns(150),
            ps_per_byte,
        }),
        ..config()
    };
    let one = |config: &HostConfig, op| {
        let mut host = HostPath::new(config.clone(), &threads(1, Engine::Libaio), 1, ram());
        let mut done = Vec::new();
        host.submit(Time::ZERO, Command::new(0, op, 0, 4096));
        while host.next_event() != Time::NEVER {
            let next = host.next_event();
            host.advance(next, next, &mut done);
        }
        assert_eq!(done[0].anatomy.total(), done[0].at.since(Time::ZERO));
        (done[0].anatomy.total(), done[0].anatomy.get(Part::Link))
    };
    for (op, crossings) in [(Op::Read, 4), (Op::Write, 6), (Op::Flush, 4)] {
        let (without, link) = one(&config(), op);
        let added = ns(150) * crossings;
        assert_eq!(one(&bridged(100), op), (without + added, link + added));
    }
    // Lanes that carry 4 KiB in 40.96 us limit the throughput.
    let mut host = HostPath::new(bridged(10_000), &threads(1, Engine::Libaio), 1, fast());
    let log = Closed::new(8, 1, 1000).run(&mut host);
    let each = log[999].at.ns() / 1000;
    assert!((40_900..41_200).contains(&each), "{each}");
}

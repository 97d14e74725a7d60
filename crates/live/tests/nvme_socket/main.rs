//! The NVMe/TCP target over real sockets: the benchmark client; slow, silent and hostile clients; many clients.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use live::bench_target::{BenchJob, BenchResult, Pattern, Uri, measure};
use live::nvme::admin::opcode as admin_opcode;
use live::nvme::initiator::{ConnectTo, Initiator, property_set};
use live::nvme::io::opcode;
use live::nvme::wire::{Sgl, Sqe, Status};
use live::nvme::{NvmeOptions, NvmeTcp, controller};
use live::{Clock, ConnectionLimits, EventLoop, Outbox, Setup, StopSwitch};
use model::media::Precondition;

/// A server in a thread of its own, which is ended when this is dropped.
struct Server {
    address: SocketAddr,
    stop: StopSwitch,
    thread: Option<JoinHandle<Vec<String>>>,
}

impl Server {
    fn start(speed: f64) -> Server {
        let (tell, hear) = mpsc::channel();
        let thread = thread::spawn(move || {
            let sheet = catalogue::drive("p4800x-375").expect("a drive of the catalogue");
            let drive = Setup {
                name: "test".into(),
                size: Some(64 << 20),
                precondition: Some(Precondition::Fresh),
                ..Setup::new(sheet)
            };
            let (log, logged) = mpsc::channel();
            let mut server = EventLoop::new(
                vec![drive.open().expect("a drive that can be served")],
                Clock::new(speed),
                ConnectionLimits::default(),
                Box::new(move |line| log.send(line.to_owned()).expect("somebody reads the log")),
            )
            .expect("a server");
            let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
            let address = socket.local_addr().expect("an address");
            let front = NvmeTcp::new(NvmeOptions::new("test", 1));
            let controllers = front.share_subsystem();
            server.listen(socket, Box::new(front)).expect("listening");
            tell.send((address, server.stopper()))
                .expect("the test waits");
            server.run().expect("serving");
            drop(server);
            assert_eq!(
                controllers.controllers(),
                0,
                "controllers go with their hosts"
            );
            logged.try_iter().collect()
        });
        let (address, stop) = hear.recv().expect("the server starts");
        Server {
            address,
            stop,
            thread: Some(thread),
        }
    }

    fn measure(&self, change: impl FnOnce(&mut BenchJob)) -> BenchResult {
        let mut job = BenchJob {
            pattern: Pattern::RandRead,
            block: 4096,
            depth: 8,
            time: Duration::from_secs(60),
            ramp: Duration::ZERO,
            commands: 300,
            digests: 0,
        };
        change(&mut job);
        let uri = Uri::NvmeTcp {
            address: self.address.to_string(),
            nqn: None,
        };
        let measured = measure(&uri, &job).expect("a measurement");
        assert_eq!(measured.errors, 0);
        assert!(
            measured.commands >= 300,
            "{} in a minute",
            measured.commands
        );
        measured
    }

    /// Returns its log lines.
    fn end(mut self) -> Vec<String> {
        self.stop.stop();
        let thread = self.thread.take().expect("it runs");
        thread.join().expect("it ends well")
    }
}

/// A host that does nothing by itself.
struct Slow {
    socket: TcpStream,
    initiator: Initiator,
    out: Outbox,
    /// Status of the completed commands.
    statuses: Vec<u16>,
    /// Dword 0 of the last completed command.
    answer: u32,
}

impl Slow {
    fn open(address: SocketAddr) -> Slow {
        let mut out = Outbox::default();
        let initiator = Initiator::new(512, 0, &mut out);
        let socket = TcpStream::connect(address).expect("connected");
        let mut slow = Slow {
            socket,
            initiator,
            out,
            statuses: Vec::new(),
            answer: 0,
        };
        slow.until(|it| it.initiator.is_open());
        slow
    }

    fn send(&mut self) {
        self.socket.write_all(self.out.unsent()).expect("sent");
        let sent = self.out.len();
        self.out.sent(sent);
    }

    fn until(&mut self, enough: impl Fn(&Slow) -> bool) -> u32 {
        self.send();
        let mut bytes = vec![0; 4096];
        let mut completed = 0;
        while !enough(self) {
            let came = self.socket.read(&mut bytes).expect("bytes");
            assert_ne!(came, 0, "the server hung up");
            let input = &bytes[..came];
            let (statuses, answer) = (&mut self.statuses, &mut self.answer);
            self.initiator
                .input(input, &mut self.out, |one| {
                    statuses.push(one.cqe.status.get() >> 1);
                    *answer = one.cqe.dw0.get();
                    completed += 1;
                })
                .expect("the controller keeps to the protocol");
            if completed > 0 {
                break;
            }
        }
        completed
    }

    fn call(&mut self, sqe: &Sqe, data: &[u8]) {
        self.initiator.send(sqe, data, &mut self.out);
        while self.until(|_| false) == 0 {}
    }

    fn well(&mut self, sqe: &Sqe, data: &[u8]) {
        self.call(sqe, data);
        assert_eq!(self.statuses.last(), Some(&0), "{sqe:?}");
    }

    /// Returns admin and I/O connection of a controller, whatever its identifier is: a host that reconnects gets its
    /// previous identifier if the server has already detected the disconnection, otherwise another one.
    fn both(address: SocketAddr) -> (Slow, Slow) {
        let connect = |queue, controller| ConnectTo {
            subnqn: "nqn.2026-11.org.drivelab:test",
            hostnqn: "nqn.2014-08.org.nvmexpress:uuid:slow",
            host_id: [3; 16],
            queue,
            controller,
            entries: 512,
            keep_alive_ms: 0,
        };
        let mut admin = Slow::open(address);
        let (sqe, data) = connect(0, 0xffff).command(0);
        admin.well(&sqe, &data);
        let id = admin.answer as u16;
        admin.well(&property_set(0, controller::property::CC, 0x0046_0001), &[]);
        let mut io = Slow::open(address);
        let (sqe, data) = connect(1, id).command(0);
        io.well(&sqe, &data);
        (admin, io)
    }
}

#[test]
fn the_client_measures_every_pattern() {
    let server = Server::start(0.0);
    for (name, pattern) in Pattern::ALL {
        let measured = server.measure(|job| job.pattern = pattern);
        assert!(measured.latencies.count() > 0, "{name}");
    }
    server.measure(|job| (job.depth, job.digests) = (32, 3));
    // By R2T.
    server.measure(|job| (job.pattern, job.block, job.digests) = (Pattern::RandWrite, 131_072, 2));
    server.measure(|job| job.block = 512);
    assert_eq!(server.end(), Vec::<String>::new());
}

#[test]
fn commands_are_never_early() {
    let server = Server::start(1.0);
    let measured = server.measure(|job| job.depth = 1);
    let quickest = measured.latencies.min().expect("there were some");
    // A 4 KiB read of the P4800X takes the drive more than 5 us (S1-007: 108.3k IOPS with the host's part).
    assert!(quickest.ns() > 5_000, "{quickest:?}");
    server.end();
}

#[test]
fn a_client_that_takes_no_answers_holds_up_nobody() {
    let server = Server::start(0.0);
    let (_admin, mut slow) = Slow::both(server.address);
    for cid in 0..500 {
        let mut read = Sqe::fabric(opcode::READ, cid, 1, Sgl::transport(131_072));
        read.cdw12 = 255.into();
        slow.initiator.send(&read, &[], &mut slow.out);
    }
    slow.send();
    server.measure(|job| job.depth = 4);
    // And one that begins a write and disconnects.
    let mut write = Sqe::fabric(opcode::WRITE, 1, 1, Sgl::transport(131_072));
    write.cdw12 = 255.into();
    let mut out = Outbox::default();
    slow.initiator.send(&write, &[], &mut out);
    drop(slow);
    server.measure(|job| job.depth = 4);
    server.end();
}

#[test]
fn who_breaks_the_rules_is_cut_off_and_it_is_logged() {
    let server = Server::start(0.0);
    let mut socket = TcpStream::connect(server.address).expect("connected");
    socket
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        .expect("sent");
    let mut said = Vec::new();
    // A reset instead of an orderly end, if not everything was read.
    let _ = socket.read_to_end(&mut said);
    assert_eq!(said.first(), Some(&3), "a termination request");
    server.measure(|_| {});
    let log = server.end();
    assert!(
        log.iter()
            .any(|line| line.contains("a PDU type that is not valid")),
        "{log:?}"
    );
}

#[test]
fn hosts_come_and_go() {
    let server = Server::start(0.0);
    for round in 0..300 {
        let slow = Slow::open(server.address);
        if round % 3 == 0 {
            let mut slow = slow;
            let (sqe, data) = ConnectTo {
                subnqn: "nqn.2026-11.org.drivelab:test",
                hostnqn: "nqn.2014-08.org.nvmexpress:uuid:many",
                host_id: [4; 16],
                queue: 0,
                controller: 0xffff,
                entries: 32,
                keep_alive_ms: 1000,
            }
            .command(0);
            slow.call(&sqe, &data);
        }
    }
    server.measure(|_| {});
    assert_eq!(server.end(), Vec::<String>::new());
}

#[test]
fn a_format_ends_although_its_host_has_gone() {
    // A format takes some minutes of virtual time.
    let server = Server::start(100.0);
    let (mut admin, io) = Slow::both(server.address);
    admin.initiator.send(
        &Sqe::fabric(admin_opcode::FORMAT, 7, 1, Sgl::default()),
        &[],
        &mut admin.out,
    );
    // It has begun when another command was answered.
    admin.call(
        &Sqe::fabric(admin_opcode::IDENTIFY, 8, 1, Sgl::transport(4096)),
        &[],
    );
    drop((admin, io));
    let (mut admin, mut io) = Slow::both(server.address);
    let mut read = Sqe::fabric(opcode::READ, 9, 1, Sgl::transport(512));
    read.cdw12 = 0.into();
    let mut refused = 0;
    let start = std::time::Instant::now();
    loop {
        io.call(&read, &[]);
        match io.statuses.pop() {
            Some(0) => break,
            status => assert_eq!(status, Some(Status::FORMAT_IN_PROGRESS.field())),
        }
        refused += 1;
        assert!(start.elapsed() < Duration::from_secs(60), "it never ends");
        thread::sleep(Duration::from_millis(20));
    }
    assert!(refused > 0, "it was over before it could be seen");
    // And another can be requested.
    admin.call(
        &Sqe::fabric(admin_opcode::FORMAT, 8, 1, Sgl::default()),
        &[],
    );
    assert_eq!(admin.statuses.pop(), Some(0));
    server.end();
}

#[test]
fn an_admin_command_cuts_the_power() {
    let server = Server::start(0.0);
    let (mut admin, mut io) = Slow::both(server.address);
    let cut = Sqe::fabric(admin_opcode::POWER_CUT, 7, 1, Sgl::default());
    admin.initiator.send(&cut, &[], &mut admin.out);
    admin.send();
    // All connections end, as at a power cut of a drive.
    for slow in [&mut admin, &mut io] {
        let mut rest = Vec::new();
        // Or a reset.
        let _ = slow.socket.read_to_end(&mut rest);
    }
    // The drive is available again.
    server.measure(|_| {});
    let log = server.end();
    assert!(
        log.iter().any(|line| line.starts_with("test: power cut: ")),
        "{log:?}"
    );
}

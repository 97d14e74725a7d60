//! fio's I/O engines: the host path of each, and the reason why the others have no model.

use model::host::Engine;

/// An I/O engine that has a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FioEngine {
    /// fio's name.
    pub name: &'static str,
    /// The host path.
    pub engine: Engine,
    /// Whether the engine keeps one I/O outstanding, for any `iodepth`.
    pub synchronous: bool,
    /// Whether the I/O is unbuffered, for any value of `direct`.
    pub unbuffered: bool,
    /// Whether the I/O goes through the page cache, for any value of `direct`.
    pub mapped: bool,
    /// Remark for every job with this engine: the engine whose host path represents it.
    pub stands_in: Option<&'static str>,
}

const fn engine(name: &'static str, engine: Engine, synchronous: bool) -> FioEngine {
    FioEngine {
        name,
        engine,
        synchronous,
        unbuffered: false,
        mapped: false,
        stands_in: None,
    }
}

impl FioEngine {
    const fn unbuffered(mut self) -> FioEngine {
        self.unbuffered = true;
        self
    }

    const fn mapped(mut self) -> FioEngine {
        self.mapped = true;
        self
    }

    const fn as_if(mut self, note: &'static str) -> FioEngine {
        self.stands_in = Some(note);
        self
    }
}

/// Engines with a model.
pub(super) const ENGINES: &[FioEngine] = &[
    engine("sync", Engine::Sync, true),
    engine("psync", Engine::Sync, true),
    engine("vsync", Engine::Sync, true),
    engine("pvsync", Engine::Sync, true),
    engine("pvsync2", Engine::Pvsync2, true),
    engine("sg", Engine::Sync, true).unbuffered(),
    engine("libzbc", Engine::Sync, true).unbuffered().as_if(
        "ioengine=libzbc is taken as psync: its SCSI commands for zones have no model",
    ),
    engine("mmap", Engine::Sync, true).mapped().as_if(
        "ioengine=mmap is taken as psync through the page cache: each I/O costs a system call and a copy instead of page faults",
    ),
    engine("libaio", Engine::Libaio, false),
    engine("posixaio", Engine::PosixAio, false),
    engine("io_uring", Engine::IoUring, false),
    engine("io_uring_cmd", Engine::IoUringCmd, false).unbuffered(),
    engine("spdk", Engine::UserSpace, false).unbuffered(),
    engine("spdk_nvme", Engine::UserSpace, false).unbuffered(),
    // Its block layer adds about a microsecond, which is not modelled.
    engine("spdk_bdev", Engine::UserSpace, false).unbuffered(),
    // fio's manual calls this engine synchronous, but it keeps `iodepth` requests outstanding at the server.
    engine("nbd", Engine::Libaio, false).unbuffered().as_if(
        "ioengine=nbd is taken as libaio on a drive of the host's own: network and server have no model",
    ),
    engine("xnvme", Engine::IoUring, false)
        .unbuffered()
        .as_if("ioengine=xnvme is taken as io_uring, whatever its options name"),
    engine("libblkio", Engine::IoUring, false)
        .unbuffered()
        .as_if("ioengine=libblkio is simulated as io_uring, for any driver in its options"),
    engine("windowsaio", Engine::Libaio, false)
        .as_if("ioengine=windowsaio is simulated as libaio: the I/O path of Windows is not modelled"),
    engine("solarisaio", Engine::Libaio, false)
        .as_if("ioengine=solarisaio is taken as libaio: Solaris' own I/O path has no model"),
];

/// Engines of fio that have no model, grouped by the reason.
const WITHOUT_MODEL: &[(&str, &[&str])] = &[
    (
        "reads and writes memory, so the kernel decides what reaches a drive and when",
        &["pmemblk", "dev-dax", "libpmem", "page_fault"],
    ),
    (
        "does no I/O on a drive, so there is nothing to simulate",
        &[
            "null",
            "cpp_null",
            "cpuio",
            "exec",
            "net",
            "netsplice",
            "rdma",
            "librpma_apm_client",
            "librpma_apm_server",
            "librpma_gpspm_client",
            "librpma_gpspm_server",
        ],
    ),
    (
        "exercises a file system, not a drive",
        &[
            "falloc",
            "ftruncate",
            "filecreate",
            "filestat",
            "filedelete",
            "dircreate",
            "dirstat",
            "dirdelete",
            "e4defrag",
        ],
    ),
    (
        "talks to a storage service, which has no model",
        &[
            "rbd",
            "rados",
            "http",
            "gfapi",
            "gfapi_async",
            "libhdfs",
            "nfs",
            "dfs",
            "ime_psync",
            "ime_psyncv",
            "ime_aio",
            "libiscsi",
        ],
    ),
    ("is for drives of a kind that has no model", &["mtd"]),
    (
        "takes a path to the drive that has no model",
        &["splice", "libcufile", "libhipfile"],
    ),
];

/// Returns why the engine of this name has no model, if fio has the engine.
pub(super) fn without_model(name: &str) -> Option<&'static str> {
    let known = WITHOUT_MODEL
        .iter()
        .find(|(_, engines)| engines.contains(&name));
    match known {
        Some((why, _)) => Some(why),
        None if name.starts_with("external:") => {
            Some("is not known: only SPDK's external engine is")
        }
        None => None,
    }
}

/// Returns the engine of this name. `external:PATH` is known if the path is SPDK's.
pub(super) fn find(name: &str) -> Option<&'static FioEngine> {
    let name = match name.strip_prefix("external:") {
        Some(path) if path.ends_with("spdk_bdev") => "spdk_bdev",
        Some(path) if path.contains("spdk") => "spdk",
        Some(_) => return None,
        None => name,
    };
    ENGINES.iter().find(|engine| engine.name == name)
}

#[cfg(test)]
mod tests {
    use model::host::Engine;

    use crate::fio::{JobSet, Surroundings, read_text};
    use text::problem::Problems;

    fn read(text: &str) -> Result<JobSet, Problems> {
        let here = Surroundings {
            environment: &|_| None,
            read: &|_| Err(std::io::Error::other("no files here")),
            processors: 4,
        };
        read_text("a.fio", text, &here)
    }

    fn jobs(text: &str) -> JobSet {
        read(text).unwrap_or_else(|wrong| panic!("{wrong}"))
    }

    /// fio's NBD client and others have no host path of their own. The nearest engine represents them, with a remark.
    #[test]
    fn engines_that_stand_for_others_say_so() {
        let set = jobs("[a]\nioengine=nbd\nuri=nbd+unix:///?socket=p\niodepth=16\nsize=1m\n");
        assert_eq!(
            (set.jobs[0].engine, set.jobs[0].iodepth),
            (Engine::Libaio, 16)
        );
        insta::assert_snapshot!(set.warnings.join("\n"), @r"
        ignored (no effect on a simulated drive): uri
        ioengine=nbd is taken as libaio on a drive of the host's own: network and server have no model
        ");
        for (options, wanted) in [
            ("ioengine=xnvme\nxnvme_async=io_uring", Engine::IoUring),
            (
                "ioengine=libblkio\nlibblkio_driver=nvme-io_uring\nhipri",
                Engine::IoUring,
            ),
            ("ioengine=windowsaio\ndirect=1", Engine::Libaio),
        ] {
            let set = jobs(&format!("[a]\nsize=1m\n{options}\n"));
            assert_eq!(set.jobs[0].engine, wanted, "{options}");
            assert_eq!(set.warnings.len(), 1, "{:?}", set.warnings);
        }
        let bdev = jobs(
            "[a]\nioengine=spdk_bdev\nspdk_json_conf=./bdev.json\nthread=1\nfilename=Nvme0n1\nsize=20t\niodepth=128\n",
        );
        let job = &bdev.jobs[0];
        assert_eq!((job.engine, job.iodepth), (Engine::UserSpace, 128));
        assert!(job.on_device && job.filesystem.is_none());
        let spdk = jobs("[a]\nioengine=spdk\nsize=1m\n");
        assert!(spdk.warnings.is_empty(), "{:?}", spdk.warnings);
    }

    /// The reason for refusing an engine depends on what it does.
    #[test]
    fn engines_without_a_model_are_refused_with_the_reason() {
        for (engine, why) in [
            ("libpmem", "reads and writes memory"),
            (
                "null",
                "does no I/O on a drive, so there is nothing to simulate",
            ),
            ("http", "talks to a storage service"),
            ("libiscsi", "talks to a storage service"),
            ("filestat", "exercises a file system"),
            ("external:/tmp/mine.o", "only SPDK's external engine"),
        ] {
            let text = format!("[a]\nsize=1m\nioengine={engine}\n");
            let wrong = read(&text).expect_err(engine);
            assert!(wrong.0[0].what.contains(why), "{wrong}");
            let help = wrong.0[0].help.as_deref().unwrap_or_default();
            assert!(help.contains("libaio"), "{wrong}");
        }
    }
}

//! fio's I/O engines, and the host path each one takes.

use model::host::Engine;

/// An I/O engine that has a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FioEngine {
    /// fio's name.
    pub name: &'static str,
    /// The host path.
    pub engine: Engine,
    /// One I/O at a time, whatever `iodepth` says.
    pub synchronous: bool,
}

const fn engine(name: &'static str, engine: Engine, synchronous: bool) -> FioEngine {
    FioEngine {
        name,
        engine,
        synchronous,
    }
}

/// Engines with a model.
pub(super) const ENGINES: &[FioEngine] = &[
    engine("sync", Engine::Sync, true),
    engine("psync", Engine::Sync, true),
    engine("vsync", Engine::Sync, true),
    engine("pvsync", Engine::Sync, true),
    engine("pvsync2", Engine::Pvsync2, true),
    engine("sg", Engine::Sync, true),
    engine("libaio", Engine::Libaio, false),
    engine("posixaio", Engine::PosixAio, false),
    engine("io_uring", Engine::IoUring, false),
    engine("io_uring_cmd", Engine::IoUring, false),
    engine("spdk", Engine::UserSpace, false),
    engine("spdk_nvme", Engine::UserSpace, false),
    // Other systems' own asynchronous I/O: nearest to Linux's.
    engine("windowsaio", Engine::Libaio, false),
    engine("solarisaio", Engine::Libaio, false),
];

/// Engines of fio that do not end at a drive, or whose way there has no model.
pub(super) const WITHOUT_MODEL: &[&str] = &[
    "mmap",
    "null",
    "net",
    "netsplice",
    "splice",
    "cpuio",
    "rdma",
    "rbd",
    "rados",
    "http",
    "gfapi",
    "gfapi_async",
    "libhdfs",
    "pmemblk",
    "dev-dax",
    "libpmem",
    "mtd",
    "e4defrag",
    "falloc",
    "ftruncate",
    "filecreate",
    "filestat",
    "filedelete",
    "exec",
    "nbd",
    "nfs",
    "dfs",
    "ime_psync",
    "ime_psyncv",
    "ime_aio",
    "xnvme",
    "libblkio",
    "librpma_apm",
    "librpma_gpspm",
    "libzbc",
    "libcufile",
];

/// The engine of this name. `external:PATH` is known if the path is SPDK's.
pub(super) fn find(name: &str) -> Option<&'static FioEngine> {
    let name = match name.strip_prefix("external:") {
        Some(path) if path.contains("spdk") => "spdk",
        Some(_) => return None,
        None => name,
    };
    ENGINES.iter().find(|engine| engine.name == name)
}

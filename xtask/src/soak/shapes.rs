//! The tested pools. Buffers, regions and transaction groups are small, so that a few thousand writes reach all
//! states of a tier: rings wrap, caches destage to their backing drives, transaction groups of the intent log end.

/// A pool.
#[derive(Debug)]
pub(super) struct PoolShape {
    /// Name on the command line.
    pub(super) name: &'static str,
    /// Expression that is served.
    pub(super) pool: &'static str,
    /// Members of the pool, by name.
    pub(super) members: &'static [Member],
}

/// A drive of a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) name: &'static str,
    /// Whether the pool continues without it, without any effect on clients.
    pub(super) spare: bool,
    /// Whether the pool may refuse to open without it after a kill: an array with parity.
    pub(super) refuses: bool,
}

const fn spare(name: &'static str) -> Member {
    Member {
        name,
        spare: true,
        refuses: false,
    }
}

const fn needed(name: &'static str) -> Member {
    Member {
        spare: false,
        ..spare(name)
    }
}

const fn of_array(name: &'static str) -> Member {
    Member {
        refuses: true,
        ..spare(name)
    }
}

/// All shapes. 950 PRO and 960 PRO have a volatile cache, the P3700 one with power-loss protection, XPoint none.
pub(super) const SHAPES: &[PoolShape] = &[
    // Findings on this pool are not a fault of a tier. Faults are planted here, too.
    PoolShape {
        name: "one-drive",
        pool: "concat(950pro-256)",
        members: &[needed("950pro-256")],
    },
    PoolShape {
        name: "mirror",
        pool: "mirror(2*950pro-256; region=1MiB)",
        members: &[spare("950pro-256.0"), spare("950pro-256.1")],
    },
    PoolShape {
        name: "stripe-of-mirrors",
        pool: "stripe(2*mirror(2*p4801x-100; region=1MiB); chunk=64KiB)",
        members: &[
            spare("p4801x-100.0"),
            spare("p4801x-100.1"),
            spare("p4801x-100.2"),
            spare("p4801x-100.3"),
        ],
    },
    PoolShape {
        name: "raidz",
        pool: "intent-log(main=raidz(3*950pro-256; parity=1); ram=256MiB)",
        members: &[
            spare("950pro-256.0"),
            spare("950pro-256.1"),
            spare("950pro-256.2"),
        ],
    },
    PoolShape {
        name: "raid5",
        pool: "raid5(3*950pro-256; chunk=64KiB, region=1MiB)",
        members: &[
            of_array("950pro-256.0"),
            of_array("950pro-256.1"),
            of_array("950pro-256.2"),
        ],
    },
    PoolShape {
        name: "raid6",
        pool: "raid6(5*p4801x-100; chunk=16KiB, region=1MiB)",
        members: &[
            of_array("p4801x-100.0"),
            of_array("p4801x-100.1"),
            of_array("p4801x-100.2"),
            of_array("p4801x-100.3"),
            of_array("p4801x-100.4"),
        ],
    },
    PoolShape {
        name: "log-raid5",
        pool: "intent-log(main=raid5(3*950pro-256; chunk=64KiB, region=1MiB), log=p4801x-100; ram=256MiB)",
        members: &[
            of_array("950pro-256.0"),
            of_array("950pro-256.1"),
            of_array("950pro-256.2"),
            spare("p4801x-100"),
        ],
    },
    PoolShape {
        name: "cache-xpoint",
        pool: "write-back-cache(cache=optane-memory-16, capacity=950pro-256; buffer_limit=24MiB, segment=512KiB)",
        members: &[needed("optane-memory-16"), needed("950pro-256")],
    },
    PoolShape {
        name: "cache-volatile",
        pool: "write-back-cache(cache=950pro-256, capacity=960pro-512; durability=flush, buffer_limit=24MiB, segment=512KiB)",
        members: &[needed("950pro-256"), needed("960pro-512")],
    },
    PoolShape {
        name: "cache-plp",
        pool: "write-back-cache(cache=p3700-800, capacity=2*950pro-256; buffer_limit=24MiB, segment=512KiB)",
        members: &[
            needed("p3700-800"),
            needed("950pro-256.0"),
            needed("950pro-256.1"),
        ],
    },
    PoolShape {
        name: "cache-mirror",
        pool: "write-back-cache(cache=mirror(2*p4801x-100; region=1MiB), capacity=mirror(2*950pro-256; region=1MiB); buffer_limit=24MiB, segment=512KiB)",
        members: &[
            spare("p4801x-100.0"),
            spare("p4801x-100.1"),
            spare("950pro-256.0"),
            spare("950pro-256.1"),
        ],
    },
    PoolShape {
        name: "log-drive",
        pool: "intent-log(main=950pro-256, log=p4801x-100; ram=256MiB)",
        members: &[needed("950pro-256"), spare("p4801x-100")],
    },
    PoolShape {
        name: "log-mirror",
        pool: "intent-log(main=mirror(2*950pro-256; region=1MiB), log=p4801x-100; ram=256MiB)",
        members: &[
            spare("950pro-256.0"),
            spare("950pro-256.1"),
            spare("p4801x-100"),
        ],
    },
    PoolShape {
        name: "log-raidz",
        pool: "intent-log(main=raidz(3*950pro-256; parity=1), log=p4801x-100; ram=256MiB)",
        members: &[
            spare("950pro-256.0"),
            spare("950pro-256.1"),
            spare("950pro-256.2"),
            spare("p4801x-100"),
        ],
    },
    PoolShape {
        name: "log-cache",
        pool: "intent-log(main=write-back-cache(cache=optane-memory-16, capacity=950pro-256; buffer_limit=24MiB, segment=512KiB), log=p4801x-100; ram=256MiB)",
        members: &[
            needed("optane-memory-16"),
            needed("950pro-256"),
            spare("p4801x-100"),
        ],
    },
    PoolShape {
        name: "read-cache",
        pool: "read-cache(cache=p4801x-100, main=950pro-256; line=16KiB)",
        members: &[spare("p4801x-100"), needed("950pro-256")],
    },
    PoolShape {
        name: "mirror-of-caches",
        pool: "mirror(2*write-back-cache(cache=optane-memory-16, capacity=950pro-256; buffer_limit=24MiB, segment=512KiB); region=1MiB)",
        members: &[
            spare("optane-memory-16.0"),
            spare("optane-memory-16.1"),
            spare("950pro-256.0"),
            spare("950pro-256.1"),
        ],
    },
    PoolShape {
        name: "five-levels",
        pool: "mirror(2*write-back-cache(cache=mirror(2*p4801x-100; region=1MiB), capacity=stripe(2*concat(2*950pro-256)); buffer_limit=24MiB, segment=512KiB); region=1MiB)",
        members: &[
            spare("p4801x-100.0"),
            spare("p4801x-100.1"),
            spare("p4801x-100.2"),
            spare("p4801x-100.3"),
            spare("950pro-256.0"),
            spare("950pro-256.3"),
            spare("950pro-256.5"),
            spare("950pro-256.7"),
        ],
    },
];

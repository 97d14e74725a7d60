//! Clients in a guest: user-mode Linux on the host's root, with the pool as its disk over vhost-user.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::clients::ClientTask;
use super::server::mortal;
use crate::shell::{output, program, run, target};

const SCRIPT: &str = include_str!("guest.sh");
const SQLITE: &str = include_str!("sqlite.py");

/// Program in the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    Sqlite,
    Postgresql,
}

/// File system in the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileSystem {
    Ext4,
    Xfs,
}

/// Parts of a guest.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// Path of the kernel.
    pub(super) kernel: PathBuf,
    /// Folder of PostgreSQL's programs; empty if not needed.
    postgresql: PathBuf,
    /// An initialised PostgreSQL cluster.
    cluster: PathBuf,
    /// User and group that run PostgreSQL.
    user: String,
}

/// Returns the command that boots a guest for this task.
pub(super) fn command(
    what: Program,
    file_system: FileSystem,
    task: &ClientTask<'_>,
    tools: &Tools,
) -> Result<Command, String> {
    let last = task
        .last
        .map_or_else(|| String::from("new"), |last| last.to_string());
    let sqlite = task.folder.path("sqlite.py");
    crate::guest::write(&sqlite, SQLITE)?;
    let init = task.folder.path("init");
    let text = format!(
        "#!/bin/sh\nSOAK_FS={} SOAK_CLIENT={} SOAK_LEAST={last} SOAK_WORK={}\nSOAK_CLUSTER='{}'\nSOAK_BIN='{}'\n\
         SOAK_USER='{}'\nSOAK_PY='{}'\n{SCRIPT}",
        match file_system {
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
        },
        match what {
            Program::Sqlite => "sqlite",
            Program::Postgresql => "postgresql",
        },
        if task.works { "work" } else { "check" },
        tools.cluster.display(),
        tools.postgresql.display(),
        tools.user,
        sqlite.display(),
    );
    crate::guest::write(&init, text)?;
    fs::set_permissions(&init, fs::Permissions::from_mode(0o755))
        .map_err(|error| error.to_string())?;
    // When a PID namespace ends, the kernel's helper processes end with it.
    let mut command = mortal("unshare");
    command
        .args(["--pid", "--fork", "--kill-child=KILL", "--"])
        .arg(&tools.kernel)
        .args([
            "mem=384M",
            "root=/dev/root",
            "rootfstype=hostfs",
            "rootflags=/",
            "ro",
        ])
        .arg(format!("init={}", init.display()))
        .args([
            "con=null",
            "ssl=null",
            "con0=null,fd:1",
            "loglevel=1",
            "panic=-1",
        ])
        // 2: a block device.
        .arg(format!("virtio_uml.device={}:2", task.folder.text("disk")));
    Ok(command)
}

/// Finds or builds the parts of guests; the error states what is missing.
pub(super) fn tools(with_postgresql: bool) -> Result<Tools, String> {
    let kernel = crate::guest::folder().join("linux");
    if !kernel.is_file() {
        return Err(String::from("no guest: run `cargo xtask guest`"));
    }
    let mut tools = Tools {
        kernel,
        ..Tools::default()
    };
    if with_postgresql {
        tools.postgresql = postgresql().ok_or("PostgreSQL is not installed")?;
        let id = output(program("id").arg("-u"))?;
        let who = if id.trim() == "0" {
            "postgres"
        } else {
            id.trim()
        };
        let one =
            |letter: &str| output(program("id").args([letter, who])).map(|it| it.trim().to_owned());
        tools.user = format!("{}:{}", one("-u")?, one("-g")?);
        tools.cluster = target().join("soak/cluster");
        cluster(&tools)?;
    }
    Ok(tools)
}

/// Returns the folder of Debian's newest PostgreSQL programs.
pub(super) fn postgresql() -> Option<PathBuf> {
    let versions = crate::guest::files(Path::new("/usr/lib/postgresql")).ok()?;
    versions
        .into_iter()
        .map(|it| it.join("bin"))
        .rfind(|it| it.join("postgres").is_file())
}

/// Creates the cluster with which guests begin: pgbench's tables, one of acknowledgements, amcheck; checksums are
/// enabled.
fn cluster(tools: &Tools) -> Result<(), String> {
    let done = tools.cluster.with_extension("made");
    let from = format!("{} {}", tools.postgresql.display(), tools.user);
    if crate::guest::is_made(&done, &from) {
        return Ok(());
    }
    crate::guest::remove(&tools.cluster)?;
    let place = std::env::temp_dir().join(format!("drivelab-soak-cluster-{}", std::process::id()));
    crate::guest::remove(&place)?;
    crate::guest::create(&place)?;
    let (user, group) = tools.user.split_once(':').unwrap_or_default();
    run(program("chown").arg(&tools.user).arg(&place))?;
    let as_user = |name: &str| {
        let mut command = program("setpriv");
        command.args([
            &format!("--reuid={user}"),
            &format!("--regid={group}"),
            "--clear-groups",
        ]);
        command.arg(tools.postgresql.join(name)).current_dir(&place);
        command
    };
    let data = place.join("cluster");
    run(as_user("initdb")
        .args([
            "--username=soak",
            "--auth=trust",
            "--no-locale",
            "--encoding=UTF8",
            "--data-checksums",
            "--wal-segsize=1",
        ])
        .args(["--no-sync", "--no-instructions", "-D"])
        .arg(&data)
        .stdout(std::process::Stdio::null()))?;
    let settings = "listen_addresses = ''\nunix_socket_directories = '/run/pg'\nshared_buffers = 16MB\nmax_connections = 10\n\
                    min_wal_size = 2MB\nmax_wal_size = 8MB\ncheckpoint_timeout = 30s\nautovacuum = off\n\
                    dynamic_shared_memory_type = mmap\n";
    let file = data.join("postgresql.auto.conf");
    let before = fs::read_to_string(&file).unwrap_or_default();
    crate::guest::write(&file, before + settings)?;
    let options = format!("-k {}", place.display());
    run(as_user("pg_ctl")
        .arg("-D")
        .arg(&data)
        .args(["-w", "-s", "-o", &options, "-l"])
        .arg(place.join("log"))
        .arg("start"))?;
    let sql = "create extension amcheck; create table acks (id bigint primary key, pad text)";
    let host = place.display().to_string();
    let filled =
        run(as_user("psql").args(["-h", &host, "-U", "soak", "-q", "-c", sql, "postgres"]))
            .and_then(|()| {
                run(as_user("pgbench")
                    .args(["-h", &host, "-U", "soak", "-i", "-q", "-s", "1", "postgres"]))
            });
    run(as_user("pg_ctl")
        .arg("-D")
        .arg(&data)
        .args(["-w", "-s", "-m", "fast", "stop"]))?;
    filled?;
    crate::guest::create(&target().join("soak"))?;
    run(program("cp").arg("-a").arg(&data).arg(&tools.cluster))?;
    crate::guest::remove(&place)?;
    crate::guest::write(&done, "")?;
    crate::guest::made(&done, &from)
}

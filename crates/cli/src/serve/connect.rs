//! How to reach what is served: lines to be copied.

use std::path::{Path, PathBuf};

use live::Served;

use super::address::Address;

/// How to connect over NVMe/TCP: lines to be copied.
pub(super) fn nvme_lines(address: &Address, nqn: &str) -> Vec<String> {
    match address {
        Address::Tcp(address) => {
            let (host, port) = (address.ip(), address.port());
            vec![
                format!("  nvme discover -t tcp -a {host} -s {port}"),
                format!("  nvme connect -t tcp -a {host} -s {port} -n {nqn}"),
                format!("  drivelab bench-target nvme-tcp://{address}"),
            ]
        }
        // For programs that bring their own socket.
        Address::Unix(path) => vec![format!("  {nqn} at unix:{}", path.display())],
        Address::Passed(_) => Vec::new(),
    }
}

/// Where the figures are, for a browser or Prometheus.
pub(super) fn metrics_line(address: &Address) -> Option<String> {
    match address {
        Address::Tcp(address) => Some(format!("  figures: http://{address}/metrics")),
        Address::Unix(_) | Address::Passed(_) => None,
    }
}

/// How to reach what is served: lines to be copied.
pub(super) fn connect_lines(
    drives: &[Served],
    nbd: &[Address],
    tls: Option<&Path>,
    vhost_user: &[PathBuf],
) -> Vec<String> {
    let mut lines = Vec::new();
    for (index, drive) in drives.iter().enumerate() {
        let sheet = drive.sheet();
        lines.push(format!(
            "{}: {}, {:.3} GB",
            drive.name(),
            sheet.name,
            drive.bytes() as f64 * 1e-9
        ));
        for address in nbd {
            lines.extend(nbd_lines(drive.name(), address, tls));
        }
        if let Some(path) = vhost_user.get(index) {
            lines.push(format!(
                "  qemu-system-x86_64 ... -object memory-backend-memfd,id=mem,size=4G,share=on -numa node,memdev=mem \
                 -chardev socket,id=disk{index},path={},reconnect=1 -device vhost-user-blk-pci,chardev=disk{index}",
                path.canonicalize().unwrap_or(path.clone()).display()
            ));
        }
    }
    lines
}

/// How to reach an export over NBD.
fn nbd_lines(name: &str, address: &Address, tls: Option<&Path>) -> Vec<String> {
    let whole = |path: &Path| {
        path.canonicalize()
            .unwrap_or(path.into())
            .display()
            .to_string()
    };
    let scheme = if tls.is_some() { "nbds" } else { "nbd" };
    let (uri, server) = match address {
        Address::Tcp(it) => (
            format!("{scheme}://{it}/{name}"),
            format!(
                "server.type=inet,server.host={},server.port={}",
                it.ip(),
                it.port()
            ),
        ),
        Address::Unix(socket) => {
            let socket = whole(socket);
            (
                format!("{scheme}+unix:///{name}?socket={socket}"),
                format!("server.type=unix,server.path={socket}"),
            )
        }
        // Whoever passed it on knows where it is.
        Address::Passed(_) => return Vec::new(),
    };
    let Some(folder) = tls else {
        return vec![
            format!("  nbdinfo '{uri}'"),
            format!(
                "  fio --name=job --ioengine=nbd --uri='{uri}' --rw=randread --bs=4k --iodepth=1 --time_based --runtime=10"
            ),
            format!("  qemu-system-x86_64 ... -drive if=virtio,format=raw,file='{uri}'"),
        ];
    };
    // fio cannot be told where the certificates are.
    let folder = whole(folder);
    let joint = if uri.contains('?') { '&' } else { '?' };
    vec![
        format!("  nbdinfo '{uri}{joint}tls-certificates={folder}'"),
        format!(
            "  qemu-system-x86_64 ... -object tls-creds-x509,id=tls0,endpoint=client,dir={folder} \
             -drive if=virtio,format=raw,file.driver=nbd,file.{},file.export={name},file.tls-creds=tls0",
            server.replace(",", ",file.")
        ),
    ]
}

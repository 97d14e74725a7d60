//! How to reach what is served: lines to be copied.

use std::path::PathBuf;

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
    }
}

/// How to reach what is served: lines to be copied.
pub(super) fn connect_lines(
    drives: &[Served],
    nbd: &[Address],
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
            let uri = match address {
                Address::Tcp(address) => format!("nbd://{address}/{}", drive.name()),
                Address::Unix(path) => {
                    let path = path.canonicalize().unwrap_or(path.clone());
                    format!("nbd+unix:///{}?socket={}", drive.name(), path.display())
                }
            };
            lines.push(format!("  nbdinfo '{uri}'"));
            lines.push(format!(
                "  fio --name=job --ioengine=nbd --uri='{uri}' --rw=randread --bs=4k --iodepth=1 --time_based --runtime=10"
            ));
            lines.push(format!(
                "  qemu-system-x86_64 ... -drive if=virtio,format=raw,file='{uri}'"
            ));
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

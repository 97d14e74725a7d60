//! Certificates for TLS, created for each test.

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// Creates an authority, a server (for `localhost` and 127.0.0.1) and a client in this folder, under the names that
/// libnbd, nbdkit and qemu look for.
pub(crate) fn make(folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let write = |name: &str, text: String| fs::write(folder.join(name), text).expect("room");
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(authority, key).expect("an authority");
    write("ca-cert.pem", authority.pem());
    for name in ["server", "client"] {
        let names = vec!["localhost".into(), "127.0.0.1".into()];
        let params = CertificateParams::new(names).expect("names");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &authority).expect("a certificate");
        write(&format!("{name}-cert.pem"), certificate.pem());
        write(&format!("{name}-key.pem"), key.serialize_pem());
    }
}

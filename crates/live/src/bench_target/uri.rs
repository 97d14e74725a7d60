//! URIs of targets.

use std::str::FromStr;

/// URI of a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Uri {
    /// `nvme-tcp://HOST:PORT[/NQN]`; without a name, the first subsystem in the discovery log.
    NvmeTcp {
        /// Host and port.
        address: String,
        /// Name of the subsystem.
        nqn: Option<String>,
    },
    /// `nbd://HOST[:PORT][/EXPORT]`.
    NbdTcp {
        /// Host and port.
        address: String,
        /// Name of the export.
        export: String,
    },
    /// `nbd+unix:///[EXPORT]?socket=PATH`.
    NbdUnix {
        /// Path of the socket.
        path: String,
        /// Name of the export.
        export: String,
    },
}

/// Returns host and port, with this port if none is given.
fn with_port(authority: &str, port: u16) -> Result<String, String> {
    if authority.is_empty() {
        return Err("there is no host".into());
    }
    let after_bracket = authority.rsplit(']').next().unwrap_or_default();
    Ok(if after_bracket.contains(':') {
        authority.to_owned()
    } else {
        format!("{authority}:{port}")
    })
}

/// Decodes the `%XX` sequences of a URI; invalid ones are kept.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|it| str::from_utf8(it).ok());
        let byte = digits.and_then(|it| u8::from_str_radix(it, 16).ok());
        match byte.filter(|_| first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl FromStr for Uri {
    type Err = String;

    fn from_str(text: &str) -> Result<Uri, String> {
        let forms = "a target is nvme-tcp://HOST:PORT[/NQN], nbd://HOST[:PORT][/EXPORT] or \
                     nbd+unix:///[EXPORT]?socket=PATH";
        let (scheme, rest) = text.split_once("://").ok_or(forms)?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        match scheme {
            "nvme-tcp" | "nvme+tcp" => Ok(Uri::NvmeTcp {
                address: with_port(authority, 4420)?,
                nqn: (!path.is_empty()).then(|| path.to_owned()),
            }),
            "nbd" => Ok(Uri::NbdTcp {
                address: with_port(authority, 10809)?,
                export: decoded(path),
            }),
            "nbd+unix" => {
                let (export, query) = path.split_once('?').ok_or("there is no ?socket=PATH")?;
                let path = query
                    .split('&')
                    .find_map(|pair| pair.strip_prefix("socket="))
                    .ok_or("there is no ?socket=PATH")?;
                Ok(Uri::NbdUnix {
                    path: path.to_owned(),
                    export: decoded(export),
                })
            }
            _ => Err(forms.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Uri;

    #[test]
    fn targets_are_named_as_others_name_them() {
        let nvme = Uri::NvmeTcp {
            address: "127.0.0.1:4420".into(),
            nqn: None,
        };
        assert_eq!("nvme-tcp://127.0.0.1:4420".parse(), Ok(nvme.clone()));
        assert_eq!("nvme-tcp://127.0.0.1".parse(), Ok(nvme));
        let named = Uri::NvmeTcp {
            address: "[::1]:4420".into(),
            nqn: Some("nqn.2026-11.org.drivelab:x".into()),
        };
        assert_eq!(
            "nvme-tcp://[::1]/nqn.2026-11.org.drivelab:x".parse(),
            Ok(named)
        );
        let unix = Uri::NbdUnix {
            path: "/tmp/s".into(),
            export: "p4800x-375".into(),
        };
        assert_eq!("nbd+unix:///p4800x-375?socket=/tmp/s".parse(), Ok(unix));
        for bad in ["", "nbd", "http://x", "nbd+unix:///x", "nvme-tcp://"] {
            assert!(bad.parse::<Uri>().is_err(), "{bad}");
        }
    }
}

//! Pipes over which a recorded program reports its operations: one token per line.
//!
//! A program reports an operation after the reply to its last command, and before it sends its next command. So the
//! drive reads the pipes after it has received a command and before it logs the command, and also before it logs a
//! completion. A token is then in the log before every command that the program sent after it. It is never too early,
//! because the drive logs each completion before it sends the reply.

use std::os::fd::{AsFd, OwnedFd};

use crash::log::Note;

use crate::port::{ConnectionEnd, Endpoint, Interest, Port, Ready};
use crate::served::Reply;

/// Bytes that are read at once: those of a full pipe.
const CHUNK: usize = 64 << 10;

/// Number of bytes after which a line is a token without its end.
const LONGEST: usize = crash::log::LONGEST_TEXT;

/// The reading end of a pipe with tokens of one kind.
#[derive(Debug)]
pub struct TokenPipe {
    /// Kind of the tokens.
    pub(crate) note: Note,
    /// A non-blocking pipe.
    pipe: OwnedFd,
    /// Bytes of a line whose end has not been read.
    line: Vec<u8>,
    chunk: Box<[u8]>,
}

impl TokenPipe {
    /// Returns the pipe with this descriptor, which must be non-blocking.
    pub fn new(note: Note, pipe: OwnedFd) -> TokenPipe {
        TokenPipe {
            note,
            pipe,
            line: Vec::new(),
            chunk: vec![0; CHUNK].into(),
        }
    }

    /// Reads the complete lines that are in the pipe.
    pub(crate) fn read(&mut self, token: &mut dyn FnMut(&str)) {
        // A read error leaves the tokens in the pipe: the log then demands less of an image, not more.
        while let Ok(count) = rustix::io::read(&self.pipe, &mut *self.chunk) {
            for part in self.chunk[..count].split_inclusive(|byte| *byte == b'\n') {
                self.line.extend_from_slice(part);
                if part.ends_with(b"\n") || self.line.len() >= LONGEST {
                    emit(&mut self.line, token);
                }
            }
            if count < CHUNK {
                break;
            }
        }
    }

    /// Reads the lines that are in the pipe, and a last one without an end.
    pub(crate) fn read_last(&mut self, token: &mut dyn FnMut(&str)) {
        self.read(token);
        emit(&mut self.line, token);
    }
}

/// Passes a line on, unless it is blank, and clears it.
fn emit(line: &mut Vec<u8>, token: &mut dyn FnMut(&str)) {
    let text = String::from_utf8_lossy(line);
    if !text.trim().is_empty() {
        token(text.trim());
    }
    line.clear();
}

/// Reads the pipes of a recorded drive when tokens arrive without a command, so that a full pipe does not block the
/// program.
#[derive(Debug)]
pub struct TokenWatch {
    drive: usize,
    pipes: Vec<OwnedFd>,
}

impl TokenWatch {
    /// Returns an endpoint that watches copies of the pipes of this drive.
    ///
    /// # Errors
    /// No descriptors are left.
    pub fn new(drive: usize, pipes: &[TokenPipe]) -> std::io::Result<TokenWatch> {
        let pipes = pipes.iter().map(|it| it.pipe.try_clone());
        let pipes = pipes.collect::<std::io::Result<_>>()?;
        Ok(TokenWatch { drive, pipes })
    }
}

impl Endpoint for TokenWatch {
    fn open(&mut self, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        let mut pipes = (0..).zip(&self.pipes);
        pipes.try_for_each(|(key, pipe)| port.watch(pipe.as_fd(), key, Interest::READ))
    }

    fn ready(&mut self, _: Ready, port: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        port.drive(self.drive).log_tokens();
        Ok(())
    }

    fn reply(&mut self, _: &Reply, _: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        Ok(())
    }

    fn flush(&mut self, _: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        Ok(())
    }

    fn is_client(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn lines_are_tokens_in_whatever_parts_they_arrive() {
        let (hear, mut say) = UnixStream::pair().expect("sockets");
        hear.set_nonblocking(true).expect("set");
        let mut pipe = TokenPipe::new(Note::Ack, hear.into());
        let mut tokens = |part: &str, last: bool| {
            say.write_all(part.as_bytes()).expect("sent");
            let mut found = Vec::new();
            let mut each = |token: &str| found.push(token.to_owned());
            match last {
                true => pipe.read_last(&mut each),
                false => pipe.read(&mut each),
            }
            found
        };
        assert_eq!(tokens("", false), [""; 0]);
        assert_eq!(tokens("1\n 2 \n\n", false), ["1", "2"]);
        assert_eq!(tokens("order", false), [""; 0]);
        assert_eq!(tokens(" 3\r\n4", false), ["order 3"]);
        assert_eq!(tokens("5", true), ["45"]);
        assert_eq!(tokens("", true), [""; 0]);
        let long = "x".repeat(LONGEST);
        assert_eq!(tokens(&format!("{long}\n"), false), [long]);
    }
}

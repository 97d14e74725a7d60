//! Progress messages of an orderly shutdown, every few seconds if it takes long.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Interval of messages.
const EVERY: Duration = Duration::from_secs(3);

/// Prints the current step at intervals, until it is dropped.
pub(super) struct Ending {
    doing: Arc<Mutex<String>>,
    over: Option<Sender<()>>,
    teller: Option<JoinHandle<()>>,
}

impl Ending {
    /// Returns a printer on standard error.
    pub(super) fn new() -> Ending {
        Ending::telling(EVERY, crate::failure::write_stderr)
    }

    fn telling(every: Duration, tell: impl Fn(&str) + Send + 'static) -> Ending {
        let doing = Arc::new(Mutex::new(String::new()));
        let (over, ended) = mpsc::channel::<()>();
        let now = Arc::clone(&doing);
        let begin = Instant::now();
        let teller = thread::spawn(move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let doing = now.lock().unwrap_or_else(PoisonError::into_inner).clone();
                tell(&format!(
                    "ending since {:.0} s: {doing}",
                    begin.elapsed().as_secs_f64()
                ));
            }
        });
        Ending {
            doing,
            over: Some(over),
            teller: Some(teller),
        }
    }

    /// Sets the current step, for the drive with this name.
    pub(super) fn set_step(&self, drive: &str, what: &str) {
        let mut doing = self.doing.lock().unwrap_or_else(PoisonError::into_inner);
        *doing = format!("{drive}: {what}");
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(teller) = self.teller.take() {
            // The thread only prints lines.
            let _ = teller.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_said_until_it_is_over() {
        let (tell, told) = mpsc::channel();
        let ending = Ending::telling(Duration::from_millis(1), move |line| {
            // The receiver may be gone.
            let _ = tell.send(line.to_owned());
        });
        ending.set_step("tank", "it finishes its internal work");
        let mut lines = told.iter();
        let line = lines.find(|line| line.contains("tank: it finishes its internal work"));
        assert!(line.is_some_and(|it| it.starts_with("ending since ")));
        ending.set_step("tank", "1 of 2");
        assert!(lines.any(|line| line.ends_with("tank: 1 of 2")));
        drop(ending);
        // The thread has ended: no more lines arrive.
        assert!(lines.by_ref().all(|line| line.ends_with("1 of 2")));
    }
}

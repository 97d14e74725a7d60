//! Queue slots of a thread: the number of I/Os that it may have outstanding, and when it refills free slots (fio's
//! `iodepth`, `iodepth_low`, `iodepth_batch` and `iodepth_batch_complete_min`).

use super::job::Job;

/// Queue slots of one thread.
#[derive(Clone, Debug)]
pub(crate) struct QueueSlots {
    depth: u32,
    in_flight: u32,
    /// I/Os per system call.
    batch: u32,
    /// Minimum completions per wait, and the number of outstanding I/Os at which the thread refills.
    complete_min: u32,
    low: u32,
    /// Completions since all slots were last in use.
    reaped: u32,
    /// Whether the thread refills: set until all slots are in use again.
    refilling: bool,
}

impl QueueSlots {
    /// Creates slots that are all free.
    pub(crate) fn new(job: &Job, depth: u32) -> QueueSlots {
        QueueSlots {
            depth,
            in_flight: 0,
            batch: job.iodepth_batch.clamp(1, depth),
            complete_min: job.iodepth_batch_complete_min.clamp(1, depth),
            low: match job.iodepth_low {
                0 => depth,
                low => low.min(depth),
            },
            reaped: 0,
            refilling: true,
        }
    }

    /// Returns the number of slots.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Changes the number of slots.
    pub(crate) fn change_depth(&mut self, depth: u32) {
        self.depth = depth;
    }

    /// Returns the number of slots in use.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Takes a slot for an I/O.
    #[inline]
    pub(crate) fn take(&mut self) {
        self.in_flight += 1;
    }

    /// Releases a slot; returns whether the thread may have an I/O to issue.
    #[inline]
    pub(crate) fn release(&mut self) -> bool {
        self.in_flight -= 1;
        self.reaped += 1;
        if !self.refilling
            && self.reaped >= self.complete_min.min(self.in_flight + self.reaped)
            && self.in_flight <= self.low
        {
            self.refilling = true;
        }
        self.refilling || self.in_flight == 0
    }

    /// Checks whether the thread refills free slots.
    #[inline]
    pub(crate) fn refilling(&self) -> bool {
        self.refilling
    }

    /// Starts to refill, for any number of free slots.
    pub(crate) fn refill(&mut self) {
        self.refilling = true;
    }

    /// Checks whether all slots are in use. If so, the thread stops refilling.
    #[inline]
    pub(crate) fn filled_up(&mut self) -> bool {
        let full = self.in_flight >= self.depth;
        if full {
            self.refilling = false;
            self.reaped = 0;
        }
        full
    }

    /// Checks whether several completions are reaped at a time.
    #[inline]
    pub(crate) fn reaps_batches(&self) -> bool {
        self.complete_min > 1
    }

    /// Checks whether this number of completions is enough for a thread that waits for them.
    pub(crate) fn is_batch(&self, completions: u32) -> bool {
        completions >= self.complete_min.min(self.in_flight)
    }

    /// Checks whether the next I/O shares the system call of the I/Os before it; updates their count.
    #[inline]
    pub(crate) fn joins(&self, in_batch: &mut u32) -> bool {
        let joins = *in_batch > 0;
        *in_batch += 1;
        if *in_batch == self.batch {
            *in_batch = 0;
        }
        joins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of outstanding I/Os when the thread starts to refill, after all slots have been in use.
    fn begins(job: &Job) -> u32 {
        let mut places = QueueSlots::new(job, 16);
        while !places.filled_up() {
            places.take();
        }
        while !places.release() {}
        places.in_flight()
    }

    #[test]
    fn free_places_are_filled_as_the_job_says() {
        let job = Job::default();
        assert_eq!(begins(&job), 15);
        let low = Job {
            iodepth_low: 4,
            ..Job::default()
        };
        assert_eq!(begins(&low), 4);
        let batches = Job {
            iodepth_batch_complete_min: 6,
            ..Job::default()
        };
        assert_eq!(begins(&batches), 10);
        assert!(QueueSlots::new(&batches, 16).reaps_batches());
        assert!(!QueueSlots::new(&low, 16).reaps_batches());
    }

    #[test]
    fn so_many_share_a_system_call() {
        let job = Job {
            iodepth_batch: 3,
            ..Job::default()
        };
        let places = QueueSlots::new(&job, 16);
        let mut in_batch = 0;
        let joins = [(); 7].map(|()| places.joins(&mut in_batch));
        assert_eq!(joins, [false, true, true, false, true, true, false]);
    }
}

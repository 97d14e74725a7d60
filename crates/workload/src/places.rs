//! A thread's places: how many I/Os it may have in flight, and when it fills up those that have become free (fio's
//! `iodepth`, `iodepth_low`, `iodepth_batch` and `iodepth_batch_complete_min`).

use super::job::Job;

/// The places of one thread.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    depth: u32,
    in_flight: u32,
    /// I/Os that share a system call.
    batch: u32,
    /// Completions that the thread waits for at least, and how few may be in flight before it fills up again.
    complete_min: u32,
    low: u32,
    /// Completions since it was full.
    reaped: u32,
    /// It fills up: it has not been full since it last began to.
    refilling: bool,
}

impl Places {
    /// All free.
    pub(crate) fn new(job: &Job, depth: u32) -> Places {
        Places {
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

    /// How many there are.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// There are so many from now on.
    pub(crate) fn change_depth(&mut self, depth: u32) {
        self.depth = depth;
    }

    /// How many are taken.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// An I/O takes one.
    #[inline]
    pub(crate) fn take(&mut self) {
        self.in_flight += 1;
    }

    /// One is free again; returns whether the thread may have something to issue.
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

    /// Whether the thread fills free places.
    #[inline]
    pub(crate) fn refilling(&self) -> bool {
        self.refilling
    }

    /// It fills free places, however few there are.
    pub(crate) fn refill(&mut self) {
        self.refilling = true;
    }

    /// Whether all are taken; then the thread fills up no more.
    #[inline]
    pub(crate) fn filled_up(&mut self) -> bool {
        let full = self.in_flight >= self.depth;
        if full {
            self.refilling = false;
            self.reaped = 0;
        }
        full
    }

    /// Whether completions are looked at several at a time.
    #[inline]
    pub(crate) fn reaps_batches(&self) -> bool {
        self.complete_min > 1
    }

    /// Whether so many completions are enough to look at, where the thread waits for them.
    pub(crate) fn is_batch(&self, completions: u32) -> bool {
        completions >= self.complete_min.min(self.in_flight)
    }

    /// Whether the next I/O shares the system call of those before it; counts those.
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

    /// How many are in flight each time the thread begins to fill up again, where all places have been taken first.
    fn begins(job: &Job) -> u32 {
        let mut places = Places::new(job, 16);
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
        assert!(Places::new(&batches, 16).reaps_batches());
        assert!(!Places::new(&low, 16).reaps_batches());
    }

    #[test]
    fn so_many_share_a_system_call() {
        let job = Job {
            iodepth_batch: 3,
            ..Job::default()
        };
        let places = Places::new(&job, 16);
        let mut in_batch = 0;
        let joins = [(); 7].map(|()| places.joins(&mut in_batch));
        assert_eq!(joins, [false, true, true, false, true, true, false]);
    }
}

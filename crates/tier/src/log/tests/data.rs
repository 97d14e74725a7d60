//! With data: reads return the newest data, on members that complete in random order.

use super::*;
use crate::laws::gives_what_was_written;

/// Groups close often, and the main pool is overwritten many times.
pub(super) fn small(record: u32) -> IntentLogConfig {
    IntentLogConfig {
        size: MIB,
        ram: 10 * 12 * u64::from(record),
        record,
        run: 64 << 10,
        txg: Span::from_us(900),
        ..config()
    }
}

#[test]
fn a_read_gives_what_was_written_last() {
    for record in [4096, 16 << 10, 64 << 10] {
        for logs in 0..3 {
            for filled in [true, false] {
                let tier = IntentLogConfig {
                    filled,
                    ..small(record)
                };
                let mut drives = vec![ram(8 * MIB, 30)];
                drives.resize(1 + logs, ram(300 * KIB, 3));
                gives_what_was_written(&of_drives(&tier, &drives));
            }
        }
    }
}

#[test]
fn a_read_gives_what_was_written_last_where_data_go_to_main_at_once_or_nothing_is_logged() {
    for (sync, logbias) in [
        (SyncPolicy::Always, Logbias::Throughput),
        (SyncPolicy::Standard, Logbias::Throughput),
        (SyncPolicy::Always, Logbias::Latency),
        (SyncPolicy::Disabled, Logbias::Latency),
    ] {
        let tier = IntentLogConfig {
            sync,
            logbias,
            ..small(16 << 10)
        };
        let drives = [ram(4 * MIB, 30), ram(300 * KIB, 3)];
        gives_what_was_written(&of_drives(&tier, &drives));
    }
}

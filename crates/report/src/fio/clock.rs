//! Virtual seconds as a date, in C's form.

/// Returns `seconds` since 1 January 1970 (UTC) as a date: `Thu Jan  1 00:01:00 1970`.
pub(super) fn date(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [(&str, u64); 12] = [
        ("Jan", 31),
        ("Feb", 28),
        ("Mar", 31),
        ("Apr", 30),
        ("May", 31),
        ("Jun", 30),
        ("Jul", 31),
        ("Aug", 31),
        ("Sep", 30),
        ("Oct", 31),
        ("Nov", 30),
        ("Dec", 31),
    ];
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut year, mut rest) = (1970, day);
    while rest >= 365 + u64::from(leap(year)) {
        rest -= 365 + u64::from(leap(year));
        year += 1;
    }
    let mut month = 0;
    loop {
        let length = MONTHS[month].1 + u64::from(month == 1 && leap(year));
        if rest < length {
            break;
        }
        rest -= length;
        month += 1;
    }
    format!(
        "{} {} {:2} {:02}:{:02}:{:02} {year}",
        DAYS[(day % 7) as usize],
        MONTHS[month].0,
        rest + 1,
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates() {
        assert_eq!(super::date(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(super::date(1_795_260_861), "Sat Nov 21 11:34:21 2026");
        assert_eq!(super::date(951_782_400), "Tue Feb 29 00:00:00 2000");
    }
}

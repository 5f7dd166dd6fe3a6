//! Times as text, in UTC: nothing here reads the machine's time zone, so what is stored looks the same
//! everywhere.

/// `2026-11-30T10:58:21.123456Z` of microseconds since 1970.
pub fn rfc3339(microseconds: u64) -> String {
    let seconds = microseconds / 1_000_000;
    format!("{}T{}.{:06}Z", date(seconds), clock(seconds), microseconds % 1_000_000)
}

/// `2026-11-30 10:58:21` of microseconds since 1970.
pub fn seconds(microseconds: u64) -> String {
    let seconds = microseconds / 1_000_000;
    format!("{} {}", date(seconds), clock(seconds))
}

/// `10:58:21.123` of microseconds since 1970.
pub fn of_day(microseconds: u64) -> String {
    format!("{}.{:03}", clock(microseconds / 1_000_000), microseconds / 1000 % 1000)
}

/// `2026-11-30` of seconds since 1970.
pub fn date(seconds: u64) -> String {
    // Days of the Gregorian calendar, counted in years that begin in March, so that the leap day is the last.
    let days = seconds / 86_400 + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

fn clock(seconds: u64) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (second, text) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_399, "2000-02-28 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (951_868_800, "2000-03-01 00:00:00"),
            (1_709_210_096, "2024-02-29 12:34:56"),
            (1_798_761_599, "2026-12-31 23:59:59"),
            (4_107_542_400, "2100-03-01 00:00:00"),
        ] {
            assert_eq!(seconds(second * 1_000_000 + 999_999), text);
        }
        assert_eq!(rfc3339(1_709_210_096_000_007), "2024-02-29T12:34:56.000007Z");
        assert_eq!(of_day(1_709_210_096_987_654), "12:34:56.987");
        // Whatever a journal holds.
        rfc3339(u64::MAX);
    }
}

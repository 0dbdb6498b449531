//! A series of the benchmark: each line has a time and a count.

use std::path::Path;

/// A series in hours. The time of each hour is the time of its last count.
#[derive(Debug, Default)]
pub(crate) struct Hours {
    pub(crate) counts: Vec<u64>,
    pub(crate) times: Vec<String>,
    /// The start of the first hour, which is a whole hour.
    pub(crate) start_ms: i64,
}

impl Hours {
    /// Reads a file of counts in steps that divide an hour.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let name = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
        Self::parse(&text).ok_or_else(|| {
            format!("{name}: want lines of \"YYYY-MM-DD hh:mm:ss,count\" in equal steps of minutes")
        })
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let lines = text.lines().skip(1).map(|line| line.split_once(','));
        let lines = lines.collect::<Option<Vec<_>>>()?;
        let step = minutes(lines.get(1)?.0)? - minutes(lines.first()?.0)?;
        let steps = usize::try_from(60 / step.max(1)).ok()?.max(1);
        let first = minutes(lines.first()?.0)? - minutes("1970-01-01 00:00:00")?;
        let mut hours = Self { start_ms: first.div_euclid(60) * 3_600_000, ..Self::default() };
        for hour in lines.chunks_exact(steps) {
            let counts = hour.iter().map(|(_, count)| count.trim().parse::<f64>().ok());
            let sum = counts.collect::<Option<Vec<f64>>>()?.iter().sum::<f64>();
            hours.counts.push(sum as u64);
            hours.times.push(hour.last()?.0.to_owned());
        }
        Some(hours)
    }
}

/// Minutes since the year 0, of a time in the proleptic Gregorian calendar.
pub(crate) fn minutes(time: &str) -> Option<i64> {
    let part = |range: std::ops::Range<usize>| time.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (part(0..4)?, part(5..7)?, part(8..10)?);
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day;
    Some((days * 24 + part(11..13)?) * 60 + part(14..16)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_sums_of_steps() {
        let text = "timestamp,value\n2015-02-28 23:00:53,1\n2015-02-28 23:30:53,2\n2015-03-01 00:00:53,4\n2015-03-01 00:30:53,8\n2015-03-01 01:00:53,9\n";
        let hours = Hours::parse(text).unwrap();
        assert_eq!(hours.counts, [3, 12]);
        assert_eq!(hours.times[1], "2015-03-01 00:30:53");
        assert_eq!(
            minutes("2015-03-01 00:00:53").unwrap() - minutes("2015-02-28 23:30:53").unwrap(),
            30
        );
    }
}

//! The log of a server for web apps, in which equal errors are one line.

/// Equal errors within this time are one line: in an outage, every window of a range fails.
const LINE_MS: u64 = 10_000;
/// The maximum number of different errors whose last lines are remembered.
const MOST_LINES: usize = 100;

/// The errors that a server for web apps has written to its log. Equal errors within ten seconds are one line and have one
/// reference, and the next line contains how often the error was repeated. The lines of the last 100 different errors are
/// remembered.
///
/// ```
/// let mut log = tallyfold::ErrorLog::default();
/// let (reference, line) = log.note("network_failed: …", 0, "5ca1ab1e".to_owned());
/// assert_eq!(line.as_deref(), Some("(reference 5ca1ab1e): network_failed: …"));
/// // The same error a second later.
/// let again = log.note("network_failed: …", 1_000, "ba5eba11".to_owned());
/// assert_eq!(again, (reference, None));
/// ```
#[derive(Debug, Default)]
pub struct ErrorLog(Vec<Line>);

/// The last line of an error. The newest line comes last.
#[derive(Debug)]
struct Line {
    text: String,
    reference: String,
    at_ms: u64,
    /// How many equal errors there were since.
    repeats: u64,
}

impl ErrorLog {
    /// Takes the text of an error, the time on the monotonic clock in milliseconds, and a random reference for a new line.
    /// Returns the reference under which the log has the error, and the line to write if the log doesn't have it yet. The
    /// line contains the reference, the text and the number of repeats, and the host puts its own words before it.
    pub fn note(&mut self, text: &str, now_ms: u64, reference: String) -> (String, Option<String>) {
        let Self(lines) = self;
        let place = lines.iter().position(|line| line.text == text);
        if let Some(line) = place.map(|place| &mut lines[place])
            && now_ms.saturating_sub(line.at_ms) < LINE_MS
        {
            line.repeats += 1;
            return (line.reference.clone(), None);
        }
        let more = match place.map(|place| lines.remove(place).repeats) {
            None | Some(0) => String::new(),
            Some(1) => "; 1 equal error since the last line".to_owned(),
            Some(repeats) => format!("; {repeats} equal errors since the last line"),
        };
        if lines.len() == MOST_LINES {
            lines.remove(0);
        }
        lines.push(Line {
            text: text.to_owned(),
            reference: reference.clone(),
            at_ms: now_ms,
            repeats: 0,
        });
        let line = format!("(reference {reference}): {text}{more}");
        (reference, Some(line))
    }
}

//! The process that has a lease: how its file is named, and whether it may still be running.

/// The process that wants a lease.
#[derive(Clone, Copy, Debug)]
pub struct Holder<'a> {
    /// Identifies the processes that can see each other: the first 16 hexadecimal digits of the SHA-256 of the machine's
    /// name and, where the system has them, its boot ID and the ID of the namespace of processes, joined by line feeds.
    pub host: &'a str,
    /// The process ID.
    pub pid: u32,
    /// What `/proc/self/stat` contains, where the system has it.
    pub stat: Option<&'a str>,
    /// The ID of the thread, if it can be ended while its process continues, as a worker thread of Node can.
    pub thread: Option<u32>,
    /// A random number.
    pub seed: u64,
}

/// What a system knows about a process.
#[derive(Clone, Copy, Debug)]
pub struct Process<'a> {
    /// Whether a process with that ID exists; `None` if the caller can't find out.
    pub exists: Option<bool>,
    /// What `/proc/PID/stat` contains, where the system has it.
    pub stat: Option<&'a str>,
}

/// The name of a lease's file: `lock-HOST-PID-START-RANDOM`, or `lock-HOST-PID-START-RANDOM-THREAD` for a thread that
/// can be ended while its process continues.
pub(super) struct LeaseName<'a> {
    pub(super) host: &'a str,
    /// The process ID; 0 if no process can have it.
    pub(super) pid: u32,
    start: &'a str,
    is_thread: bool,
}

impl<'a> LeaseName<'a> {
    pub(super) fn of(name: &'a str) -> Option<Self> {
        let mut parts = name.strip_prefix("lock-")?.split('-');
        let is_good =
            |part: &str, is_in: fn(u8) -> bool| !part.is_empty() && part.bytes().all(is_in);
        let mut next = |is_in| parts.next().filter(|part| is_good(part, is_in));
        let is_hex = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_digit = |byte: u8| byte.is_ascii_digit();
        let (host, pid, start, _) =
            (next(is_hex)?, next(is_digit)?, next(is_digit)?, next(is_hex)?);
        let thread = parts.next();
        let is_whole = parts.next().is_none() && host.len() == 16;
        let is_name = is_whole && thread.is_none_or(|thread| is_good(thread, is_digit));
        is_name.then(|| Self {
            host,
            pid: pid.parse::<i32>().map_or(0, i32::unsigned_abs),
            start,
            is_thread: thread.is_some(),
        })
    }

    /// Whether the holder may still be running; `None` if nothing is known about it.
    pub(super) fn is_running(&self, found: Process<'_>) -> Option<bool> {
        let is_it = found.stat.map(|stat| started(stat) == Some(self.start));
        match (found.exists, is_it) {
            // The system may have given its ID to another process.
            (Some(false), _) | (_, Some(false)) => Some(false),
            // No system reports whether the thread has ended.
            _ if self.is_thread => None,
            (exists, is_it) => exists.or(is_it),
        }
    }
}

/// When a process started, from its `stat`; `None` for a zombie or a dead process.
pub(super) fn started(stat: &str) -> Option<&str> {
    // The name of the program comes before the last bracket, and may contain anything.
    let end = stat.bytes().rposition(|byte| byte == b')')?;
    let mut fields = stat[end + 1..].split_ascii_whitespace();
    match fields.next()? {
        "Z" | "X" => None,
        _ => fields.nth(18),
    }
}

//! The lease of a folder, which lets only one process at a time use it.
//!
//! Not every runtime has the operating system's file locks: Node doesn't. So each process creates its own file, whose
//! name identifies the process, and then looks for the files of other processes. If one of these processes may still be
//! running, the new process removes its own file and gives up. If two processes begin at the same time, at least one of
//! them sees the other. No name is used twice, so any process can remove the file of an ended process without removing
//! a new lease by mistake.

use super::folder::is_temporary;
use super::process::{Holder, LeaseName, Process, started};

/// How often a process tries. Two processes that begin at the same time may both give up.
const TRIES: u32 = 4;

/// A process or thread that can't be inspected counts as ended after this long without a sign of life.
const LONGEST_SILENCE_MS: i64 = 60_000;

const IN_USE: &str = "another collect is using this checkpoint";

/// What to do next for a lease. A host must handle every step, so a new kind of step breaks its build, on purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseStep {
    /// Create a file with this name and the content [`Lease::TEXT`], atomically and accessible only to its owner.
    /// Nothing with this name may exist, not even a link. Then call [`Lease::done`].
    Create(String),
    /// Call [`Lease::listed`] with the names of the files in the folder.
    List,
    /// Call [`Lease::modified`] with the modification time of the file with this name.
    Modified(String),
    /// Call [`Lease::process`] with what is known about the process with this ID.
    Process(u32),
    /// Remove the file with this name, if it exists. Then call [`Lease::done`].
    Remove(String),
    /// Wait for this many milliseconds. Then call [`Lease::done`].
    Wait(u32),
    /// The lease is taken. Write [`Lease::TEXT`] into the file [`Lease::name`] every [`Lease::SIGN_OF_LIFE_MS`], check that it
    /// exists before each change to the folder, and remove it at the end.
    Held,
    /// Another process has the lease. This is the error message.
    Refused(String),
}

impl LeaseStep {
    /// The step as a word and its argument, for languages without such enums.
    #[must_use]
    pub fn parts(self) -> (&'static str, String) {
        match self {
            Self::Create(name) => ("create", name),
            Self::List => ("list", String::new()),
            Self::Modified(name) => ("modified", name),
            Self::Process(pid) => ("process", pid.to_string()),
            Self::Remove(name) => ("remove", name),
            Self::Wait(ms) => ("wait", ms.to_string()),
            Self::Held => ("held", String::new()),
            Self::Refused(message) => ("refused", message),
        }
    }
}

/// Takes the lease of a folder, step by step.
///
/// If a step fails, remove the file [`Lease::name`] and give up.
///
/// ```
/// use tallyfold::keeper::{Holder, Lease, LeaseStep};
///
/// let holder = Holder { host: "0123456789abcdef", pid: 7, stat: None, thread: None, seed: 0x1f };
/// let mut lease = Lease::new(holder);
/// let own = "lock-0123456789abcdef-7-0-000000000000001f";
/// assert_eq!(lease.step(), LeaseStep::Create(own.to_owned()));
/// lease.done();
/// assert_eq!(lease.step(), LeaseStep::List);
/// lease.listed([own, "segment-00000.json"]);
/// assert_eq!(lease.step(), LeaseStep::Held);
/// ```
#[derive(Debug)]
pub struct Lease {
    host: String,
    /// The part between `lock-` and the random number in the names of this process's files.
    process: String,
    /// What follows the random number: the thread, if it can end before its process.
    thread: String,
    nonce: u64,
    name: String,
    tries: u32,
    state: State,
    /// The files of other processes that are still to be checked.
    others: Vec<String>,
    /// Temporary files of processes that were killed.
    left_over: Vec<String>,
    /// When this process's file was written, by the clock of the machine that stores the folder.
    own_ms: Option<i64>,
    /// The file of a process that has the lease.
    holder: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Creating,
    Listing,
    /// Requests what is known about the process of the last file in `others`.
    LookingAtProcess,
    /// Requests when this process's file was written, and then when the last file in `others` was written.
    LookingAtTime,
    /// Removes the last file in `others`.
    Removing,
    /// Removes this process's file.
    Withdrawing,
    Waiting,
    Refused,
    /// Removes the leftover temporary files, and then has the lease.
    Holding,
}

impl Lease {
    /// What each file of a lease contains.
    pub const TEXT: &str = "A job is using this checkpoint.\n";

    /// How often a holder rewrites its file, for processes that can't inspect it. Only a write sets the file's time by
    /// the clock of the machine that stores the file.
    pub const SIGN_OF_LIFE_MS: u32 = 15_000;

    /// The message if the file of a held lease was removed.
    pub const LOST: &str = IN_USE;

    /// A lease that is not taken yet.
    #[must_use]
    pub fn new(holder: Holder<'_>) -> Self {
        let start = holder.stat.and_then(started).unwrap_or("0");
        let process = format!("{}-{}-{start}", holder.host, holder.pid);
        let mut lease = Self {
            host: holder.host.to_owned(),
            process,
            thread: holder.thread.map_or_else(String::new, |id| format!("-{id}")),
            nonce: holder.seed,
            name: String::new(),
            tries: 0,
            state: State::Creating,
            others: Vec::new(),
            left_over: Vec::new(),
            own_ms: None,
            holder: None,
        };
        lease.begin();
        lease
    }

    /// The name of the file of this process.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What to do next.
    #[must_use]
    pub fn step(&self) -> LeaseStep {
        let other = || self.others.last().cloned().unwrap_or_default();
        match self.state {
            State::Creating => LeaseStep::Create(self.name.clone()),
            State::Listing => LeaseStep::List,
            State::LookingAtProcess => {
                let other = other();
                LeaseStep::Process(LeaseName::of(&other).map_or(0, |parts| parts.pid))
            }
            State::LookingAtTime if self.own_ms.is_none() => LeaseStep::Modified(self.name.clone()),
            State::LookingAtTime => LeaseStep::Modified(other()),
            State::Removing => LeaseStep::Remove(other()),
            State::Withdrawing => LeaseStep::Remove(self.name.clone()),
            // A random time, so that two processes that give up at the same time don't begin again at the same time.
            State::Waiting => LeaseStep::Wait(5 + (self.nonce >> 32) as u32 % 15),
            State::Refused => {
                let holder = self.holder.as_deref().unwrap_or_default();
                LeaseStep::Refused([IN_USE, ", as ", holder, " in it says"].concat())
            }
            State::Holding => match self.left_over.last() {
                Some(name) => LeaseStep::Remove(name.clone()),
                None => LeaseStep::Held,
            },
        }
    }

    /// Reports that a file was created or removed, or that a wait has ended.
    pub fn done(&mut self) {
        match self.state {
            State::Creating => self.state = State::Listing,
            State::Removing => self.judged(),
            State::Withdrawing if self.tries < TRIES => self.state = State::Waiting,
            State::Withdrawing => self.state = State::Refused,
            State::Waiting => self.begin(),
            State::Holding => drop(self.left_over.pop()),
            _ => {}
        }
    }

    /// Takes the names of all files in the folder.
    pub fn listed<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        if self.state != State::Listing {
            return;
        }
        for name in names {
            if is_temporary(name) {
                self.left_over.push(name.to_owned());
            } else if name != self.name && LeaseName::of(name).is_some() {
                self.others.push(name.to_owned());
            }
        }
        self.look();
    }

    /// Takes the modification time of the file, in milliseconds since 1970; `None` if the file is gone.
    pub fn modified(&mut self, unix_ms: Option<i64>) {
        if self.state != State::LookingAtTime {
            return;
        }
        match (self.own_ms, unix_ms) {
            (None, Some(own_ms)) => self.own_ms = Some(own_ms),
            // This process's file was removed.
            (None, None) => self.withdraw(),
            (Some(_), None) => self.judged(),
            (Some(own_ms), Some(unix_ms)) if own_ms - unix_ms > LONGEST_SILENCE_MS => {
                self.state = State::Removing;
            }
            (Some(_), Some(_)) => self.withdraw(),
        }
    }

    /// Takes what is known about a process.
    pub fn process(&mut self, found: Process<'_>) {
        let other = self.others.last().and_then(|name| LeaseName::of(name));
        let Some(other) = other.filter(|_| self.state == State::LookingAtProcess) else {
            return;
        };
        match other.is_running(found) {
            Some(false) => self.state = State::Removing,
            Some(true) => self.withdraw(),
            // As with the process of another machine, only the holder's signs of life count.
            None => self.state = State::LookingAtTime,
        }
    }

    /// Begins a try.
    fn begin(&mut self) {
        if self.tries > 0 {
            // The next number of a Weyl sequence, so that no name is used twice.
            self.nonce = self.nonce.wrapping_add(0x9e37_79b9_7f4a_7c15);
        }
        self.tries += 1;
        self.name = format!("lock-{}-{:016x}{}", self.process, self.nonce, self.thread);
        self.others.clear();
        self.left_over.clear();
        self.own_ms = None;
        self.state = State::Creating;
    }

    /// Checks the next file of another process. If none is left, this process has the lease.
    fn look(&mut self) {
        self.state = match self.others.last().and_then(|name| LeaseName::of(name)) {
            None => State::Holding,
            Some(name) if name.host != self.host => State::LookingAtTime,
            // No process has this ID.
            Some(name) if name.pid == 0 => State::Removing,
            Some(_) => State::LookingAtProcess,
        };
    }

    /// The process of the last file in `others` does not have the lease. Checks the next file.
    fn judged(&mut self) {
        self.others.pop();
        self.look();
    }

    /// Gives up this try: the process of the last file in `others` may have the lease, or this process's file was removed.
    fn withdraw(&mut self) {
        self.holder = self.others.pop();
        self.state = State::Withdrawing;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const HERE: &str = "0123456789abcdef";

    /// A folder, as the names of its files and when they were written, and the processes of this machine.
    #[derive(Default)]
    struct World {
        files: BTreeMap<String, i64>,
        processes: BTreeMap<u32, (Option<bool>, Option<String>)>,
        now_ms: i64,
    }

    impl World {
        fn with(names: &[&str]) -> Self {
            Self {
                files: names.iter().map(|name| ((*name).to_owned(), 0)).collect(),
                ..Self::default()
            }
        }

        /// Drives a lease to its end.
        fn take(&mut self, seed: u64) -> (Lease, LeaseStep) {
            self.take_in(None, seed)
        }

        fn take_in(&mut self, thread: Option<u32>, seed: u64) -> (Lease, LeaseStep) {
            let stat = stat_of("S", "100");
            let mut lease =
                Lease::new(Holder { host: HERE, pid: 7, stat: Some(&stat), thread, seed });
            loop {
                self.now_ms += 1;
                match lease.step() {
                    LeaseStep::Create(name) => {
                        let old = self.files.insert(name, self.now_ms);
                        assert_eq!(old, None, "no name is used twice");
                        lease.done();
                    }
                    LeaseStep::List => lease.listed(self.files.keys().map(String::as_str)),
                    LeaseStep::Modified(name) => lease.modified(self.files.get(&name).copied()),
                    LeaseStep::Process(pid) => {
                        let missing = (Some(false), None);
                        let (exists, stat) = self.processes.get(&pid).unwrap_or(&missing);
                        lease.process(Process { exists: *exists, stat: stat.as_deref() });
                    }
                    LeaseStep::Remove(name) => {
                        self.files.remove(&name);
                        lease.done();
                    }
                    LeaseStep::Wait(ms) => {
                        assert!((5..20).contains(&ms));
                        lease.done();
                    }
                    end @ (LeaseStep::Held | LeaseStep::Refused(_)) => return (lease, end),
                }
            }
        }

        fn names(&self) -> Vec<&str> {
            self.files.keys().map(String::as_str).collect()
        }
    }

    fn stat_of(state: &str, start: &str) -> String {
        format!("9 (a) b) {state}{} {start} 0 0\n", " 0".repeat(18))
    }

    #[test]
    fn one_process_has_it_at_a_time() {
        let mut world = World::default();
        let (first, end) = world.take(1);
        assert_eq!(end, LeaseStep::Held);
        assert_eq!(first.name(), format!("lock-{HERE}-7-100-{:016x}", 1));
        world.processes.insert(7, (Some(true), Some(stat_of("S", "100"))));
        let (_, end) = world.take(2);
        let LeaseStep::Refused(message) = end else { panic!("{end:?}") };
        assert_eq!(
            message,
            format!("another collect is using this checkpoint, as {} in it says", first.name())
        );
        assert_eq!(world.names(), [first.name()]);
    }

    #[test]
    fn files_of_processes_that_have_ended_are_removed() {
        let (gone, reused, zombie) = (
            format!("lock-{HERE}-8-100-a"),
            format!("lock-{HERE}-9-100-a"),
            format!("lock-{HERE}-10-100-a"),
        );
        let impossible = format!("lock-{HERE}-99999999999-100-a");
        let mut world = World::with(&[&gone, &reused, &zombie, &impossible]);
        let of = |state, start| (Some(true), Some(stat_of(state, start)));
        world.processes.insert(9, of("S", "101"));
        world.processes.insert(10, of("Z", "100"));
        let (lease, end) = world.take(1);
        assert_eq!(end, LeaseStep::Held);
        assert_eq!(world.names(), [lease.name()]);
    }

    #[test]
    fn without_a_view_of_its_process_a_holder_counts_as_long_as_it_shows_signs_of_life() {
        let elsewhere = "lock-ffffffffffffffff-1-1-0".to_owned();
        // As on Windows, where the command can't look at processes.
        let unknown = format!("lock-{HERE}-8-0-0");
        for name in [elsewhere, unknown] {
            let mut world = World::with(&[&name]);
            world.processes.insert(8, (None, None));
            world.now_ms = LONGEST_SILENCE_MS - 100;
            let (_, end) = world.take(1);
            assert!(matches!(end, LeaseStep::Refused(_)), "{end:?}");
            assert_eq!(world.names(), [name.as_str()]);
            world.now_ms = LONGEST_SILENCE_MS + 100;
            let (lease, end) = world.take(2);
            assert_eq!(end, LeaseStep::Held);
            assert_eq!(world.names(), [lease.name()]);
        }
    }

    #[test]
    fn a_thread_that_can_end_alone_counts_as_long_as_it_shows_signs_of_life() {
        let mut world = World::default();
        let running = (Some(true), Some(stat_of("S", "100")));
        world.processes.insert(7, running);
        let (worker, end) = world.take_in(Some(3), 1);
        assert_eq!(end, LeaseStep::Held);
        assert_eq!(worker.name(), format!("lock-{HERE}-7-100-{:016x}-3", 1));
        world.now_ms = LONGEST_SILENCE_MS - 100;
        let (_, end) = world.take(2);
        assert!(matches!(end, LeaseStep::Refused(_)), "{end:?}");
        world.now_ms = LONGEST_SILENCE_MS + 100;
        let (main, end) = world.take(3);
        assert_eq!(end, LeaseStep::Held);
        assert_eq!(world.names(), [main.name()]);

        // A thread has ended if its process has.
        let mut world = World::with(&[&format!("lock-{HERE}-8-100-a-3")]);
        let (lease, end) = world.take(1);
        assert_eq!(end, LeaseStep::Held);
        assert_eq!(world.names(), [lease.name()]);
    }

    #[test]
    fn temporary_files_are_removed_and_no_others() {
        let notes = format!("lock-{HERE}-8-100-a-notes");
        let others = ["lock", &notes, "lock-notes.txt", "segment-00000.json", "x.tmp"];
        let left_over = ["segment-00000.json.1.tmp", "segment-00004.json.e5f1-22.tmp"];
        let mut world = World::with(&[&others[..], &left_over].concat());
        let (lease, end) = world.take(1);
        assert_eq!(end, LeaseStep::Held);
        world.files.remove(lease.name());
        assert_eq!(world.names(), others);
    }

    #[test]
    fn a_process_whose_own_file_was_removed_tries_again() {
        let mut lease =
            Lease::new(Holder { host: HERE, pid: 7, stat: None, thread: None, seed: 1 });
        let first = lease.name().to_owned();
        lease.done();
        lease.listed(["lock-ffffffffffffffff-1-1-0"]);
        assert_eq!(lease.step(), LeaseStep::Modified(first.clone()));
        lease.modified(None);
        assert_eq!(lease.step(), LeaseStep::Remove(first.clone()));
        lease.done();
        assert!(matches!(lease.step(), LeaseStep::Wait(_)));
        lease.done();
        assert_ne!(lease.name(), first);
    }
}

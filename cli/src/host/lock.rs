//! The lock of a checkpoint's directory, which Python and Node take in the same way (`_files/lock.py`, `files/lock.ts`).
//!
//! Each job makes a file of its own, whose name says which process it is. Then it looks for the files of others. If
//! there is one of a process that may still run, the job removes its own and gives up. So of two jobs that begin at
//! once, at least one sees the other. A process that has ended never comes back under its name, and so its file can be
//! removed by anybody.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};
use tokio::task::JoinHandle;
use tokio::time::{interval, sleep};

use super::session::random;

/// How often a job tries again, because two that begin at once may both give up.
const TRIES: u32 = 4;

/// How often a job touches its file, for those who can't see its process.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// How long a job of another machine shows no sign of life until it is taken for ended.
const LONGEST_SILENCE: Duration = Duration::from_secs(60);

const TEXT: &[u8] = b"A job is using this checkpoint.\n";

/// A directory that no other job uses while this is held.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    life: JoinHandle<()>,
}

impl Lock {
    /// Takes the lock.
    ///
    /// # Errors
    /// `WouldBlock` if another job has it; those of the file system.
    pub(crate) async fn take(directory: &Path) -> io::Result<Self> {
        let path = taken(directory).await?;
        let life = tokio::spawn(show_life(path.clone()));
        Ok(Self { path, life })
    }

    /// Fails if somebody has removed the lock's file.
    ///
    /// # Errors
    /// `WouldBlock`.
    pub(crate) fn check(&self) -> io::Result<()> {
        match self.path.exists() {
            true => Ok(()),
            false => Err(in_use("")),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.life.abort();
        let _ = fs::remove_file(&self.path);
    }
}

async fn taken(directory: &Path) -> io::Result<PathBuf> {
    let mut holder = String::new();
    for tried in 1..=TRIES {
        let (pid, start) = (process::id(), start_of("self").unwrap_or_default());
        let start = if start.is_empty() {
            "0".to_owned()
        } else {
            start
        };
        let own = directory.join(format!(
            "lock-{}-{pid}-{start}-{:016x}",
            this_host(),
            random()
        ));
        exclusive(&own)?.write_all(TEXT)?;
        match holder_of(directory, &own) {
            Ok(None) => return Ok(own),
            Ok(Some(name)) => holder = name,
            Err(error) => {
                let _ = fs::remove_file(&own);
                return Err(error);
            }
        }
        let _ = fs::remove_file(&own);
        if tried < TRIES {
            sleep(Duration::from_millis(5 + random() % 15)).await;
        }
    }
    Err(in_use(&format!(", as {holder} in it says")))
}

/// The file of another job that may still run. Those of jobs that have ended are removed.
fn holder_of(directory: &Path, own: &Path) -> io::Result<Option<String>> {
    // The file's own machine gives the time, whose clock may be another one.
    let now = fs::metadata(own)?.modified()?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(parts) = Parts::of(&name).filter(|_| entry.path() != own) else {
            continue;
        };
        let is_over = match parts.host == this_host() {
            true => has_ended(parts.pid, parts.start),
            false => entry
                .metadata()
                .is_ok_and(|metadata| is_silent(&metadata, now)),
        };
        if is_over {
            let _ = fs::remove_file(entry.path());
        } else {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn is_silent(metadata: &fs::Metadata, now: SystemTime) -> bool {
    let silence = metadata
        .modified()
        .ok()
        .and_then(|last| now.duration_since(last).ok());
    silence.is_some_and(|silence| silence > LONGEST_SILENCE)
}

/// The parts of a lock's name.
struct Parts<'a> {
    host: &'a str,
    pid: &'a str,
    start: &'a str,
}

impl<'a> Parts<'a> {
    fn of(name: &'a str) -> Option<Self> {
        let mut parts = name.strip_prefix("lock-")?.split('-');
        let (host, pid, start, nonce) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_hex = |text: &str| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_name = parts.next().is_none()
            && host.len() == 16
            && is_hex(host)
            && is_number(pid)
            && is_number(start)
            && is_hex(nonce);
        is_name.then_some(Self { host, pid, start })
    }
}

async fn show_life(path: PathBuf) {
    let mut ticks = interval(SIGN_OF_LIFE);
    loop {
        ticks.tick().await;
        // By writing, because only that takes the time from the file's own machine.
        if let Ok(mut file) = fs::OpenOptions::new().write(true).open(&path) {
            let _ = file.write_all(TEXT);
        }
    }
}

/// Makes a file for its owner only, which must not be there yet, not even as a link.
///
/// # Errors
/// Those of the file system.
pub(crate) fn exclusive(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn in_use(hint: &str) -> io::Error {
    let message = format!("another collect is using this checkpoint{hint}");
    io::Error::new(io::ErrorKind::WouldBlock, message)
}

/// Those who share it see each other's processes.
fn this_host() -> String {
    let mut known = vec![gethostname::gethostname().to_string_lossy().into_owned()];
    if let Ok(boot) = fs::read_to_string("/proc/sys/kernel/random/boot_id") {
        known.push(boot.trim().to_owned());
        if let Ok(space) = fs::read_link("/proc/self/ns/pid") {
            known.push(space.to_string_lossy().into_owned());
        }
    }
    let digest = Sha256::digest(known.join("\n"));
    digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// When a process has begun, where the system says so; empty for one that is dead already.
fn start_of(process: &str) -> Option<String> {
    let status = fs::read(format!("/proc/{process}/stat")).ok()?;
    let status = String::from_utf8_lossy(&status);
    // The name before it is in brackets, and may hold anything.
    let (_, fields) = status.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    match fields.first() {
        Some(&"Z" | &"X") => Some(String::new()),
        _ => fields.get(19).map(|start| (*start).to_owned()),
    }
}

/// Whether there is no such process any more.
fn has_ended(pid: &str, start: &str) -> bool {
    if !exists(pid) {
        return true;
    }
    // Its number may have been given to another one.
    start_of(pid).is_some_and(|now| now != start)
}

#[cfg(unix)]
fn exists(pid: &str) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let Some(pid) = pid.parse().ok().and_then(Pid::from_raw) else {
        return false;
    };
    !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH))
}

/// Nothing here tells, so it is taken for running.
#[cfg(not(unix))]
fn exists(_pid: &str) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_one_job_at_a_time_has_a_directory() {
        let folder = tempfile::tempdir().unwrap();
        let lock = Lock::take(folder.path()).await.unwrap();
        let error = Lock::take(folder.path()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(
            error.to_string().contains(&format!("-{}-", process::id())),
            "{error}"
        );
        drop(lock);
        Lock::take(folder.path()).await.unwrap();
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            0,
            "a lock was left behind"
        );
    }

    #[tokio::test]
    async fn locks_of_jobs_that_have_ended_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let ended = format!("lock-{}-{}-1-00", this_host(), child.id());
        // The same number as this process, which began at another time.
        let reused = format!("lock-{}-{}-1-00", this_host(), process::id());
        let other = "lock-notes.txt";
        for name in [&ended, &reused, other] {
            fs::write(folder.path().join(name), TEXT).unwrap();
        }
        let _lock = Lock::take(folder.path()).await.unwrap();
        assert!(!folder.path().join(&ended).exists());
        assert!(!folder.path().join(&reused).exists());
        assert!(folder.path().join(other).exists());
    }

    #[tokio::test]
    async fn a_job_of_another_machine_holds_it_until_it_is_silent() {
        let folder = tempfile::tempdir().unwrap();
        let foreign = folder.path().join("lock-0123456789abcdef-1-1-00");
        fs::write(&foreign, TEXT).unwrap();
        assert!(Lock::take(folder.path()).await.is_err());
        let long_ago = SystemTime::now() - LONGEST_SILENCE - Duration::from_secs(5);
        fs::File::options()
            .write(true)
            .open(&foreign)
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
        let lock = Lock::take(folder.path()).await.unwrap();
        assert!(!foreign.exists());
        lock.check().unwrap();
        fs::remove_file(&lock.path).unwrap();
        assert_eq!(lock.check().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}

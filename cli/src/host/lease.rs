//! Takes and holds the lease of a folder. [`tallyfold::keeper::Lease`] decides the steps, and this module carries them
//! out.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::time::{Duration, UNIX_EPOCH};

use sha2::{Digest, Sha256};
use tallyfold::keeper::{self, Holder, LeaseStep, Process};
use tokio::task::JoinHandle;
use tokio::time::{interval, sleep};

use super::session::random;
use crate::files::{create_for_owner, hex, if_exists};

/// The lease of a folder. No other job uses the folder while this value exists.
#[derive(Debug)]
pub(super) struct Lease {
    path: PathBuf,
    /// Distinguishes this lease's file from any other file with the same name.
    identity: Option<(u64, u64)>,
    /// The task that shows other jobs that this job is alive.
    life: JoinHandle<()>,
}

impl Lease {
    /// Takes the lease of a folder, and removes the lease files that killed jobs have left in the folder.
    ///
    /// # Errors
    /// `WouldBlock` if another job has the lease, and errors of the file system.
    pub(super) async fn take(folder: &Path) -> io::Result<Self> {
        let (host, stat) = (this_host(), stat_of("self"));
        let mut lease = keeper::Lease::new(Holder {
            host: &host,
            pid: process::id(),
            stat: stat.as_deref(),
            thread: None,
            seed: random(),
        });
        let taken = take(&mut lease, folder).await;
        let path = folder.join(lease.name());
        if let Err(error) = taken {
            let _ = fs::remove_file(path);
            return Err(error);
        }
        let life = tokio::spawn(show_life(path.clone()));
        Ok(Self { identity: identity(&path), path, life })
    }

    /// Checks that the lease's file is still there.
    ///
    /// # Errors
    /// `WouldBlock` if it was removed or replaced.
    pub(super) fn check(&self) -> io::Result<()> {
        let found = identity(&self.path);
        match found.is_some() && found == self.identity {
            true => Ok(()),
            false => Err(in_use(keeper::Lease::LOST)),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.life.abort();
        let _ = fs::remove_file(&self.path);
    }
}

async fn take(lease: &mut keeper::Lease, folder: &Path) -> io::Result<()> {
    loop {
        match lease.step() {
            LeaseStep::Create(name) => {
                create_for_owner(&folder.join(name), keeper::Lease::TEXT.as_bytes())?;
                lease.done();
            }
            LeaseStep::List => {
                let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
                let names: Vec<_> = entries.iter().map(fs::DirEntry::file_name).collect();
                lease.listed(names.iter().filter_map(|name| name.to_str()));
            }
            LeaseStep::Modified(name) => lease.modified(modified_ms(&folder.join(name))?),
            LeaseStep::Process(pid) => lease.process(Process {
                exists: exists(pid),
                stat: stat_of(&pid.to_string()).as_deref(),
            }),
            LeaseStep::Remove(name) => {
                if_exists(fs::remove_file(folder.join(name)))?;
                lease.done();
            }
            LeaseStep::Wait(ms) => {
                sleep(Duration::from_millis(ms.into())).await;
                lease.done();
            }
            LeaseStep::Refused(message) => return Err(in_use(&message)),
            LeaseStep::Held => return Ok(()),
        }
    }
}

fn modified_ms(path: &Path) -> io::Result<Option<i64>> {
    let Some(found) = if_exists(fs::symlink_metadata(path))? else {
        return Ok(None);
    };
    let since_1970 = found.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Some(i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)))
}

/// Returns the device and inode number of a file, or zeros on a system without them; `None` if the file does not exist.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs::symlink_metadata(path).ok()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Some((found.dev(), found.ino()))
    }
    #[cfg(not(unix))]
    {
        _ = found;
        Some((0, 0))
    }
}

/// Writes to the lease's file at intervals, so that its modification time shows that this job is alive.
async fn show_life(path: PathBuf) {
    let mut ticks = interval(Duration::from_millis(keeper::Lease::SIGN_OF_LIFE_MS.into()));
    loop {
        ticks.tick().await;
        if let Ok(mut file) = fs::OpenOptions::new().write(true).open(&path) {
            let _ = file.write_all(keeper::Lease::TEXT.as_bytes());
        }
    }
}

fn in_use(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::WouldBlock, message)
}

/// Returns an identifier that is equal for all processes that can see each other's process ids, as [`Holder::host`]
/// requires.
fn this_host() -> String {
    let mut known = vec![gethostname::gethostname().to_string_lossy().into_owned()];
    if let Ok(boot) = fs::read_to_string("/proc/sys/kernel/random/boot_id") {
        known.push(boot.trim().to_owned());
        if let Ok(space) = fs::read_link("/proc/self/ns/pid") {
            known.push(space.to_string_lossy().into_owned());
        }
    }
    let digest = Sha256::digest(known.join("\n"));
    hex(&digest[..8])
}

fn stat_of(process: &str) -> Option<String> {
    let stat = fs::read(format!("/proc/{process}/stat")).ok()?;
    Some(String::from_utf8_lossy(&stat).into_owned())
}

/// Returns whether there is a process with that id.
#[cfg(unix)]
fn exists(pid: u32) -> Option<bool> {
    use rustix::process::{Pid, test_kill_process};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    Some(pid.is_some_and(|pid| !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH))))
}

/// Returns `None`, because the standard library can't look up other processes.
#[cfg(not(unix))]
fn exists(_pid: u32) -> Option<bool> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[tokio::test]
    async fn only_one_job_at_a_time_holds_the_lease_of_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let lease = Lease::take(folder.path()).await.unwrap();
        let error = Lease::take(folder.path()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(error.to_string().contains(&format!("-{}-", process::id())), "{error}");
        drop(lease);
        Lease::take(folder.path()).await.unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "a lock was left behind");
    }

    #[tokio::test]
    async fn files_of_jobs_that_have_ended_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let ended = format!("lock-{}-{}-1-00", this_host(), child.id());
        // The id of this process, with another start time.
        let reused = format!("lock-{}-{}-1-00", this_host(), process::id());
        let other = "lock-notes.txt";
        for name in [&ended, &reused, other] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let _lease = Lease::take(folder.path()).await.unwrap();
        assert!(!folder.path().join(&ended).exists());
        assert!(!folder.path().join(&reused).exists());
        assert!(folder.path().join(other).exists());
    }

    #[tokio::test]
    async fn a_job_on_another_machine_holds_the_lease_while_it_shows_life() {
        let folder = tempfile::tempdir().unwrap();
        let foreign = folder.path().join("lock-0123456789abcdef-1-1-00");
        fs::write(&foreign, "").unwrap();
        assert!(Lease::take(folder.path()).await.is_err());
        let long_ago = SystemTime::now() - Duration::from_secs(65);
        fs::File::options().write(true).open(&foreign).unwrap().set_modified(long_ago).unwrap();
        let lease = Lease::take(folder.path()).await.unwrap();
        assert!(!foreign.exists());
        lease.check().unwrap();
        fs::remove_file(&lease.path).unwrap();
        assert_eq!(lease.check().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_lease_whose_file_was_replaced_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let lease = Lease::take(folder.path()).await.unwrap();
        let other = folder.path().join("other");
        fs::write(&other, "").unwrap();
        fs::rename(&other, &lease.path).unwrap();
        assert_eq!(lease.check().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_failed_attempt_leaves_no_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        // Files can be created in such a folder, but not listed.
        let mode = |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode));
        mode(0o300).unwrap();
        let taken = Lease::take(folder.path()).await;
        mode(0o700).unwrap();
        // Root can list the folder anyway, and then takes the lease.
        if taken.is_err() {
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }
}

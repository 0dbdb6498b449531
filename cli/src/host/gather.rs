//! Reads a range of one cluster, window by window, several at the same time.

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tallyfold::{Collect, CollectStep, Drive};

use super::session::Session;
use crate::failure::Result;

/// Drives a collect to its end. After each window `on_settled` may store what is new and show progress.
///
/// # Errors
/// Those of `on_settled`, which end the reading.
pub(crate) async fn gather(
    session: &Session,
    collect: &mut Collect,
    mut on_settled: impl FnMut(&mut Collect) -> Result<()>,
) -> Result<()> {
    let workers = usize::try_from(collect.concurrency()).unwrap_or(usize::MAX);
    let mut under_way = FuturesUnordered::new();
    loop {
        while under_way.len() < workers {
            match collect.next(session.now()) {
                CollectStep::Drive(drive) => under_way.push(driven(session, drive)),
                CollectStep::Idle | CollectStep::Done => break,
            }
        }
        let Some(mut drive) = under_way.next().await else {
            return Ok(());
        };
        collect.settle(drive.task, &mut drive.call, session.now())?;
        on_settled(collect)?;
    }
}

async fn driven(session: &Session, mut drive: Drive) -> Drive {
    // The call keeps its error, which the collect takes from it.
    let _ = session.drive(&mut drive.call).await;
    drive
}

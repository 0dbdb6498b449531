//! Reads a range of one cluster, window by window, several at the same time.

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tallyfold::{Collect, CollectStep, Drive, Progress};

use super::checkpoint::Keeper;
use super::session::Session;
use crate::failure::Result;

/// Drives a collect to its end, stores what was read, and tells how far it is.
///
/// # Errors
/// If the checkpoint can't be stored. Windows that can't be read are the collect's own matter.
pub(crate) async fn gather(
    session: &Session,
    collect: &mut Collect,
    keeper: &mut Keeper,
    mut on_progress: impl FnMut(Progress),
) -> Result<()> {
    let workers = usize::try_from(collect.concurrency()).unwrap_or(usize::MAX);
    let mut under_way = FuturesUnordered::new();
    on_progress(collect.progress());
    loop {
        while under_way.len() < workers {
            match collect.next(session.now()) {
                CollectStep::Drive(drive) => under_way.push(driven(session, drive)),
                CollectStep::Idle | CollectStep::Done => break,
            }
        }
        keeper.begin(collect);
        tokio::select! {
            ended = under_way.next() => {
                let Some(mut drive) = ended else { break };
                collect.settle(drive.task, &mut drive.call, session.now())?;
                on_progress(collect.progress());
            }
            saved = keeper.saved() => saved?,
        }
    }
    keeper.flush(collect).await
}

async fn driven(session: &Session, mut drive: Drive) -> Drive {
    // The call keeps its error, which the collect takes from it.
    let _ = session.drive(&mut drive.call).await;
    drive
}

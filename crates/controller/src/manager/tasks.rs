//! Tasks of the program that run beside its controllers, such as a webhook server.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, info};

use super::ManagerError;
use crate::controller::BoxError;

/// How long aborted tasks may take to end. A task ends at its next `.await`, unless it blocks its thread.
const ABORT: Duration = Duration::from_millis(500);

/// A task that waits for its start.
pub(super) struct Task {
    pub(super) name: String,
    pub(super) run: Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, Result<(), BoxError>> + Send>,
}

/// The tasks that run. Dropping this aborts them.
pub(super) struct RunningTasks {
    /// In the order in which they were started.
    running: Vec<RunningTask>,
    joined: JoinSet<Result<(), BoxError>>,
}

struct RunningTask {
    id: Id,
    name: String,
    stop: CancellationToken,
}

impl RunningTasks {
    pub(super) fn start(tasks: Vec<Task>) -> Self {
        let mut joined = JoinSet::new();
        let start = |Task { name, run }| {
            info!(task = name, "task started");
            let stop = CancellationToken::new();
            let asked = stop.clone();
            let id = joined.spawn(async move { run(asked).await }.in_current_span()).id();
            RunningTask { id, name, stop }
        };
        let running = tasks.into_iter().map(start).collect();
        Self { running, joined }
    }

    /// Waits until a task fails. Waits for ever if none does.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    pub(super) async fn failure(&mut self) -> ManagerError {
        while let Some(ended) = self.joined.join_next_with_id().await {
            if let Err(error) = self.ended(ended) {
                return error;
            }
        }
        std::future::pending().await
    }

    /// Stops the tasks one after another: the task that was started last is the first to stop. Aborts those that have not
    /// ended within the limit, which is for all tasks together.
    pub(super) async fn stop(mut self, limit: Duration) -> Result<(), ManagerError> {
        let mut outcome = Ok(());
        let stopped = async {
            while let Some(last) = self.running.last() {
                last.stop.cancel();
                let Some(ended) = self.joined.join_next_with_id().await else { return };
                let ended = self.ended(ended);
                outcome = std::mem::replace(&mut outcome, Ok(())).and(ended);
            }
        };
        if timeout(limit, stopped).await.is_ok() {
            return outcome;
        }
        let names = self.running.iter().rev().map(|task| task.name.clone()).collect();
        // A task that blocks its thread does not end now, and the manager does not wait for it.
        let _ = timeout(ABORT, self.joined.shutdown()).await;
        outcome.and(Err(ManagerError::TasksAborted { within: limit, names }))
    }

    /// Removes a task that has ended, and returns its error.
    fn ended(&mut self, ended: Result<(Id, Result<(), BoxError>), JoinError>) -> Result<(), ManagerError> {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let place = self.running.iter().position(|task| task.id == id);
        let name = place.map(|place| self.running.remove(place).name).unwrap_or_default();
        match ended {
            Ok((_, Ok(()))) => {
                info!(task = name, "task ended");
                Ok(())
            }
            Ok((_, Err(source))) => Err(ManagerError::Task { name, source }),
            Err(source) => Err(ManagerError::TaskPanicked { name, source }),
        }
    }
}

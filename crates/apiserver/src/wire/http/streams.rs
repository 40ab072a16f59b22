//! The tasks behind the streams of an HTTP/2 connection.

use hyper::rt::Executor;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::task::{JoinError, JoinSet};

use super::panic_of;

/// The tasks of one connection. They end with it.
#[derive(Debug, Clone, Default)]
pub(super) struct Streams(Arc<Mutex<JoinSet<()>>>);

impl Streams {
    /// Aborts the remaining tasks and waits for them. Continues the panic of a task.
    pub(super) async fn end(&self) {
        let mut tasks = std::mem::take(&mut *self.0.lock());
        tasks.abort_all();
        while let Some(ended) = tasks.join_next().await {
            pass_on(ended);
        }
    }
}

/// Makes the connection panic with its stream, so that `stop` reports it.
fn pass_on(ended: Result<(), JoinError>) {
    if let Some(panic) = panic_of(ended) {
        std::panic::resume_unwind(panic);
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let mut tasks = self.0.lock();
        while let Some(ended) = tasks.try_join_next() {
            pass_on(ended);
        }
        tasks.spawn(stream);
    }
}

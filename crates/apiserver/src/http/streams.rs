//! The tasks behind the streams of an HTTP/2 connection.

use hyper::rt::Executor;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::task::JoinSet;

/// The tasks of one connection. They end with it.
#[derive(Debug, Clone, Default)]
pub(super) struct Streams(Arc<Mutex<JoinSet<()>>>);

impl Streams {
    /// Ends what is left and waits for it.
    pub(super) async fn end(&self) {
        let mut tasks = std::mem::take(&mut *self.0.lock());
        tasks.shutdown().await;
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let mut tasks = self.0.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(stream);
    }
}

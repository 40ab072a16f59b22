//! Open watches, and the events for them.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::PIECE;
use super::collection::Collection;
use super::encoding::Encoding;

/// How many pieces wait for a watch: a client that does not read delays all events.
const WAITING: usize = 4;

/// The open watches.
#[derive(Default)]
pub(super) struct Watches(Mutex<Vec<Watch>>);

#[derive(Clone)]
struct Watch {
    encoding: Encoding,
    sender: mpsc::Sender<Bytes>,
}

/// A request for changes.
pub(super) struct Batch {
    pub(super) count: usize,
    /// Changes per second; zero means as fast as they are read.
    pub(super) rate: f64,
}

impl Watches {
    /// Opens a watch, and returns the receiver of its body. The watch ends when the receiver is dropped.
    pub(super) fn open(&self, encoding: Encoding) -> mpsc::Receiver<Bytes> {
        let (sender, receiver) = mpsc::channel(WAITING);
        self.0.lock().push(Watch { encoding, sender });
        receiver
    }

    /// Sends each watch the error for a version that is too old, and ends it.
    pub(super) async fn expire(&self) {
        let watches = std::mem::take(&mut *self.0.lock());
        for Watch { encoding, sender } in watches {
            let mut event = Vec::new();
            encoding.expired(&mut event);
            // Ignored: the client may have closed the watch.
            let _ = sender.send(event.into()).await;
        }
    }

    fn open_now(&self) -> Vec<Watch> {
        let mut watches = self.0.lock();
        watches.retain(|watch| !watch.sender.is_closed());
        watches.clone()
    }
}

/// Makes the changes of all batches, and sends them to the watches.
pub(super) async fn send(
    collection: Arc<Mutex<Collection>>,
    watches: Arc<Watches>,
    mut batches: mpsc::UnboundedReceiver<Batch>,
) {
    while let Some(Batch { count, rate }) = batches.recv().await {
        let (start, mut made) = (Instant::now(), 0);
        while made < count {
            let due = if rate > 0.0 { (start.elapsed().as_secs_f64() * rate) as usize + 1 } else { count };
            let open = watches.open_now();
            let (pieces, more) = piece(&collection, &open, due.min(count) - made, rate > 0.0);
            made += more;
            for (Watch { sender, .. }, piece) in open.iter().zip(pieces) {
                // Ignored: a closed watch is removed before the next piece.
                let _ = sender.send(piece).await;
            }
            if rate > 0.0 {
                tokio::time::sleep_until(start + Duration::from_secs_f64(made as f64 / rate)).await;
            }
        }
    }
}

/// Makes up to `most` changes, and returns the piece of each watch.
fn piece(collection: &Mutex<Collection>, open: &[Watch], most: usize, timed: bool) -> (Vec<Bytes>, usize) {
    let mut collection = collection.lock();
    let mut pieces = vec![Vec::new(); open.len()];
    let mut made = 0;
    while made < most && pieces.iter().all(|piece| piece.len() < PIECE) {
        let sent = timed.then(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64);
        let number = collection.change(sent);
        for (Watch { encoding, .. }, piece) in open.iter().zip(&mut pieces) {
            encoding.event(piece, "MODIFIED", collection.kind, collection.bytes(number, *encoding));
        }
        made += 1;
    }
    (pieces.into_iter().map(Bytes::from).collect(), made)
}

//! The connections over which an elector sends its requests.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube_client::{Client, Error};
use tracing::warn;

/// Makes a client with a connection of its own.
pub(super) type Connect = dyn Fn() -> Result<Client, Error> + Send + Sync;

/// A client, with a number that identifies it.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) client: Client,
    number: u64,
}

/// The client in use, and a second one for attempts beside an unanswered one.
///
/// Without a way to connect all requests go over the client of the program.
pub(super) struct Connections {
    connect: Option<Arc<Connect>>,
    current: Connection,
    spare: Option<Connection>,
    made: u64,
}

impl Connections {
    pub(super) fn new(client: Client, connect: Option<Arc<Connect>>) -> Self {
        let mut connections = Self { connect, current: Connection { client, number: 0 }, spare: None, made: 0 };
        connections.replace();
        connections
    }

    /// Returns the client in use.
    pub(super) fn current(&self) -> Connection {
        self.current.clone()
    }

    /// Returns the client for a further attempt, after this number of unanswered ones: the second client for the first
    /// further attempt, and a new client for each one after that.
    pub(super) fn for_attempt(&mut self, unanswered: u32) -> Connection {
        if unanswered == 0 {
            return self.current();
        }
        if unanswered > 1 || self.spare.is_none() {
            self.spare = self.make().or(self.spare.take());
        }
        self.spare.clone().unwrap_or_else(|| self.current())
    }

    /// Records that a client received a response. If it is the second one, it becomes the client in use.
    pub(super) fn answered(&mut self, connection: &Connection) {
        if let Some(spare) = self.spare.take_if(|spare| spare.number == connection.number) {
            self.current = spare;
        }
    }

    /// Replaces the client in use by a new one.
    pub(super) fn replace(&mut self) {
        if let Some(made) = self.make() {
            (self.current, self.spare) = (made, None);
        }
    }

    fn make(&mut self) -> Option<Connection> {
        let connect = self.connect.clone()?;
        self.made += 1;
        match catch_unwind(AssertUnwindSafe(|| connect())) {
            Ok(Ok(client)) => Some(Connection { client, number: self.made }),
            Ok(Err(error)) => {
                warn!(%error, "cannot make a client for the election; using the existing client");
                None
            }
            Err(_) => {
                warn!("the function that makes clients for the election panicked; using the existing client");
                None
            }
        }
    }
}

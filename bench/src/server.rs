//! Replays lists, watches and events from bytes that were encoded before, so that mostly the client is measured.
//!
//! It is meant for one client at a time: a list that is read during changes may contain newer states than its version
//! says.

mod collection;
mod encoding;
mod protobuf;
mod requests;
mod watches;

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::collection::Collection;
use self::requests::Server;
use self::watches::{Watches, send};
use crate::objects::Kind;

/// Bodies are written in pieces of about this size.
const PIECE: usize = 256 * 1024;

#[derive(Args)]
pub(crate) struct Options {
    /// The number of objects.
    #[arg(long)]
    objects: usize,
    #[arg(long, value_enum, default_value_t = Kind::Pods)]
    kind: Kind,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The pods as protobuf messages, each after its length in four bytes.
    #[arg(long)]
    protobuf: Option<PathBuf>,
}

/// Serves until stdin ends.
pub(crate) async fn run(options: Options) -> io::Result<()> {
    let Options { objects, kind, seed, protobuf } = options;
    let collection = Arc::new(Mutex::new(Collection::new(kind, seed, objects, protobuf.as_deref())?));
    let (watches, (batches, received)) = (Arc::new(Watches::default()), mpsc::unbounded_channel());
    let mut tasks = JoinSet::new();
    tasks.spawn(send(collection.clone(), watches.clone(), received));
    let server = Arc::new(Server { collection, watches, batches });

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on {}", listener.local_addr()?);
    let mut input = tokio::io::stdin();
    let mut byte = [0];
    loop {
        tokio::select! {
            read = input.read(&mut byte) => if read? == 0 { return Ok(()) },
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                stream.set_nodelay(true)?;
                let server = server.clone();
                tasks.spawn(async move {
                    let answer = service_fn(|request| {
                        let server = server.clone();
                        async move { Ok::<_, Infallible>(server.answer(&request).await) }
                    });
                    // An error of a connection does not affect others.
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
                });
            }
        }
    }
}

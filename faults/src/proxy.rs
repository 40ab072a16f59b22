//! A proxy that can stop passing bytes.

use std::io;
use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Passes bytes between client and server. After `go_dead`, connections that are open stay open without passing bytes,
/// and new ones work, as if a router had forgotten the old ones.
pub(crate) struct Proxy {
    address: SocketAddr,
    dead: watch::Sender<()>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    pub(crate) async fn listen(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (dead, _) = watch::channel(());
        let wires = dead.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(pass(client, target, wires.subscribe()));
            }
        });
        Ok(Self { address, dead, _tasks: tasks })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops passing bytes on all open connections.
    pub(crate) fn go_dead(&self) {
        self.dead.send_replace(());
    }
}

async fn pass(mut client: TcpStream, target: SocketAddr, mut dead: watch::Receiver<()>) {
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    tokio::select! {
        biased;
        _ = dead.changed() => std::future::pending().await,
        _ = copy_bidirectional(&mut client, &mut server) => {}
    }
}

//! A proxy that can cut or delay connections.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Forwards bytes to a server, and can cut connections. A drop cuts all of them.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    mode: watch::Sender<Mode>,
    cuts: Arc<AtomicU64>,
    /// The task that accepts connections. It owns the tasks of the connections.
    accepting: JoinSet<()>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    Pass,
    /// Each connection ends after a random number of bytes from the server, up to this one.
    Cut(u64),
    Refuse,
    /// Bytes from the server arrive this much later.
    Delay(Duration),
}

impl Proxy {
    /// Listens on a free port of loopback, and forwards to another port. The seed decides where connections are cut.
    ///
    /// # Errors
    ///
    /// No port is free.
    pub async fn start(server: u16, seed: u64) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (mode, modes) = watch::channel(Mode::Pass);
        let cuts = Arc::new(AtomicU64::new(0));
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, server, modes, StdRng::seed_from_u64(seed), cuts.clone()));
        Ok(Self { port, mode, cuts, accepting })
    }

    /// Returns the port for clients.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Stops cutting, refusing and delaying.
    pub fn pass(&self) {
        self.mode.send_replace(Mode::Pass);
    }

    /// Cuts each connection, also the open ones, at a random byte among the next ones from the server: in the middle of
    /// a TLS record, a line or a name.
    pub fn cut_within(&self, bytes: u64) {
        self.mode.send_replace(Mode::Cut(bytes));
    }

    /// Closes all connections, and each new one at once.
    pub fn refuse(&self) {
        self.mode.send_replace(Mode::Refuse);
    }

    /// Delays all bytes from the server, and keeps their order.
    pub fn delay(&self, delay: Duration) {
        self.mode.send_replace(Mode::Delay(delay));
    }

    /// Returns how many connections were cut.
    pub fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::Relaxed)
    }

    /// Closes all connections, and waits until all tasks have ended.
    pub async fn stop(mut self) {
        self.accepting.shutdown().await;
    }
}

async fn accept(
    listener: TcpListener,
    server: u16,
    modes: watch::Receiver<Mode>,
    mut random: StdRng,
    cuts: Arc<AtomicU64>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => {
                // The client may have closed the connection before it was accepted.
                let Ok((client, _)) = accepted else { continue };
                let random = StdRng::seed_from_u64(random.random());
                let (modes, cuts) = (modes.clone(), cuts.clone());
                connections.spawn(async move {
                    if let Ok(End::Cut) = relay(client, server, modes, random).await {
                        cuts.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        }
    }
}

/// How a connection ended.
enum End {
    Closed,
    Cut,
}

/// Forwards a connection until one side closes it, or it is cut.
async fn relay(
    mut client: TcpStream,
    server: u16,
    mut modes: watch::Receiver<Mode>,
    mut random: StdRng,
) -> io::Result<End> {
    let mut allowance = |mode: Mode| match mode {
        Mode::Pass | Mode::Delay(_) => u64::MAX,
        // Small numbers are as likely as large ones, so that handshakes and headers are cut as well as bodies.
        Mode::Cut(within) => (within as f64).powf(random.random_range(0.0..1.0)) as u64,
        Mode::Refuse => 0,
    };
    let delay = |mode: Mode| if let Mode::Delay(delay) = mode { delay } else { Duration::ZERO };
    let mode = *modes.borrow_and_update();
    let (mut left, mut late) = (allowance(mode), delay(mode));
    if left == 0 {
        return Ok(End::Closed);
    }
    // Bytes from the server, with the time at which the client gets them.
    let mut under_way: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let mut server = TcpStream::connect(("127.0.0.1", server)).await?;
    let (mut from_client, mut from_server) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    loop {
        tokio::select! {
            biased;
            changed = modes.changed() => {
                changed.map_err(|_| io::ErrorKind::BrokenPipe)?;
                let mode = *modes.borrow_and_update();
                (left, late) = (allowance(mode), delay(mode));
                if left == 0 {
                    return Ok(End::Closed);
                }
            }
            () = due(&under_way) => if let Some((_, bytes)) = under_way.pop_front() {
                client.write_all(&bytes).await?;
            },
            read = client.read(&mut from_client) => match read? {
                0 => return Ok(End::Closed),
                read => server.write_all(&from_client[..read]).await?,
            },
            read = server.read(&mut from_server) => {
                let read = read?;
                if read == 0 {
                    return Ok(End::Closed);
                }
                if !late.is_zero() || !under_way.is_empty() {
                    under_way.push_back((Instant::now() + late, from_server[..read].to_vec()));
                    continue;
                }
                let passed = read.min(usize::try_from(left).unwrap_or(usize::MAX));
                client.write_all(&from_server[..passed]).await?;
                left = left.saturating_sub(read as u64);
                if left == 0 {
                    return Ok(End::Cut);
                }
            }
        }
    }
}

/// Waits until the first delayed bytes are due.
async fn due(under_way: &VecDeque<(Instant, Vec<u8>)>) {
    match under_way.front() {
        Some((at, _)) => sleep_until(*at).await,
        None => std::future::pending().await,
    }
}

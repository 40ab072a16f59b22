//! When a command ends: at a signal, or when its time is over.

use std::time::Duration;

/// Waits for Ctrl-C, SIGTERM, or the end of `duration`.
///
/// Signals count from this call on, not from the first poll: the user may send one as soon as the command prints
/// something.
pub(crate) fn after(duration: Option<Duration>) -> impl Future<Output = ()> {
    let (interrupted, terminated) = (interrupt(), terminate());
    let time = duration.map(tokio::time::sleep);
    async {
        let time = async {
            match time {
                Some(time) => time.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = interrupted => {}
            () = terminated => {}
            () = time => {}
        }
    }
}

/// Waits for the second Ctrl-C: the user does not want to wait for a graceful end.
#[cfg(unix)]
pub(crate) async fn twice() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::interrupt()) {
        Ok(mut signals) => {
            signals.recv().await;
            signals.recv().await;
        }
        // Without a handler, the first Ctrl-C ends the process.
        Err(_) => std::future::pending().await,
    }
}

/// Waits for the second Ctrl-C: the user does not want to wait for a graceful end.
#[cfg(not(unix))]
pub(crate) async fn twice() {
    for _ in 0..2 {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
fn interrupt() -> impl Future<Output = ()> {
    signal(tokio::signal::unix::SignalKind::interrupt())
}

#[cfg(unix)]
fn terminate() -> impl Future<Output = ()> {
    signal(tokio::signal::unix::SignalKind::terminate())
}

#[cfg(unix)]
fn signal(kind: tokio::signal::unix::SignalKind) -> impl Future<Output = ()> {
    let signals = tokio::signal::unix::signal(kind);
    async {
        match signals {
            Ok(mut signals) => {
                signals.recv().await;
            }
            // Without a handler, the signal ends the process.
            Err(_) => std::future::pending().await,
        }
    }
}

#[cfg(not(unix))]
async fn interrupt() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(not(unix))]
async fn terminate() {
    std::future::pending().await
}

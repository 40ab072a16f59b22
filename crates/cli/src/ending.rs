//! When a command ends: when it was told to.

use std::time::Duration;

/// Waits for Ctrl-C, a request to terminate, or until the time is over: all of them from when this is called, so that who announces
/// something afterwards can be told to end at once.
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

/// Waits until Ctrl-C was pressed twice: whoever does so does not want to wait for a graceful end.
#[cfg(unix)]
pub(crate) async fn twice() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::interrupt()) {
        Ok(mut signals) => {
            signals.recv().await;
            signals.recv().await;
        }
        // The first one then ends the process by itself.
        Err(_) => std::future::pending().await,
    }
}

/// Waits until Ctrl-C was pressed twice: whoever does so does not want to wait for a graceful end.
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
    told(tokio::signal::unix::SignalKind::interrupt())
}

#[cfg(unix)]
fn terminate() -> impl Future<Output = ()> {
    told(tokio::signal::unix::SignalKind::terminate())
}

#[cfg(unix)]
fn told(kind: tokio::signal::unix::SignalKind) -> impl Future<Output = ()> {
    let signals = tokio::signal::unix::signal(kind);
    async {
        match signals {
            Ok(mut signals) => {
                signals.recv().await;
            }
            // It then ends the process by itself, as it does with any other program.
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

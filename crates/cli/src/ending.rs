//! When a command ends by itself: when it was told to.

use std::time::Duration;

/// Waits for Ctrl-C, a request to terminate, or until the time is over.
pub(crate) async fn after(duration: Option<Duration>) {
    let time = async {
        match duration {
            Some(duration) => tokio::time::sleep(duration).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminate() => {}
        () = time => {}
    }
}

#[cfg(unix)]
async fn terminate() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut signals) => {
            signals.recv().await;
        }
        // It then ends the process by itself, as it does with any other program.
        Err(_) => std::future::pending().await,
    }
}

#[cfg(not(unix))]
async fn terminate() {
    std::future::pending().await
}

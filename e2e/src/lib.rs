//! A kube-apiserver to compare the embedded API server and the informers with.
//!
//! [`Assets`] finds or builds `kube-apiserver`, `etcd`, `kubectl`, a client-go program of ours and client-go's own
//! sample controller, at the versions that `go/go.mod` and `go-sample/go.mod` pin. [`Cluster`] runs the servers on
//! loopback, with TLS and tokens; it can be killed, paused, compacted and restored. [`Proxy`] forwards connections
//! between a client and a server, and cuts them. The tests are:
//!
//! | test | what it checks |
//! |---|---|
//! | `conformance` | the case table of the embedded server holds on kube-apiserver |
//! | `convergence` | informers of every form converge with 10,000 objects, several writers and all faults |
//! | `side_by_side` | our cache, client-go's and kube-rs' agree; client-go works with the embedded server |
//! | `webhooks` | both servers send the same reviews to webhooks, and give the same answers to clients |
//! | `peers` | test suites of other projects pass on the embedded server where they pass here; only by name |
//! | `sample_controller` | our sample controller and client-go's lead to the same end state |
//!
//! `cargo xtask e2e` runs them. Unix only: it sends signals.

mod assets;
mod cluster;
mod process;
mod proxy;

pub use assets::{Assets, AssetsError};
pub use cluster::{Cluster, ClusterError, Saved};
pub use process::Process;
pub use proxy::Proxy;

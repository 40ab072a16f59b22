//! A real API server to hold the embedded one and the informers against.
//!
//! [`Assets`] finds or builds `kube-apiserver`, `etcd`, `kubectl`, a client-go program of ours and client-go's own sample
//! controller, at the versions that `go/go.mod` and `go-sample/go.mod` pin. [`Cluster`] runs them on loopback, with TLS and
//! tokens, and can be killed, paused, compacted and restored. [`Proxy`] stands between a client and a server, and cuts
//! connections. The tests beside it say what must hold:
//!
//! | test | what it holds against what |
//! |---|---|
//! | `conformance` | the case table of the embedded server against the real one |
//! | `convergence` | informers of every form against 10,000 objects, several writers and everything that can go wrong |
//! | `side_by_side` | our cache, client-go's and kube-rs' against each other; client-go against the embedded server |
//! | `sample_controller` | what our sample controller makes of the same Foos against what client-go's own does |
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

//! Properties that hold for any input. Each function takes arbitrary bytes, and panics if a property does not hold.
//!
//! `cargo xtask fuzz` searches for such bytes; `cargo test -p kube-informer-fuzz` replays the inputs in `corpus`.

mod answers;
mod applies;
mod ask;
mod choices;
mod protobuf;
mod requests;
mod rules;
mod samples;
mod schemas;
mod subresources;
mod text;
mod things;

pub use answers::{list, watch};
pub use applies::applies;
pub use protobuf::protobuf;
pub use requests::{continue_tokens, patches, routes, writes};
pub use rules::rules;
pub use schemas::schemas;
pub use subresources::subresources;
pub use text::{keys, selectors};

/// Panics if a property does not hold for this input.
pub type Target = fn(&[u8]);

/// Every target with its name.
pub const TARGETS: [(&str, Target); 13] = [
    ("watch", watch),
    ("list", list),
    ("keys", keys),
    ("selectors", selectors),
    ("continue_tokens", continue_tokens),
    ("patches", patches),
    ("routes", routes),
    ("writes", writes),
    ("protobuf", protobuf),
    ("applies", applies),
    ("schemas", schemas),
    ("rules", rules),
    ("subresources", subresources),
];

/// Runs a future to its end on a paused clock.
fn run<R>(future: impl Future<Output = R>) -> R {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(future)
}

//! A program crashes at each of its requests, and is started again.

use std::time::Duration;

use kube_embedded_apiserver::ApiServer;
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::on_a_paused_clock;
use crate::program::{Program, Settings};
use crate::truth::{self, NAMESPACE, check_single, missing};
use crate::wire::{Cut, Wire};

/// Creates and changes owners, and deletes a child, while a program works. Returns the number of requests of the
/// program.
async fn story(streaming: bool, cut: Option<(u64, Cut)>) -> u64 {
    let server = ApiServer::builder().seed(1).build();
    let settings = Settings {
        seed: 1,
        streaming,
        warm: false,
        workers: 2,
        timeout: Some(Duration::from_secs(20)),
        scoped: false,
        hangs: false,
    };
    let wire = Wire::new(&server, 1);
    if let Some((at, cut)) = cut {
        wire.cut_at(at, cut);
    }
    let what = format!("cut {cut:?}, streaming {streaming}");
    let mut program = Program::new(wire.client(), &settings);
    program.lead();
    let steps = [|| (0, "a"), || (0, "b"), || (5, "a"), || (0, "c"), || (7, "b")];
    for (at, step) in steps.iter().enumerate() {
        let (replicas, name) = step();
        match replicas {
            0 => drop(server.create("deployments.apps", Some(NAMESPACE), truth::owner(name, 1)).unwrap()),
            replicas => {
                let patch = json!({"spec": {"replicas": replicas}});
                drop(server.patch("deployments.apps", Some(NAMESPACE), name, patch).unwrap());
            }
        }
        if at == 3 {
            // Another client deletes a child.
            let children = truth::children(&server);
            if let Some(child) = children.values().flatten().next() {
                let name = child["metadata"]["name"].as_str().unwrap();
                server.delete("configmaps", Some(NAMESPACE), name).unwrap();
            }
        }
        for _ in 0..20 {
            // The program has a different time to notice each step. A crash ends the wait at once.
            if timeout(Duration::from_millis(37 * (at as u64 + 1)), wire.crashed.notified()).await.is_ok() {
                drop(program);
                check_single(&server, &what);
                program = Program::new(wire.client(), &settings);
                program.lead();
            }
            check_single(&server, &what);
        }
    }
    let quiet = async {
        while let Some(missing) = missing(&server) {
            if wire.crashed.notified().now_or_never_once() {
                program = Program::new(wire.client(), &settings);
                program.lead();
            }
            let _ = missing;
            sleep(Duration::from_secs(1)).await;
            check_single(&server, &what);
        }
    };
    if timeout(Duration::from_secs(300), quiet).await.is_err() {
        panic!("{what}: {:?}", missing(&server));
    }
    sleep(Duration::from_secs(5)).await;
    check_single(&server, &what);
    assert_eq!(missing(&server), None, "{what}");
    program.lose().await;
    wire.requests()
}

trait NowOrNever {
    /// Polls the future once. Returns true if it is ready.
    fn now_or_never_once(self) -> bool;
}

impl<F: Future> NowOrNever for F {
    fn now_or_never_once(self) -> bool {
        futures_util::FutureExt::now_or_never(self).is_some()
    }
}

#[test]
fn a_program_may_crash_before_or_after_any_request() {
    for streaming in [true, false] {
        let requests = on_a_paused_clock(story(streaming, None));
        assert!(requests >= 8, "{requests} requests");
        for at in 0..requests {
            for cut in [Cut::Before, Cut::After] {
                on_a_paused_clock(story(streaming, Some((at, cut))));
            }
        }
    }
}

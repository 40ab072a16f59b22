//! One simulated cluster: a server, two programs of which one leads, another client that changes objects, and faults.

use std::collections::BTreeMap;
use std::time::Duration;

use kube_embedded_apiserver::{Action, ApiServer, Fault, Verb};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::on_a_paused_clock;
use crate::program::{Program, Settings};
use crate::truth::{self, NAMESPACE, check_single, missing};
use crate::wire::Wire;

/// Within this time after the last fault every owner has its child. An informer needs this long to notice that a watch
/// is silent if it does not know how often bookmarks arrive.
const RECOVERY: Duration = Duration::from_secs(900);

/// The name of an undecodable object whose owner references cannot be decoded either.
const STRANGER: &str = "stranger";

struct World {
    seed: u64,
    random: StdRng,
    server: ApiServer,
    wire: Wire,
    settings: Settings,
    programs: [Program; 2],
    leader: usize,
    /// The objects of other programs, as those programs wrote them.
    foreign: BTreeMap<String, Value>,
}

/// Runs one simulated cluster from beginning to end. Returns the number of children that were created.
pub(crate) fn simulate(seed: u64) -> u64 {
    on_a_paused_clock(async {
        let mut world = World::new(seed);
        world.live().await;
        world.calm_down().await
    })
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let server = ApiServer::builder().seed(seed).build();
        let wire = Wire::new(&server, seed);
        let settings = Settings {
            seed,
            streaming: random.random_bool(0.5),
            warm: random.random_bool(0.7),
            workers: random.random_range(1..5),
            timeout: random.random_bool(0.3).then(|| Duration::from_secs(random.random_range(2..20))),
            scoped: random.random_bool(0.4),
            hangs: random.random_bool(0.2),
        };
        let mut programs = [Program::new(wire.client(), &settings), Program::new(wire.client(), &settings)];
        programs[0].lead();
        Self { seed, random, server, wire, settings, programs, leader: 0, foreign: BTreeMap::new() }
    }

    async fn live(&mut self) {
        for _ in 0..self.random.random_range(30..120) {
            match self.random.random_range(0..100) {
                0..40 => self.write(),
                40..44 => self.make_undecodable(),
                44..45 => truth::repair_all(&self.server),
                45..55 => self.break_something(),
                55..60 => self.wire.set_trouble(*[0.0, 0.1, 0.5, 0.9].choose(&mut self.random).unwrap()),
                60..62 => self.server.faults().clear(),
                62..63 => self.wire.set_slow(self.random.random_bool(0.5)),
                63..64 => self.wire.silence(),
                64..68 => self.crash().await,
                68..72 => self.change_leader().await,
                72..76 => self.move_programs(),
                76..82 if self.settings.scoped => self.change_scope(),
                _ => self.pause().await,
            }
            self.check();
        }
    }

    fn check(&mut self) {
        check_single(&self.server, &format!("seed {}", self.seed));
        let violations = self.wire.violations();
        assert!(violations.is_empty(), "seed {}: {violations:?}", self.seed);
        for program in &mut self.programs {
            assert!(program.is_sound(), "seed {}: a run has ended", self.seed);
        }
    }

    async fn pause(&mut self) {
        for _ in 0..self.random.random_range(1..10) {
            sleep(Duration::from_millis(self.random.random_range(1..3000))).await;
            self.check();
        }
    }

    /// Changes an owner, a child, or an object of another program, as another client.
    fn write(&mut self) {
        let name = format!("f{}", self.random.random_range(0..6));
        let replicas = self.random.random_range(1..9);
        let server = &self.server;
        match self.random.random_range(0..12) {
            0..5 => _ = server.create("deployments.apps", Some(NAMESPACE), truth::owner(&name, replicas)),
            5..8 => {
                let change = json!({"spec": {"replicas": replicas}});
                _ = server.patch("deployments.apps", Some(NAMESPACE), &name, change);
            }
            8 => _ = server.delete("deployments.apps", Some(NAMESPACE), &name),
            9 | 10 => {
                let children = truth::children(server);
                let owned: Vec<_> =
                    children.iter().filter(|(uid, _)| !uid.is_empty()).flat_map(|(_, own)| own).collect();
                if let Some(child) = owned.choose(&mut self.random) {
                    server.delete("configmaps", Some(NAMESPACE), child["metadata"]["name"].as_str().unwrap()).unwrap();
                }
            }
            _ => {
                let name = format!("foreign-{}", self.random.random_range(0..3));
                let object = json!({"metadata": {"name": name}, "data": {"replicas": replicas.to_string()}});
                let written = match server.get("configmaps", Some(NAMESPACE), &name) {
                    Ok(_) => server.patch("configmaps", Some(NAMESPACE), &name, object),
                    Err(_) => server.create("configmaps", Some(NAMESPACE), object),
                };
                self.foreign.insert(name, written.unwrap());
            }
        }
    }

    /// Makes an owner or a child undecodable, or creates an undecodable object.
    fn make_undecodable(&mut self) {
        let resource = *["deployments.apps", "configmaps"].choose(&mut self.random).unwrap();
        let (_, objects) = self.server.list(resource).unwrap();
        let names: Vec<&str> = objects.iter().filter_map(|object| object["metadata"]["name"].as_str()).collect();
        let ours = |name: &&&str| !name.starts_with("foreign") && **name != STRANGER;
        if self.random.random_bool(0.1) {
            // Not even its owner references can be decoded, so it may belong to any owner.
            let stranger = json!({"metadata": {"name": STRANGER, "labels": 5, "ownerReferences": "none"}});
            self.server.put_as_is("configmaps", Some(NAMESPACE), stranger).unwrap();
        } else if let Some(name) = names.iter().filter(ours).collect::<Vec<_>>().choose(&mut self.random) {
            truth::set_undecodable(&self.server, resource, name, true);
        }
    }

    /// Adds a random fault for informers.
    fn break_something(&mut self) {
        let nth = self.random.random_range(1..5);
        let fault = match self.random.random_range(0..9) {
            0 => return self.server.disconnect_watches(),
            1 => return self.server.compact(),
            2 => Fault::error_event(*[410, 429, 500, 504].choose(&mut self.random).unwrap(), nth),
            3 => {
                let delay = Duration::from_secs(self.random.random_range(1..60));
                Fault::new(Action::DelayEvent { nth, delay }).verb(Verb::Watch)
            }
            4 => Fault::new(Action::DelayEvent { nth, delay: Duration::from_secs(10_000) }).verb(Verb::Watch),
            5 => Fault::status(*[429, 500, 503, 504].choose(&mut self.random).unwrap()).verb(Verb::Watch),
            6 => Fault::status(503).verb(Verb::List),
            7 => {
                // A permission is missing for one to three requests.
                let verb = *[Verb::List, Verb::Watch].choose(&mut self.random).unwrap();
                let resource = *["deployments.apps", "configmaps"].choose(&mut self.random).unwrap();
                Fault::status(403).verb(verb).resource(resource)
            }
            _ => Fault::end_after_events(nth),
        };
        self.server.faults().add(fault.times(self.random.random_range(1..4)));
    }

    /// Kills a process, and starts another one in its place.
    async fn crash(&mut self) {
        let at = self.random.random_range(0..2);
        self.programs[at].lose().await;
        self.programs[at] = Program::new(self.wire.client(), &self.settings);
        if at == self.leader {
            self.programs[at].lead();
        }
    }

    /// Makes the other program the leader. Its cache is filled, and may lag behind.
    async fn change_leader(&mut self) {
        let before = self.leader;
        self.leader = 1 - before;
        // Work that takes too long at the end is dropped, as when the lease is lost meanwhile.
        let limit = Duration::from_secs(self.random.random_range(0..20));
        if timeout(limit, self.programs[before].step_down()).await.is_err() {
            self.programs[before].lose().await;
        }
        self.programs[self.leader].lead();
    }

    /// Makes an informer of a program follow another namespace, or the one of all objects.
    fn change_scope(&mut self) {
        let namespace = if self.random.random_bool(0.6) { NAMESPACE } else { "elsewhere" };
        self.programs[self.random.random_range(0..2)].follow(self.random.random_bool(0.5), namespace);
    }

    /// Connects the programs to a server that receives no further changes, or back to the current one.
    fn move_programs(&mut self) {
        let behind = self.random.random_bool(0.5).then(|| {
            let behind = ApiServer::builder().seed(self.seed).build();
            behind.restore(&self.server.save());
            behind
        });
        self.wire.move_to(behind);
    }

    async fn calm_down(&mut self) -> u64 {
        self.server.faults().clear();
        self.wire.set_trouble(0.0);
        self.wire.set_slow(false);
        self.wire.move_to(None);
        truth::repair_all(&self.server);
        for (program, owners) in self.programs.iter().flat_map(|program| [(program, true), (program, false)]) {
            if self.settings.scoped {
                program.follow(owners, NAMESPACE);
            }
        }
        let _ = self.server.delete("configmaps", Some(NAMESPACE), STRANGER);
        // It takes some time until a program notices that a watch is silent.
        let quiet = async {
            while missing(&self.server).is_some() {
                sleep(Duration::from_secs(1)).await;
                check_single(&self.server, &format!("seed {}", self.seed));
            }
        };
        if timeout(RECOVERY, quiet).await.is_err() {
            let status: Vec<_> = self.programs.iter().map(Program::status).collect();
            panic!("seed {}: {:?}, {status:#?}", self.seed, missing(&self.server));
        }
        sleep(Duration::from_secs(60)).await;
        self.check();
        assert_eq!(missing(&self.server), None, "seed {}", self.seed);
        for (name, left) in &self.foreign {
            let now = self.server.get("configmaps", Some(NAMESPACE), name).unwrap();
            assert_eq!(now, *left, "seed {}: {name} was changed", self.seed);
        }
        let created = self.server.requests().iter().filter(|request| request.verb == Verb::Create).count();
        for program in &mut self.programs {
            program.lose().await;
        }
        created as u64
    }
}

//! Objects like those of a real cluster, with unique names, digests, addresses and times, all from one seed.

use clap::ValueEnum;

use crate::chance::Chance;
use crate::template::Template;

/// Pods of one service have the same environment, labels and images.
const PODS_OF_A_SERVICE: usize = 20;
const PODS_OF_A_NODE: usize = 30;
const TEAMS: usize = 50;
const TIERS: [&str; 3] = ["frontend", "backend", "data"];
/// Objects were created within `SPAN` seconds after this time, in the middle of 2025.
const EPOCH: i64 = 1_750_000_000;
const SPAN: usize = 20_000_000;

/// The version of the first object; the others follow. All versions have ten digits.
pub(crate) const FIRST_VERSION: u64 = 1_000_000_000;
/// The placeholder for the time at which an event was sent: nanoseconds in twenty digits.
pub(crate) const NEVER_SENT: &str = "00000000000000000000";
/// An event changes the ten digits after this text in the status.
pub(crate) const CHECK: &str = "check ";
pub(crate) const NEVER_CHECKED: &str = "0000000000";

/// The kind of the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Pods,
    Nodes,
    /// Small objects, of which many arrive per second.
    #[value(name = "configmaps")]
    ConfigMaps,
    /// A custom resource; its lists have their metadata at the end.
    Widgets,
}

impl Kind {
    /// Returns the path of the collection.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Pods => "/api/v1/pods",
            Self::Nodes => "/api/v1/nodes",
            Self::ConfigMaps => "/api/v1/configmaps",
            Self::Widgets => "/apis/bench.example.com/v1/widgets",
        }
    }

    /// Returns the API version and the kind.
    pub(crate) fn type_meta(self) -> (&'static str, &'static str) {
        match self {
            Self::Pods => ("v1", "Pod"),
            Self::Nodes => ("v1", "Node"),
            Self::ConfigMaps => ("v1", "ConfigMap"),
            Self::Widgets => ("bench.example.com/v1", "Widget"),
        }
    }

    fn template(self) -> Template {
        Template::new(match self {
            Self::Pods => include_str!("objects/pod.json"),
            Self::Nodes => include_str!("objects/node.json"),
            Self::ConfigMaps => include_str!("objects/configmap.json"),
            Self::Widgets => include_str!("objects/widget.json"),
        })
    }
}

/// Generates objects of one kind.
pub(crate) struct Objects {
    template: Template,
    kind: Kind,
    seed: u64,
    count: usize,
}

impl Objects {
    pub(crate) fn new(kind: Kind, seed: u64, count: usize) -> Self {
        Self { template: kind.template(), kind, seed, count }
    }

    /// Returns all objects as JSON.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Vec<u8>> {
        (0..self.count).map(|number| self.make(number))
    }

    fn make(&self, number: usize) -> Vec<u8> {
        let service = number / PODS_OF_A_SERVICE;
        let mut own = Chance::new(self.seed, "own", number);
        let mut shared = Chance::new(self.seed, "service", service);
        let node = match self.kind {
            Kind::Nodes => number,
            Kind::Pods | Kind::ConfigMaps | Kind::Widgets => own.below(self.count / PODS_OF_A_NODE),
        };
        let (app, team, hash) = (format!("service-{service}"), format!("team-{}", service % TEAMS), shared.hex(10));
        let (owner, release) = (uid(&mut shared), shared.hex(7));
        let (this, suffix, access) = (uid(&mut own), own.hex(5), own.hex(5));
        let replicas = format!("{app}-{hash}");
        let ip = format!("10.{}.{}.{}", 64 + own.below(64), own.below(256), 1 + own.below(254));
        let mut host = Chance::new(self.seed, "node", node);
        let host: [usize; 2] = [host.below(250), host.below(250)];
        let made = EPOCH + own.below(SPAN) as i64;
        self.template.fill(|hole| match hole {
            // The last two digits make the name unique.
            "name" => format!("{replicas}-{}{:02}", &suffix[..3], number % PODS_OF_A_SERVICE),
            "replicas" => replicas.clone(),
            "namespace" | "team" => team.clone(),
            "app" => app.clone(),
            "hash" => hash.clone(),
            "tier" => TIERS[service % TIERS.len()].to_owned(),
            "uid" => this.clone(),
            "owner" => owner.clone(),
            "release" => release.clone(),
            "access" => access.clone(),
            "ip" => ip.clone(),
            // The number makes the name unique.
            "node" => format!("ip-10-{}-{}-{node}.eu-central-1.compute.internal", host[0], host[1]),
            "host" => format!("10.{}.{}.{}", host[0], host[1], node % 250),
            "version" => format!("{:010}", FIRST_VERSION + number as u64),
            "sent" => NEVER_SENT.to_owned(),
            "check" => NEVER_CHECKED.to_owned(),
            _ => match hole.split_once(':').map(|(what, count)| (what, count.parse().expect("a number"))) {
                Some(("own", digits)) => own.hex(digits),
                Some(("shared", digits)) => shared.hex(digits),
                Some(("time", seconds)) => {
                    jiff::Timestamp::from_second(made + seconds as i64).expect("a time of our century").to_string()
                }
                _ => panic!("unknown hole {hole}"),
            },
        })
    }
}

fn uid(chance: &mut Chance) -> String {
    let hex = chance.hex(32);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::Value;

    use super::*;

    fn all(kind: Kind) -> Vec<Value> {
        Objects::new(kind, 1, 400).iter().map(|json| serde_json::from_slice(&json).unwrap()).collect()
    }

    #[test]
    fn objects_have_unique_names_and_a_seed_gives_the_same_objects() {
        for kind in [Kind::Pods, Kind::Nodes, Kind::ConfigMaps, Kind::Widgets] {
            let objects = all(kind);
            let names: HashSet<_> = objects.iter().map(|object| object["metadata"]["name"].to_string()).collect();
            assert_eq!(names.len(), 400);
            assert_eq!(objects, all(kind));
            let (api_version, name) = kind.type_meta();
            assert!(objects.iter().all(|object| object["kind"] == name && object["apiVersion"] == api_version));
        }
    }

    #[test]
    fn a_pod_is_as_large_as_a_typical_one() {
        let pods = all(Kind::Pods);
        let mean = |part: fn(&Value) -> &Value| pods.iter().map(|pod| part(pod).to_string().len()).sum::<usize>() / 400;
        let (whole, managed) = (mean(|pod| pod), mean(|pod| &pod["metadata"]["managedFields"]));
        assert!((8_500..9_500).contains(&whole), "{whole}");
        assert!((1_500..1_900).contains(&managed), "{managed}");
    }

    #[test]
    fn the_selected_service_has_pods() {
        let selected = |pod: &&Value| {
            pod["metadata"]["labels"]["app"] == "service-7" && pod["metadata"]["labels"]["tier"] == "backend"
        };
        assert_eq!(all(Kind::Pods).iter().filter(selected).count(), PODS_OF_A_SERVICE);
    }
}

//! Finds a resource by its name, through discovery.

use kube_client::Client;
use kube_client::core::Status;
use kube_informer::ResourceType;

use crate::cluster::Cluster;
use crate::failure::Failure;

/// A resource that a server serves, with its names.
#[derive(Debug, Clone)]
pub(crate) struct ServedResource {
    pub(crate) resource: ResourceType,
    singular: String,
    short_names: Vec<String>,
    verbs: Vec<String>,
}

/// Finds a resource by plural, singular, kind or short name, with or without its group: `deploy`, `deployments.apps`.
pub(crate) async fn find(cluster: &Cluster, name: &str) -> Result<ServedResource, Failure> {
    let offered = offered(&cluster.client).await.map_err(|error| cannot_ask(cluster, error))?;
    choose(&offered, name).cloned()
}

/// The hint for 401.
pub(crate) const CREDENTIALS: &str = "the server does not accept these credentials; check the user of the kubeconfig";

fn cannot_ask(cluster: &Cluster, error: kube_client::Error) -> Failure {
    let what = format!("cannot discover the resources of {}", cluster.url);
    match error {
        kube_client::Error::Api(status) => {
            let Status { code, reason, message, .. } = *status;
            let failure = Failure::new(what, format!("server answered {code} {reason}: {message}"));
            match code {
                401 => failure.hint(CREDENTIALS),
                403 => failure.hint("this user may not use discovery; check that it is the right user"),
                _ => failure,
            }
        }
        kube_client::Error::Auth(error) => {
            Failure::new(what, error).hint("getting credentials in the way that the kubeconfig names failed")
        }
        error => Failure::new(what, error)
            .hint("no API server answers at this address; check it in the kubeconfig, or choose another --context"),
    }
}

fn choose<'o>(offered: &'o [ServedResource], name: &str) -> Result<&'o ServedResource, Failure> {
    let (short, group) = name.split_once('.').map_or((name, None), |(short, group)| (short, Some(group)));
    let short = short.to_lowercase();
    let named = offered.iter().filter(|resource| group.is_none_or(|group| resource.is_of(group)));
    // The lowest rank wins; among equal ranks, the first in the order of discovery.
    let best = named.filter_map(|resource| Some((resource.rank(&short)?, resource))).min_by_key(|(rank, _)| *rank);
    match best {
        None => Err(unknown(offered, name, &short)),
        Some((_, found)) if !["list", "watch"].iter().all(|verb| found.verbs.iter().any(|known| known == verb)) => {
            Err(Failure::plain(format!(
                "{} cannot be watched: the server only offers to {}",
                found.resource,
                found.verbs.join(", ")
            )))
        }
        Some((_, found)) => Ok(found),
    }
}

fn unknown(offered: &[ServedResource], name: &str, short: &str) -> Failure {
    let failure = Failure::plain(format!("the server has no resource {name:?}"));
    let near = nearest(offered, short);
    match near.as_slice() {
        [] => failure.hint("use a plural, singular, kind or short name, such as pods, po or deployments.apps"),
        [one] => failure.hint(format!("did you mean {one}?")),
        [first @ .., last] => failure.hint(format!("did you mean {} or {last}?", first.join(", "))),
    }
}

/// Returns up to three names like this one, the most similar first.
fn nearest(offered: &[ServedResource], name: &str) -> Vec<String> {
    let far = (name.chars().count() / 3).max(1);
    let distance_to = |resource: &ServedResource| {
        let names = [resource.resource.plural.as_str(), &resource.singular].into_iter();
        let names = names.chain(resource.short_names.iter().map(String::as_str).filter(|short| short.len() > 2));
        names.filter(|known| !known.is_empty()).map(|known| distance(known, name)).min()
    };
    let mut near: Vec<(usize, String)> = offered
        .iter()
        .filter_map(|resource| Some((distance_to(resource)?, resource.resource.to_string())))
        .filter(|(distance, _)| *distance <= far)
        .collect();
    near.sort();
    near.dedup();
    near.into_iter().map(|(_, title)| title).take(3).collect()
}

/// Returns the number of letters to add, drop, change or swap to get from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let change = rows[i][j] + usize::from(a != b);
            let mut best = change.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

impl ServedResource {
    /// Returns the singular name in lower case: `pod`.
    pub(crate) fn singular(&self) -> String {
        if self.singular.is_empty() { self.resource.kind.to_lowercase() } else { self.singular.clone() }
    }

    /// Returns true for the group (`apps`), and for the version with the group (`v1.apps`).
    fn is_of(&self, group: &str) -> bool {
        let ResourceType { group: own, version, .. } = &self.resource;
        group == own || group.strip_prefix(&**version).and_then(|rest| rest.strip_prefix('.')) == Some(own)
    }

    /// Returns the rank of a name, the lower the better; `None` if this resource does not have the name.
    fn rank(&self, name: &str) -> Option<usize> {
        let names = [&self.resource.plural, &self.singular, &self.resource.kind.to_lowercase()];
        let position = names.iter().position(|known| **known == name);
        position.or_else(|| self.short_names.iter().any(|short| short == name).then_some(names.len()))
    }
}

/// Returns all resources of a server: the core group first, preferred versions first.
async fn offered(client: &Client) -> Result<Vec<ServedResource>, kube_client::Error> {
    let mut offered = Vec::new();
    for list in [client.list_core_api_versions_aggregated().await?, client.list_api_groups_aggregated().await?] {
        for group in list.items {
            let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
            for version in group.versions {
                let (group, version_name) = (&name, version.version.unwrap_or_default());
                offered.extend(version.resources.into_iter().map(|resource| ServedResource {
                    resource: ResourceType {
                        group: group.clone(),
                        version: version_name.clone(),
                        kind: resource.response_kind.and_then(|kind| kind.kind).unwrap_or_default(),
                        plural: resource.resource.unwrap_or_default(),
                        namespaced: resource.scope.as_deref() == Some("Namespaced"),
                    },
                    singular: resource.singular_resource.unwrap_or_default(),
                    short_names: resource.short_names,
                    verbs: resource.verbs,
                }));
            }
        }
    }
    // Servers before 1.26 do not know aggregated discovery; their answer then has none of these fields.
    if offered.is_empty() { offered_one_by_one(client).await } else { Ok(offered) }
}

/// Returns all resources of a server, with one request for each group version.
async fn offered_one_by_one(client: &Client) -> Result<Vec<ServedResource>, kube_client::Error> {
    let mut lists = Vec::new();
    for version in client.list_core_api_versions().await?.versions {
        lists.push(client.list_core_api_resources(&version).await?);
    }
    for group in client.list_api_groups().await?.groups {
        for version in group.versions {
            // The server of an aggregated API may be down; the other groups are useful anyway.
            lists.extend(client.list_api_group_resources(&version.group_version).await.ok());
        }
    }
    let mut offered = Vec::new();
    for list in lists {
        let (group, version) = list.group_version.split_once('/').unwrap_or(("", &list.group_version));
        let whole = list.resources.iter().filter(|resource| !resource.name.contains('/'));
        offered.extend(whole.map(|resource| ServedResource {
            resource: ResourceType {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: resource.kind.clone(),
                plural: resource.name.clone(),
                namespaced: resource.namespaced,
            },
            singular: resource.singular_name.clone(),
            short_names: resource.short_names.clone().unwrap_or_default(),
            verbs: resource.verbs.clone(),
        }));
    }
    Ok(offered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(group: &str, version: &str, kind: &str, short_names: &[&str]) -> ServedResource {
        ServedResource {
            resource: ResourceType {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: kind.to_owned(),
                plural: format!("{}s", kind.to_lowercase()),
                namespaced: true,
            },
            singular: kind.to_lowercase(),
            short_names: short_names.iter().map(|&name| name.to_owned()).collect(),
            verbs: vec!["list".to_owned(), "watch".to_owned()],
        }
    }

    fn cluster() -> Vec<ServedResource> {
        vec![
            resource("", "v1", "Pod", &["po"]),
            resource("", "v1", "Event", &["ev"]),
            resource("apps", "v1", "Deployment", &["deploy"]),
            resource("apps", "v1beta1", "Deployment", &["deploy"]),
            resource("events.k8s.io", "v1", "Event", &["ev"]),
            ServedResource {
                verbs: vec!["create".to_owned()],
                ..resource("authorization.k8s.io", "v1", "Review", &[])
            },
        ]
    }

    fn check(name: &str, expected: &str) {
        let cluster = cluster();
        let found =
            choose(&cluster, name).map(|ServedResource { resource, .. }| (resource.api_version(), &resource.plural));
        let found = found.map(|(api_version, plural)| format!("{api_version} {plural}"));
        assert_eq!(found.unwrap_or_else(|failure| failure.to_string()), expected, "{name}");
    }

    #[test]
    fn plural_singular_kind_and_short_name_find_a_resource() {
        for name in ["pods", "pod", "Pod", "po", "PODS"] {
            check(name, "v1 pods");
        }
        for name in ["deploy", "deployments.apps", "deployment.apps", "deployments.v1.apps"] {
            check(name, "apps/v1 deployments");
        }
    }

    #[test]
    fn the_core_group_comes_first_and_a_group_or_version_can_be_named() {
        check("events", "v1 events");
        check("events.events.k8s.io", "events.k8s.io/v1 events");
        check("deployments.v1beta1.apps", "apps/v1beta1 deployments");
    }

    #[test]
    fn an_unknown_name_suggests_similar_names() {
        check("pdos", "error: the server has no resource \"pdos\"\n\nhint: did you mean pods?");
        check("deploymnts", "error: the server has no resource \"deploymnts\"\n\nhint: did you mean deployments.apps?");
        check(
            "evnts",
            "error: the server has no resource \"evnts\"\n\nhint: did you mean events or events.events.k8s.io?",
        );
        check(
            "deployments.app",
            "error: the server has no resource \"deployments.app\"\n\nhint: did you mean deployments.apps?",
        );
        check(
            "xyzzy",
            "error: the server has no resource \"xyzzy\"\n\n\
             hint: use a plural, singular, kind or short name, such as pods, po or deployments.apps",
        );
    }

    #[test]
    fn a_resource_without_list_and_watch_is_refused() {
        check("reviews", "error: reviews.authorization.k8s.io cannot be watched: the server only offers to create");
    }
}

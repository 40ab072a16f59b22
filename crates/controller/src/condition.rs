//! Conditions: entries in the status of an object, one for each condition type.

use jiff::{Timestamp, Unit};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_client::Resource;

/// The status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// The controller does not know.
    Unknown,
}

impl ConditionStatus {
    /// Returns the status as the API server has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// Makes a condition of an object, with the current time and the generation of that object.
///
/// The reason is one word such as `ReplicasReady`. The API server refuses an empty reason.
pub fn condition(
    object: &impl Resource,
    kind: &str,
    status: impl Into<ConditionStatus>,
    reason: &str,
    message: impl Into<String>,
) -> Condition {
    Condition {
        type_: kind.to_owned(),
        status: status.into().as_str().to_owned(),
        reason: reason.to_owned(),
        message: message.into(),
        observed_generation: object.meta().generation,
        last_transition_time: Time(now()),
    }
}

/// Sets a condition in a list, and returns true if the list has changed.
///
/// A condition of the same type is replaced at its position in the list. Its last transition time changes only if its
/// status changes.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_controller::condition::{condition, set_condition};
///
/// let (mut pod, mut conditions) = (Pod::default(), Vec::new());
/// pod.metadata.generation = Some(1);
/// assert!(set_condition(&mut conditions, condition(&pod, "Ready", false, "Starting", "1 of 2 replicas")));
/// assert!(!set_condition(&mut conditions, condition(&pod, "Ready", false, "Starting", "1 of 2 replicas")));
/// assert!(set_condition(&mut conditions, condition(&pod, "Ready", true, "Started", "2 of 2 replicas")));
/// assert_eq!((conditions.len(), conditions[0].observed_generation), (1, Some(1)));
/// ```
pub fn set_condition(conditions: &mut Vec<Condition>, mut condition: Condition) -> bool {
    let Some(known) = conditions.iter_mut().find(|known| known.type_ == condition.type_) else {
        conditions.push(condition);
        return true;
    };
    if known.status == condition.status {
        condition.last_transition_time = known.last_transition_time.clone();
    }
    let changed = *known != condition;
    *known = condition;
    changed
}

/// Returns the current time in whole seconds, as the API server stores it.
fn now() -> Timestamp {
    let now = Timestamp::now();
    now.round(jiff::TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Trunc)).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    fn ready(generation: i64, status: ConditionStatus, reason: &str, time: i64) -> Condition {
        let mut pod = Pod::default();
        pod.metadata.generation = Some(generation);
        let mut ready = condition(&pod, "Ready", status, reason, "");
        ready.last_transition_time = Time(Timestamp::from_second(time).unwrap_or_default());
        ready
    }

    #[test]
    fn the_transition_time_changes_only_with_the_status() {
        use ConditionStatus::{False, True, Unknown};
        let mut conditions = Vec::new();
        let steps = [
            (1, False, "A", true, 1),
            (1, False, "A", false, 1),
            (1, False, "B", true, 1),
            (2, False, "B", true, 1),
            (2, True, "B", true, 5),
            (2, True, "C", true, 5),
            (2, Unknown, "C", true, 7),
        ];
        for (at, (generation, status, reason, changed, since)) in (1..).zip(steps) {
            assert_eq!(set_condition(&mut conditions, ready(generation, status, reason, at)), changed, "{at}");
            assert_eq!(conditions, [ready(generation, status, reason, since)], "{at}");
        }
    }

    #[test]
    fn other_conditions_keep_their_places() {
        let of = |kind: &str, reason: &str| Condition { type_: kind.to_owned(), ..ready(1, true.into(), reason, 1) };
        let mut conditions = vec![of("A", "x"), of("B", "x"), of("C", "x")];
        assert!(set_condition(&mut conditions, of("B", "y")));
        assert!(set_condition(&mut conditions, of("D", "x")));
        assert_eq!(conditions, [of("A", "x"), of("B", "y"), of("C", "x"), of("D", "x")]);
    }

    #[test]
    fn times_have_whole_seconds_so_that_a_status_equals_its_copy_in_the_cache() {
        let made = condition(&Pod::default(), "Ready", true, "A", "");
        let read: Condition = serde_json::from_value(serde_json::json!(made)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(made, read);
    }
}

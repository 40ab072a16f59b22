//! Every fault of the catalogue has a row: the server records the fault, and the client sees its effect.
//!
//! Faults that need no socket are tested in process on a paused clock, the others over HTTP.

mod list;
mod server;
mod socket;
mod watch;

use crate::support::*;
use kube_embedded_apiserver::{Action, ApiServer, Fault, Verb};
use std::time::Duration;
use tower::ServiceExt;

const SECOND: Duration = Duration::from_secs(1);
const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch=true&allowWatchBookmarks=true&timeoutSeconds=300";
/// The word for the bookmark that ends the initial events.
const END: &str = "end of initial events";

/// Makes a test of each row.
macro_rules! table {
    ($($number:literal $place:ident $proof:ident;)*) => {
        const NUMBERS: &[u8] = &[$($number),*];
        mod rows {
            $(row!($place $proof);)*
        }
    };
}

macro_rules! row {
    (socket $proof:ident) => {
        #[tokio::test]
        async fn $proof() {
            super::socket::$proof().await;
        }
    };
    (tls $proof:ident) => {
        #[cfg(feature = "tls")]
        #[tokio::test]
        async fn $proof() {
            super::socket::$proof().await;
        }
    };
    ($place:ident $proof:ident) => {
        #[tokio::test(start_paused = true)]
        async fn $proof() {
            super::$place::$proof().await;
        }
    };
}

// The number of the fault, the module of its test, and its effect. The catalogue has no faults that only a client can
// cause (such as a rotated client certificate, or too little memory). F34 and F45 are tested from the server's side.
table! {
    1  socket connections_are_refused;
    2  socket a_connection_is_reset_before_the_answer;
    3  socket a_connection_is_reset_between_events;
    4  socket a_connection_is_reset_within_an_event;
    5  watch  an_event_is_garbage_or_of_an_unknown_type;
    6  watch  a_watch_ends_right_after_its_headers;
    7  watch  a_watch_ends_before_its_initial_events_do;
    8  watch  the_end_of_the_initial_events_is_withheld;
    9  watch  initial_events_are_refused;
    10 watch  a_version_expires_within_the_stream;
    11 watch  a_version_expires_with_a_status_code;
    12 list   a_list_of_a_version_has_expired;
    13 list   history_is_lost_between_two_pages;
    14 list   requests_are_limited_with_a_time_to_wait;
    15 list   requests_are_limited_without_a_time_to_wait;
    16 list   a_list_fails;
    17 watch  a_watch_fails_to_start;
    18 list   a_version_is_too_large;
    19 watch  the_server_fails_within_the_stream;
    20 watch  lists_work_and_watches_are_refused;
    21 watch  an_event_is_sent_twice;
    22 watch  an_older_state_is_sent_after_a_newer_one;
    23 watch  events_have_a_wrong_type;
    24 watch  an_event_is_missing;
    25 watch  a_watch_receives_only_bookmarks;
    26 watch  bookmarks_show_odd_versions;
    27 server the_counter_starts_again;
    28 server a_restart_loses_history;
    29 server the_server_restarts_between_two_pages;
    30 watch  a_connection_is_open_and_silent;
    31 watch  bytes_arrive_one_by_one;
    32 server a_watch_is_flooded_and_closed;
    33 server an_object_is_huge;
    34 server a_list_is_huge_and_slow;
    35 list   the_media_type_is_wrong;
    36 list   the_media_type_is_missing;
    37 list   a_proxy_answers_with_a_page;
    38 list   a_redirect_leads_elsewhere;
    39 socket a_list_is_cut_short;
    40 list   a_list_lacks_items_or_version_or_holds_one_twice;
    41 list   a_list_is_an_unrequested_table_or_metadata;
    42 watch  an_object_is_of_another_kind_or_lacks_metadata;
    43 list   a_token_is_refused_once;
    44 list   a_token_is_refused_for_ever;
    45 tls    the_certificate_is_invalid;
    46 socket a_connection_is_closed_after_its_answers;
    47 socket a_stream_is_reset;
    48 list   a_compressed_body_has_several_members_or_is_cut_or_unrequested;
    49 server the_clock_is_wrong;
    50 watch  headers_and_events_arrive_late;
    51 server a_crd_is_deleted_and_created_again;
    52 server a_namespace_is_deleted;
    53 server an_object_leaves_a_selector_and_matches_again;
    54 server a_name_is_taken_by_another_object;
    55 list   continue_tokens_repeat_or_are_invalid;
    56 list   the_remaining_item_count_is_wrong;
    57 list   warnings_come_in_floods;
}

#[test]
fn every_fault_of_the_catalogue_has_a_row() {
    assert_eq!(NUMBERS, (1..=57).collect::<Vec<_>>());
}

/// Returns a server with the config maps `a` and `b`.
fn two() -> ApiServer {
    let server = ApiServer::builder().seed(1).bookmark_interval(60 * SECOND).build();
    put_config_map(&server, "a");
    put_config_map(&server, "b");
    server
}

/// Returns the kinds of all recorded events, in order.
fn on_record(server: &ApiServer) -> Vec<&'static str> {
    server.faults().fired().iter().map(|firing| firing.kind).collect()
}

/// Watches with a fault. Checks that the client sees `expected`, and that the fault is recorded with the watch.
async fn check_watch(action: Action, expected: &[&str]) {
    let server = two();
    let kind = action.kind();
    let id = server.faults().add(Fault::new(action.clone()).verb(Verb::Watch));
    assert_eq!(watched(&server).await, expected, "{action:?}");
    let fired = server.faults().fired();
    assert!(!fired.is_empty(), "{action:?} is not recorded");
    assert!(
        fired.iter().all(|firing| (firing.kind, firing.verb, firing.fault) == (kind, Verb::Watch, id)),
        "{fired:?}"
    );
}

/// Lists once with a fault. Checks the response, and that the fault is recorded with the list.
async fn check_list(fault: Fault, kind: &str, expect: impl FnOnce(&Answer) -> bool) {
    let server = two();
    server.faults().add(fault);
    let answer = get(&server, CONFIG_MAPS).await;
    assert!(expect(&answer), "{kind}: {answer:?}");
    assert_eq!(on_record(&server), [kind]);
    assert_eq!(server.faults().fired()[0].verb, Verb::List);
}

/// Returns what the client of a watch sees within 100 seconds, in words. A config map `c` is created after 10 seconds.
async fn watched(server: &ApiServer) -> Vec<String> {
    let mut watch = match server.clone().oneshot(request("GET", WATCH, None)).await {
        Err(_) => return vec!["refused".into()],
        Ok(response) if response.status() != 200 => return vec![response.status().as_u16().to_string()],
        Ok(response) => Watch::of(response),
    };
    let started = tokio::time::Instant::now();
    let mut words = Vec::new();
    let mut created = false;
    loop {
        let until = if created { 100 * SECOND } else { 10 * SECOND };
        let word = match watch.next_within(until.saturating_sub(started.elapsed())).await {
            Seen::Silence if created => return words,
            Seen::Silence => {
                put_config_map(server, "c");
                created = true;
                continue;
            }
            seen => seen.in_words(),
        };
        let ended = word.ends_with("end") || word.contains("broken") || word.contains("end within");
        words.push(word);
        if ended {
            return words;
        }
    }
}

impl Seen {
    fn in_words(self) -> String {
        match self {
            Self::Event(event) if ends_initial_events(&event) => END.into(),
            Self::Event(event) if event["type"] == "BOOKMARK" => "bookmark".into(),
            Self::Event(event) => told(&event),
            Self::Garbage => "garbage".into(),
            Self::End(rest) if rest.is_empty() => "end".into(),
            Self::End(_) => "end within an event".into(),
            Self::Broken(rest) if rest.is_empty() => "broken".into(),
            Self::Broken(_) => "broken within an event".into(),
            Self::Silence => "silence".into(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_faults_a_watch_sends_every_event() {
    let server = two();
    assert_eq!(watched(&server).await, ["ADDED a", "ADDED b", END, "ADDED c", "bookmark"]);
    assert!(on_record(&server).is_empty());
}
